"""Claude Code's files (2.1.325): the registry of running sessions, transcripts, sub-agents, the inbox.

Everything here only reads. Files that are half written, of another user or of unknown shape are skipped.
"""

import asyncio
import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from scout.adapters.harness import find_relays
from scout.adapters.persistent.rpc import parse_message
from scout.adapters.process.process_table import ProcessId, is_alive
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
    read_object,
    shorten,
    to_list,
)
from scout.base.codec import encode
from scout.ports import ContextUse, Observed, TailLine, Transcript

_NAME = "claude"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_OF_ONE_SESSION = 20
_INBOX_WAIT = 5.0
_NOT_LIVE = "only the registry shows whether a session is running"


class LiveClaude(NamedTuple):
    """A session whose program is running. `status`: idle, busy, waiting; `socket`: its inbox."""

    session_id: str
    process: ProcessId
    cwd: str
    status: str
    waiting_for: str
    name: str
    socket: str
    source: str


def find_home(environment: Mapping[str, str]) -> Path:
    """Return the folder of the program's files."""
    given = environment.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path(environment.get("HOME") or "~").expanduser() / ".claude"


def list_relays(environment: Mapping[str, str], directory: str) -> tuple[str, ...]:
    """Return the MCP servers in the user's settings that relay to Scout, for a session in this directory."""
    own = environment.get("CLAUDE_CONFIG_DIR")
    home = Path(own) if own else Path(environment.get("HOME") or "~").expanduser()
    state = _read_object(home / ".claude.json")
    project = get_object(get_object(state, "projects"), directory)
    tables = (state, project, _read_object(Path(directory) / ".mcp.json"))
    return tuple(
        dict.fromkeys(name for one in tables for name in find_relays(get_object(one, "mcpServers"), _NAME))
    )


def _read_object(file: Path) -> Entry:
    try:
        return get_object({"": json.loads(file.read_bytes())}, "")
    except (OSError, ValueError):
        return {}


# ------------------------------------------------------------------------------------- the registry


def find_live_session(home: Path, session_id: str, besides: Collection[int] = ()) -> LiveClaude | None:
    """Return the running session of this id from the registry. `besides`: processes to ignore."""
    found = (live for live in _list_live(home) if live.process.pid not in besides)
    return next((live for live in found if live.session_id == session_id), None)


def _list_live(home: Path) -> Iterator[LiveClaude]:
    for path in list_folder(home / "sessions"):
        if (
            path.suffix == ".json"
            and (entry := read_object(path))
            and (live := _read_registration(entry, path))
        ):
            yield live


def _read_registration(entry: Entry, path: Path) -> LiveClaude | None:
    pid, session_id = entry.get("pid"), get_text(entry, "sessionId")
    if not isinstance(pid, int) or not session_id:
        return None
    process = ProcessId(pid, str(entry.get("procStart")))
    if not is_alive(process):
        return None
    words = (get_text(entry, name) for name in ("cwd", "status", "waitingFor", "name", "messagingSocketPath"))
    return LiveClaude(session_id, process, *words, source=str(path))


# ------------------------------------------------------------------------------------- transcripts


def find_transcript(home: Path, session_id: str) -> Path | None:
    """Find the transcript of a session. It stays in the project where the session began."""
    if not _ID.fullmatch(session_id):
        return None
    found = (folder / f"{session_id}.jsonl" for folder in list_folder(home / "projects"))
    return next((file.path for file in find_newest(found, 1)), None)


def locate_transcript(home: Path, session_id: str, cwd: str | None) -> Transcript | None:
    """Return where the transcript of a session lies, by its folder's name; the disk is not read."""
    if cwd is None or not _ID.fullmatch(session_id):
        return None
    folder = home / "projects" / re.sub("[^0-9A-Za-z]", "-", cwd)
    return Transcript(file=str(folder / f"{session_id}.jsonl"), folder=str(folder))


def read_entry(entry: Entry) -> Iterator[TailLine]:
    """Yield the lines of one entry to show to a person: text, tools and their results."""
    who = get_text(entry, "type")
    if who not in {"user", "assistant"} or entry.get("isMeta") is True:
        return
    content, at = get_object(entry, "message").get("content"), get_time(entry, "timestamp")
    if isinstance(content, str):
        yield TailLine(who=who, text=shorten(content), at=at)
    for block in to_list(content):
        if said := _read_block(block):
            yield TailLine(who="tool" if said.tool else who, text=shorten(said.text), at=at)


def read_context(entry: Entry) -> ContextUse | None:
    """Return the tokens in the context after an answer. How many fit is not in the transcript."""
    if get_text(entry, "type") != "assistant" or entry.get("isSidechain") is True:
        return None
    used = get_object(get_object(entry, "message"), "usage")
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    tokens = sum(get_count(used, name) for name in names)
    return ContextUse(tokens=tokens) if tokens else None


class _Words(NamedTuple):
    text: str
    tool: bool = False


def _read_block(block: Any) -> _Words | None:
    kind = get_text(block, "type")
    if kind == "text":
        return _Words(get_text(block, "text"))
    if kind == "tool_use":
        return _Words(
            f"{get_text(block, 'name')} {_choose_argument(get_object(block, 'input'))}".rstrip(), tool=True
        )
    if kind == "tool_result":
        return _Words(_join_result(block.get("content")), tool=True)
    return None


def _choose_argument(given: Entry) -> str:
    """Return the most informative argument."""
    names = ("command", "file_path", "path", "pattern", "url", "query", "description")
    return next((words for name in names if (words := get_text(given, name))), "")


def _join_result(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(
        get_text(block, "text") for block in to_list(content) if get_text(block, "type") == "text"
    )


def read_final_text(path: Path, prompt_id: str) -> str | None:
    """Return the last text of the turn that a prompt began; None if the turn had not ended."""
    found, ours = None, False
    with path.open("rb") as file:
        for entry in map(parse_message, file):
            kind, message = entry.get("type"), get_object(entry, "message")
            if kind == "user" and isinstance(message.get("content"), str):
                ours = entry.get("uuid") == prompt_id
            elif ours and kind == "assistant" and not entry.get("isSidechain"):
                found = _read_last_text(message)
    return found


def _read_last_text(message: Entry) -> str | None:
    """Return the text of an answer that ends its turn."""
    blocks = to_list(message.get("content"))
    ended = message.get("stop_reason") == "end_turn" and blocks and get_text(blocks[-1], "type") == "text"
    return get_text(blocks[-1], "text") if ended else None


# ------------------------------------------------------------------------------------- what there is


def list_observed(home: Path, limit: int = 50) -> list[Observed]:
    """List the running sessions, then those written last, each with its sub-agents."""
    live = {one.session_id: one for one in _list_live(home)}
    paths = (
        path
        for folder in list_folder(home / "projects")
        for path in list_folder(folder)
        if path.suffix == ".jsonl"
    )
    files = find_newest(paths, limit)
    written = {file.path.stem for file in files}
    found = [_describe_running(one) for one in live.values() if one.session_id not in written]
    for file in files:
        found.append(_describe_session(file, live.get(file.path.stem)))
        found += _list_sub_agents(file.path.with_suffix("") / "subagents")
    return found


def _describe_running(live: LiveClaude) -> Observed:
    """Describe a running session that has no transcript yet."""
    return Observed(
        harness=_NAME,
        native_id=live.session_id,
        cwd=live.cwd or None,
        title=make_title(live.name),
        state=live.status,
        live=True,
        pid=live.process.pid,
        source=live.source,
        limits="it has no transcript yet",
    )


def _describe_session(file: File, live: LiveClaude | None) -> Observed:
    cwd, title = _read_beginning(file.path)
    return Observed(
        harness=_NAME,
        native_id=file.path.stem,
        cwd=(live.cwd if live else "") or cwd or None,
        title=title,
        state=" ".join(filter(None, (live.status, live.waiting_for))) if live else "",
        live=live is not None,
        pid=live.process.pid if live else None,
        updated_at=file.changed,
        source=str(file.path),
        limits="" if live else _NOT_LIVE,
    )


def _read_beginning(path: Path) -> tuple[str, str]:
    """Return the folder and the first prompt of a session."""
    cwd = title = ""
    for entry in read_head(path):
        cwd = cwd or get_text(entry, "cwd")
        if not title and get_text(entry, "type") == "user":
            title = next((make_title(line.text) for line in read_entry(entry) if line.who == "user"), "")
        if cwd and title:
            break
    return cwd, title


def _list_sub_agents(folder: Path) -> Iterator[Observed]:
    paths = (path for path in list_folder(folder) if path.suffix == ".jsonl")
    for file in find_newest(paths, _OF_ONE_SESSION):
        about = read_object(file.path.with_suffix(".meta.json")) or {}
        cwd, title = _read_beginning(file.path)
        yield Observed(
            harness=_NAME,
            native_id=file.path.stem.removeprefix("agent-"),
            kind="sub-agent",
            cwd=cwd or None,
            title=make_title(get_text(about, "description")) or title,
            state="finished" if about.get("finished") is True else "",
            parent=folder.parent.name,
            updated_at=file.changed,
            source=str(file.path),
            limits="it can be reached only through its session",
        )


# ------------------------------------------------------------------------------------- the inbox


async def send_to_inbox(home: Path, native_id: str, text: str) -> bool:
    """Write to the inbox socket of a session that is idle; whether it was written.

    Nothing comes back on the socket: the session's prompt hook is the receipt.
    """
    live = await asyncio.to_thread(find_live_session, home, native_id)
    if live is None or live.status != "idle" or not live.socket:
        return False
    said = {"type": "user", "from": "scout", "message": {"role": "user", "content": text}}
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(_INBOX_WAIT):
            await _write(live.socket, encode(said) + b"\n")
            return True
    return False


async def _write(socket: str, line: bytes) -> None:
    _, writer = await asyncio.open_unix_connection(socket)
    try:
        writer.write(line)
        await writer.drain()
    finally:
        writer.close()
        await writer.wait_closed()
