"""What a program wants to do and may not yet: exactly that, before what the program says about it."""

import json
import shlex
from collections.abc import Mapping
from typing import Any, cast

from scout.base.record import Record

_TITLE = 120
_LONGEST = 256 * 1024  # characters of arguments that are kept; more is counted
_BLANK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")  # letters, for Python, that show nothing
_PATHS = ("file_path", "notebook_path", "path")
_SAID = frozenset({"command", "description"})


class PermissionRequest(Record):
    """One wish of a program. What is approved is this, character by character.

    `command` is a shell command; `path` the file that a tool is about; `arguments` is everything else that
    the tool is given, as JSON. `words` is what the program says about it. `cut` counts the characters that
    are missing at the end of `arguments`. `observed`: it was only seen on a screen.
    """

    tool: str
    command: str | None = None
    path: str | None = None
    arguments: str = ""
    words: str = ""
    hidden: bool = False
    cut: int = 0
    observed: bool = False


def request_of(tool: str, given: object, words: str = "") -> PermissionRequest:
    """What a tool is asked to do, from the arguments it is given."""
    if not isinstance(given, Mapping):
        return _checked(tool, None, None, _text(given), words)
    fields = cast("Mapping[str, Any]", given)
    command = _command(fields.get("command"))
    rest = {name: value for name, value in fields.items() if command is None or name not in _SAID}
    said = words or (str(fields.get("description") or "") if command is not None else "")
    path = next((fields[name] for name in _PATHS if isinstance(fields.get(name), str)), None)
    return _checked(tool, command, path, _text(rest), said)


def observed_request(text: str, words: str) -> PermissionRequest:
    """What stands on a program's screen."""
    return _checked("", None, None, text, words, observed=True)


def _checked(
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


def _command(given: object) -> str | None:
    """A command as its shell would take it; a list of words is quoted."""
    if isinstance(given, list | tuple):
        return shlex.join(map(str, cast("list[object]", given)))
    return given if isinstance(given, str) else None


def _text(given: object) -> str:
    if given in (None, "", {}):
        return ""
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, indent=2)


def has_hidden(text: str) -> bool:
    """Whether a text has characters that no terminal shows; ends of lines and tabs are none of them."""
    return any(char in _BLANK or not (char.isprintable() or char in "\n\t") for char in text)


def text_of_request(request: PermissionRequest) -> str:
    """A request whole: the exact command or file, what else the tool is given, then the program's words."""
    exact = (request.command, request.path if request.command is None else None, request.arguments)
    warning = "It has hidden characters." if request.hidden else ""
    said = f"It says: {request.words}" if request.words else ""
    return "\n".join(part for part in (*exact, warning, said) if part)


def title_of_request(request: PermissionRequest) -> str:
    """A request in a line, for lists that also show it whole."""
    what = request.command or request.path or request.arguments or request.words
    line = " ⏎ ".join(part.strip() for part in what.splitlines() if part.strip())
    text = f"{request.tool}: {line}".strip(": ") if request.tool else line
    return text if len(text) <= _TITLE else f"{text[: _TITLE - 1]}…"
