"""Asks: stored whole or not at all, to agents, sessions, cards and projects."""

import asyncio
import subprocess
from pathlib import Path

import msgspec
import pytest

from scout.model.ask import IfUnreachable, ReplyMode, SessionPolicy
from scout.model.flight import FlightState
from scout.model.wire_names import to_wire
from scout.policy.limits import Limits, Periods
from scout.protocol.access import CreateCard, SetAlias, ShowCard
from scout.protocol.agents import (
    ConfigureAgent,
    Resolve,
    RetireAgent,
    ShowAgent,
)
from scout.protocol.asks import CompleteFlight, GetAsk, GetFlight, MakeAsk, RetryFlight
from scout.protocol.attention import ListAttention
from scout.protocol.channels import ListConversations
from scout.protocol.inbox import ClaimInbox
from scout.protocol.operations import build_command_line, check_remedy
from scout.protocol.sessions import ListSessions
from scout.protocol.talk import GetMessage, Reply
from tests.broker.rig import (
    Rig,
    advance_clock,
    as_test,
    event_name,
    expect_refusal,
    inbox_bodies,
    inbox_items,
    online_agent,
    read_log,
    run_scene,
    wait_for_end,
    write_program,
)


def rig_seq(rig: Rig) -> int:
    return rig.broker.glance().last_seq()


@pytest.mark.rows("R3.1-8", "R3.1-9", "R3.1-10")
@as_test
async def test_message_ask_and_flight_are_stored_together(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    before = rig_seq(rig)
    receipt = await rig.operator(MakeAsk(to="@parrot", body="hello"))
    new = [one for one in await read_log(rig) if one.seq > before]
    kinds = [event_name(one) for one in new]
    made = ["message.posted", "ask.created", "flight.queued", "delivery.requested"]
    assert [kind for kind in kinds if kind in made] == made
    assert len({one.time for one in new[: kinds.index("delivery.requested") + 1]}) == 1
    wire = to_wire(receipt)
    needed = ("conversationId", "messageId", "askId", "invocationId", "flightId", "state", "phase", "target")
    assert all(wire.get(name) for name in needed), wire
    assert wire["invocationId"] == wire["askId"]
    assert not {"endpointId", "sessionId", "workItemId", "workId", "cardId"} & wire.keys()
    await wait_for_end(rig, receipt.flight_id)
    again = await rig.operator(MakeAsk(to="@parrot", body="hello"))
    assert (again.endpoint_id or "").startswith("ept_")
    assert (again.session_id or "").startswith("ses_")
    view = await rig.operator(GetAsk(ask_id=receipt.ask_id))
    assert (view.ask.id, view.body, len(view.flights)) == (receipt.ask_id, "hello", 1)


@pytest.mark.rows("R3.1-18")
@as_test
async def test_a_refused_ask_leaves_nothing(rig: Rig) -> None:
    await rig.register("idle")
    place = rig.home / "nothing-runs-here"
    place.mkdir()
    before = rig_seq(rig)
    for request in (
        MakeAsk(to="@idle", body="do it"),
        MakeAsk(to="@nobody-at-all", body="do it"),
        MakeAsk(project_path=str(place), body="do it"),
        MakeAsk(project_path=str(place), body="do it", isolated=True),
        MakeAsk(body="to nobody"),
        MakeAsk(to="@idle", project_path=str(place), body="both"),
        MakeAsk(to="@idle", body="a\0b"),
    ):
        await expect_refusal(rig.operator(request))
    assert rig_seq(rig) == before
    assert not (await rig.operator(ListConversations())).items


@as_test
async def test_an_ask_that_nothing_can_run_is_refused_with_a_command_to_paste(rig: Rig) -> None:
    await rig.register("idle")
    told = await expect_refusal(rig.operator(MakeAsk(to="@idle", body='it\'s "quoted"')))
    assert told.code == "target_offline"
    queue = next(one for one in told.remedies if one.operation == "ask")
    assert queue.parameters["body"] == 'it\'s "quoted"'
    assert not [problem for one in told.remedies for problem in check_remedy(one)]
    assert "--if-unreachable queue" in build_command_line(queue)
    again = msgspec.convert(queue.parameters, MakeAsk)
    assert (await rig.operator(again)).state == "queued"


@pytest.mark.rows("R3.1-19", "R3.5-29")
@as_test
async def test_a_queued_ask_says_why_and_until_when_and_then_fails(rig: Rig) -> None:
    await rig.register("idle")
    receipt = await rig.operator(MakeAsk(to="@idle", body="x", if_unreachable=IfUnreachable.QUEUE))
    view = await rig.operator(GetFlight(flight_id=receipt.flight_id))
    assert (view.state, view.phase) == (FlightState.QUEUED, "held")
    assert "no harness" in view.reason
    assert receipt.reason == view.reason
    assert receipt.next_check_at == view.next_check_at
    assert view.waiting_on is not None
    assert view.waiting_on.until is not None
    assert view.waiting_on.until.since(view.created_at) == 86_400
    assert view.next_move_owner_id
    await advance_clock(rig, 3600)
    view = await rig.operator(GetFlight(flight_id=receipt.flight_id))
    assert view.state is FlightState.QUEUED
    assert view.next_check_at is not None
    assert view.next_check_at > view.updated_at
    await advance_clock(rig, 86_400)
    view = await rig.operator(GetFlight(flight_id=receipt.flight_id))
    assert (view.state, view.error and view.error.code) == (FlightState.FAILED, "target_offline")
    told = (await inbox_bodies(rig))[-1]
    assert "it expired while waiting" in told
    assert f"try: scout flight retry {receipt.flight_id}" in told


@as_test
async def test_a_queued_ask_goes_on_when_its_target_can_be_run(rig: Rig) -> None:
    await rig.register("idle")
    receipt = await rig.operator(MakeAsk(to="@idle", body="at last", if_unreachable=IfUnreachable.QUEUE))
    await rig.operator(ConfigureAgent(address="@idle", config={"harness": "echo"}))
    await advance_clock(rig, 61)
    view = await wait_for_end(rig, receipt.flight_id)
    assert (view.state, view.output, view.body) == (FlightState.COMPLETED, "at last", "at last")


@as_test
async def test_an_agent_started_by_hand_holds_its_asks_for_the_operator(rig: Rig) -> None:
    await rig.register("byhand", harness="echo", wake_policy="manual")
    receipt = await rig.operator(MakeAsk(to="@byhand", body="x"))
    view = await rig.operator(GetFlight(flight_id=receipt.flight_id))
    assert (view.state, view.phase) == (FlightState.QUEUED, "held")
    assert view.waiting_on is not None
    assert view.waiting_on.kind == "operator"
    assert view.next_move_owner_id == rig.broker.services.operator_agent
    assert "scout session start" in view.reason
    byhand = await rig.agent("byhand")
    claimed = await byhand.call(ClaimInbox())
    assert [item.delivered.ask_id for item in claimed.items] == [receipt.ask_id]
    await byhand.call(CompleteFlight(flight_id=receipt.flight_id, output="done by hand"))
    assert (await wait_for_end(rig, receipt.flight_id)).output == "done by hand"


@as_test
async def test_what_an_ask_insists_on_is_never_relaxed(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    first = await rig.operator(MakeAsk(to="@parrot", body="x", wait=20))
    assert first.output == "x"
    told = await expect_refusal(rig.operator(MakeAsk(to="@parrot", body="x", harness="command")))
    assert (told.code, told.remedies[0].operation) == ("harness_unavailable", "agent.config")
    (session,) = (await rig.operator(ListSessions(agent="@parrot"))).items
    told = await expect_refusal(
        rig.operator(MakeAsk(body="x", target_session_id=session.id, harness="command"))
    )
    assert (told.code, told.requested, told.attached) == ("harness_mismatch", "command", ("echo",))
    told = await expect_refusal(rig.operator(MakeAsk(to="@parrot", body="x", model="opus")))
    assert told.code == "model_mismatch"
    told = await expect_refusal(rig.operator(MakeAsk(to="@parrot", body="x", node="elsewhere")))
    assert told.code == "peer_unreachable"
    told = await expect_refusal(rig.operator(MakeAsk(body="x", target_session_id="ses_none")))
    assert told.code in ("no_session", "unknown_target", "not_found")
    told = await expect_refusal(rig.operator(MakeAsk(to="@parrot", body="x", target_session_id="ses_none")))
    assert told.code == "bad_request"


@as_test
async def test_a_harness_that_is_not_there_is_named(rig: Rig) -> None:
    await rig.register("bare")
    told = await expect_refusal(rig.operator(MakeAsk(to="@bare", body="x", harness="claude")))
    assert (told.code, told.harness) == ("harness_unavailable", "claude")
    told = await expect_refusal(rig.operator(MakeAsk(to="@bare", body="x", harness="command")))
    assert (told.code, told.remedies[0].operation) == ("harness_unavailable", "agent.config")


@pytest.mark.rows("R3.2-14")
@as_test
async def test_the_harness_and_model_that_were_asked_for_are_those_that_run(rig: Rig) -> None:
    command = write_program(rig.home, "says", "cat >/dev/null; echo by command")
    await rig.register("two", harness="echo", command=command)
    by_command = await rig.operator(MakeAsk(to="@two", body="x", harness="command", model="m-1", wait=20))
    assert by_command.output == "by command"
    session = next(iter((await rig.operator(ListSessions(agent="@two"))).items))
    assert (session.harness, session.model_requested) == ("command", "m-1")
    by_echo = await rig.operator(MakeAsk(to="@two", body="x", harness="echo", wait=20))
    assert by_echo.output == "x"
    assert {one.harness for one in (await rig.operator(ListSessions(agent="@two"))).items} == {
        "echo",
        "command",
    }


@as_test
async def test_an_address_that_names_a_harness_insists_on_it(rig: Rig) -> None:
    command = write_program(rig.home, "says", "cat >/dev/null; echo by command")
    await rig.register("two", harness="echo", command=command)
    receipt = await rig.operator(MakeAsk(to="@two.harness:command", body="x", wait=20))
    assert receipt.output == "by command"
    await rig.operator(SetAlias(name="pal", target="@two.harness:command"))
    by_alias = await rig.operator(MakeAsk(to="@pal", body="x", wait=20))
    assert (by_alias.output, by_alias.alias_revision) == ("by command", 1)
    view = await rig.operator(GetAsk(ask_id=by_alias.ask_id))
    assert (view.ask.harness, view.ask.alias_id) == ("command", by_alias.alias_id)


def project(folder: Path, harness: str | None = "echo") -> Path:
    (folder / ".scout").mkdir(parents=True)
    if harness:
        (folder / ".scout" / "project.toml").write_text(f'harness = "{harness}"\n')
    return folder


@pytest.mark.rows("R3.1-15", "R3.1-23")
@as_test
async def test_a_project_is_asked_through_its_agent_made_if_there_is_none(rig: Rig) -> None:
    folder = project(rig.home / "work" / "shop")
    (rig.home / "link").symlink_to(folder)
    (folder / "deep" / "er").mkdir(parents=True)
    first = await rig.operator(MakeAsk(project_path=str(folder), body="one", wait=20))
    assert (first.output, first.card_id) == ("one", None)
    for path in (rig.home / "link", folder / "deep" / "er", folder):
        again = await rig.operator(MakeAsk(project_path=str(path), body="two", wait=20))
        assert (again.target, again.output) == (first.target, "two")
    agent = await rig.operator(ShowAgent(address=first.target))
    assert (agent.definition_id, agent.project_root) == ("shop", str(folder))
    assert len(agent.sessions) == 1


def add_worktree(main: Path, tree: Path) -> None:
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(main)]
    for command in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *command], check=True)
    subprocess.run([*git, "worktree", "add", "-qb", "fix", str(tree)], check=True)


@pytest.mark.rows("R3.1-24")
@as_test
async def test_a_linked_work_tree_is_a_workspace_of_its_own(rig: Rig) -> None:
    main = project(rig.home / "repo")
    tree = rig.home / "repo-fix"
    await asyncio.to_thread(add_worktree, main, tree)
    one = await rig.operator(MakeAsk(project_path=str(main), body="x", wait=20))
    other = await rig.operator(MakeAsk(project_path=str(tree), body="y", wait=20))
    assert one.target != other.target
    assert (other.output, other.canonical) == ("y", "@repo.fix.node:mini")


@pytest.mark.rows("R3.1-21", "R3.1-22")
@as_test
async def test_project_paths_are_relative_to_who_asks(rig: Rig) -> None:
    folder = project(rig.home / "work" / "shop")
    person = await rig.scout(directory=str(rig.home / "work"))
    first = await person.call(MakeAsk(project_path="shop", body="x", wait=20))
    assert first.output == "x"
    worker = await rig.agent("worker", project_root=str(rig.home / "work"))
    assert (await worker.call(MakeAsk(project_path="./shop", body="y"))).target == first.target
    await rig.operator(ConfigureAgent(address="@worker", working_dir=str(folder / ".scout")))
    worker = await rig.agent("worker")
    assert (await worker.call(MakeAsk(project_path="..", body="z"))).target == first.target


@pytest.mark.rows("R3.1-16")
@as_test
async def test_an_isolated_worker_has_a_card_for_one_use_and_its_own_session(rig: Rig) -> None:
    folder = project(rig.home / "shop")
    plain = await rig.operator(MakeAsk(project_path=str(folder), body="x", wait=20))
    alone = await rig.operator(MakeAsk(project_path=str(folder), body="y", isolated=True, wait=20))
    assert alone.card_id is not None
    card = await rig.operator(ShowCard(card_id=alone.card_id))
    assert (card.state, card.uses, card.max_uses) == ("used", 1, 1)
    told = await expect_refusal(rig.operator(MakeAsk(to=alone.card_id, body="again")))
    assert told.code == "expired_card"
    flights = [await wait_for_end(rig, one.flight_id) for one in (plain, alone)]
    assert len({one.session_id for one in flights}) == 2
    third = await wait_for_end(
        rig, (await rig.operator(MakeAsk(project_path=str(folder), body="z"))).flight_id
    )
    assert third.session_id == flights[0].session_id


@as_test
async def test_an_exact_session_takes_it_or_nobody(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    done = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@parrot", body="x"))).flight_id)
    new = MakeAsk(to="@parrot", body="y", session_policy=SessionPolicy.NEW)
    other = await wait_for_end(rig, (await rig.operator(new)).flight_id)
    assert other.session_id != done.session_id
    for session in (done.session_id, other.session_id):
        asked = await rig.operator(MakeAsk(target_session_id=session, body="z"))
        assert asked.session_id == session
        assert (await wait_for_end(rig, asked.flight_id)).session_id == session
    detail = await rig.operator(ShowAgent(address="@parrot"))
    assert len(detail.sessions) == 2
    fork = MakeAsk(target_session_id=done.session_id, body="x", session_policy=SessionPolicy.FORK)
    told = await expect_refusal(rig.operator(fork))
    assert (told.code, told.problem) == ("bad_request", "echo cannot fork a session")


@as_test
async def test_a_card_is_a_target(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    card = await rig.operator(CreateCard(agent="@parrot", max_uses=1))
    worker = await rig.agent("worker")
    asked = await worker.call(MakeAsk(to=card.id, body="by card", wait=20))
    assert (asked.output, asked.card_id) == ("by card", card.id)
    assert (await expect_refusal(worker.call(MakeAsk(to=card.id, body="again")))).code == "expired_card"


@as_test
async def test_an_ask_may_stay_in_a_conversation(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.register("other", harness="echo")
    first = await rig.operator(MakeAsk(to="@parrot", body="x", wait=20))
    again = MakeAsk(to="@parrot", body="y", conversation_id=first.conversation_id, wait=20)
    assert (await rig.operator(again)).conversation_id == first.conversation_id
    stranger = await rig.agent("stranger")
    told = await expect_refusal(
        stranger.call(MakeAsk(to="@parrot", body="z", conversation_id=first.conversation_id))
    )
    assert told.code in ("forbidden", "not_found")


@as_test
async def test_a_work_item_that_is_not_there_is_refused(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    told = await expect_refusal(rig.operator(MakeAsk(to="@parrot", body="x", work_item_id="wrk_none")))
    assert (told.code, told.noun) == ("not_found", "work item")


@pytest.mark.rows("R3.1-26", "R3.1-28")
@as_test
async def test_the_answer_goes_where_it_was_wanted(rig: Rig) -> None:
    asker, clerk = await rig.agent("asker"), await rig.agent("clerk")
    await rig.register("parrot", harness="echo")
    for mode, expected in ((ReplyMode.NONE, 0), (ReplyMode.INLINE, 0), (ReplyMode.NOTIFY, 1)):
        asked = await asker.call(MakeAsk(to="@parrot", body=f"for {mode}", reply_mode=mode))
        view = await wait_for_end(rig, asked.flight_id)
        assert (view.body, view.output) == (f"for {mode}", f"for {mode}")
        found = [
            one for one in await inbox_items(rig, "asker") if one.message and one.message.body == view.output
        ]
        assert len(found) == expected
    item = found[0]
    assert item.message is not None
    assert item.message.in_reply_to == asked.message_id
    assert (item.message.kind, item.message.sender) == ("final", asked.target)
    assert item.message.conversation_id == asked.conversation_id
    assert not item.delivered.wake
    asked = await asker.call(MakeAsk(to="@parrot", body="for the clerk", reply_to="@clerk"))
    await wait_for_end(rig, asked.flight_id)
    assert "for the clerk" in await inbox_bodies(rig, "clerk")
    assert "for the clerk" not in await inbox_bodies(rig, "asker")
    assert clerk is not None


@pytest.mark.rows("R3.1-26")
@as_test
async def test_a_live_session_is_a_return_address(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.register("other", harness="echo")
    seen = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@other", body="x"))).flight_id)
    other = seen.session_id
    asked = await rig.operator(MakeAsk(to="@parrot", body="to that session", reply_to_session_id=other))
    await wait_for_end(rig, asked.flight_id)
    item = next(one for one in await inbox_items(rig, "other") if one.message)
    assert item.message is not None
    assert (item.message.body, item.delivered.session_id) == ("to that session", other)
    wrong = MakeAsk(to="@parrot", body="x", reply_to="@parrot", reply_to_session_id=other)
    assert (await expect_refusal(rig.operator(wrong))).code == "not_found"
    nowhere = MakeAsk(to="@parrot", body="x", reply_to_session_id="ses_none")
    assert (await expect_refusal(rig.operator(nowhere))).code == "not_found"


@as_test
async def test_retired_agents_take_no_asks(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.operator(RetireAgent(address="@parrot"))
    told = await expect_refusal(rig.operator(MakeAsk(to="@parrot", body="x")))
    assert told.code == "retired_target"
    assert told.remedies[0].operation == "agent.revive"


@as_test
async def test_whoever_is_online_in_person_is_asked_through_its_inbox(rig: Rig) -> None:
    seat = await online_agent(rig)
    endpoint = (await rig.operator(ShowAgent(address="@live"))).endpoints[0]
    asked = await rig.operator(MakeAsk(to="@live", body="please"))
    assert (asked.state, asked.phase, asked.endpoint_id) == ("queued", "accepted", endpoint.id)
    claimed = await seat.call(ClaimInbox())
    assert claimed.items[0].delivered.ask_id == asked.ask_id
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).phase == "waking"
    said = await seat.call(Reply(body="here", in_reply_to=asked.ask_id))
    view = await wait_for_end(rig, asked.flight_id)
    assert (view.output, view.completed_by, view.output_message_id) == ("here", "reply", said.message_id)
    shown = await rig.operator(GetMessage(message_id=asked.message_id))
    assert shown.replies == (said.message_id,)


@pytest.mark.rows("R0-82")
def test_too_many_asks_are_refused_with_the_limit(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("byhand", harness="echo", wake_policy="manual")
        asks = [await rig.operator(MakeAsk(to="@byhand", body=str(one))) for one in range(3)]
        told = await expect_refusal(rig.operator(MakeAsk(to="@byhand", body="more")))
        assert (told.code, told.limit) == ("rate_limited", 3)
        assert "open flights" in told.what
        byhand = await rig.agent("byhand")
        await byhand.call(CompleteFlight(flight_id=asks[0].flight_id, output="x"))
        await rig.operator(MakeAsk(to="@byhand", body="more"))
        await rig.register("other", harness="echo", wake_policy="manual")
        await rig.operator(MakeAsk(to="@other", body="x"))
        told = await expect_refusal(rig.operator(MakeAsk(to="@other", body="y")))
        assert (told.code, told.limit) == ("rate_limited", 5)
        assert "per minute" in told.what
        assert 0 < told.retry_after <= 60
        rig.clock.ahead += 61
        await rig.operator(MakeAsk(to="@other", body="y"))

    run_scene(scene, tmp_path, limits=Limits(open_flights=3, asks_per_minute=5))


def test_a_wake_budget_holds_the_ask_once_and_tells_the_operator_once(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        arc = await rig.agent("arc")
        for text in ("one", "two"):
            assert (await arc.call(MakeAsk(to="@parrot", body=text, wait=20))).output == text
        held = [await arc.call(MakeAsk(to="@parrot", body=text)) for text in ("three", "four")]
        views = [await rig.operator(GetFlight(flight_id=one.flight_id)) for one in held]
        assert [(one.phase, one.waiting_on and one.waiting_on.kind) for one in views] == [
            ("held", "operator")
        ] * 2
        assert "scout config set limits.wakesPerHour 4" in views[0].reason
        needs = await rig.operator(ListAttention())
        assert [one.title for one in needs.items] == ["agents used up the wake budget of @arc and @parrot"]
        for text in ("five", "six", "seven"):  # a person is never held by it
            assert (await rig.operator(MakeAsk(to="@parrot", body=text, wait=20))).output == text
        await advance_clock(rig, 3700)
        assert [(await wait_for_end(rig, one.flight_id)).output for one in held] == ["three", "four"]

    run_scene(scene, tmp_path, limits=Limits(wakes_per_hour=2))


def test_a_program_is_started_only_below_an_allowed_root(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    command = write_program(tmp_path, "says", "cat >/dev/null; pwd")

    async def scene(rig: Rig) -> None:
        await rig.register("runner", project_root=str(outside), command=command)
        told = await expect_refusal(rig.operator(MakeAsk(to="@runner", body="x")))
        assert (told.code, told.directory) == ("directory_not_allowed", str(outside))
        assert build_command_line(told.remedies[0]) == f"scout config roots --add {outside}"

    run_scene(scene, tmp_path, roots=(str(tmp_path / "inside"),))


def test_the_operators_own_repository_becomes_a_root(tmp_path: Path) -> None:
    repository = tmp_path / "home" / "code" / "repo"
    repository.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    command = write_program(tmp_path, "says", "cat >/dev/null; pwd")
    allowed: list[str] = []

    async def scene(rig: Rig) -> None:
        await rig.register("runner", project_root=str(repository), command=command)
        worker = await rig.agent("worker")
        assert (
            await expect_refusal(worker.call(MakeAsk(to="@runner", body="x")))
        ).code == "directory_not_allowed"
        queued = await worker.call(MakeAsk(to="@runner", body="x", if_unreachable=IfUnreachable.QUEUE))
        await advance_clock(rig, 61)
        assert (await rig.operator(GetFlight(flight_id=queued.flight_id))).phase == "held"
        receipt = await rig.operator(MakeAsk(to="@runner", body="x", wait=20))
        assert receipt.output == str(repository)
        assert receipt.notes == (f"{repository} is an allowed root from now on",)
        assert allowed == [str(repository)]
        assert not (await rig.operator(MakeAsk(to="@runner", body="x"))).notes

    run_scene(scene, tmp_path, roots=(), allow_root=allowed.append)


@as_test
async def test_a_retry_is_a_new_flight_of_the_same_ask(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    asked = await rig.operator(MakeAsk(to="@parrot", body="!fail not today"))
    assert (await wait_for_end(rig, asked.flight_id)).state is FlightState.FAILED
    again = await rig.operator(RetryFlight(flight_id=asked.flight_id))
    assert (again.ask_id, again.message_id) == (asked.ask_id, asked.message_id)
    assert again.flight_id != asked.flight_id
    view = await wait_for_end(rig, again.flight_id)
    assert (view.attempt, view.state) == (2, FlightState.FAILED)
    fine = await rig.operator(MakeAsk(to="@parrot", body="fine", wait=20))
    assert (await expect_refusal(rig.operator(RetryFlight(flight_id=fine.flight_id)))).code == "wrong_state"
    worker = await rig.agent("worker")
    assert (await expect_refusal(worker.call(RetryFlight(flight_id=again.flight_id)))).code == "forbidden"
    await rig.operator(RetireAgent(address="@parrot"))
    told = await expect_refusal(rig.operator(RetryFlight(flight_id=again.flight_id)))
    assert told.code == "retired_target"


def test_a_retry_of_a_queued_ask_may_wait_as_long_again(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("idle")
        asked = await rig.operator(MakeAsk(to="@idle", body="x", if_unreachable=IfUnreachable.QUEUE))
        await advance_clock(rig, 120)
        assert (await wait_for_end(rig, asked.flight_id)).state is FlightState.FAILED
        again = await rig.operator(RetryFlight(flight_id=asked.flight_id))
        await advance_clock(rig, 61)
        assert (await rig.operator(GetFlight(flight_id=again.flight_id))).state is FlightState.QUEUED

    run_scene(scene, tmp_path, periods=Periods(queue_expiry=100))


@as_test
async def test_resolving_and_asking_choose_the_same_endpoint(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    await rig.operator(MakeAsk(to="@parrot", body="x", wait=20))
    means = await rig.operator(Resolve(address="@parrot"))
    asked = await rig.operator(MakeAsk(to="@parrot", body="y"))
    assert asked.endpoint_id == means.endpoint_id
    assert (await wait_for_end(rig, asked.flight_id)).endpoint_id == means.endpoint_id
