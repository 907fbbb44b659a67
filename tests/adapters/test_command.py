"""Any program as a harness, by the suite that every adapter runs, and what is special about programs."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.command import Command
from scout.adapters.process.run import RunLimits
from scout.base.refusal import Refused
from scout.model.delivery import InspectResult
from scout.model.problems.session import HarnessUnavailable, Layer, Missing
from scout.ports import Accepted, Completed, Failed, Harness, HarnessEvent, TurnProgress, TurnUsage
from scout.protocol.operations import build_command_line
from tests.adapters.conformance import Conformance
from tests.adapters.turns import Turn, collect, first, run_on, turn, until

QUICK = RunLimits(grace=0.3)


class TestCommand(Conformance):
    def make(self, folder: Path) -> Harness:
        return Command(folder / "sessions")

    def answering(self, body: str) -> Turn:
        return turn(body, "cat")

    def failing(self) -> Turn:
        return turn("", "sh", "-c", "echo it broke >&2; exit 3")

    def hanging(self) -> Turn:
        return turn("", "sleep", "1000")


def play_turn(tmp_path: Path, one: Turn, limits: RunLimits = QUICK) -> list[HarnessEvent]:
    return run_on("asyncio", collect(Command(tmp_path / "sessions", limits), one))


def shell(script: str, body: str = "", **more: Any) -> Turn:
    return turn(body, "sh", "-c", script, **more)


def get_failure(events: list[HarnessEvent]) -> Failed:
    last = events[-1]
    assert isinstance(last, Failed)
    return last


def test_a_turn_from_the_prompt_to_the_answer(tmp_path: Path) -> None:
    one = shell("cat; printf ' \\n\\n'; echo working >&2", text="what Scout says", body="what was asked")
    events = play_turn(tmp_path, one)
    assert isinstance(events[0], Accepted)
    assert events[0].pid is not None
    assert events[1:] == [
        TurnProgress(text="working"),
        TurnUsage(prompt_tokens=4, completion_tokens=4),
        Completed(text="what Scout says"),
    ]


def test_the_files_of_a_run_are_the_users_alone(tmp_path: Path) -> None:
    one = shell("cat; umask >&2", "secret")
    events = play_turn(tmp_path, one)
    folder = tmp_path / "sessions" / one.spec.session_id / one.prompt.delivery_id
    modes = {file.name: file.stat().st_mode & 0o777 for file in (folder, *folder.iterdir())}
    del modes["work"], modes[folder.name]
    assert modes == dict.fromkeys(("prompt", "stdout", "stderr", "exit", "pid"), 0o600)
    assert folder.stat().st_mode & 0o777 == folder.parent.stat().st_mode & 0o777 == 0o700
    assert events[1] != TurnProgress(text="0077")  # the program keeps the umask that everybody has


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "exit 3"),
        ("echo one >&2; echo two >&2; echo >&2; exit 1", "exit 1: two"),
        ("echo answer; exit 4", "exit 4"),
        ("kill -9 $$", "exit 137 (SIGKILL)"),
        ("kill -TERM $$", "exit 143 (SIGTERM)"),
        ("kill -HUP $$", "exit 129 (SIGHUP)"),
        ("exit 255", "exit 255"),
    ],
)
def test_a_program_that_fails_says_how(tmp_path: Path, script: str, reason: str) -> None:
    one = shell(script)
    folder = tmp_path / "sessions" / one.spec.session_id / one.prompt.delivery_id
    log = str(folder / "stderr")
    assert get_failure(play_turn(tmp_path, one)) == Failed(layer=Layer.PROCESS, reason=reason, log=log)


def test_a_program_that_is_not_there_is_named_before_anything_is_accepted(tmp_path: Path) -> None:
    one = turn("x", "no-such-program-here", "-v")
    (only,) = play_turn(tmp_path, one)
    assert isinstance(only, Failed)
    assert (only.layer, only.again) == (Layer.PROCESS, False)
    assert "no-such-program-here" in only.reason
    assert [build_command_line(one) for one in only.remedies] == [
        """scout agent config --set 'command=["PROGRAM", "ARGUMENT"]' @tester"""
    ]
    found = run_on(
        "asyncio", Command(tmp_path / "sessions").inspect(one.spec.session_id, one.prompt.delivery_id)
    )
    assert found is InspectResult.NOT_TAKEN


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    (only,) = play_turn(tmp_path, turn("x", "cat", cwd=tmp_path / "gone"))
    assert isinstance(only, Failed)
    assert str(tmp_path / "gone") in only.reason


@pytest.mark.parametrize("words", [("printf", "nul\0"), ("cat", "x" * 300_000)], ids=["nul", "too long"])
def test_words_that_no_system_takes_are_a_failure(tmp_path: Path, words: tuple[str, ...]) -> None:
    (only,) = play_turn(tmp_path, turn("x", *words))
    assert isinstance(only, Failed)
    assert not only.again


def test_no_program_is_refused_at_the_start_with_the_command_that_sets_one(tmp_path: Path) -> None:
    harness = Command(tmp_path / "sessions")
    with pytest.raises(Refused) as refused:
        run_on("asyncio", harness.start(turn("x").spec))
    diagnostic = refused.value.diagnostic
    assert isinstance(diagnostic, HarnessUnavailable)
    assert diagnostic.missing is Missing.BINARY
    assert [remedy.operation for remedy in diagnostic.remedies] == ["agent.config"]
    assert isinstance(play_turn(tmp_path, turn("x"))[0], Failed)


def test_a_program_runs_in_its_directory_and_is_found_from_there(tmp_path: Path) -> None:
    here = tmp_path / "a place"
    here.mkdir()
    tool = here / "tool"
    tool.write_text('#!/bin/sh\npwd; echo "$1"')
    tool.chmod(0o700)
    events = play_turn(tmp_path, turn("x", "./tool", "-a 'b' \"c\" $d", cwd=here))
    assert events[-1] == Completed(text=f"{here}\n-a 'b' \"c\" $d")


def test_a_bare_word_is_a_program_and_not_a_word_of_the_shell(tmp_path: Path) -> None:
    events = play_turn(tmp_path, turn("x", "echo", "-n", "a\\tb"))
    assert events[-1] == Completed(text="a\\tb")
    assert "not found" in get_failure(play_turn(tmp_path, turn("x", "eval", "echo hi"))).reason


def test_the_environment_is_an_allow_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCOUT_HOME", "SECRET_KEY", "AWS_SESSION_TOKEN", "LC_NOTE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, f"the broker's {name}")
    given = {"SCOUT_TOKEN": "for this run", "MULTI": "two\nlines"}
    events = play_turn(tmp_path, turn("x", "env", environment=given))
    assert isinstance(events[-1], Completed)
    text = events[-1].text
    assert "SCOUT_TOKEN=for this run" in text
    assert "MULTI=two\nlines" in text
    assert "the broker's LC_NOTE" in text
    assert "the broker's XDG_CONFIG_HOME" in text
    assert not [word for word in ("SCOUT_HOME", "SECRET", "AWS") if word in text]


def test_bytes_that_are_no_text_do_not_stop_an_answer(tmp_path: Path) -> None:
    assert play_turn(tmp_path, shell(r"printf 'a\377b'"))[-1] == Completed(text="a\ufffdb")


def test_progress_comes_while_the_program_works(tmp_path: Path) -> None:
    """Half a character is written, then the rest when the first line was seen."""
    go = tmp_path / "go"
    script = rf"echo first >&2; until test -e {go}; do sleep 0.01; done; printf '\303' >&2; sleep 0.05; printf '\244 last' >&2"

    async def main() -> list[HarnessEvent]:
        one, events = shell(script), list[HarnessEvent]()
        async for event in Command(tmp_path / "sessions").deliver(one.spec, one.prompt):
            events.append(event)
            if event == TurnProgress(text="first"):
                go.touch()
        return events

    events = run_on("asyncio", main())
    assert events[1:3] == [TurnProgress(text="first"), TurnProgress(text="ä last")]


def test_a_prompt_of_256_kib_and_a_program_that_never_reads_it(tmp_path: Path) -> None:
    body = "ä" * (128 * 1024)
    assert play_turn(tmp_path, turn(body, "cat"))[-1] == Completed(text=body)
    assert play_turn(tmp_path, shell("echo done", body))[-1] == Completed(text="done")


def test_a_program_may_close_its_output_early(tmp_path: Path) -> None:
    done = tmp_path / "done"
    events = play_turn(tmp_path, shell(f"echo out; exec >&- 2>&-; sleep 0.05; touch {done}"))
    assert events[-1] == Completed(text="out")
    assert done.exists()


def test_a_pipe_inside_the_program_breaks_as_usual(tmp_path: Path) -> None:
    """Python ignores SIGPIPE; a program that inherited that would complain, or not end at all."""
    events = play_turn(tmp_path, shell("yes | head -n 1"))
    assert events[-1] == Completed(text="y")
    assert not [event for event in events if isinstance(event, TurnProgress)]


@pytest.mark.parametrize(
    "flood", ["yes", "yes | head -c 3000000 >&2; sleep 1000", "yes | head -c 3000000; sleep 1000"]
)
def test_too_much_output_ends_it(tmp_path: Path, flood: str) -> None:
    last = get_failure(play_turn(tmp_path, shell(flood), RunLimits(flood=50_000, log=50_000)))
    assert last.layer is Layer.PROCESS
    assert last.reason.startswith("it wrote more than 50000 bytes to std")


def test_the_beginning_of_too_long_an_answer_is_kept_and_where_the_rest_is(tmp_path: Path) -> None:
    last = play_turn(tmp_path, shell("yes | head -c 60000"), RunLimits(output=50_000))[-1]
    assert isinstance(last, Completed)
    assert last.text.startswith("y\ny\n" * 1000)
    assert "[The output has 60000 bytes. This is the beginning; the rest is in " in last.text


def test_too_much_time_ends_it(tmp_path: Path) -> None:
    last = get_failure(play_turn(tmp_path, shell("sleep 1000"), RunLimits(seconds=0.1)))
    assert (last.layer, last.reason) == (Layer.PROCESS, "it took longer than 0.1 s")


def test_the_same_delivery_at_the_same_time_runs_once(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    one = shell(f"echo x >>{ran}; cat", "hello")

    async def main() -> list[list[HarnessEvent]]:
        harnesses = [Command(tmp_path / "sessions") for _ in range(5)]
        return await asyncio.gather(*(collect(harness, one) for harness in harnesses))

    every = run_on("asyncio", main())
    assert [events[-1] for events in every] == [Completed(text="hello")] * 5
    assert len({str(events[0]) for events in every}) == 1
    assert ran.read_text() == "x\n"


def test_a_stream_that_nobody_reads_any_more_does_not_end_the_run(tmp_path: Path) -> None:
    go, one = tmp_path / "go", shell(f"until test -e {tmp_path}/go; do sleep 0.01; done; echo done")

    async def main() -> None:
        harness = Command(tmp_path / "sessions")
        _, rest = await first(harness, one)
        task = asyncio.ensure_future(rest)
        task.cancel()
        await asyncio.wait({task})
        assert await harness.inspect(one.spec.session_id, one.prompt.delivery_id) is InspectResult.TAKEN
        go.touch()
        assert (await collect(harness, one))[-1] == Completed(text="done")

    run_on("asyncio", main())


def test_an_id_is_no_way_out_of_the_folder(tmp_path: Path) -> None:
    for session in ("../x", "..", "a/b", "", ".hidden", "a\0b"):
        with pytest.raises(ValueError, match="not an id"):
            play_turn(tmp_path, turn("x", "cat", session=session))


@pytest.mark.slow
def test_a_hundred_runs_at_once(loop: str, tmp_path: Path) -> None:
    turns = [shell("cat; sleep 0.2", f"turn {number}") for number in range(100)]

    async def main() -> list[list[HarnessEvent]]:
        harness = Command(tmp_path / "sessions")
        return await asyncio.gather(*(collect(harness, one) for one in turns))

    replies = [events[-1] for events in run_on(loop, main())]
    assert replies == [Completed(text=f"turn {number}") for number in range(100)]


# The broker of this test: it prints when the program has begun, and is killed then.
BROKER = """
import asyncio, sys
from pathlib import Path
from scout.adapters.command import Command
from scout.ports import Prompt, SessionSpec

async def main():
    spec = SessionSpec(session_id="ses_1", agent_id="agt_1", address="@a", command=("sh", "-c", sys.argv[2]))
    async for event in Command(Path(sys.argv[1])).deliver(spec, Prompt(delivery_id="dlv_1", text="hi", body="hi")):
        print(type(event).__name__, flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["while it works", "when it is done"])
def test_a_run_outlives_its_broker_and_happens_once(loop: str, tmp_path: Path, when: str) -> None:
    sessions, ran, go = tmp_path / "sessions", tmp_path / "ran", tmp_path / "go"
    script = f"echo x >>{ran}; until test -e {go}; do sleep 0.01; done; cat; echo there"
    one = turn("hi", "sh", "-c", script, session="ses_1", delivery="dlv_1")

    async def main() -> None:
        words = (sys.executable, "-c", BROKER, str(sessions), script)
        broker = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
        assert broker.stdout is not None
        assert await broker.stdout.readline() == b"Accepted\n"
        broker.kill()
        await broker.communicate()
        harness = Command(sessions)
        assert await harness.inspect("ses_1", "dlv_1") is InspectResult.TAKEN
        if when == "when it is done":
            go.touch()
            await until((sessions / "ses_1" / "dlv_1" / "exit").exists)
            assert await harness.inspect("ses_1", "dlv_1") is InspectResult.TAKEN
        event, rest = await first(harness, one)
        assert isinstance(event, Accepted)
        go.touch()
        assert (await rest)[-1] == Completed(text="hithere")

    run_on(loop, main())
    assert ran.read_text() == "x\n"
