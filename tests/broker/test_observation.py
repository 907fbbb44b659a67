"""Looking without touching: topology, transcripts, and what a flight changed in its work tree."""

import hashlib
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.codex.adapter import Codex
from scout.adapters.command import Command
from scout.adapters.echo import Echo
from scout.model.access.token import TokenKind
from scout.ports import Observed
from scout.protocol.access import CreateToken
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.enrolment import Enrol
from scout.protocol.log import ReadLog
from scout.protocol.observation import ShowDiff, ShowTopology, TailSession
from scout.protocol.operations import build_command_line, check_remedy
from scout.tree.snapshots import GitSnapshots
from tests.broker.rig import Rig, as_test, expect_refusal, run_scene, wait_for_end, wait_until, write_program

DATA = Path(__file__).parents[1] / "data" / "harness"
THREAD, CHILD = "01a1e2d0-b9be-7f02-a88a-cfcb6e012412", "01a1e2d0-c290-76e1-b4e4-5da3da7076f7"


def prints(folder: Path) -> dict[str, str]:
    return {
        str(path): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "objects" not in path.parts
    }


def rows(home: Path) -> dict[str, int]:
    """How many rows every table has; the history follows the log by itself, whatever is asked."""
    with sqlite3.connect(f"file:{home}/scout.db?mode=ro", uri=True) as store:
        names = [name for (name,) in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = [name for name in names if not name.startswith(("history_", "touched"))]
        return {name: store.execute(f"SELECT count(*) FROM [{name}]").fetchone()[0] for name in kept}


async def last(rig: Rig) -> int:
    return (await rig.operator(ReadLog(newest=True, limit=1))).items[0].seq


async def worker(rig: Rig, text: str, name: str = "worker", **more: Any) -> None:
    command = write_program(rig.home, name, text)
    await rig.register(name, harness="command", command=command, **more)


@pytest.fixture
def codex_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = shutil.copytree(DATA / "codex" / "home", tmp_path / "codex")
    monkeypatch.setenv("CODEX_HOME", str(home))
    return home


# -- transcripts -------------------------------------------------------------------------------------


@pytest.mark.rows("R2.1-1")
def test_a_transcript_is_shown_and_nothing_of_it_is_stored(tmp_path: Path, codex_home: Path) -> None:
    async def scene(rig: Rig) -> None:
        folder = tmp_path / "talkie"
        folder.mkdir()
        host = await rig.operator(CreateToken(kind=TokenKind.HOST, label="codex"))
        seat = await rig.scout(host.secret)
        enrolled = await seat.call(Enrol(cwd=str(folder), harness="codex", native_session_id=THREAD))
        seen, stored, files = await last(rig), rows(rig.home), prints(codex_home)
        told = await rig.operator(TailSession(session_id=enrolled.session.id))
        assert [line.who for line in told.lines] == [
            "user", "assistant", "tool", "tool", "tool", "tool", "assistant", "assistant"
        ]  # fmt: skip
        assert told.lines[-1].text == "All good"
        assert told.source.startswith(str(codex_home))
        more = await rig.operator(TailSession(session_id=enrolled.session.id, after=told.next, wait=0.05))
        assert (more.lines, more.next) == ((), told.next)
        everything = await rig.operator(ShowTopology())
        known = {one.native_id: one.session_id for one in everything.items}
        assert known == {THREAD: enrolled.session.id, CHILD: None}
        assert (await last(rig), rows(rig.home), prints(codex_home)) == (seen, stored, files)

    run_scene(scene, tmp_path, harnesses={"codex": Codex(tmp_path / "sessions")})


@as_test
async def test_the_runs_of_a_program_are_its_transcript(rig: Rig) -> None:
    await worker(rig, "echo looking >&2\ncat > /dev/null\necho fine\nprintf 'and done'")
    flights = [
        await wait_for_end(rig, (await rig.operator(MakeAsk(to="@worker", body=body))).flight_id)
        for body in ("a", "b")
    ]
    session_id = flights[0].session_id or ""
    assert flights[1].session_id == session_id
    seen = await last(rig)
    whole = await rig.operator(TailSession(session_id=session_id, after=0, limit=200))
    one_turn = ["user", "system", "assistant", "assistant"]
    assert [line.who for line in whole.lines] == one_turn * 2
    assert [line.text for line in whole.lines[1:4]] == ["looking", "fine", "and done"]
    pieces, place = list[Any](), 0
    while (piece := await rig.operator(TailSession(session_id=session_id, after=place, limit=1))).lines:
        pieces += piece.lines
        place = piece.next
    assert (tuple(pieces), place) == (whole.lines, whole.next)
    end = await rig.operator(TailSession(session_id=session_id, limit=2))
    assert ([line.text for line in end.lines], end.next) == (["fine", "and done"], whole.next)
    assert await last(rig) == seen


@as_test
async def test_a_run_is_followed_while_it_works(rig: Rig) -> None:
    await worker(rig, "echo one >&2\nwhile [ ! -e $WORK/go ]; do sleep 0.01; done\necho two >&2\necho answer")
    asked = await rig.operator(MakeAsk(to="@worker", body="x"))

    async def begun() -> Any:
        flight = await rig.operator(GetFlight(flight_id=asked.flight_id))
        return flight.session_id and flight.state == "running" and flight.session_id

    session_id = await wait_until(begun)
    told = await rig.operator(TailSession(session_id=session_id, after=0, limit=2, wait=20))
    while [line.text for line in told.lines][-1:] != ["one"]:
        told = await rig.operator(TailSession(session_id=session_id, after=told.next, wait=20))
    (rig.home / "go").touch()
    heard = list[str]()
    while "answer" not in heard:
        told = await rig.operator(TailSession(session_id=session_id, after=told.next, wait=20))
        heard += [line.text for line in told.lines]
    assert heard == ["two", "answer"]
    await wait_for_end(rig, asked.flight_id)


@as_test
async def test_only_who_may_read_an_agent_reads_its_transcript(rig: Rig) -> None:
    await worker(rig, "echo fine")
    stranger = await rig.agent("stranger")
    flight = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@worker", body="x"))).flight_id)
    told = await expect_refusal(stranger.call(TailSession(session_id=flight.session_id or "")))
    assert told.code == "forbidden"
    assert (await expect_refusal(rig.operator(TailSession(session_id="ses_nobody")))).code == "not_found"
    await rig.register("parrot", harness="echo")
    flight = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@parrot", body="x"))).flight_id)
    told = await expect_refusal(rig.operator(TailSession(session_id=flight.session_id or "")))
    assert (told.code, "keeps no transcript" in told.message) == ("session_not_attachable", True)
    assert told.remedies[0].operation == "session.inspect"


# -- topology ----------------------------------------------------------------------------------------


def test_what_harnesses_show_is_offered_and_never_made_an_agent(tmp_path: Path, codex_home: Path) -> None:
    async def scene(rig: Rig) -> None:
        seen, stored = await last(rig), rows(rig.home)
        told = await rig.operator(ShowTopology(harness="codex"))
        by_name = {one.native_id: one for one in told.items}
        thread, child = by_name[THREAD], by_name[CHILD]
        assert thread.source
        assert thread.attach is not None
        assert check_remedy(thread.attach) == []
        words = f"scout session attach --harness codex --cwd /srv/talkie {THREAD}"
        assert build_command_line(thread.attach) == words
        assert (child.kind, child.parent, child.attach) == ("sub-agent", THREAD, None)
        (looked,) = told.harnesses
        assert (looked.harness, looked.found, looked.shown) == ("codex", 2, 2)
        few = await rig.operator(ShowTopology(limit=1))
        assert [(one.harness, one.found, one.shown) for one in few.harnesses] == [
            ("broken", 0, 0),
            ("codex", 2, 1),
        ]
        assert few.harnesses[0].problem == "[Errno 5] the disk is gone"
        assert (await rig.operator(ShowTopology(live=True))).items == ()
        assert (await last(rig), rows(rig.home)) == (seen, stored)
        told = await expect_refusal(rig.operator(ShowTopology(harness="cobol")))
        assert told.code == "harness_unavailable"
        agent = await rig.agent("other")
        assert (await agent.call(ShowTopology())).items

    harnesses = {"broken": _Broken(), "codex": Codex(tmp_path / "sessions")}
    run_scene(scene, tmp_path, harnesses=harnesses)


class _Broken(Echo):
    """A harness whose files cannot be read."""

    name = "broken"

    async def observe(self) -> list[Observed]:
        raise OSError(5, "the disk is gone")


# -- work trees --------------------------------------------------------------------------------------


def repository(folder: Path) -> Path:
    folder.mkdir()
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        who = ["-c", "user.name=ada", "-c", "user.email=ada@localhost"]
        subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)
    (folder / "mine.txt").write_text("mine\n")
    return folder


async def _get_session_id(rig: Rig, flight_id: str) -> str | None:
    return (await rig.operator(GetFlight(flight_id=flight_id))).session_id


def test_what_a_flight_changed_in_its_work_tree(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")

    async def scene(rig: Rig) -> None:
        writes = "echo made > made.txt\nwhile [ ! -e $WORK/go ]; do sleep 0.01; done\necho fine"
        await worker(rig, writes, project_root=str(work))
        asked = await rig.operator(MakeAsk(to="@worker", body="x"))
        told = await expect_refusal(rig.operator(ShowDiff(flight_id=asked.flight_id)))
        assert told.code == "bad_request"
        assert "flight.get" in [one.operation for one in told.remedies]
        await wait_until(lambda: (work / "made.txt").exists() and (work / "made.txt").read_text())
        await wait_until(
            lambda: _get_session_id(rig, asked.flight_id)
        )  # the program may be ahead of its record
        now = await rig.operator(ShowDiff(flight_id=asked.flight_id))
        assert (now.running, "+made" in now.patch, now.directory) == (True, True, str(work))
        before = prints(work)
        (rig.home / "go").touch()
        await wait_for_end(rig, asked.flight_id)
        session = (await rig.operator(ShowDiff(flight_id=asked.ask_id, stat=True))).head
        (work / "later.txt").write_text("later\n")
        done = await wait_until(lambda: _show_settled_diff(rig, asked.flight_id))
        assert (done.running, done.head, done.patch.count("diff --git")) == (False, session, 1)
        assert "mine" not in done.patch
        (work / "later.txt").unlink()
        assert prints(work) == before
        stranger = await rig.agent("stranger")
        assert (await expect_refusal(stranger.call(ShowDiff(flight_id=asked.flight_id)))).code == "forbidden"

    run_scene(scene, tmp_path, snapshots=GitSnapshots(tmp_path / "sessions"))


async def _show_settled_diff(rig: Rig, flight_id: str) -> Any:
    await wait_until(lambda: not rig.broker.dispatcher.lanes)
    return await rig.operator(ShowDiff(flight_id=flight_id))


def test_a_flight_that_changed_nothing_and_one_without_a_work_tree(tmp_path: Path) -> None:
    work = repository(tmp_path / "work")

    async def scene(rig: Rig) -> None:
        await worker(rig, "echo fine", project_root=str(work))
        flight = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@worker", body="x"))).flight_id)
        told = await rig.operator(ShowDiff(flight_id=flight.id))
        assert (told.stat, told.patch) == ("", "")
        (tmp_path / "plain").mkdir()
        await worker(rig, "echo fine", "other", project_root=str(tmp_path / "plain"))
        flight = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@other", body="x"))).flight_id)
        problem = await expect_refusal(rig.operator(ShowDiff(flight_id=flight.id)))
        assert f"{tmp_path}/plain is not a git work tree" in problem.message
        assert [one.operation for one in problem.remedies] == ["flight.get", "session.tail"]
        assert all(check_remedy(one) == [] for one in problem.remedies)

    harnesses = {"command": Command(tmp_path / "sessions"), "echo": Echo()}
    run_scene(scene, tmp_path, harnesses=harnesses, snapshots=GitSnapshots(tmp_path / "sessions"))


@as_test
async def test_without_pictures_there_is_nothing_to_compare(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    flight = await wait_for_end(rig, (await rig.operator(MakeAsk(to="@parrot", body="x"))).flight_id)
    assert (await expect_refusal(rig.operator(ShowDiff(flight_id=flight.id)))).code == "bad_request"
