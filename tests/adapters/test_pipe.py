"""Speaking with a program that goes on between turns, also for a broker that comes later."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from scout.adapters.persistent import pipe as wires_module
from scout.adapters.persistent.keeper import SOCKET
from scout.adapters.persistent.pipe import PipeEntry, Wire, WireLimits, clear_last, wires
from scout.adapters.persistent.rpc import Rpc, RpcError
from scout.adapters.process.environment import environment_for
from scout.adapters.process.process_table import processes
from scout.adapters.process.spawn import Launch
from tests.adapters.turns import left_over, run_on, until

LIMITS = WireLimits(grace=0.5)
ECHO = ("sed", "-u", "s/^/said /")


def launch(folder: Path, *words: str) -> Launch:
    where = folder / "where"
    where.mkdir(exist_ok=True)

    return Launch(("/usr/bin/env", *words), str(where), "", environment_for({}))


async def begun(folder: Path, *words: str, limits: WireLimits = LIMITS) -> Wire:
    wire = Wire(folder / "ses" / "1")
    assert await wire.begin(launch(folder, *(words or ECHO)), limits)
    return wire


def test_lines_there_and_back_and_again_for_the_next_broker(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        wire = await begun(tmp_path)
        assert wire.begun_at("one") is None
        assert await wire.tell("zwölf".encode(), "one")
        line = await anext(aiter(wire.heard()))
        assert line.text == "said zwölf".encode()
        assert await wire.tell(b"two", "two")
        assert await wire.tell(b"three")
        await until(lambda: len(wire.said()) == 3)
        wire.let_go()

        (later,) = wires(tmp_path / "ses")
        assert later.told()[0] == PipeEntry("one", "zwölf".encode(), 0)
        assert [one.tag for one in later.told()] == ["one", "two", "-"]
        assert later.begun_at("two") == line.after
        assert [one.text for one in later.said(line.after)] == [b"said two", b"said three"]
        assert later.is_running
        assert await later.tell(b"four", "four")
        assert [one.tag for one in wire.told()][-1] == "four"
        await until(lambda: len(later.said(line.after)) == 3)  # stopping does not wait for an answer

        assert await later.stop("enough", LIMITS)
        assert not await later.stop("enough", LIMITS)
        assert not await later.tell(b"five", "five")
        assert not await wire.connect()
        heard = [one.text async for one in later.heard(line.after)]
        assert heard == [b"said two", b"said three", b"said four"]
        assert later.end == "enough"
        assert later.begun_at("five") is None

    run_on(loop, main())
    assert left_over(tmp_path) == []


def test_wires_are_counted_and_other_files_are_not(tmp_path: Path) -> None:
    for name in ("1", "2", "10", "work", "x1"):
        (tmp_path / name).mkdir()
    assert [one.run.folder.name for one in wires(tmp_path)] == ["1", "2", "10"]
    assert wires(tmp_path / "nowhere") == []
    assert Wire(tmp_path / "1").told() == []
    assert Wire(tmp_path / "1").said() == []
    assert not Wire(tmp_path / "1").is_running


def test_a_broker_that_is_gone_for_too_long_ends_the_program(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        wire = await begun(tmp_path, limits=LIMITS._replace(deserted=0.3))
        assert await wire.tell(b"hi", "a")
        await asyncio.sleep(0.6)
        assert wire.is_running  # somebody is connected
        wire.let_go()
        await until(lambda: not wire.is_running)
        assert wire.end == "no broker was there for 0.3 s"

    run_on(loop, main())


def test_a_folder_with_a_long_name_and_a_line_of_megabytes(loop: str, tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 90) / ("y" * 90)

    async def main() -> None:
        deep.mkdir(parents=True)
        wire = await begun(deep, "cat")
        line = b"z" * (2 << 20)
        assert await wire.tell(line, "big")
        async for one in wire.heard():
            assert one.text == line
            break
        assert wire.told()[0].text == line
        assert await wire.rest(0.1)
        await until(lambda: not wire.is_running)
        assert wire.end == "nothing was to do"
        assert not (wire.run.folder / SOCKET).exists()

    run_on(loop, main())


def test_a_program_that_is_killed_or_complains_says_how(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        wire = await begun(tmp_path, "sh", "-c", "echo half; printf more; echo oh no >&2; read x; exit 4")
        await until(wire.said)
        assert [one.text for one in wire.said()] == [b"half"]  # a line that is not whole is none yet
        assert wire.end == ""
        assert await wire.tell(b"go", "a")
        assert [one.text async for one in wire.heard()] == [b"half"]
        assert wire.end == "exit 4: oh no"

        keeper = await begun(tmp_path / "other")
        assert await keeper.tell(b"hi", "a")
        leader = keeper.run.process
        assert leader is not None
        os.killpg(leader.pid, signal.SIGKILL)
        assert [one.text async for one in keeper.heard()] in ([b"said hi"], [])
        assert keeper.end == "it was killed"
        assert not await keeper.tell(b"hi", "b")

    (tmp_path / "other").mkdir()
    run_on(loop, main())


# It reads, starts a child, and does not end when it is asked to or hears nothing more.
STUBBORN = ("sh", "-c", "trap '' TERM HUP; sleep 300 & echo here; while :; do sleep 300; done")


def killed_alone(wire: Wire, who: str) -> None:
    """Kill one process of a run: the shell that Scout shows, or the keeper below it."""
    shell = wire.run.process
    assert shell is not None
    table = processes()
    keeper = next(one.identity for one in table.values() if one.parent == shell.pid)
    os.kill({"shell": shell, "keeper": keeper}[who].pid, signal.SIGKILL)


@pytest.mark.parametrize("who", ["shell", "keeper"])
def test_nothing_is_left_of_a_run_whose_shell_or_keeper_was_killed(
    loop: str, tmp_path: Path, who: str
) -> None:
    async def stopped(wire: Wire) -> None:
        assert await wire.stop("enough", LIMITS)
        assert not await wire.stop("enough", LIMITS)

    async def followed(wire: Wire) -> None:
        async for _ in wire.heard():
            pass

    async def succeeded(wire: Wire) -> None:
        wire.let_go()
        await clear_last(wire.run.folder.parent)  # as another broker does before the next program

    async def main() -> None:
        for number, way in enumerate((stopped, followed, succeeded)):
            folder = tmp_path / str(number)
            folder.mkdir()
            wire = await begun(folder, *STUBBORN)
            assert await wire.tell(b"hi", "a")
            await until(wire.said)
            killed_alone(wire, who)
            await until(lambda one=wire: not one.is_running)
            await way(wire)
            assert left_over(folder) == []

    run_on(loop, main(), 60)


def test_a_keeper_whose_shell_was_killed_ends_its_program_by_itself(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        wire = await begun(tmp_path)
        assert await wire.tell(b"hi", "a")  # a broker is connected, and does nothing
        killed_alone(wire, "shell")
        await until(lambda: not wire.is_running and left_over(tmp_path) == [])
        assert wire.end == "its shell was killed"

    run_on(loop, main())


def test_a_program_ends_with_a_keeper_that_was_killed(loop: str, tmp_path: Path) -> None:
    async def main() -> None:
        wire = await begun(tmp_path, "sh", "-c", "echo here; exec sleep 300")
        await until(wire.said)
        killed_alone(wire, "keeper")
        await until(lambda: not wire.is_running and left_over(tmp_path) == [])
        assert wire.end == "exit 137"

    run_on(loop, main())


def test_a_call_is_made_once_and_answered_also_later(loop: str, tmp_path: Path) -> None:
    program = (
        "while read -r line; do case $line in"
        """ *'"id":"a"'*) echo 'no json'; echo '{"id":"a","result":{"n":1}}';;"""
        """ *'"id":"b"'*) echo '{"id":"b","error":{"code":-5,"message":"not that"}}';;"""
        " *bye*) exit 0;; esac; done"
    )

    async def main() -> None:
        wire = await begun(tmp_path, "sh", "-c", program)
        rpc = Rpc(wire)
        assert await rpc.call("a", "do", {}) == {"n": 1}
        assert await Rpc(Wire(wire.run.folder)).call("a", "do", {}) == {"n": 1}
        assert len(wire.told()) == 1
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
        await until(lambda: not wire.is_running)
        with pytest.raises(RpcError, match="the program is gone: exit 0"):
            await rpc.call("d", "do", {})

    run_on(loop, main())


def test_a_keeper_that_does_not_answer_is_given_up(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wires_module, "_ANSWER_WAIT", 0.2)

    async def main() -> None:
        wire = await begun(tmp_path)
        assert await wire.tell(b"hi", "a")
        keeper = next(one for one in wire.run.members() if b"-I" in _words(one.pid)[:3])
        os.kill(keeper.pid, signal.SIGSTOP)
        assert not await wire.tell(b"again", "b")
        os.kill(keeper.pid, signal.SIGCONT)
        await until(lambda: len(wire.said()) == 2)  # it was only late, and the journal says so
        assert wire.begun_at("b") is not None
        await wire.stop("enough", LIMITS)

    run_on(loop, main())


def _words(pid: int) -> list[bytes]:
    return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
