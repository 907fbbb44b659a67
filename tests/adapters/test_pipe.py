"""Speaking with a program that goes on between turns, also for a broker that comes later."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from scout.adapters.persistent import pipe as wires_module
from scout.adapters.persistent.keeper import SOCKET
from scout.adapters.persistent.pipe import Pipe, PipeEntry, PipeLimits, clear_last, list_pipes
from scout.adapters.persistent.rpc import Rpc, RpcError
from scout.adapters.process.process_table import list_processes
from scout.adapters.process.run import Launch
from scout.adapters.process.run_folders import RunFolders
from scout.settings.environment import build_environment
from tests.adapters.turns import list_left_over, run_on, until

LIMITS = PipeLimits(grace=0.5)
ECHO = ("sed", "-u", "s/^/said /")


def launch(folder: Path, *words: str) -> Launch:
    where = folder / "where"
    where.mkdir(exist_ok=True)

    return Launch(("/usr/bin/env", *words), str(where), "", build_environment({}))


async def begin_pipe(folder: Path, *words: str, limits: PipeLimits = LIMITS) -> Pipe:
    pipe = Pipe(folder / "ses" / "1")
    assert await pipe.begin(launch(folder, *(words or ECHO)), limits)
    return pipe


def test_lines_there_and_back_and_again_for_the_next_broker(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(tmp_path)
        assert pipe.find_position("one") is None
        assert await pipe.send("zwölf".encode(), "one")
        line = await anext(aiter(pipe.follow_lines()))
        assert line.text == "said zwölf".encode()
        assert await pipe.send(b"two", "two")
        assert await pipe.send(b"three")
        await until(lambda: len(pipe.read_lines()) == 3)
        pipe.disconnect()

        (later,) = list_pipes(tmp_path / "ses")
        assert later.read_sent_lines()[0] == PipeEntry("one", "zwölf".encode(), 0)
        assert [one.tag for one in later.read_sent_lines()] == ["one", "two", "-"]
        assert later.find_position("two") == line.after
        assert [one.text for one in later.read_lines(line.after)] == [b"said two", b"said three"]
        assert later.is_running
        assert await later.send(b"four", "four")
        assert [one.tag for one in pipe.read_sent_lines()][-1] == "four"
        await until(lambda: len(later.read_lines(line.after)) == 3)  # stopping does not wait for an answer

        assert await later.stop("enough", LIMITS)
        assert not await later.stop("enough", LIMITS)
        assert not await later.send(b"five", "five")
        assert not await pipe.connect()
        heard = [one.text async for one in later.follow_lines(line.after)]
        assert heard == [b"said two", b"said three", b"said four"]
        assert later.end_reason == "enough"
        assert later.find_position("five") is None

    run_on(loop, main())
    assert list_left_over(tmp_path) == []


def test_a_kept_program_is_listed_while_it_runs(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        runs = RunFolders(tmp_path)
        assert runs.list_kept() == ()
        pipe = await begin_pipe(tmp_path)
        other = Pipe(tmp_path / "ses2" / "pane")  # a pane has the layout of a run
        assert await other.begin(launch(tmp_path, *ECHO), LIMITS)
        assert runs.list_kept() == ("ses",)
        for one in (pipe, other):
            await one.stop("enough", LIMITS)
        assert runs.list_kept() == ()

    run_on(loop, main())
    assert list_left_over(tmp_path) == []


def test_wires_are_counted_and_other_files_are_not(tmp_path: Path) -> None:
    for name in ("1", "2", "10", "work", "x1"):
        (tmp_path / name).mkdir()
    assert [one.run.folder.name for one in list_pipes(tmp_path)] == ["1", "2", "10"]
    assert list_pipes(tmp_path / "nowhere") == []
    assert Pipe(tmp_path / "1").read_sent_lines() == []
    assert Pipe(tmp_path / "1").read_lines() == []
    assert not Pipe(tmp_path / "1").is_running


def test_a_broker_that_is_gone_for_too_long_ends_the_program(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(tmp_path, limits=LIMITS._replace(deserted=0.3))
        assert await pipe.send(b"hi", "a")
        await asyncio.sleep(0.6)
        assert pipe.is_running  # somebody is connected
        pipe.disconnect()
        await until(lambda: not pipe.is_running)
        assert pipe.end_reason == "no broker was connected for 0.3 s"

    run_on(loop, main())


def test_a_folder_with_a_long_name_and_a_line_of_megabytes(loop: str, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 90) / ("y" * 90)

    async def main() -> None:
        deep.mkdir(parents=True)
        pipe = await begin_pipe(deep, "cat")
        line = b"z" * (2 << 20)
        assert await pipe.send(line, "big")
        async for one in pipe.follow_lines():
            assert one.text == line
            break
        assert pipe.read_sent_lines()[0].text == line
        assert await pipe.stop_when_idle(0.1)
        await until(lambda: not pipe.is_running)
        assert pipe.end_reason == "it was idle"
        assert not (pipe.run.folder / SOCKET).exists()

    run_on(loop, main())


def test_a_program_that_is_killed_or_complains_says_how(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(
            tmp_path, "sh", "-c", "echo half; printf more; echo oh no >&2; read x; exit 4"
        )
        await until(pipe.read_lines)
        assert [one.text for one in pipe.read_lines()] == [b"half"]  # a line that is not whole is none yet
        assert pipe.end_reason == ""
        assert await pipe.send(b"go", "a")
        assert [one.text async for one in pipe.follow_lines()] == [b"half"]
        assert pipe.end_reason == "exit 4: oh no"

        keeper = await begin_pipe(tmp_path / "other")
        assert await keeper.send(b"hi", "a")
        leader = keeper.run.process
        assert leader is not None
        os.killpg(leader.pid, signal.SIGKILL)
        assert [one.text async for one in keeper.follow_lines()] in ([b"said hi"], [])
        assert keeper.end_reason == "it was killed"
        assert not await keeper.send(b"hi", "b")

    (tmp_path / "other").mkdir()
    run_on(loop, main())


# It reads, starts a child, and does not end when it is asked to or hears nothing more.
STUBBORN = ("sh", "-c", "trap '' TERM HUP; sleep 300 & echo here; while :; do sleep 300; done")


def kill_one(pipe: Pipe, who: str) -> None:
    """Kill one process of a run: the shell that Scout shows, or the keeper below it."""
    shell = pipe.run.process
    assert shell is not None
    table = list_processes()
    keeper = next(one.identity for one in table.values() if one.parent == shell.pid)
    os.kill({"shell": shell, "keeper": keeper}[who].pid, signal.SIGKILL)


@pytest.mark.parametrize("who", ["shell", "keeper"])
def test_nothing_is_left_of_a_run_whose_shell_or_keeper_was_killed(
    loop: str, tmp_path: Path, who: str
) -> None:
    async def stopped(pipe: Pipe) -> None:
        assert await pipe.stop("enough", LIMITS)
        assert not await pipe.stop("enough", LIMITS)

    async def followed(pipe: Pipe) -> None:
        async for _ in pipe.follow_lines():
            pass

    async def succeeded(pipe: Pipe) -> None:
        pipe.disconnect()
        await clear_last(pipe.run.folder.parent)  # as another broker does before the next program

    async def main() -> None:
        for number, way in enumerate((stopped, followed, succeeded)):
            folder = tmp_path / str(number)
            folder.mkdir()
            pipe = await begin_pipe(folder, *STUBBORN)
            assert await pipe.send(b"hi", "a")
            await until(pipe.read_lines)
            kill_one(pipe, who)
            await until(lambda one=pipe: not one.is_running)
            await way(pipe)
            assert list_left_over(folder) == []

    run_on(loop, main(), 60)


def test_a_keeper_whose_shell_was_killed_ends_its_program_by_itself(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(tmp_path)
        assert await pipe.send(b"hi", "a")  # a broker is connected, and does nothing
        kill_one(pipe, "shell")
        await until(lambda: not pipe.is_running and list_left_over(tmp_path) == [])
        assert pipe.end_reason == "its shell was killed"

    run_on(loop, main())


def test_a_program_ends_with_a_keeper_that_was_killed(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        pipe = await begin_pipe(tmp_path, "sh", "-c", "echo here; exec sleep 300")
        await until(pipe.read_lines)
        kill_one(pipe, "keeper")
        await until(lambda: not pipe.is_running and list_left_over(tmp_path) == [])
        assert pipe.end_reason == "exit 137"

    run_on(loop, main())


def test_a_call_is_made_once_and_answered_also_later(loop: str, tmp_path: Path) -> None:
    program = (
        "while read -r line; do case $line in"
        """ *'"id":"a"'*) echo 'no json'; echo '{"id":"a","result":{"n":1}}';;"""
        """ *'"id":"b"'*) echo '{"id":"b","error":{"code":-5,"message":"not that"}}';;"""
        " *bye*) exit 0;; esac; done"
    )

    async def main() -> None:
        pipe = await begin_pipe(tmp_path, "sh", "-c", program)
        rpc = Rpc(pipe)
        assert await rpc.call("a", "do", {}) == {"n": 1}
        assert await Rpc(Pipe(pipe.run.folder)).call("a", "do", {}) == {"n": 1}
        assert len(pipe.read_sent_lines()) == 1
        with pytest.raises(RpcError, match="not that") as refused:
            await rpc.call("b", "do", {})
        assert refused.value.code == -5
        with pytest.raises(RpcError, match=r"not answered within 0.1 s"):
            await rpc.call("c", "do", {}, seconds=0.1)
        assert await rpc.reply(7, {"ok": True})
        assert not await rpc.reply(7, {"ok": False})
        assert await rpc.refuse("x y", "no")
        assert not await rpc.refuse("x y", "no")
        assert await rpc.notify("bye", None)
        await until(lambda: not pipe.is_running)
        with pytest.raises(RpcError, match="its program ended: exit 0"):
            await rpc.call("d", "do", {})

    run_on(loop, main())


def test_a_keeper_that_does_not_answer_is_given_up(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires_module, "_ANSWER_WAIT", 0.2)

    async def main() -> None:
        pipe = await begin_pipe(tmp_path)
        assert await pipe.send(b"hi", "a")
        keeper = next(one for one in pipe.run.members() if b"-I" in _words(one.pid)[:3])
        os.kill(keeper.pid, signal.SIGSTOP)
        assert not await pipe.send(b"again", "b")
        os.kill(keeper.pid, signal.SIGCONT)
        await until(lambda: len(pipe.read_lines()) == 2)  # it was only late, and the journal says so
        assert pipe.find_position("b") is not None
        await pipe.stop("enough", LIMITS)

    run_on(loop, main())


def _words(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
