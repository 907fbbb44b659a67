"""Entering agents: who is the same, who is a clone, and what is refused."""

from pathlib import Path

import pytest

from scout.model.agent import ToolRole
from scout.protocol.access import CreateToken, RotateToken, SetAlias
from scout.protocol.agents import RegisterAgent, RetireAgent, ReviveAgent, ShowAgent, Who, WhoAmI
from scout.protocol.log import ReadLog
from scout.protocol.talk import Send
from tests.broker.neighbours import draw_requests, stranger
from tests.broker.rig import Rig, as_test, expect_refusal, run_scene


def _folder(home: Path, *names: str) -> str:
    folder = home.joinpath(*names)
    folder.mkdir(parents=True)
    return str(folder)


def test_the_same_identity_from_the_same_project_is_the_same_record(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        project = _folder(tmp_path, "one", "hudson")
        first = await rig.register("Hudson", project_root=project)
        again = await rig.operator(RegisterAgent(definition_id="hudson", project_root=project))
        assert (first.created, again.created) == (True, False)
        assert again.agent.id == first.agent.id
        assert first.token is not None
        assert again.token is None
        assert first.path == "/ada/agent/hudson"
        assert first.address == "@hudson"
        assert first.minimal == "@hudson"

    run_scene(scene, tmp_path)


def test_a_clone_in_another_folder_gets_a_workspace_of_its_own(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        one, other = _folder(tmp_path, "one", "hudson"), _folder(tmp_path, "other", "hudson")
        first = await rig.operator(RegisterAgent(definition_id="hudson", project_root=one))
        clone = await rig.operator(RegisterAgent(definition_id="hudson", project_root=other))
        again = await rig.operator(RegisterAgent(definition_id="hudson", project_root=other))
        assert clone.created
        assert clone.agent.workspace is not None
        assert clone.agent.workspace.startswith("hudson-main-")
        assert len(clone.agent.workspace) == len("hudson-main-") + 6
        assert first.agent.id != clone.agent.id == again.agent.id
        assert not again.created

    run_scene(scene, tmp_path)


def test_what_is_said_again_is_changed_and_the_rest_stays(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc", harness="echo", model="large")
        again = await rig.operator(RegisterAgent(definition_id="arc", model="small"))
        assert (again.agent.config.harness, again.agent.config.model) == ("echo", "small")
        same = await rig.operator(RegisterAgent(definition_id="arc", model="small"))
        assert same.agent.revision == again.agent.revision

    run_scene(scene, tmp_path)


@as_test
async def test_only_the_operator_and_hosts_register(rig: Rig) -> None:
    arc = await rig.agent("arc")
    problem = await expect_refusal(arc.call(RegisterAgent(definition_id="mine")))
    assert problem.code == "forbidden"
    host = await rig.agent("setup", tool_role=ToolRole.HOST)
    made = await host.call(RegisterAgent(definition_id="mine"))
    assert made.created


@as_test
async def test_only_the_operator_says_which_program_runs(rig: Rig) -> None:
    host = await rig.agent("setup", tool_role=ToolRole.HOST)
    problem = await expect_refusal(host.call(RegisterAgent(definition_id="mine", command=("sh",))))
    assert problem.code == "forbidden"
    made = await rig.register("mine", command=("cat",))
    assert made.agent.config.harness == "command"
    told = await expect_refusal(rig.operator(RegisterAgent(definition_id="other", harness="nothing")))
    assert told.code == "harness_unavailable"


@pytest.mark.rows("R1.2-57")
@pytest.mark.parametrize("word", ["root", "codex", "Workspace", "self", "lock"])
def test_reserved_words_are_refused_and_nothing_is_stored(tmp_path: Path, word: str) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("arc")
        before = await rig.operator(ReadLog(limit=200))
        for request in draw_requests(RegisterAgent(definition_id=word), SetAlias(name=word, target="@arc")):
            problem = await expect_refusal(rig.operator(request))
            assert problem.code == "reserved_name"
        assert await rig.operator(ReadLog(limit=200)) == before

    run_scene(scene, tmp_path)


@as_test
async def test_a_project_whose_root_agent_is_retired_can_have_another_under_another_name(rig: Rig) -> None:
    folder = rig.home / "hudson"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    first = await rig.register("hudson", project_root=str(folder))
    assert (first.agent.birth_branch, first.agent.tool_role) == ("main", ToolRole.TL)
    again = await rig.operator(RegisterAgent(definition_id="hudson", project_root=str(folder)))
    assert again.agent.id == first.agent.id
    await rig.operator(RetireAgent(address="@hudson"))
    (folder / ".scout").mkdir()
    (folder / ".scout" / "project.toml").write_text('name = "river"\n')
    second = await rig.register("river", project_root=str(folder))
    assert (second.created, second.agent.birth_branch) == (True, None)


@pytest.mark.rows("R1.1-50")
@as_test
async def test_a_new_token_needs_the_old_one_or_the_operator(rig: Rig) -> None:
    arc, hal = await rig.agent("arc"), await rig.agent("hal")
    mine = await arc.call(WhoAmI())
    assert (await expect_refusal(arc.call(CreateToken(agent="@arc")))).code == "forbidden"
    assert (await expect_refusal(hal.call(RotateToken(token_id=mine.token_id)))).code == "forbidden"
    fresh = await arc.call(RotateToken(token_id=mine.token_id))
    assert (await expect_refusal(rig.scout(rig.tokens["arc"]))).code == "unauthenticated"
    seat = await rig.scout(fresh.secret)
    assert (await seat.call(WhoAmI())).agent_id == mine.agent_id
    another = await rig.operator(CreateToken(agent="@arc"))
    assert (await (await rig.scout(another.secret)).call(WhoAmI())).agent_id == mine.agent_id


@pytest.mark.rows("R1.1-4")
@as_test
async def test_an_id_is_never_given_out_twice(rig: Rig) -> None:
    first = await rig.register("arc")
    await rig.operator(RetireAgent(address="@arc"))
    problem = await expect_refusal(rig.operator(RegisterAgent(definition_id="arc")))
    assert problem.code == "name_taken"
    assert problem.remedies[0].operation == "agent.revive"
    revived = await rig.operator(ReviveAgent(**problem.remedies[0].parameters))
    assert revived.id == first.agent.id
    names = [await rig.register(f"a{number}") for number in range(20)]
    listed = (await rig.operator(Who(retired=True))).items
    assert len({one.agent.id for one in names} | {first.agent.id}) == 21
    assert len({one.id for one in listed}) == len(listed)


@as_test
async def test_a_name_of_another_user_is_not_handed_out(rig: Rig) -> None:
    await rig.operator(Send(to="/bob/agent/arc", body="be", create={}))
    made = await rig.register("arc")
    assert made.path == "/ada/agent/arc"
    assert (await rig.operator(ShowAgent(address="/bob/agent/arc"))).id != made.agent.id
    zed = await stranger(rig, "zed")
    problem = await expect_refusal(rig.operator(RegisterAgent(definition_id="zed", model="mine")))
    assert (problem.code, problem.holder_id) == ("name_taken", zed.id)
    shown = await rig.operator(ShowAgent(**problem.remedies[0].parameters))
    assert (shown.id, shown.config.model) == (zed.id, None)
