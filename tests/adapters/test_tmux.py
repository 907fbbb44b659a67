"""An interactive program in a pane, by the suite that every adapter runs, and what is special about panes."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.tmux.adapter import Tmux
from scout.adapters.tmux.pane import get_server
from scout.adapters.tmux.watch import Pace
from scout.base.refusal import Refused
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer
from scout.ports import (
    Accepted,
    Completed,
    Failed,
    Harness,
    HumanAnswer,
    NeedsHuman,
    RequestSettled,
    TurnUsage,
)
from tests.adapters.conformance import Conformance
from tests.adapters.turns import Turn, collect, first, run_on, turn, until
from tests.broker.rig import processes_with

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="NOT PROVED HERE: tmux is not installed"),
]

QUICK = Pace(quiet=0.15, look=0.04, ready=10, turn=15, grace=1)
TALKER = (sys.executable, "-I", str(Path(__file__).with_name("talker.py")))


@pytest.fixture
def loop() -> str:
    """The one that the daemon runs on: each turn here takes a second."""
    return "uvloop"


@pytest.fixture(autouse=True)
def _no_server_is_left(tmp_path: Path) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] (pytest calls it)
    """What a test began in panes ends with it; then tmux itself is gone, and its socket."""
    yield
    for folder in (tmp_path / "sessions").glob("*/pane"):
        asyncio.run(make(tmp_path).stop(folder.parent.name))
    assert not Path(get_server(tmp_path / "sessions").address[-1]).exists()


def make(folder: Path) -> Tmux:
    return Tmux(folder / "sessions", environment=("SCOUT_TEST_*",), pace=QUICK)


def build_turn(body: str, session: str = "") -> Turn:
    named: dict[str, Any] = {"session": session} if session else {}
    return turn(body, *TALKER, **named)


class TestTmux(Conformance):
    def make(self, folder: Path) -> Harness:
        return make(folder)

    def answering(self, body: str) -> Turn:
        return build_turn(body)

    def failing(self) -> Turn:
        return build_turn("!die it broke")

    def hanging(self) -> Turn:
        return build_turn("!hang")


def test_turns_follow_each_other_in_one_pane(tmp_path: Path) -> None:
    async def main() -> None:
        harness, session = make(tmp_path), "ses_pane"
        one = build_turn("first", session)
        events = await collect(harness, one)
        assert isinstance(events[0], Accepted)
        assert events[-2:] == [TurnUsage(prompt_tokens=2, completion_tokens=2), Completed(text="first")]
        assert (await collect(harness, build_turn("second\n\n  in three lines", session)))[-1] == Completed(
            text="second\n\n  in three lines"
        )
        assert await harness.is_warm(session)
        tailed = await harness.tail(one.spec, -1, 3)
        assert [line.text for line in tailed.lines] == ["", "  in three lines", ">"]
        opened = await harness.open(one.spec)
        assert opened.command[0] == "tmux"
        assert opened.command[-2:] == ("-t", f"={session}")
        await harness.stop(session)
        assert not await harness.is_warm(session)

    run_on("asyncio", main())


def test_no_text_leaves_its_paste(tmp_path: Path) -> None:
    """Keys of a terminal inside of a message are no keys."""
    body = "one\x1b[201~\r!die at once\x03"
    assert run_on("asyncio", collect(make(tmp_path), build_turn(body)))[-1] == Completed(
        text="one[201~\n!die at once"
    )


def test_a_question_on_the_screen_needs_a_person_whose_answer_is_typed(tmp_path: Path) -> None:
    async def asks(body: str, answer: HumanAnswer) -> tuple[NeedsHuman, str]:
        one = build_turn(body)
        harness = make(tmp_path)
        found: list[NeedsHuman] = []
        async for event in harness.deliver(one.spec, one.prompt):
            if isinstance(event, NeedsHuman):
                found.append(event)
                assert not await harness.respond(one.spec.session_id, "dlv_0-another", answer)
                assert await harness.respond(one.spec.session_id, event.request, answer)
            if isinstance(event, RequestSettled):
                assert event.request == found[0].request
            if isinstance(event, Completed):
                assert len(found) == 1
                return found[0], event.text.splitlines()[-1]
        raise AssertionError("it did not end")

    async def main() -> None:
        may, yes = await asks("!may", HumanAnswer(allow=True))
        assert (may.question, may.observed, may.kind) == ("may I go on? [y/N]", True, "permission")
        assert yes == "yes, it went on"
        assert (await asks("!may", HumanAnswer(allow=False)))[1] == "no, it did not"
        choose, chosen = await asks("!choose", HumanAnswer(allow=True))
        assert (choose.question, choose.options) == ("Do you want to proceed?", ("Yes", "Yes, always", "No"))
        assert chosen == "chosen b'1'"
        assert (await asks("!choose", HumanAnswer(allow=True, text="Yes, always")))[1] == "chosen b'2'"
        assert (await asks("!choose", HumanAnswer(allow=False)))[1] == r"chosen b'\x1b'"

    run_on("asyncio", main())


def test_another_broker_goes_on_with_a_turn_and_its_question(tmp_path: Path) -> None:
    async def main() -> None:
        one, before = build_turn("!may"), make(tmp_path)
        async for event in before.deliver(one.spec, one.prompt):
            if isinstance(event, NeedsHuman):
                break
        after = make(tmp_path)
        assert await after.inspect(one.spec.session_id, one.prompt.delivery_id) is InspectResult.TAKEN
        again = [Accepted, NeedsHuman]
        async for event in after.deliver(one.spec, one.prompt):
            if again and isinstance(event, again[0]):
                again.pop(0)
            if isinstance(event, NeedsHuman):
                assert await after.respond(one.spec.session_id, event.request, HumanAnswer(allow=True))
            if isinstance(event, Completed):
                assert event.text.endswith("yes, it went on")
        assert not again

    run_on("asyncio", main())


def test_the_credential_is_in_the_environment_and_in_no_argument_or_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCOUT_TEST_MORE", "allowed")
    monkeypatch.setenv("OTHER_SECRET", "no")

    async def main() -> None:
        harness, one = make(tmp_path), build_turn("!env SCOUT_TOKEN", "ses_env")
        spec = replace(one.spec, environment={"SCOUT_TOKEN": "sct_it's secret"})
        event, rest = await first(harness, Turn(spec, one.prompt))
        assert isinstance(event, Accepted)
        assert processes_with("sct_it's") == []
        assert (await rest)[-1] == Completed(text="sct_it's secret []")
        for name, value in (("SCOUT_TEST_MORE", "allowed"), ("OTHER_SECRET", "None")):
            ended = (await collect(harness, build_turn(f"!env {name}", "ses_env")))[-1]
            assert ended == Completed(text=f"{value} []")
        folder = tmp_path / "sessions" / "ses_env" / "pane"
        assert not (folder / "env").exists()
        assert {file.stat().st_mode & 0o077 for file in folder.iterdir()} == {0}

    run_on("asyncio", main())


def test_a_program_that_is_over_is_not_begun_again_behind_its_users_back(tmp_path: Path) -> None:
    async def main() -> None:
        harness, one = make(tmp_path), build_turn("!die the end", "ses_over")
        ended = (await collect(harness, one))[-1]
        assert ended == Failed(layer=Layer.PROCESS, reason="exit 3: the end")
        later = (await collect(harness, build_turn("hello?", "ses_over")))[-1]
        assert isinstance(later, Failed)
        assert (later.layer, later.again) == (Layer.SESSION, False)
        assert "its program has ended and cannot be resumed" in later.reason

    run_on("asyncio", main())


@pytest.mark.parametrize(
    ("command", "problem"),
    [((), "no command is set for it"), (("no-such-program",), "the program no-such-program was not found")],
)
def test_what_cannot_be_started_says_why(tmp_path: Path, command: tuple[str, ...], problem: str) -> None:
    one = turn("x", *command)
    with pytest.raises(Refused) as refused:
        run_on("asyncio", make(tmp_path).start(one.spec))
    assert problem in refused.value.diagnostic.message
    (failed,) = run_on("asyncio", collect(make(tmp_path), one))
    assert isinstance(failed, Failed)
    assert failed.missing == "binary"


def test_a_pane_that_a_person_has_is_spoken_to_and_left_alone_at_the_end(tmp_path: Path) -> None:
    """Exactly the named pane of the named tmux; Scout neither starts nor ends it."""
    socket = tmp_path / "s"
    tmux = ["tmux", "-S", str(socket), "-f", os.devnull]
    subprocess.run([*tmux, "new-session", "-d", "-s", "mine", "-x", "80", "-y", "24", *TALKER], check=True)

    async def main() -> None:
        harness, one = make(tmp_path), turn("hello")
        for wrong in (f"{socket}:min", f"{socket}:mine:%7", f"{tmp_path}/nothing:mine", "mine"):
            with pytest.raises(Refused, match="no such pane"):
                await harness.attach(one.spec, wrong)
        started = await harness.attach(one.spec, f"{socket}:mine:0.0")
        assert started.native_ids == {"pane": f"{socket}:mine:%0"}
        assert await harness.attach(one.spec, f"{socket}:mine") == started
        spec = replace(one.spec, native_ids=started.native_ids)
        assert (await collect(harness, Turn(spec, one.prompt)))[-1] == Completed(text="hello")
        await harness.stop(one.spec.session_id)

    try:
        run_on("asyncio", main())
        shown = subprocess.run([*tmux, "list-panes", "-aF", "#{pane_dead}"], capture_output=True, check=True)
        assert shown.stdout == b"0\n"
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)
        asyncio.run(until(lambda: not socket.exists() or not _answers(tmux)))


def _answers(tmux: list[str]) -> bool:
    return subprocess.run([*tmux, "list-sessions"], capture_output=True, check=False).returncode == 0


def test_it_says_what_it_does_not_enforce(tmp_path: Path) -> None:
    probe = run_on("asyncio", make(tmp_path).probe())
    assert probe.ready
    assert probe.version is not None
    assert probe.version.startswith("tmux ")
    assert "tmux enforces no permission profile" in probe.notes[0]
