"""A machine on which Claude Code and Codex are installed and logged in, with a scripted model behind them."""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from scout.daemon import lock, start
from tests.cli.running import Shell
from tests.daemon.daemons import Daemon, eventually
from tests.live.model.server import Model, scripted_model
from tests.live.programs import (
    CLAUDE_CODE,
    CLAUDE_CODE_ALONE,
    CODEX,
    Program,
    codex_settings,
    require_program,
)

__all__ = ["PROGRAMS", "Machine", "a_machine", "processes_in"]

PROGRAMS: dict[str, Program] = {"claude": CLAUDE_CODE, "codex": CODEX}
DIALECTS = {"claude": "/v1/messages", "codex": "/v1/responses"}


class Machine(Shell):
    """A person's shell there, and the model and the daemon behind it."""

    model: Model
    daemon: Daemon
    more: Mapping[str, str] = {}  # further variables of the person's shell

    @property
    def person(self) -> Path:
        return self.folder / "person"

    def replace_file(self, name: str, text: str) -> None:
        """Give a file in the person's folder another text at once: the daemon may be reading it."""
        new = self.person / f"{name}.new"
        new.write_text(text)
        new.replace(self.person / name)

    @property
    def environ(self) -> dict[str, str]:
        return {
            **super().environ,
            "HOME": str(self.person),
            "TMPDIR": str(self.folder / "tmp"),
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "CLAUDE_CONFIG_DIR": str(self.person / ".claude"),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "sk-ant-scripted-000",
            **CLAUDE_CODE_ALONE,
            "CODEX_HOME": str(self.person / ".codex"),
            "MODEL_KEY": "scripted",
            "SCOUT_ENVIRONMENT": "MODEL_KEY:SCOUT_EDIT_WAIT",
            "SCOUT_EDIT_WAIT": "20",  # a busy machine is no reason to allow an edit
            **self.more,
        }

    def repository(self, name: str, harness: str | None = None) -> Path:
        """A project of the person's own, under git."""
        folder = self.person / "work" / name
        if not folder.exists():
            (folder / ".scout").mkdir(parents=True)
            line = f'harness = "{harness}"\n' if harness else ""
            (folder / ".scout" / "project.toml").write_text(f'name = "{name}"\n{line}')
            git = ["git", "-C", str(folder), "-c", "user.name=p", "-c", "user.email=p@localhost"]
            subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
            subprocess.run([*git, "add", "-A"], check=True)
            subprocess.run([*git, "commit", "-qm", "begin"], check=True)
        return folder

    def up(self) -> Daemon:
        """Its daemon, started if none runs; what is only looked at is asked of it without a command."""
        daemon = Daemon(self.home, start.start(str(self.home), environ=self.environ, timeout=60)[0])
        object.__setattr__(self, "daemon", daemon)
        return daemon

    def get(self, path: str) -> Any:
        reply = self.daemon.call("GET", path)
        assert reply.status == 200, reply.body
        return reply.json

    def ask(self, project: Path, body: str, **more: Any) -> str:
        """The flight of an ask to a project's agent, which goes on by itself."""
        wish = {"projectPath": str(project), "body": body, **more}
        reply = self.daemon.call("POST", "/v1/asks", wish)
        assert reply.status == 201, reply.body
        return str(reply.json["flightId"])

    def flight(self, ident: str) -> Any:
        return self.get(f"/v1/flights/{ident}")

    def ended(self, ident: str, within: float = 60.0) -> Any:
        """A flight once it is over."""
        return eventually(lambda: self._if_over(ident), within)

    def _if_over(self, ident: str) -> Any:
        flight = self.flight(ident)
        return flight if flight.get("finishedAt") else None

    def waits(self, ident: str) -> Any:
        """The one thing that a flight waits for a person to decide."""
        eventually(lambda: self.flight(ident)["state"] == "waiting")
        (item,) = [one for one in self.attention() if one["returnPath"].get("request")]
        return item

    def attention(self) -> Any:
        return self.get("/v1/attention")["items"]

    def heard(self, harness: str) -> list[str]:
        """What the model behind a program was told last, as texts."""
        last = self.model.of(DIALECTS[harness])[-1]
        return [turn.text for turn in last.heard.turns]


@contextlib.contextmanager
def a_machine(*programs: str, **more: str) -> Generator[Machine]:
    """The machine with a daemon; at the end nothing of it is left, not even a process."""
    binaries = {name: require_program(PROGRAMS[name]) for name in programs}
    folder = Path(tempfile.mkdtemp(prefix="sct-")).resolve()  # short: a socket's path is
    with scripted_model() as model:
        machine = Machine(folder)
        object.__setattr__(machine, "model", model)
        object.__setattr__(machine, "more", more)
        for name in ("bin", "home", "tmp", "person", "person/.claude", "person/.codex"):
            (folder / name).mkdir(mode=0o700)
        for name, binary in binaries.items():
            (folder / "bin" / name).symlink_to(binary)
        (machine.person / ".codex" / "config.toml").write_text(codex_settings(model.url))
        (machine.person / ".claude" / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
        try:
            machine.up()
            yield machine
            machine.say("down", "--stop")
        finally:
            if lock.is_held(str(machine.home)):
                start.stop(str(machine.home), timeout=60)
            left = _wait_for_end(folder)
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            model.over.set()
            shutil.rmtree(folder, ignore_errors=True)
        assert left == {}, left


def _wait_for_end(folder: Path) -> dict[int, str]:
    """Processes that are still there after a while: a program whose window was closed ends a little later."""
    with contextlib.suppress(AssertionError):
        eventually(lambda: not processes_in(folder), 30)
    return processes_in(folder)


def processes_in(folder: Path) -> dict[int, str]:
    """Processes that have to do with a folder: by their command line, their folder or their environment."""
    found = dict[int, str]()
    word = os.fsencode(folder)
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes()
            environ = (entry / "environ").read_bytes()
            if word in line or word in environ or word in os.fsencode((entry / "cwd").readlink()):
                found[int(entry.name)] = line.replace(b"\0", b" ").decode("utf-8", "replace")
    return found
