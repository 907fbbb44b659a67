"""Who knocks: what is accepted, on whose behalf, and for how long."""

from scout.model.access.token import TokenKind
from scout.model.agent import ToolRole
from scout.protocol.access import CreateToken, ListTokens, RevokeToken, SetAlias
from scout.protocol.agents import ConfigureAgent, Resolve, RetireAgent, WhoAmI
from scout.protocol.scout import Credential
from scout.protocol.talk import GetMessage, Send
from tests.broker.neighbours import stranger
from tests.broker.rig import Rig, as_test, expect_refusal


@as_test
async def test_without_a_known_credential_nobody_is_admitted(rig: Rig) -> None:
    for secret in (None, "", "sct_nothing", "\udcff"):
        problem = await expect_refusal(rig.broker.admit(Credential(secret=secret)))
        assert problem.code == "unauthenticated"
        assert problem.remedies


@as_test
async def test_a_credential_runs_out(rig: Rig) -> None:
    await rig.register("arc")
    minted = await rig.operator(CreateToken(agent="@arc", expires_in=60))
    seat = await rig.scout(minted.secret)
    assert (await seat.call(WhoAmI())).canonical == "@arc.node:mini"
    rig.clock.ahead += 61
    problem = await expect_refusal(rig.scout(minted.secret))
    assert problem.code == "unauthenticated"
    assert "expired" in problem.message


@as_test
async def test_the_sender_is_who_the_credential_stands_for(rig: Rig) -> None:
    made = await rig.register("arc")
    await rig.register("hal")
    arc = await rig.agent("arc")
    sent = await arc.call(Send(to="@hal", body="hello"))
    assert (await arc.call(GetMessage(message_id=sent.message_id))).sender == made.agent.id


@as_test
async def test_acting_for_another_needs_the_right_to(rig: Rig) -> None:
    made = await rig.register("arc")
    await rig.register("hal")
    zed = await stranger(rig)
    acting = await rig.scout(act_as="@arc")
    me = await acting.call(WhoAmI())
    assert (me.agent_id, me.kind) == (made.agent.id, "agent")
    sent = await acting.call(Send(to="@hal", body="hello"))
    assert (await acting.call(GetMessage(message_id=sent.message_id))).sender == made.agent.id
    assert (await expect_refusal(acting.call(ListTokens()))).code == "forbidden"
    arc = rig.tokens["arc"]
    assert (await (await rig.scout(arc, act_as="@arc")).call(WhoAmI())).agent_id == made.agent.id
    assert (await expect_refusal(rig.scout(arc, act_as="@hal"))).code == "forbidden"
    assert (await expect_refusal(rig.scout(arc, act_as="operator"))).code == "forbidden"
    assert (await expect_refusal(rig.scout(act_as=zed.id))).code == "forbidden"
    assert (await expect_refusal(rig.scout(act_as="@nobody"))).code == "unknown_target"
    guest = await rig.operator(CreateToken(kind=TokenKind.GUEST))
    assert (await expect_refusal(rig.scout(guest.secret, act_as="@arc"))).code == "forbidden"
    await rig.operator(RetireAgent(address="@arc"))
    assert (await expect_refusal(rig.scout(act_as="@arc"))).code == "retired_target"


@as_test
async def test_acting_for_an_alias_follows_the_alias(rig: Rig) -> None:
    arc, hal = await rig.register("arc"), await rig.register("hal")
    await rig.operator(SetAlias(name="friend", target="@arc"))
    seat = await rig.scout(act_as="@friend")
    assert (await seat.call(WhoAmI())).agent_id == arc.agent.id
    await rig.operator(SetAlias(name="friend", target="@hal"))
    seat = await rig.scout(act_as="@friend")
    assert (await seat.call(WhoAmI())).agent_id == hal.agent.id


@as_test
async def test_a_person_looks_from_their_folder_and_an_agent_from_its_own(rig: Rig) -> None:
    one, other = rig.home / "one", rig.home / "other"
    for folder in (one, other):
        folder.mkdir()
    made = await rig.register("one", project_root=str(one))
    await rig.register("other", project_root=str(other))
    person = await rig.scout(directory=str(one))
    assert (await person.call(Resolve(address="root"))).agent_id == made.agent.id
    agent = await rig.scout(rig.tokens["other"], directory=str(one))
    assert (await agent.call(Resolve(address="root"))).path == "/ada/agent/other"
    nowhere = await rig.scout(directory=str(rig.home / "missing"))
    assert (await expect_refusal(nowhere.call(Resolve(address="root")))).code == "unknown_target"


@as_test
async def test_a_folder_is_looked_at_again_after_a_moment(rig: Rig) -> None:
    folder = rig.home / "repository"
    (folder / ".git" / "objects").mkdir(parents=True)
    (folder / ".git" / "refs").mkdir()
    head = folder / ".git" / "HEAD"
    head.write_text("ref: refs/heads/main\n")
    assert (await rig.scout(directory=str(folder))).who.caller.root_branch == "main"
    head.write_text("ref: refs/heads/next\n")
    rig.clock.ahead += 3
    assert (await rig.scout(directory=str(folder))).who.caller.root_branch == "next"


@as_test
async def test_an_admission_is_kept_until_what_decided_it_changes(rig: Rig) -> None:
    """A token of another program ends at every turn; it concerns nobody else."""
    await rig.register("arc")
    await rig.register("hal")
    own, acting, other = await rig.scout(), await rig.scout(act_as="@arc"), await rig.scout(rig.tokens["hal"])
    minted = await rig.operator(CreateToken(agent="@arc"))
    await rig.scout(minted.secret)
    await rig.operator(RevokeToken(token_id=minted.token.id))
    assert (await expect_refusal(rig.scout(minted.secret))).code == "unauthenticated"
    assert (await rig.scout()).who is own.who
    assert (await rig.scout(act_as="@arc")).who is acting.who
    await rig.operator(ConfigureAgent(address="@hal", tool_role=ToolRole.WORKER))
    assert (await rig.scout()).who is own.who
    assert (await rig.scout(act_as="@arc")).who is not acting.who
    assert (await rig.scout(rig.tokens["hal"])).who is not other.who


@as_test
async def test_who_one_is_follows_every_change_at_once(rig: Rig) -> None:
    """The answer is kept between questions, and never past a change."""
    arc = await rig.agent("arc")
    assert (await arc.call(WhoAmI())).minimal == "@arc"
    assert await arc.call(WhoAmI()) is await arc.call(WhoAmI())
    await rig.operator(ConfigureAgent(address="arc", tool_role=ToolRole.WORKER))
    assert (await arc.call(WhoAmI())).role == "worker"
    await rig.operator(SetAlias(name="a", target="arc"))
    assert (await arc.call(WhoAmI())).minimal == "@a"
    assert (await (await rig.scout()).call(WhoAmI())).kind == "operator"
