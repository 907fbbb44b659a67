"""What Claude Code and Codex leave on the disk, read from what their pinned versions wrote and from what is broken."""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.claude import files as claude
from scout.adapters.claude.adapter import Claude
from scout.adapters.codex import files as codex
from scout.adapters.codex.adapter import Codex
from scout.adapters.process.process_table import list_processes
from scout.adapters.transcript import read_context, read_tail
from scout.base.refusal import Refused
from scout.ports import ContextUse, SessionSpec, Tailed, TailLine

DATA = Path(__file__).parents[1] / "data" / "harness"
CLAUDE = DATA / "claude" / "home"
CODEX = DATA / "codex" / "home"
SESSION = "5f038525-dc73-4a9f-b7f5-771821ca6f80"
THREAD, CHILD = "01a1e2d0-b9be-7f02-a88a-cfcb6e012412", "01a1e2d0-c290-76e1-b4e4-5da3da7076f7"


def prints(folder: Path) -> dict[str, str]:
    """Every file below a folder by what it holds, when it was written and who may read it."""
    return {
        str(
            path
        ): f"{path.stat().st_mtime_ns} {path.stat().st_mode} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def list_lines(lines: tuple[TailLine, ...]) -> list[tuple[str, str]]:
    return [(line.who, line.text.partition("\n")[0][:40]) for line in lines]


def write_registration(home: Path, **facts: Any) -> Path:
    """An entry of the registry, as this very process would have written it."""
    entry = json.loads((DATA / "claude" / "registry.json").read_text())
    me = list_processes()[os.getpid()].identity
    path = home / "sessions" / f"{me.pid}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({**entry, "pid": me.pid, "procStart": me.started, **facts}))
    return path


# -- claude ------------------------------------------------------------------------------------------


def test_the_sessions_of_claude_code_and_their_sub_agents() -> None:
    session, sub_agent = claude.list_observed(CLAUDE)
    assert (session.native_id, session.kind, session.cwd) == (SESSION, "session", "/srv/talkie")
    assert session.title.startswith("Review this.")
    assert (session.live, session.pid, session.updated_at is not None) == (False, None, True)
    assert session.source.endswith(f"projects/-srv-talkie/{SESSION}.jsonl")
    assert (sub_agent.kind, sub_agent.parent, sub_agent.title) == ("sub-agent", SESSION, "look closer")
    assert (sub_agent.native_id, sub_agent.state) == ("a57ad1016b0c12aa7", "finished")
    assert sub_agent.limits


def test_what_runs_is_known_by_its_process_and_no_other(tmp_path: Path) -> None:
    home = shutil.copytree(CLAUDE, tmp_path / "home")
    write_registration(home, status="waiting", waitingFor="permission")
    live = claude.find_live_session(home, SESSION)
    assert live is not None
    assert (live.process.pid, live.status, live.socket) == (
        os.getpid(),
        "waiting",
        "/srv/cc-socks/14164.sock",
    )
    session = claude.list_observed(home)[0]
    assert (session.live, session.pid, session.state) == (True, os.getpid(), "waiting permission")
    write_registration(home, procStart="1")  # the pid was given away again
    assert claude.find_live_session(home, SESSION) is None
    assert not claude.list_observed(home)[0].live


def test_a_session_that_has_written_nothing_yet_is_seen_in_the_registry(tmp_path: Path) -> None:
    path = write_registration(tmp_path, sessionId="fresh", status="idle", name="work-10")
    (one,) = claude.list_observed(tmp_path)
    assert (one.native_id, one.live, one.state, one.title) == ("fresh", True, "idle", "work-10")
    assert (one.source, one.cwd) == (str(path), "/srv/talkie")


def test_the_transcript_of_claude_code_as_who_and_what() -> None:
    path = claude.find_transcript(CLAUDE, SESSION)
    assert path is not None
    told = read_file_tail(claude, path, 0, 1000)
    assert list_lines(told.lines) == [
        ("user", "Review this. <<say I look>> ++ <<tool Re"),
        ("assistant", "I look"),
        ("tool", "Read /srv/talkie/a.txt"),
        ("tool", "1\talpha"),
        ("tool", "Bash cat a.txt"),
        ("tool", "alpha"),
        ("tool", "Agent look closer"),
        ("tool", "Async agent launched successfully."),
        ("assistant", "All good"),
        ("user", "<task-notification>"),
        ("assistant", "the script is over"),
    ]
    assert (told.next, told.source) == (path.stat().st_size, str(path))
    assert all(line.at is not None for line in told.lines)


@pytest.mark.parametrize("name", ["nowhere", "../" + SESSION, "", "a/b"])
def test_no_other_file_is_ever_taken_for_a_transcript(name: str) -> None:
    assert claude.find_transcript(CLAUDE, name) is None
    assert codex.find_transcript(CODEX, name) is None


def test_where_the_programs_keep_their_files_follows_from_the_environment() -> None:
    assert claude.find_home({"HOME": "/srv"}) == Path("/srv/.claude")
    assert claude.find_home({"HOME": "/srv", "CLAUDE_CONFIG_DIR": "/x"}) == Path("/x")
    assert codex.find_home({"HOME": "/srv"}) == Path("/srv/.codex")
    assert codex.find_home({"HOME": "/srv", "CODEX_HOME": "/x"}) == Path("/x")


# -- codex -------------------------------------------------------------------------------------------


def test_the_threads_of_codex_and_their_sub_agents(tmp_path: Path) -> None:
    home = shutil.copytree(CODEX, tmp_path / "home")
    os.utime(codex.find_transcript(home, THREAD) or "", (2_000_000_000, 2_000_000_000))
    thread, child = codex.list_observed(home)
    assert (thread.native_id, thread.kind, thread.cwd) == (THREAD, "session", "/srv/talkie")
    assert thread.title.startswith("Review this.")
    assert (child.native_id, child.kind, child.parent) == (CHILD, "sub-agent", THREAD)
    assert [one.native_id for one in codex.list_observed(home, 1)] == [THREAD]


def test_the_rollout_of_codex_as_who_and_what() -> None:
    path = codex.find_transcript(CODEX, THREAD)
    assert path is not None
    told = read_file_tail(codex, path, 0, 1000)
    assert list_lines(told.lines) == [
        ("user", "Review this. <<say I look>> ++ <<tool ex"),
        ("assistant", "I look"),
        ("tool", 'exec_command {"cmd": "cat a.txt; sleep 2'),
        ("tool", "Chunk ID: b95306"),
        ("tool", 'spawn_agent {"message": "sub <<say from '),
        ("tool", '{"agent_id":"01a1e2d0-c290-76e1-b4e4-5da'),
        ("assistant", "ready"),
        ("assistant", "All good"),
    ]


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only this system tells who holds a lock")
def test_who_writes_to_a_thread_is_known_by_its_lock(tmp_path: Path) -> None:
    home = shutil.copytree(CODEX, tmp_path / "home")
    lock = home / "thread-writer-locks" / f"{THREAD}.lock"
    lock.parent.mkdir()
    with lock.open("w") as file:
        assert codex.find_live_session(home, THREAD) is None
        fcntl.flock(file, fcntl.LOCK_EX)
        live = codex.find_live_session(home, THREAD)
        assert live is not None
        assert (live.process.pid, live.source) == (os.getpid(), str(lock))
        seen = {one.native_id: (one.live, one.pid) for one in codex.list_observed(home)}
        assert seen == {THREAD: (True, os.getpid()), CHILD: (False, None)}
    assert codex.find_live_session(home, THREAD) is None


# -- both --------------------------------------------------------------------------------------------


def read_file_tail(files: Any, path: Path, after: int, limit: int) -> Tailed:
    return read_tail(path, after, limit, files.read_entry)


def read_session_tail(files: Any, home: Path, spec: SessionSpec, after: int, limit: int) -> Tailed:
    """The tail of a session, as the harness gives it."""
    harness, variable = (Claude, "CLAUDE_CONFIG_DIR") if files is claude else (Codex, "CODEX_HOME")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(variable, str(home))
        return asyncio.run(harness(home / "sessions").tail(spec, after, limit))


READERS = [
    pytest.param(claude, CLAUDE, SESSION, {"session": SESSION}, id="claude"),
    pytest.param(codex, CODEX, THREAD, {"thread": THREAD}, id="codex"),
    pytest.param(codex, CODEX, THREAD, {"session": THREAD}, id="codex, enrolled"),
]


@pytest.mark.parametrize(("files", "home", "name", "native"), READERS)
def test_a_transcript_is_read_in_pieces_or_from_its_end(
    files: Any, home: Path, name: str, native: dict[str, str]
) -> None:
    spec = SessionSpec(session_id="ses_1", agent_id="agt_1", address="@x", native_ids=native)
    whole = read_session_tail(files, home, spec, 0, 1000)
    pieces, place = list[TailLine](), 0
    while (piece := read_session_tail(files, home, spec, place, 1)).lines:
        pieces += piece.lines
        place = piece.next
    assert (tuple(pieces), piece.next) == (whole.lines, whole.next)
    last = read_session_tail(files, home, spec, -1, 3)
    assert (last.lines, last.next) == (whole.lines[-3:], whole.next)
    assert read_session_tail(files, home, spec, whole.next, 9).lines == ()
    assert read_session_tail(files, home, spec, whole.next + 999, 9).next == whole.next
    assert read_session_tail(files, home, spec, 7, 1000).lines == whole.lines  # in the middle of a line


@pytest.mark.parametrize(("files", "home", "name", "native"), READERS)
def test_a_session_without_a_transcript_is_refused_with_the_reason(
    files: Any, home: Path, name: str, native: dict[str, str], tmp_path: Path
) -> None:
    for known, reason in (({}, "has not started"), (native, "yet")):
        spec = SessionSpec(session_id="ses_1", agent_id="agt_1", address="@x", native_ids=known)
        with pytest.raises(Refused) as refused:
            read_session_tail(files, tmp_path, spec, 0, 1)
        told = refused.value.diagnostic
        assert told.code == "session_not_attachable"
        assert reason in told.message
        assert [one.operation for one in told.remedies] == ["session.start"]


@pytest.mark.parametrize(("files", "home", "name", "native"), READERS)
def test_what_is_broken_or_not_ours_is_passed_over(
    files: Any, home: Path, name: str, native: dict[str, str], tmp_path: Path
) -> None:
    copy = shutil.copytree(home, tmp_path / "home")
    path = files.find_transcript(copy, name)
    whole = read_file_tail(files, path, 0, 1000)
    with path.open("ab") as file:
        file.write(b'\xff\xfe\n[1]\nnull\n{"type":\n{"type":7,"message":[],"payload":3,"timestamp":{}}\n')
        file.write(b'{"type":"user","message":{"content":[7,{"type":"text"},{"type":"tool_result"}]}}\n')
        file.write(b'{"type":"response_item","payload":{"type":"message","role":"user","content":"x"}}\n')
        file.write(b'{"type":"user","message":{"content":"half a li')
    told = read_file_tail(files, path, 0, 1000)
    assert [line for line in told.lines if line.text] == list(whole.lines)
    with path.open("ab") as file:
        file.write(b'ne"}}\n')
    assert read_file_tail(files, path, told.next, 9).next == path.stat().st_size
    os.mkfifo(path.parent / f"rollout-2026-01-01T00-00-00-{'f' * 8}.jsonl")  # whoever opens it waits for ever
    (path.parent / "loop.jsonl").symlink_to(path.parent / "loop.jsonl")
    (path.parent / "nothing").write_text("")
    assert name in {one.native_id for one in files.list_observed(copy)}
    assert files.list_observed(tmp_path / "nowhere") == []


@pytest.mark.skipif(os.geteuid() == 0, reason="everything is readable")
@pytest.mark.parametrize(("files", "home", "name", "native"), READERS)
def test_what_this_user_may_not_read_is_said(
    files: Any, home: Path, name: str, native: dict[str, str], tmp_path: Path
) -> None:
    copy = shutil.copytree(home, tmp_path / "home")
    files.find_transcript(copy, name).chmod(0)
    spec = SessionSpec(session_id="ses_1", agent_id="agt_1", address="@x", native_ids=native)
    with pytest.raises(Refused, match="cannot be read"):
        read_session_tail(files, copy, spec, 0, 1)


@pytest.mark.parametrize(("files", "home", "name", "native"), READERS)
def test_looking_changes_nothing(
    files: Any, home: Path, name: str, native: dict[str, str], tmp_path: Path
) -> None:
    copy = shutil.copytree(home, tmp_path / "home")
    write_registration(copy)
    for path in copy.rglob("*"):
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))
    before = prints(copy)
    spec = SessionSpec(session_id="ses_1", agent_id="agt_1", address="@x", native_ids=native)
    assert files.list_observed(copy)
    assert read_session_tail(files, copy, spec, -1, 5).lines
    assert files.find_live_session(copy, "nobody") is None
    assert prints(copy) == before
    for path in copy.rglob("*"):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)


def test_the_end_of_a_huge_file_is_found_without_reading_it(tmp_path: Path) -> None:
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.truncate(1 << 32)  # a hole: reading it all would take minutes
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + b'{"type":"user","message":{"content":"the end"}}\n' * 3)
    told = read_file_tail(claude, path, -1, 2)
    assert list_lines(told.lines) == [("user", "the end")] * 2
    assert told.next == path.stat().st_size


def test_a_line_that_is_too_long_is_left_out_and_a_long_text_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    entries = [{"text": "x" * (3 << 20)}, {"text": "y" * 9000}, {"text": "z"}]
    path.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    told = read_file_tail(claude, path, 0, 9)
    assert told.lines == ()
    assert told.next == path.stat().st_size
    lines = read_tail(path, 0, 9, lambda entry: [TailLine(who="user", text=entry["text"])])
    assert [len(line.text) for line in lines.lines] == [9000, 1]


# -- how full the context is -------------------------------------------------------------------------


def write_entries(path: Path, *entries: object) -> Path:
    path.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    return path


def test_the_context_of_claude_code_is_that_of_its_last_answer(tmp_path: Path) -> None:
    def answer(tokens: object, **more: object) -> object:
        usage = {"input_tokens": 5, "cache_read_input_tokens": tokens, "output_tokens": 7}
        return {"type": "assistant", "message": {"usage": usage}, **more}

    path = write_entries(
        tmp_path / "a", answer(100), answer(200), answer(9, isSidechain=True), {"type": "user"}
    )
    assert read_context(path, claude.read_context) == ContextUse(tokens=212)
    assert read_context(write_entries(path, answer("many")), claude.read_context) == ContextUse(tokens=12)
    assert read_context(write_entries(path, {"type": "assistant"}), claude.read_context) is None


def test_the_context_of_codex_and_how_much_fits_into_it(tmp_path: Path) -> None:
    def told(info: object) -> object:
        return {"type": "event_msg", "payload": {"type": "token_count", "info": info}}

    last = {"last_token_usage": {"total_tokens": 50}}
    path = write_entries(
        tmp_path / "a", told({**last, "model_context_window": 200}), told(None), {"type": "x"}
    )
    assert read_context(path, codex.read_context) == ContextUse(tokens=50, window=200)
    assert read_context(write_entries(path, told(last)), codex.read_context) == ContextUse(tokens=50)
    assert read_context(write_entries(path, {"type": "response_item"}), codex.read_context) is None
