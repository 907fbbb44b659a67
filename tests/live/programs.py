"""The real Claude Code and Codex: installed once into a cache outside the tree, run in a clean environment."""

import contextlib
import fcntl
import functools
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

__all__ = [
    "CLAUDE_CODE_ALONE",
    "HOSTS",
    "UNASKED",
    "Door",
    "Host",
    "Program",
    "Run",
    "codex_settings",
    "require_program",
]

ROOT = Path(__file__).parents[2]
_INSTALL_SECONDS = 240
_NOWHERE = "http://127.0.0.1:9"  # what is not on loopback is out of reach


class Program(NamedTuple):
    """A package of npm at one version; `binary` is where the program lies in it, on whatever machine.

    `lean`: without the parts that it can do without, such as a program that is there already.
    """

    package: str
    version: str
    binary: str
    lean: bool = False


CLAUDE_CODE = Program("@anthropic-ai/claude-code", "2.1.325", "@anthropic-ai/claude-code-*/claude")
CODEX = Program("@openai/codex", "0.166.0", "@openai/codex-*/vendor/*/bin/codex")

# Nothing but the scripted model is asked: no updates, no reports, and no clone of a catalogue of plugins.
CLAUDE_CODE_ALONE = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}


# -- installing ----------------------------------------------------------------------------------------


def require_program(program: Program) -> Path:
    """The program; the test is skipped where it cannot be had."""
    found, problem = _had(program)
    if found is None:
        pytest.skip(f"NOT PROVED HERE: {program.package}@{program.version} is not installed: {problem}")
    return found


@functools.cache
def _had(program: Program) -> tuple[Path | None, str]:
    """Found in the cache, or put there by one of the workers while the others wait."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scout-tests" / "npm"
    cache.mkdir(parents=True, exist_ok=True)
    name = f"{program.package.strip('@').replace('/', '-')}-{program.version}"
    folder = cache / name / "node_modules"  # the one name under which a program finds what it needs
    folder.parent.mkdir(exist_ok=True)
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists() and (problem := _install(program, folder)):
            return None, problem
    return _binary(program, folder), "the package holds no program for this machine"


def _install(program: Program, folder: Path) -> str:
    """Whole or not at all; what went wrong otherwise."""
    npm = shutil.which("npm")
    if npm is None:
        return "npm is missing"
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as made:
        words = ["install", "--prefix", made, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"]
        words += ["--omit=optional"] if program.lean else []
        words += ["--fetch-retries=0", "--loglevel=error", f"{program.package}@{program.version}"]
        try:
            done = subprocess.run(
                [npm, *words], cwd=made, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"npm was not done in {_INSTALL_SECONDS} s"
        if done.returncode != 0:
            return " ".join(done.stderr.split())[:300]
        whole = Path(made) / "node_modules"
        if _binary(program, whole) is None:
            return "the package holds no program for this machine"
        whole.rename(folder)
    return ""


def _binary(program: Program, folder: Path) -> Path | None:
    return next(iter(sorted(folder.glob(program.binary))), None)


# -- running -------------------------------------------------------------------------------------------


class Door(NamedTuple):
    """An agent's way to Scout, and the model behind the program."""

    url: str
    token: str
    model: str


class Run:
    """A program at work, in a process group of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", folder: Path) -> None:
        self.process = process
        self.folder = folder

    def ended(self, within: float = 40.0) -> "Run":
        """This run, once the program has ended by itself."""
        self.process.wait(within)
        return self

    @property
    def code(self) -> int:
        return self.process.returncode

    @property
    def events(self) -> list[dict[str, Any]]:
        """What the program printed, a JSON object a line."""
        return [json.loads(line) for line in self.printed.splitlines() if line.startswith("{")]

    @property
    def printed(self) -> str:
        return (self.folder / "stdout").read_text()

    @property
    def complaints(self) -> str:
        return (self.folder / "stderr").read_text()

    def end(self) -> None:
        """End it if need be; a program that ended by itself may leave nothing behind."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
        clean = self._is_gone()
        if not clean:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(10)
        assert clean, f"processes of group {self.process.pid} had to be killed"

    def _is_gone(self) -> bool:
        """Whether the whole group is gone, within the time that a good program needs to end its children."""
        until = time.monotonic() + 30
        while time.monotonic() < until:
            self.process.poll()
            try:
                os.killpg(self.process.pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.02)
        return False


class Host:
    """A program that speaks MCP, with the settings that Scout's documentation gives for it."""

    name: str
    program: Program
    dialect: str  # the path of its model's API
    prefix: str  # what comes before the name of one of Scout's tools
    no_such_tool: str  # what the program itself says of a tool that it was not offered

    @contextlib.contextmanager
    def running(self, folder: Path, door: Door, prompt: str) -> Generator[Run]:
        """The program with this prompt; gone at the end, and everything that it started."""
        folder.mkdir(parents=True)
        work, temporary = folder / "work", folder / "tmp"
        work.mkdir()
        temporary.mkdir()
        binary = require_program(self.program)
        words = [str(binary), *self._words(folder, door), prompt]
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "TMPDIR": str(temporary),
            "LANG": "C.UTF-8",
            "HTTP_PROXY": _NOWHERE,
            "HTTPS_PROXY": _NOWHERE,
            "NO_PROXY": "127.0.0.1",
            "SCOUT_TOKEN": door.token,
            **self._environ(folder, door),
        }
        assert not any(door.token in word for word in words)
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = subprocess.Popen(
                words,
                cwd=work,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        run = Run(process, folder)
        try:
            yield run
        finally:
            run.end()

    def problems(self, run: "Run") -> str:
        """What the program wrote down of its troubles with a server."""
        return run.complaints

    def _words(self, folder: Path, door: Door) -> list[str]:
        """The arguments; writes the settings that they name."""
        raise NotImplementedError

    def _environ(self, folder: Path, door: Door) -> dict[str, str]:
        raise NotImplementedError


class ClaudeCode(Host):
    name = "claude"
    program = CLAUDE_CODE
    dialect = "/v1/messages"
    prefix = "mcp__scout__"
    no_such_tool = "No such tool available"

    def problems(self, run: "Run") -> str:
        assert {"name": "scout", "status": "failed"}.items() <= run.events[0]["mcp_servers"][0].items()
        logs = (run.folder / ".cache" / "claude-cli-nodejs").rglob("*.jsonl")
        return "\n".join(file.read_text() for file in logs)

    def _words(self, folder: Path, door: Door) -> list[str]:
        servers = folder / "mcp.json"
        servers.write_text(_read_documented("json", door))
        told = ["--mcp-config", str(servers), "--strict-mcp-config", "--allowedTools", "mcp__scout"]
        return [*told, "--output-format", "stream-json", "--verbose", "-p"]

    def _environ(self, folder: Path, door: Door) -> dict[str, str]:
        return {
            "CLAUDE_CONFIG_DIR": str(folder / "claude"),
            "ANTHROPIC_BASE_URL": door.model,
            "ANTHROPIC_API_KEY": "sk-ant-scripted-000",
            **CLAUDE_CODE_ALONE,
        }


_CODEX_SETTINGS = """\
model = "gpt-5"
model_provider = "scripted"
check_for_update_on_startup = false
{first}
[model_providers.scripted]
name = "scripted"
base_url = "{model}/v1"
env_key = "{key}"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[analytics]
enabled = false
[features]
plugins = false
apps = false
{last}
"""
UNASKED = 'approval_policy = "never"\nsandbox_mode = "workspace-write"'


def codex_settings(model: str, first: str = "", last: str = "", key: str = "MODEL_KEY") -> str:
    """Codex's settings for a scripted model, with more lines at their beginning and at their end."""
    return _CODEX_SETTINGS.format(model=model, first=first, last=last, key=key)


class Codex(Host):
    name = "codex"
    program = CODEX
    dialect = "/v1/responses"
    prefix = "mcp__scout/"
    no_such_tool = "unsupported call"

    def _words(self, folder: Path, door: Door) -> list[str]:
        home = folder / "codex"
        home.mkdir()
        servers = _read_documented("toml", door)
        tools = 'default_tools_approval_mode = "approve"'
        settings = codex_settings(door.model, UNASKED, f"{servers}\n{tools}")
        (home / "config.toml").write_text(settings)
        return ["exec", "--json", "--skip-git-repo-check"]

    def _environ(self, folder: Path, door: Door) -> dict[str, str]:
        return {"CODEX_HOME": str(folder / "codex"), "MODEL_KEY": "scripted"}


HOSTS = {host.name: host for host in (ClaudeCode(), Codex())}


def _read_documented(language: str, door: Door) -> str:
    """The settings that docs/mcp.md gives for a program, with this door's URL."""
    page = (ROOT / "docs" / "mcp.md").read_text()
    blocks = re.findall(rf"```{language}\n(.*?)\n```", page, re.DOTALL)
    (block,) = (one for one in blocks if "SCOUT_TOKEN" in one)
    changed, count = re.subn(r'"http://[^"]*/mcp"', json.dumps(door.url), block)
    assert count == 1
    assert door.token not in changed
    return changed
