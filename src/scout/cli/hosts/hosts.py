"""The hosts that Scout can be set up in: where each keeps its settings, and what Scout adds there."""

import json
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from scout.cli.hosts import jsonc
from scout.client.http import is_object
from scout.settings.where import find_user_home

_STARTUP = 60  # seconds: after its own default of 10, Codex works without Scout's tools and says nothing
_WAIT = 30  # seconds that a permission request waits for a decision elsewhere

# Scout's events: their names in hosts with hooks, and their timeout in seconds.
_EVENTS = {
    "session_start": ("SessionStart", 10),
    "prompt_submit": ("UserPromptSubmit", 10),
    "stop": ("Stop", 10),
    "tool_use": ("PostToolUse", 10),
    "permission_request": ("PermissionRequest", _WAIT + 15),
    "session_end": ("SessionEnd", 3),  # maximum in Codex
}


# Hosts that call a hook before they edit a file: its name there, its timeout, and the tools that edit.
_EDITS = {"claude": ("PreToolUse", 5, "Edit|Write|MultiEdit|NotebookEdit")}


class HostProgram(NamedTuple):
    """The command that runs this Scout, and the environment it needs."""

    words: tuple[str, ...]
    environ: dict[str, str]
    allows_tools: bool = True  # the host calls Scout's tools without asking each time

    def line(self, *words: str) -> str:
        """Return a shell command."""
        told = [f"{name}={value}" for name, value in self.environ.items()]
        return shlex.join([*(["env", *told] if told else []), *self.words, *words])


def find_scout_program(environ: Mapping[str, str]) -> HostProgram:
    """Return this `scout` command with its full path: the host's PATH may lack it."""
    beside = Path(sys.executable).parent / "scout"
    found = str(beside) if beside.exists() else shutil.which("scout")
    words = (found,) if found else (sys.executable, "-m", "scout")
    home = environ.get("SCOUT_HOME")
    return HostProgram(words, {"SCOUT_HOME": str(Path(home).expanduser().absolute())} if home else {})


class Addition(Protocol):
    """An entry of Scout's in a host's file. `empty`: the contents of a new file."""

    empty: str
    what: str

    def put(self, text: str) -> str: ...
    def remove(self, text: str) -> str: ...
    def is_in(self, text: str) -> bool: ...
    def snippet(self) -> str: ...


class JsonEntry:
    """A value under a path of keys. `shy`: never replaces an existing value."""

    empty = "{}\n"

    def __init__(self, what: str, path: tuple[str, ...], value: Any, *, shy: bool = False) -> None:
        self.what, self.path, self.value, self.shy = what, path, value, shy

    def put(self, text: str) -> str:
        there = jsonc.parse(text).at(self.path)
        if there is not None and (self.shy or there.value == self.value):
            return text
        return jsonc.set_at(text, self.path, self.value)

    def remove(self, text: str) -> str:
        there = jsonc.parse(text).at(self.path)
        if there is None or (self.shy and not _is_ours(there.value)):
            return text
        return jsonc.remove_at(text, self.path)

    def is_in(self, text: str) -> bool:
        there = jsonc.parse(text).at(self.path)
        return there is not None and (not self.shy or _is_ours(there.value))

    def snippet(self) -> str:
        told: Any = self.value
        for name in reversed(self.path):
            told = {name: told}
        return json.dumps(told, indent=2)


class JsonItem:
    """A text in a list under a path of keys, added to the existing ones."""

    empty = "{}\n"

    def __init__(self, what: str, path: tuple[str, ...], text: str) -> None:
        self.what, self.path, self.text = what, path, text

    def put(self, text: str) -> str:
        return text if self.is_in(text) else jsonc.append_to(text, self.path, self.text)

    def remove(self, text: str) -> str:
        there = self._list(text)
        if self.text in there:
            text = jsonc.remove_at(text, (*self.path, there.index(self.text)))
        for depth in range(len(self.path), 0, -1):
            text = _remove_if_empty(text, self.path[:depth])
        return text

    def is_in(self, text: str) -> bool:
        return self.text in self._list(text)

    def snippet(self) -> str:
        told: Any = [self.text]
        for name in reversed(self.path):
            told = {name: told}
        return json.dumps(told, indent=2)

    def _list(self, text: str) -> list[Any]:
        there = jsonc.parse(text).at(self.path)
        return there.value if there is not None and _is_list(there.value) else []


class JsonHooks:
    """One command for each event, added to the existing hooks."""

    empty = "{}\n"
    what = "hooks"

    def __init__(self, host: str, program: HostProgram) -> None:
        self._host = host
        self._entries = {
            name: _build_hook_entry(program.line("hook", event, "--host", host), seconds)
            for event, (name, seconds) in _EVENTS.items()
        }
        self._marks = {name: f" hook {event} --host {host}" for event, (name, _) in _EVENTS.items()}
        if host in _EDITS:
            name, seconds, tools = _EDITS[host]
            entry = _build_hook_entry(program.line("hook", "pre_edit", "--host", host), seconds)
            self._entries[name] = {"matcher": tools, **entry}
            self._marks[name] = f" hook pre_edit --host {host}"

    def put(self, text: str) -> str:
        for name, entry in self._entries.items():
            found = self._find_entries(text, name)
            if len(found) == 1 and jsonc.parse(text).at(("hooks", name, found[0])).value == entry:  # type: ignore[union-attr] (it was found)
                continue
            text = jsonc.append_to(self._remove_entries(text, name), ("hooks", name), entry)
        return text

    def remove(self, text: str) -> str:
        for name in self._entries:
            text = self._remove_entries(text, name)
            text = _remove_if_empty(text, ("hooks", name))
        return _remove_if_empty(text, ("hooks",))

    def is_in(self, text: str) -> bool:
        return all(self._find_entries(text, name) for name in self._entries)

    def snippet(self) -> str:
        return json.dumps({"hooks": {name: [entry] for name, entry in self._entries.items()}}, indent=2)

    def _find_entries(self, text: str, name: str) -> list[int]:
        """Return the positions of Scout's entries among those of an event."""
        there = jsonc.parse(text).at(("hooks", name))
        entries: list[Any] = there.value if there is not None and _is_list(there.value) else []
        return [place for place, one in enumerate(entries) if self._marks[name] in json.dumps(one)]

    def _remove_entries(self, text: str, name: str) -> str:
        for place in reversed(self._find_entries(text, name)):
            text = jsonc.remove_at(text, ("hooks", name, place))
        return text


class TomlTable:
    """A table at the end of a TOML file."""

    empty = ""

    def __init__(self, what: str, name: tuple[str, ...], values: dict[str, Any]) -> None:
        self.what, self._name, self._values = what, name, values
        head = re.escape(".".join(name))
        self._block = re.compile(
            rf"(?m)^[ \t]*\[{head}(?:\.[^\]\n]*)?\][^\n]*\n(?:(?![ \t]*[\[#])[^\n]*(?:\n|\Z))*"
        )

    def put(self, text: str) -> str:
        told = _parse_toml(text)
        if self._get_table(told) == self._values:
            return text
        rest = self.remove(text)
        apart = "" if not rest.strip() else "\n" if rest.endswith("\n") else "\n\n"
        after = f"{rest}{apart}{self.snippet()}"
        if self._get_table(_parse_toml(after)) != self._values:
            raise jsonc.NotJson("the table is written in another form")
        return after

    def remove(self, text: str) -> str:
        return self._block.sub("", text).rstrip("\n") + "\n" if self._block.search(text) else text

    def is_in(self, text: str) -> bool:
        return self._get_table(_parse_toml(text)) is not None

    def snippet(self) -> str:
        plain = {key: value for key, value in self._values.items() if not is_object(value)}
        inner = {key: value for key, value in self._values.items() if is_object(value)}
        lines = [f"[{'.'.join(self._name)}]", *_format_pairs(plain)]
        for key, values in inner.items():
            lines += ["", f"[{'.'.join((*self._name, key))}]", *_format_pairs(values)]
        return "\n".join(lines) + "\n"

    def _get_table(self, told: Any) -> Any:
        for key in self._name:
            told = told.get(key) if is_object(told) else None
        return told


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise jsonc.NotJson(str(error)) from None


def _format_pairs(values: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]


def _build_hook_entry(command: str, seconds: int) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}


def _is_ours(value: Any) -> bool:
    return " statusline --host " in json.dumps(value)


def _remove_if_empty(text: str, path: tuple[str, ...]) -> str:
    there = jsonc.parse(text).at(path)
    return jsonc.remove_at(text, path) if there is not None and there.value in ([], {}) else text


# -- the table ---------------------------------------------------------------------------------------


class Host(NamedTuple):
    """One host: the programs and folder that identify it, and the additions to its files."""

    name: str
    title: str
    programs: tuple[str, ...]
    folder: Callable[[Mapping[str, str]], Path]
    additions: Callable[[Mapping[str, str], HostProgram], tuple[tuple[Path, Addition], ...]]
    note: str = ""

    def is_here(self, environ: Mapping[str, str]) -> bool:
        """Whether the host is installed: its folder or one of its programs exists."""
        search = environ.get("PATH")
        return self.folder(environ).is_dir() or any(shutil.which(one, path=search) for one in self.programs)


def _build_stdio(host: str, program: HostProgram, **more: Any) -> dict[str, Any]:
    told = {"command": program.words[0], "args": [*program.words[1:], "mcp", "--host", host]}
    return {**more, **told, **({"env": program.environ} if program.environ else {})}


def _find_home(environ: Mapping[str, str]) -> Path:
    return Path(find_user_home(environ))


def _find_claude_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CLAUDE_CONFIG_DIR") or _find_home(environ) / ".claude")


def _list_claude_additions(
    environ: Mapping[str, str], program: HostProgram
) -> tuple[tuple[Path, Addition], ...]:
    own = environ.get("CLAUDE_CONFIG_DIR")
    state = Path(own) / ".claude.json" if own else _find_home(environ) / ".claude.json"
    settings = _find_claude_folder(environ) / "settings.json"
    server = _build_stdio("claude", program, type="stdio")
    line = {"type": "command", "command": program.line("statusline", "--host", "claude")}
    allow = JsonItem("permission", ("permissions", "allow"), "mcp__scout")
    return (
        (state, JsonEntry("MCP server", ("mcpServers", "scout"), server)),
        *(((settings, allow),) if program.allows_tools else ()),
        (settings, JsonHooks("claude", program)),
        (settings, JsonEntry("status line", ("statusLine",), line, shy=True)),
    )


def _find_codex_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("CODEX_HOME") or _find_home(environ) / ".codex")


def _list_codex_additions(
    environ: Mapping[str, str], program: HostProgram
) -> tuple[tuple[Path, Addition], ...]:
    folder = _find_codex_folder(environ)
    approves = {"default_tools_approval_mode": "approve"} if program.allows_tools else {}
    server = {**_build_stdio("codex", program), "startup_timeout_sec": _STARTUP, **approves}
    server = {key: server[key] for key in sorted(server, key=lambda key: key == "env")}
    return (
        (folder / "config.toml", TomlTable("MCP server", ("mcp_servers", "scout"), server)),
        (folder / "hooks.json", JsonHooks("codex", program)),
    )


def _find_config_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or _find_home(environ) / ".config")


def _find_vscode_folder(environ: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        return _find_home(environ) / "Library/Application Support/Code/User"
    return _find_config_folder(environ) / "Code/User"


def _find_opencode_folder(environ: Mapping[str, str]) -> Path:
    return _find_config_folder(environ) / "opencode"


def _list_opencode_additions(
    environ: Mapping[str, str], program: HostProgram
) -> tuple[tuple[Path, Addition], ...]:
    folder = _find_opencode_folder(environ)
    named = [folder / name for name in ("opencode.jsonc", "opencode.json") if (folder / name).exists()]
    words = [*program.words, "mcp", "--host", "opencode"]
    told: dict[str, Any] = {"type": "local", "command": words, "enabled": True}
    if program.environ:
        told["environment"] = program.environ
    return (((named or [folder / "opencode.json"])[0], JsonEntry("MCP server", ("mcp", "scout"), told)),)


def _list_gemini_additions(
    environ: Mapping[str, str], program: HostProgram
) -> tuple[tuple[Path, Addition], ...]:
    trust = {"trust": True} if program.allows_tools else {}  # its word for tools that it calls without asking
    server = {**_build_stdio("gemini", program), **trust}
    file = _find_home(environ) / ".gemini" / "settings.json"
    return ((file, JsonEntry("MCP server", ("mcpServers", "scout"), server)),)


def _build_server_host(
    name: str, folder: Callable[[Mapping[str, str]], Path], file: str, key: str, **more: Any
) -> Callable[[Mapping[str, str], HostProgram], tuple[tuple[Path, Addition], ...]]:
    def additions(environ: Mapping[str, str], program: HostProgram) -> tuple[tuple[Path, Addition], ...]:
        entry = JsonEntry("MCP server", (key, "scout"), _build_stdio(name, program, **more))
        return ((folder(environ) / file, entry),)

    return additions


def _build_home_folder(name: str) -> Callable[[Mapping[str, str]], Path]:
    return lambda environ: _find_home(environ) / name


_TRUST = "Codex runs hooks only after you trust them: type /hooks in Codex."

HOSTS: dict[str, Host] = {
    host.name: host
    for host in (
        Host("claude", "Claude Code", ("claude",), _find_claude_folder, _list_claude_additions),
        Host("codex", "Codex", ("codex",), _find_codex_folder, _list_codex_additions, _TRUST),
        Host(
            "cursor",
            "Cursor",
            ("cursor", "cursor-agent"),
            _build_home_folder(".cursor"),
            _build_server_host("cursor", _build_home_folder(".cursor"), "mcp.json", "mcpServers"),
        ),
        Host("gemini", "Gemini CLI", ("gemini",), _build_home_folder(".gemini"), _list_gemini_additions),
        Host("opencode", "OpenCode", ("opencode",), _find_opencode_folder, _list_opencode_additions),
        Host(
            "vscode",
            "VS Code",
            ("code",),
            _find_vscode_folder,
            _build_server_host("vscode", _find_vscode_folder, "mcp.json", "servers", type="stdio"),
        ),
    )
}
