"""What Claude Code 2.1.325 leaves on the disk: the registry of what runs, transcripts, sub-agents.

Everything here only reads. What is half written, of another user or of an unknown shape is passed over.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from scout.adapters.harness import not_attachable
from scout.adapters.process.process_table import ProcessId, is_alive
from scout.adapters.run_server import relays_in
from scout.adapters.transcript import (
    Entry,
    File,
    clipped,
    excerpt,
    head,
    inner,
    items,
    listed,
    newest,
    single,
    text,
    time,
    titled,
)
from scout.base.refusal import Refused
from scout.ports import Observed, SessionSpec, Tailed, TailLine

_NAME = "claude"
_ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")
_OF_ONE_SESSION = 20
_NOT_LIVE = "whether its program runs is only known for sessions of its registry"


class LiveClaude(NamedTuple):
    """A session whose program runs now. `status`: idle, busy, waiting; `socket`: where it takes messages."""

    session_id: str
    process: ProcessId
    cwd: str
    status: str
    waiting_for: str
    name: str
    socket: str
    source: str


def home_of(environment: Mapping[str, str]) -> Path:
    """Where the program keeps its files, with this environment."""
    given = environment.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path(environment.get("HOME") or "~").expanduser() / ".claude"


def relays_of(environment: Mapping[str, str], directory: str) -> tuple[str, ...]:
    """The MCP servers of the user's own settings that relay to Scout, for a session in this directory."""
    own = environment.get("CLAUDE_CONFIG_DIR")
    home = Path(own) if own else Path(environment.get("HOME") or "~").expanduser()
    state = _object(home / ".claude.json")
    project = inner(inner(state, "projects"), directory)
    tables = (state, project, _object(Path(directory) / ".mcp.json"))
    return tuple(dict.fromkeys(name for one in tables for name in relays_in(inner(one, "mcpServers"), _NAME)))


def _object(file: Path) -> Entry:
    try:
        return inner({"": json.loads(file.read_bytes())}, "")
    except (OSError, ValueError):
        return {}


# ------------------------------------------------------------------------------------- the registry


def live_session(home: Path, session_id: str, besides: Collection[int] = ()) -> LiveClaude | None:
    """The registry's word on a session, when its process is still the one that wrote it.

    `besides`: processes that do not count.
    """
    found = (live for live in _live(home) if live.process.pid not in besides)
    return next((live for live in found if live.session_id == session_id), None)


def _live(home: Path) -> Iterator[LiveClaude]:
    for path in listed(home / "sessions"):
        if path.suffix == ".json" and (entry := single(path)) and (live := _registered(entry, path)):
            yield live


def _registered(entry: Entry, path: Path) -> LiveClaude | None:
    pid, session_id = entry.get("pid"), text(entry, "sessionId")
    if not isinstance(pid, int) or not session_id:
        return None
    process = ProcessId(pid, str(entry.get("procStart")))
    if not is_alive(process):
        return None
    words = (text(entry, name) for name in ("cwd", "status", "waitingFor", "name", "messagingSocketPath"))
    return LiveClaude(session_id, process, *words, source=str(path))


# ------------------------------------------------------------------------------------- transcripts


def transcript_of(home: Path, session_id: str) -> Path | None:
    """The file of a session. It stays where the session began, so every project is looked into."""
    if not _ID.fullmatch(session_id):
        return None
    found = (folder / f"{session_id}.jsonl" for folder in listed(home / "projects"))
    return next((file.path for file in newest(found, 1)), None)


def tail_of(home: Path, spec: SessionSpec, after: int, limit: int) -> Tailed:
    """Some of the transcript of this session; refused when there is none."""
    session_id = spec.native_ids.get("session", "")
    path = transcript_of(home, session_id)
    try:
        if path is not None:
            return tailed(path, after, limit)
        reason = "it has no transcript yet" if session_id else "it has not begun"
    except OSError as error:
        reason = f"its transcript cannot be read: {error.strerror}"
    raise Refused(not_attachable(_NAME, spec, session_id or spec.session_id, reason))


def _lines(entry: Entry) -> Iterator[TailLine]:
    """What a person would want to see of one line: words, tools and their results."""
    who = text(entry, "type")
    if who not in {"user", "assistant"} or entry.get("isMeta") is True:
        return
    content, at = inner(entry, "message").get("content"), time(entry, "timestamp")
    if isinstance(content, str):
        yield TailLine(who=who, text=clipped(content), at=at)
    for block in items(content):
        if said := _block(block):
            yield TailLine(who="tool" if said.tool else who, text=clipped(said.text), at=at)


class _Words(NamedTuple):
    text: str
    tool: bool = False


def _block(block: Any) -> _Words | None:
    kind = text(block, "type")
    if kind == "text":
        return _Words(text(block, "text"))
    if kind == "tool_use":
        return _Words(f"{text(block, 'name')} {_argument(inner(block, 'input'))}".rstrip(), tool=True)
    if kind == "tool_result":
        return _Words(_result(block.get("content")), tool=True)
    return None


def _argument(given: Entry) -> str:
    """The one argument that says most."""
    names = ("command", "file_path", "path", "pattern", "url", "query", "description")
    return next((words for name in names if (words := text(given, name))), "")


def _result(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text(block, "text") for block in items(content) if text(block, "type") == "text")


tailed = partial(excerpt, lines_of=_lines)


# ------------------------------------------------------------------------------------- what there is


def observed(home: Path, limit: int = 50) -> list[Observed]:
    """The sessions that run, then those that were written last, each with its sub-agents."""
    live = {one.session_id: one for one in _live(home)}
    paths = (
        path for folder in listed(home / "projects") for path in listed(folder) if path.suffix == ".jsonl"
    )
    files = newest(paths, limit)
    written = {file.path.stem for file in files}
    found = [_running(one) for one in live.values() if one.session_id not in written]
    for file in files:
        found.append(_session(file, live.get(file.path.stem)))
        found += _sub_agents(file.path.with_suffix("") / "subagents")
    return found


def _running(live: LiveClaude) -> Observed:
    """A session of the registry that has written nothing yet."""
    return Observed(
        harness=_NAME,
        native_id=live.session_id,
        cwd=live.cwd or None,
        title=titled(live.name),
        state=live.status,
        live=True,
        pid=live.process.pid,
        source=live.source,
        limits="it has no transcript yet",
    )


def _session(file: File, live: LiveClaude | None) -> Observed:
    cwd, title = _begun(file.path)
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


def _begun(path: Path) -> tuple[str, str]:
    """Where a session began, and with which words."""
    cwd = title = ""
    for entry in head(path):
        cwd = cwd or text(entry, "cwd")
        if not title and text(entry, "type") == "user":
            title = next((titled(line.text) for line in _lines(entry) if line.who == "user"), "")
        if cwd and title:
            break
    return cwd, title


def _sub_agents(folder: Path) -> Iterator[Observed]:
    paths = (path for path in listed(folder) if path.suffix == ".jsonl")
    for file in newest(paths, _OF_ONE_SESSION):
        about = single(file.path.with_suffix(".meta.json")) or {}
        cwd, title = _begun(file.path)
        yield Observed(
            harness=_NAME,
            native_id=file.path.stem.removeprefix("agent-"),
            kind="sub-agent",
            cwd=cwd or None,
            title=titled(text(about, "description")) or title,
            state="finished" if about.get("finished") is True else "",
            parent=folder.parent.name,
            updated_at=file.changed,
            source=str(file.path),
            limits="it is reached only through the session it belongs to",
        )
