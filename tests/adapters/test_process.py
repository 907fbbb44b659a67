"""Nothing is left behind: stopping a run ends all it started; what is gone is not taken for alive."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scout.adapters.command import Command
from scout.adapters.process import process_table
from scout.adapters.process.process_table import ProcessId, is_alive, list_family, list_processes, send_signal
from scout.adapters.process.run import Run, RunLimits, RunState
from scout.model.delivery import InspectResult
from scout.ports import Accepted, Completed, Failed
from tests.adapters.turns import Turn, collect, first, run_on, turn, until

# A program with a child of its own, one that began a session of its own, and that one's child.
FAMILY = """
echo $$ >>{0}
sleep 1000 &
echo $! >>{0}
setsid sh -c 'echo $$ >>{0}; trap "" TERM; sleep 1000 & echo $! >>{0}; touch {0}.ready; wait' &
{1}
"""


def _pids(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().split()]


def _alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if (entry := list_processes().get(pid)) and not entry.zombie]


def _folder(tmp_path: Path, one: Turn) -> Path:
    return tmp_path / "sessions" / one.spec.session_id / one.prompt.delivery_id


@pytest.mark.slow
@pytest.mark.parametrize("last", ["wait", 'trap "" TERM; while :; do sleep 1; done', "exec sleep 1000"])
@pytest.mark.parametrize("how", ["interrupt", "stop", "time limit", "after a restart"])
def test_all_that_a_run_started_ends_with_it(loop: str, tmp_path: Path, how: str, last: str) -> None:
    pids, one = tmp_path / "pids", turn("", "sh", "-c", FAMILY.format(tmp_path / "pids", last))
    names = one.spec.session_id, one.prompt.delivery_id
    limits = RunLimits(grace=0.2, seconds=1.0 if how == "time limit" else 1000)

    async def main() -> None:
        harness = Command(tmp_path / "sessions", limits)
        event, rest = await first(harness, one)
        assert isinstance(event, Accepted)
        await until(Path(f"{pids}.ready").exists)
        assert len(_alive(_pids(pids))) == 4
        if how == "interrupt":
            assert await harness.interrupt(*names)
        elif how == "stop":
            await harness.stop(names[0])
        elif how == "after a restart":
            assert await Command(tmp_path / "sessions", limits).interrupt(*names)
        assert isinstance((await rest)[-1], Failed)
        assert _alive(_pids(pids)) == []
        assert await harness.inspect(*names) is InspectResult.TAKEN

    run_on(loop, main())


def test_what_a_finished_program_left_in_its_session_ends(loop: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    one = turn("", "sh", "-c", f"sleep 1000 & echo $! >{pids}; echo done")
    events = run_on(loop, collect(Command(tmp_path / "sessions"), one))
    assert events[-1] == Completed(text="done")
    assert _alive(_pids(pids)) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system shows no environments")
def test_what_a_finished_program_left_outside_its_session_ends(loop: str, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    stray = f"setsid sh -c 'echo $$ >{pids}; exec sleep 1000' & until [ -s {pids} ]; do sleep 0.01; done; echo done"
    events = run_on(loop, collect(Command(tmp_path / "sessions"), turn("", "sh", "-c", stray)))
    assert events[-1] == Completed(text="done")
    assert _alive(_pids(pids)) == []


def test_a_stop_is_not_cut_short_by_cancelling_its_caller(loop: str, tmp_path: Path) -> None:
    ready, one = tmp_path / "ready", turn("", "sh", "-c", f'trap "" TERM; touch {tmp_path}/ready; sleep 1000')
    names = one.spec.session_id, one.prompt.delivery_id

    async def main() -> None:
        harness = Command(tmp_path / "sessions", RunLimits(grace=0.2))
        _, rest = await first(harness, one)
        await until(ready.exists)
        task = asyncio.create_task(harness.interrupt(*names))
        await until((_folder(tmp_path, one) / "stopped").exists)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert Run(_folder(tmp_path, one)).members() == set()
        assert isinstance((await rest)[-1], Failed)

    run_on(loop, main())


def test_a_program_that_ends_well_when_asked_was_still_interrupted(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    one = turn("", "sh", "-c", f"trap 'echo bye; exit 0' TERM; touch {ready}; while :; do sleep 0.01; done")

    async def main() -> None:
        harness = Command(tmp_path / "sessions", RunLimits(grace=60))
        _, rest = await first(harness, one)
        await until(ready.exists)
        began = time.monotonic()
        assert await harness.interrupt(one.spec.session_id, one.prompt.delivery_id)
        assert time.monotonic() - began < 30  # it went when it was asked
        last = (await rest)[-1]
        assert isinstance(last, Failed)
        assert last.reason == "interrupted"
        assert (_folder(tmp_path, one) / "stdout").read_text() == "bye\n"

    run_on("asyncio", main())


def test_a_run_whose_process_is_gone_without_a_word_is_unknown_and_not_started_again(tmp_path: Path) -> None:
    ran, one = tmp_path / "ran", turn("", "sh", "-c", f"echo x >>{tmp_path}/ran; exec sleep 1000")
    names = one.spec.session_id, one.prompt.delivery_id

    async def main() -> None:
        harness = Command(tmp_path / "sessions", RunLimits(grace=0.2))
        event, rest = await first(harness, one)
        await until(lambda: ran.exists() and ran.read_text() == "x\n")
        assert isinstance(event, Accepted)
        assert event.pid is not None
        os.killpg(event.pid, signal.SIGKILL)
        told = (await rest)[-1]
        assert isinstance(told, Failed)
        assert "may have done its work" in told.reason
        assert await harness.inspect(*names) is InspectResult.UNKNOWN
        assert (await collect(harness, one))[-1] == told

    run_on("asyncio", main())
    assert ran.read_text() == "x\n"


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({}, RunState.ABSENT),
        ({"prompt": "hi"}, RunState.ABSENT),
        ({"pid": ""}, RunState.LOST),
        ({"pid": "1\n"}, RunState.LOST),
        ({"pid": "ours"}, RunState.RUNNING),
        ({"pid": "ours", "exit": ""}, RunState.RUNNING),
        ({"pid": "ours", "exit": "0\n"}, RunState.ENDED),
        ({"pid": "ours", "stopped": "why"}, RunState.RUNNING),
        ({"pid": "another start"}, RunState.LOST),
        ({"pid": "another boot"}, RunState.LOST),
        ({"pid": "another boot", "exit": "0\n"}, RunState.ENDED),
        ({"pid": "another boot", "stopped": "why"}, RunState.ENDED),
    ],
)
def test_what_the_files_of_a_run_say(tmp_path: Path, files: dict[str, str], state: RunState) -> None:
    me, boot = list_processes()[os.getpid()].identity, process_table.read_boot_id()
    pids = {
        "ours": f"{me.pid}\n{me.started}\n{boot}\n",
        "another start": f"{me.pid}\n1\n{boot}\n",
        "another boot": f"{me.pid}\n{me.started}\nearlier\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(pids.get(text, text))
    run = Run(tmp_path)
    assert run.state() is state
    if files.get("pid") in {"another start", "another boot"}:
        assert run.members() == set()  # a stranger has that number now


def test_a_process_is_its_pid_and_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as child:
        for proc in (True, False):
            monkeypatch.setattr(process_table, "_PROC", proc)
            one = list_processes()[child.pid].identity
            assert is_alive(one)
            assert list_family(one) == {one}
            stranger = ProcessId(one.pid, "another time")
            assert not is_alive(stranger)
            assert list_family(stranger) == set()
            send_signal(stranger, signal.SIGKILL)
            assert is_alive(one)
        send_signal(one, signal.SIGKILL)
        deadline = time.monotonic() + 60
        while is_alive(one) and time.monotonic() < deadline:
            pass
        assert list_family(one) == set()  # a zombie is nobody


def test_a_run_holds_no_file_of_its_broker(tmp_path: Path) -> None:
    """Or whoever waits for the end of that file would wait for the run as well."""
    reader, writer = os.pipe()
    try:
        os.set_inheritable(writer, True)
        listing = run_on("asyncio", collect(Command(tmp_path / "sessions"), turn("", "ls", "/proc/self/fd")))
    finally:
        os.close(reader)
        os.close(writer)
    assert listing[-1] == Completed(text="0\n1\n2\n3")  # the last one is how ls looks


def test_the_shell_and_python_agree_on_when_a_process_began(tmp_path: Path) -> None:
    async def main() -> None:
        one = turn("", sys.executable, "-c", "import os; print(os.getppid())")
        harness = Command(tmp_path / "sessions")
        stream = harness.deliver(one.spec, one.prompt)
        event = await anext(stream)
        assert isinstance(event, Accepted)
        assert event.pid is not None
        entry = list_processes().get(event.pid)
        assert entry is not None
        assert entry.identity == (event.pid, event.pid_started)
        assert (entry.session, entry.group) == (event.pid, event.pid)
        *_, last = [event async for event in stream]
        assert last == Completed(text=str(event.pid) if isinstance(event, Accepted) else "")

    run_on("asyncio", main())
