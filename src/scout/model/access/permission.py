"""Permission requests: the exact action a program wants to take, shown before its own description."""

import json
import shlex
from collections.abc import Mapping
from typing import Any, cast

from scout.base.record import Record

_TITLE = 120
_LONGEST = 256 * 1024  # maximum characters of arguments kept; the rest is counted
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # invisible, yet letters to Python
_PATHS = ("file_path", "notebook_path", "path")
_SAID = frozenset({"command", "description"})


class PermissionRequest(Record):
    """One request of a program. An approval covers exactly these characters.

    `command` is a shell command; `path` the file a tool works on; `arguments` the tool's other arguments
    as JSON. `words` is the program's description. `cut` counts the characters missing at the end of
    `arguments`. `observed`: the request was only read from a screen.
    """

    tool: str
    command: str | None = None
    path: str | None = None
    arguments: str = ""
    words: str = ""
    hidden: bool = False
    cut: int = 0
    observed: bool = False


def build_request(tool: str, given: object, words: str = "") -> PermissionRequest:
    """Return the request for a tool call with these arguments."""
    if not isinstance(given, Mapping):
        return _build(tool, None, None, _format_arguments(given), words)
    fields = cast("Mapping[str, Any]", given)
    command = _format_command(fields.get("command"))
    rest = {name: value for name, value in fields.items() if command is None or name not in _SAID}
    said = words or (str(fields.get("description") or "") if command is not None else "")
    path = next((fields[name] for name in _PATHS if isinstance(fields.get(name), str)), None)
    return _build(tool, command, path, _format_arguments(rest), said)


def build_observed_request(text: str, words: str) -> PermissionRequest:
    """Return the request read from a program's screen."""
    return _build("", None, None, text, words, observed=True)


def _build(
    tool: str, command: str | None, path: str | None, text: str, words: str, *, observed: bool = False
) -> PermissionRequest:
    return PermissionRequest(
        tool=tool,
        command=command,
        path=path,
        arguments=text[:_LONGEST],
        words=words,
        hidden=any(map(has_hidden, (tool, command or "", path or "", text))),
        cut=max(len(text) - _LONGEST, 0),
        observed=observed,
    )


def _format_command(given: object) -> str | None:
    """Return a command as shell text; a list of words is quoted."""
    if isinstance(given, list | tuple):
        return shlex.join(map(str, cast("list[object]", given)))
    return given if isinstance(given, str) else None


def _format_arguments(given: object) -> str:
    if given in (None, "", {}):
        return ""
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, indent=2)


def has_hidden(text: str) -> bool:
    """Whether the text has characters that no terminal shows, other than newlines and tabs."""
    return any(char in _BLANK or not (char.isprintable() or char in "\n\t") for char in text)


def format_request(request: PermissionRequest) -> str:
    """Return the full request: the exact command or file, other arguments, then the program's description."""
    exact = (request.command, request.path if request.command is None else None, request.arguments)
    warning = "It has hidden characters." if request.hidden else ""
    said = f"It says: {request.words}" if request.words else ""
    return "\n".join(part for part in (*exact, warning, said) if part)


def format_request_title(request: PermissionRequest) -> str:
    """Return the request as one line, for lists that also show it in full."""
    what = request.command or request.path or request.arguments or request.words
    line = " ⏎ ".join(part.strip() for part in what.splitlines() if part.strip())
    text = f"{request.tool}: {line}".strip(": ") if request.tool else line
    return text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"
