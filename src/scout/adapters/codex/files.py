"""Codex's files (0.166.0): a rollout of each thread, a lock while a program writes to it, the queue.

Everything here only reads. Files that are half written, of another user or of unknown shape are skipped.
"""

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from scout.adapters.process.process_table import ProcessId, list_processes
from scout.adapters.transcript import (
    Entry,
    File,
    find_newest,
    get_count,
    get_object,
    get_text,
    get_time,
    list_folder,
    make_title,
    read_head,
    shorten,
    to_list,
)
from scout.ports import ContextUse, Observed, TailLine, Transcript

_NAME = "codex"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z-]*")
_ROLLOUT = re.compile(r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-(?P<thread>.+)\.jsonl")
_LOCKS = Path("/proc/locks")
_NOT_LIVE = "only Linux shows whether a thread is open, by its lock"
_QUEUE_WAIT = 20.0
_DAYS = 3  # levels of folders: year, month, day


class LiveCodex(NamedTuple):
    """A thread that a program is writing to, detected by its lock."""

    session_id: str
    process: ProcessId
    source: str


def find_home(environment: Mapping[str, str]) -> Path:
    """Return the folder of the program's files."""
    given = environment.get("CODEX_HOME")
    return Path(given) if given else Path(environment.get("HOME") or "~").expanduser() / ".codex"


# -------------------------------------------------------------------------------------- who writes


def find_live_session(home: Path, session_id: str) -> LiveCodex | None:
    """Return the program that writes to a thread: the owner of its lock."""
    return next((live for live in _list_live(home) if live.session_id == session_id), None)


def _list_live(home: Path) -> Iterator[LiveCodex]:
    owners, table = _list_lock_owners(), list_processes()
    for path in list_folder(home / "thread-writer-locks"):
        pid = owners.get(_format_inode(path)) if path.suffix == ".lock" else None
        if pid in table:
            yield LiveCodex(path.stem, table[pid].identity, str(path))


def _list_lock_owners() -> dict[str, int]:
    """Return the process that holds each locked file, by device and inode."""
    try:
        rows = [line.split() for line in _LOCKS.read_text("ascii").splitlines()]
    except OSError:
        return {}
    return {row[5]: int(row[4]) for row in rows if len(row) == 8 and row[1] == "FLOCK"}


def _format_inode(path: Path) -> str:
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"


# ---------------------------------------------------------------------------------------- rollouts


def find_transcript(home: Path, session_id: str) -> Path | None:
    """Find the rollout of a thread."""
    if not _ID.fullmatch(session_id):
        return None
    named = (path for path in _list_rollouts(home) if _read_thread_id(path) == session_id)
    return next(named, None)


def locate_transcript(home: Path, session_id: str) -> Transcript | None:
    """Return where the rollout of a thread lies; stars stand for its day and time."""
    if not _ID.fullmatch(session_id):
        return None
    folder, name = home / "sessions", f"rollout-*-{session_id}.jsonl"
    return Transcript(file=str(folder / "*" / "*" / "*" / name), folder=str(folder))


def _list_rollouts(home: Path) -> Iterator[Path]:
    """Yield all rollouts, the latest day first."""
    folders = [home / "sessions"]
    for _ in range(_DAYS):
        folders = [below for folder in folders for below in reversed(list_folder(folder))]
    for folder in folders:
        yield from (path for path in reversed(list_folder(folder)) if _read_thread_id(path))


def _read_thread_id(path: Path) -> str:
    named = _ROLLOUT.fullmatch(path.name)
    return named["thread"] if named else ""


def read_entry(entry: Entry) -> Iterator[TailLine]:
    """Yield the lines of one entry to show to a person: text, tools and their results."""
    if get_text(entry, "type") != "response_item":
        return
    item = get_object(entry, "payload")
    if said := _read_message(item) or _read_tool(item):
        who, words = said
        yield TailLine(who=who, text=shorten(words), at=get_time(entry, "timestamp"))


def read_context(entry: Entry) -> ContextUse | None:
    """Return how full the context was after the last call of the model."""
    payload = get_object(entry, "payload")
    if get_text(payload, "type") != "token_count":
        return None
    told = get_object(payload, "info")
    tokens = get_count(get_object(told, "last_token_usage"), "total_tokens")
    return (
        ContextUse(tokens=tokens, window=get_count(told, "model_context_window") or None) if tokens else None
    )


def _read_message(item: Entry) -> tuple[str, str] | None:
    """Read a message. Text that the program adds in the user's name is in angle brackets."""
    who = get_text(item, "role")
    if get_text(item, "type") != "message" or who not in {"user", "assistant"}:
        return None
    words = _join_text(item.get("content"))
    own = (
        who == "user"
        and words.startswith("<")
        and words.rstrip().endswith(">")
        and not words.startswith("<<")
    )
    return None if own or not words else (who, words)


def _read_tool(item: Entry) -> tuple[str, str] | None:
    kind = get_text(item, "type")
    if kind.endswith("_output"):
        return "tool", _read_output(item.get("output"))
    if kind.endswith("_call"):
        given = (
            get_text(item, "arguments")
            or get_text(item, "input")
            or _join_command(get_object(item, "action"))
        )
        return "tool", f"{get_text(item, 'name') or kind.removesuffix('_call')} {given}".rstrip()
    return None


def _join_command(action: Entry) -> str:
    return " ".join(map(str, to_list(action.get("command"))))


def _read_output(output: Any) -> str:
    return output if isinstance(output, str) else _join_text(output) or get_text(output, "content")


def _join_text(content: Any) -> str:
    return "\n".join(words for part in to_list(content) if (words := get_text(part, "text")))


# -------------------------------------------------------------------------------------- what there is


def list_observed(home: Path, limit: int = 50) -> list[Observed]:
    """List the threads that were written last, including sub-agents."""
    live = {one.session_id: one for one in _list_live(home)}
    return [
        _describe_session(file, live.get(_read_thread_id(file.path)))
        for file in find_newest(_list_rollouts(home), limit)
    ]


def _describe_session(file: File, live: LiveCodex | None) -> Observed:
    meta, title = _read_beginning(file.path)
    parent = get_text(meta, "parent_thread_id")
    return Observed(
        harness=_NAME,
        native_id=_read_thread_id(file.path),
        kind="sub-agent" if parent else "session",
        cwd=get_text(meta, "cwd") or None,
        title=title or make_title(get_text(meta, "agent_nickname")),
        live=live is not None,
        pid=live.process.pid if live else None,
        parent=parent or None,
        updated_at=file.changed,
        source=str(file.path),
        limits="" if live or _LOCKS.exists() else _NOT_LIVE,
    )


def _read_beginning(path: Path) -> tuple[Entry, str]:
    """Return the metadata and the first prompt of a thread."""
    meta: Entry = {}
    for entry in read_head(path):
        if get_text(entry, "type") == "session_meta":
            meta = meta or get_object(entry, "payload")
        if words := next((line.text for line in read_entry(entry) if line.who == "user"), ""):
            return meta, make_title(words)
    return meta, ""


# -------------------------------------------------------------------------------------- the queue


async def queue_message(binary: str, native_id: str, text: str, environment: Mapping[str, str]) -> bool:
    """Queue a message for a thread that is open in a program; whether Codex took it.

    An idle terminal runs it at once. The session's prompt hook is the receipt.
    """
    if await asyncio.to_thread(find_live_session, find_home(environment), native_id) is None:
        return False
    words = (binary, "queue", "--thread", native_id, f"--message={text}")
    null = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *words, env=dict(environment), stdin=null, stdout=null, stderr=null
        )
    except (OSError, ValueError):  # for example, the text is too long for a command line
        return False
    try:
        async with asyncio.timeout(_QUEUE_WAIT):
            return await process.wait() == 0
    except TimeoutError:
        return False
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
