"""`scout demo --web`: a fleet that works by itself, in a temporary folder, with its page open."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from scout.cli.commands.web import open_page
from scout.cli.connection.call import CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import print_json, print_out
from scout.client.environment import SESSION_MARKS
from scout.client.http import Lost
from scout.daemon.start import find_running, start, wait_ended

_PATIENCE = 15.0
_BEAT = 3.0  # seconds between two things that happen

# What the agents of the fleet run: each reads its task and works on it for a while.
_SCRIPTS = {
    "builder": 'read -r task; for part in build link; do echo $part >&2; sleep 3; done; echo "Built: $task"',
    "reviewer": 'read -r task; sleep 4; echo "Reviewed: the writer may block, and a test sleeps."',
    "tester": 'read -r task; sleep 3; echo "12 passed, 1 failed: test_restart" >&2; sleep 1; exit 1',
}
_ASKS = (
    ("builder", "Build the release branch."),
    ("reviewer", "Review the last commit, and look for races in the writer."),
    ("tester", "Run the slow tests."),
    ("arc", "Summarise what changed today."),
)
_NEEDS = (
    (
        "reviewer",
        "Merge feature/login into main?",
        "medium",
        "All checks are green. Two files conflict with main.",
    ),
    ("builder", "Publish version 1.4.0 to the registry?", "high", "This cannot be undone."),
)


def show_fleet(*, no_open: bool, as_json: bool) -> int:
    """Start the fleet, open its page, and keep it working until Ctrl-C. Nothing is left behind."""
    ended = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        ended.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end)
    with _start_daemon() as (folder, environ):
        fleet = _Fleet(folder, DaemonCall(CliIdentity(environ=environ), start=False))
        fleet.begin()
        url = str(fleet.call("POST /v1/web/links")["url"])
        opened = not no_open and open_page(folder / "home", url)
        if as_json:
            print_json({"url": url, "home": str(folder / "home"), "opened": opened})
        else:
            print_out(f"A fleet is working at {url if not opened else url.partition('/enter/')[0]}")
            print_out("It lives in a temporary folder and ends with Ctrl-C. Nothing of yours is touched.")
        sys.stdout.flush()
        for beat in itertools.count():
            if ended.wait(_BEAT):
                return 0
            fleet.play(beat)
    return 0


@contextmanager
def _start_daemon() -> Generator[tuple[Path, dict[str, str]]]:
    """Start a daemon that ends, with its programs, when this process does."""
    folder = Path(tempfile.mkdtemp(prefix="scout-demo-")).resolve()
    near, far = os.pipe()
    try:
        home = folder / "home"
        home.mkdir(mode=0o700)
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("SCOUT_") and name not in SESSION_MARKS
        }
        ours = {
            "SCOUT_HOME": str(home),
            "SCOUT_PORT": "0",
            "SCOUT_AUTOSTART": "0",
            "SCOUT_ROOTS": str(folder),
        }
        environ = {**kept, **ours, "SCOUT_NOTIFY_DESKTOP": "0"}
        start(str(home), environ=environ, timeout=_PATIENCE, tether=near)
        yield folder, environ
    finally:
        os.close(far)
        os.close(near)
        found = find_running(str(folder / "home"))
        if found is not None and not wait_ended(found, _PATIENCE):
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGKILL)
            wait_ended(found, _PATIENCE)
        shutil.rmtree(folder, ignore_errors=True)


class _Fleet:
    """Agents in one project, and what they do, one thing after another."""

    def __init__(self, folder: Path, line: DaemonCall) -> None:
        self._project = folder / "harbor"
        self._line = line

    def call(self, route: str, /, **parameters: Any) -> Any:
        return self._line.call(route, parameters)

    def begin(self) -> None:
        """Make the project and its agents, and give each view something to show."""
        self._make_project()
        self._register("arc", harness="echo")
        for name, script in _SCRIPTS.items():
            self._register(name, harness="command", command=["sh", "-c", script])
        self.call("POST /v1/channels", name="release", members=["@arc", "@builder", "@reviewer"])
        self.call(
            "POST /v1/messages",
            channel="release",
            body="The release branch is cut. @builder, please build it.",
        )
        for title, owner in (
            ("Ship version 1.4.0", "@builder"),
            ("Find the flaky test", "@tester"),
            ("Review login", "@reviewer"),
        ):
            self.call("POST /v1/work", title=title, ownerId=owner)
        self.call("POST /v1/schedules", cron="0 9 * * 1-5", to="@arc", body="Summarise what changed.")
        self._spawn()
        for number in range(len(_ASKS)):
            self._ask(number)
        self._need(0)
        self._need(1)

    def play(self, beat: int) -> None:
        """Do the next thing. A refusal or a busy daemon is no reason to stop."""
        deeds: tuple[Callable[[int], None], ...] = (
            self._ask,
            self._talk,
            self._ask,
            self._need,
            self._ask,
            self._work,
        )
        with suppress(RefusalError, Lost, OSError):
            deeds[beat % len(deeds)](beat)

    def _make_project(self) -> None:
        (self._project / ".scout").mkdir(parents=True)
        (self._project / ".scout/project.toml").write_text('name = "harbor"\n')
        (self._project / "login.py").write_text("def login(name):\n    return name\n")
        if shutil.which("git"):
            who = ["-c", "user.name=demo", "-c", "user.email=demo@localhost", "-c", "init.defaultBranch=main"]
            for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "harbor: begin"]):
                subprocess.run(
                    ["git", *who, *words], cwd=self._project, check=False, capture_output=True, timeout=30
                )

    def _register(self, name: str, **wish: Any) -> None:
        self.call("POST /v1/agents", definitionId=name, projectRoot=str(self._project), **wish)

    def _spawn(self) -> None:
        """Put two agents on branches of the project; without git there is no tree to show."""
        with suppress(RefusalError):
            self.call(
                "POST /v1/spawn",
                slugs=["login", "docs"],
                harness="echo",
                task="Say where you work.",
                projectPath=str(self._project),
            )

    def _ask(self, number: int) -> None:
        name, body = _ASKS[number % len(_ASKS)]
        self.call("POST /v1/asks", to=f"@{name}", body=body)

    def _talk(self, number: int) -> None:
        words = ("The build takes a while.", "Main is green again.", "Review comments are in the thread.")
        self.call("POST /v1/messages", channel="release", body=words[number % len(words)])

    def _need(self, number: int) -> None:
        """Let an agent ask the person, unless enough is waiting already."""
        if len(self.call("GET /v1/attention")["items"]) >= 5:
            return
        name, title, risk, body = _NEEDS[number % len(_NEEDS)]
        caller = CliIdentity(f"@{name}", self._line.caller.environ)
        DaemonCall(caller, start=False).call(
            "POST /v1/attention", {"title": title, "risk": risk, "body": body, "kind": "approval"}
        )

    def _work(self, number: int) -> None:
        """Move one work item on, as its owner."""
        items = self.call("GET /v1/work", limit=20)["items"]
        planned = [one for one in items if one["state"] == "open"]
        if planned:
            one = planned[number % len(planned)]
            caller = CliIdentity(one["ownerAddress"], self._line.caller.environ)
            DaemonCall(caller, start=False).call(
                "POST /v1/work/{workItemId}/start", {"workItemId": one["id"]}
            )
