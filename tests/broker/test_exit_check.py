"""An agent that stops with open work is told once what it owes: in its session, or in one more turn."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.command import Command
from scout.broker.local import LocalScout
from scout.model.access.token import TokenKind
from scout.model.waiting import WaitingKind
from scout.policy.limits import ExitCheck
from scout.ports import Harness
from scout.protocol.access import CreateToken
from scout.protocol.asks import MakeAsk
from scout.protocol.enrolment import Enrol, Enrolled, HookAnswer, HookEvent, ReportHook
from scout.protocol.inbox import ListDeliveries
from scout.protocol.overview import PauseScout
from scout.protocol.questions import AnswerQuestion, CreateQuestion
from scout.protocol.tree.spawn import SpawnAgents
from scout.protocol.work import CreateWork, SubmitWork, WaitWork
from scout.tree.tree_ports import build_tree_ports
from tests.broker.rig import Rig, as_test, run_scene, wait_for_end, wait_until, write_program
from tests.tree.repositories import KEY, repository


async def enrolled(rig: Rig, folder: Path, harness: str = "claude") -> tuple[LocalScout, Enrolled]:
    """A session that a person opened, and the seat of its host."""
    await asyncio.to_thread(folder.mkdir, exist_ok=True)
    seat = await rig.scout((await rig.operator(CreateToken(kind=TokenKind.HOST, label="host"))).secret)
    wish = Enrol(cwd=str(folder), harness=harness, native_session_id="n", parent_pid=77, parent_started="5")
    return seat, await seat.call(wish)


async def stop(seat: LocalScout, made: Enrolled, text: str = "") -> HookAnswer:
    return await seat.call(ReportHook(session_id=made.session.id, event=HookEvent.STOP, last_text=text))


async def owing(rig: Rig) -> tuple[LocalScout, Enrolled, LocalScout, str]:
    """A session whose agent owns a work item that it was told about."""
    seat, made = await enrolled(rig, rig.home / "talkie")
    item = await rig.operator(CreateWork(title="Fix the parser", owner_id=made.address))
    await stop(seat, made)  # hands over the message about it
    await seat.call(ReportHook(session_id=made.session.id, event=HookEvent.PROMPT_SUBMIT))
    return seat, made, await rig.scout(made.token or ""), item.id


@as_test
async def test_a_session_that_stops_is_told_once_what_it_owes(rig: Rig) -> None:
    seat, made, mine, item = await owing(rig)
    told = await stop(seat, made)
    assert told.context.startswith("Scout: before you stop, you still owe:")
    assert f'work_update {{workItemId: "{item}", state: "review", summary}}' in told.context
    assert (await stop(seat, made)) == HookAnswer()
    # Something new is told again, with what is still open.
    other = await rig.operator(CreateWork(title="Write the docs", owner_id=made.address))
    assert "Write the docs" in (await stop(seat, made)).context  # the message
    await seat.call(ReportHook(session_id=made.session.id, event=HookEvent.PROMPT_SUBMIT))
    told = await stop(seat, made)
    assert item in told.context
    assert other.id in told.context
    # What waits or is in review is not owed.
    await mine.call(SubmitWork(work_item_id=item, summary="done"))
    await mine.call(WaitWork(work_item_id=other.id, on=WaitingKind.CONDITION, ref="a release"))
    assert (await stop(seat, made)) == HookAnswer()


def run_with(exit_check: ExitCheck, tmp_path: Path, scene: Any) -> None:
    run_scene(scene, tmp_path, exit_check=exit_check)


def test_a_nudge_tells_the_person_and_lets_it_stop(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        seat, made, _, item = await owing(rig)
        told = await stop(seat, made)
        assert told.context == ""
        assert item in told.notice
        assert (await stop(seat, made)) == HookAnswer()

    run_with("nudge", tmp_path, scene)


def test_clean_says_nothing(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        seat, made, _, _ = await owing(rig)
        assert (await stop(seat, made)) == HookAnswer()

    run_with("clean", tmp_path, scene)


@as_test
async def test_a_pause_holds_nobody_back(rig: Rig) -> None:
    seat, made, _, _ = await owing(rig)
    await rig.operator(PauseScout())
    assert (await stop(seat, made)).context == ""


@as_test
async def test_an_open_question_is_owed_until_it_is_answered(rig: Rig) -> None:
    seat, made = await enrolled(rig, rig.home / "talkie")
    question = await rig.operator(CreateQuestion(to=made.address, body="Which port?"))
    await stop(seat, made)
    await seat.call(ReportHook(session_id=made.session.id, event=HookEvent.PROMPT_SUBMIT))
    told = await stop(seat, made)
    assert f'question_answer {{questionId: "{question.id}", answer}}' in told.context
    mine = await rig.scout(made.token or "")
    await mine.call(AnswerQuestion(question_id=question.id, answer="7432"))
    assert (await stop(seat, made)) == HookAnswer()


# -- turns that Scout runs ---------------------------------------------------------------------------

_NOTE = 'cat > "$WORK/new-$$"; mv "$WORK/new-$$" "$WORK/prompt-$$"; '


class Talker(Command):
    """A harness whose program is told who it is, as a model is."""

    capabilities = replace(Command.capabilities, plain_body=False)


def talkers(home: Path) -> dict[str, Harness]:
    return {"command": Talker(home / "sessions")}


def _program(rig: Rig) -> tuple[str, ...]:
    """A program that writes each prompt into a file and answers."""
    return write_program(rig.home, "noting", _NOTE + "echo done")


def prompts(rig: Rig) -> list[str]:
    return [
        path.read_text() for path in sorted(rig.home.glob("prompt-*"), key=lambda one: one.stat().st_mtime)
    ]


async def heard(rig: Rig, count: int) -> list[str]:
    async def enough() -> list[str]:
        found = await asyncio.to_thread(prompts, rig)
        return found if len(found) >= count else []

    return await wait_until(enough)


async def settled(rig: Rig) -> None:
    """Every delivery has been taken."""

    async def quiet() -> bool:
        found = (await rig.operator(ListDeliveries(target="@bow"))).items
        return all(one.state not in ("pending", "leased") for one in found)

    await wait_until(quiet)


def test_one_more_turn_says_what_is_owed(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("bow", command=_program(rig))
        item = await rig.operator(CreateWork(title="Fix the parser", owner_id="@bow"))
        found = await heard(rig, 2)
        assert f"scout work submit {item.id} TEXT" in found[1]
        await settled(rig)
        # Another turn of the session brings no further reminder.
        asked = await rig.operator(MakeAsk(to="@bow", body="hello", wait=20))
        assert asked.output == "done"
        await settled(rig)
        assert len(await heard(rig, 3)) == 3

    run_scene(scene, tmp_path, harnesses=talkers(tmp_path))


@as_test
async def test_a_program_that_reads_only_the_message_is_not_run_again(rig: Rig) -> None:
    await rig.register("bow", command=_program(rig))
    await rig.operator(CreateWork(title="Fix the parser", owner_id="@bow"))
    await heard(rig, 1)
    await settled(rig)
    assert (await rig.operator(MakeAsk(to="@bow", body="hello", wait=20))).output == "done"
    await settled(rig)
    assert [text for text in await heard(rig, 2) if "you still owe" in text] == []
    assert [one.rule for one in (await rig.operator(ListDeliveries(target="@bow"))).items].count(
        "exit_check"
    ) == 0


def test_a_nudge_waits_in_the_inbox(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("bow", command=_program(rig))
        item = await rig.operator(CreateWork(title="Fix the parser", owner_id="@bow"))
        await heard(rig, 1)

        async def told() -> bool:
            found = (await rig.operator(ListDeliveries(target="@bow"))).items
            return any(one.rule == "exit_check" and not one.wake for one in found)

        await wait_until(told)
        asked = await rig.operator(MakeAsk(to="@bow", body="hello", wait=20))
        assert asked.output == "done"
        found = await heard(rig, 2)
        assert item.id in found[-1]

    run_scene(scene, tmp_path, exit_check="nudge", harnesses=talkers(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(("commits", "turns"), [("", 2), ("git add --all && git commit -q -m x;", 1)])
def test_uncommitted_files_of_a_spawned_agent_are_owed(tmp_path: Path, commits: str, turns: int) -> None:
    root = repository(tmp_path / "home" / "arc")

    async def scene(rig: Rig) -> None:
        who = "git config user.email a@b; git config user.name a;"
        text = f"{_NOTE}{who} date +%N > new.txt; {commits} echo done"
        await rig.register("arc", project_root=str(root), command=write_program(rig.home, "busy", text))
        person = await rig.scout(directory=str(root))
        child = (await person.call(SpawnAgents(slugs=("api",)))).agents[0]
        asked = await rig.operator(MakeAsk(to=child.address, body="Write it."))
        await wait_for_end(rig, asked.flight_id)
        found = await heard(rig, turns)
        if turns == 2:
            assert f"a commit of the changes in {child.working_dir}: new.txt" in found[1]
        again = await rig.operator(MakeAsk(to=child.address, body="More.", wait=20))
        assert again.output == "done"
        assert len(await heard(rig, turns + 1)) == turns + 1

    ports = build_tree_ports(tmp_path, KEY)
    run_scene(scene, tmp_path, trees=ports, roots=(str(tmp_path),), harnesses=talkers(tmp_path))
