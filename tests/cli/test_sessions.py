"""Sessions from the command line: started, woken, stopped, opened in a terminal; what `down` leaves."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scout.daemon.start import Running, find_running, wait_ready
from tests.cli.running import Shell, start_daemon, type_in_terminal

pytestmark = pytest.mark.slow


class Web:
    """The daemon over HTTP: what a test looks at many times costs no command."""

    def __init__(self, shell: Shell, found: Running) -> None:
        self._port = int(found.url.rpartition(":")[2])
        self._headers = {"Authorization": f"Bearer {(shell.home / 'token').read_text().strip()}"}
        self._shell = shell

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        try:
            connection.request(method, path, json.dumps(body) if body is not None else None, self._headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        status, told = self.call("GET", path)
        assert status == 200, told
        return told

    def register(self, name: str, harness: str, command: list[str]) -> None:
        wish = {"definitionId": name, "projectRoot": str(self._shell.project(name)), "harness": harness}
        assert self.call("POST", "/v1/agents", {**wish, "command": command})[0] == 201

    def ask(self, name: str, body: str) -> str:
        return self.call("POST", "/v1/asks", {"to": f"@{name}", "body": body})[1]["flightId"]

    def run_of(self, name: str) -> dict[str, Any]:
        """The session of an agent once its program runs."""

        def found() -> dict[str, Any] | None:
            listed = self.get(f"/v1/sessions?agent=@{name}")["items"]
            session: dict[str, Any] = self.get(f"/v1/sessions/{listed[0]['id']}") if listed else {}
            return session if session.get("running") and session["pid"] else None

        return wait_for(found)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_for(check: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (found := check()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return found


@pytest.mark.rows("R0-40", "R0-41", "R5.2-6")
def test_down_leaves_programs_running_and_lists_them_and_stop_ends_them(fresh: Shell) -> None:
    web = Web(fresh, start_daemon(fresh))
    web.register("slow", "command", ["sleep", "60"])
    flight = web.ask("slow", "x")
    session = web.run_of("slow")
    left = fresh.say("down")
    assert flight[:14] in left
    assert "still running (scout down --stop ends them):\n  ses_" in left
    assert f"{session['id'][:14]}  @slow (command)  pid {session['pid']}" in left
    assert alive(session["pid"])
    web = Web(fresh, start_daemon(fresh))
    assert web.run_of("slow")["pid"] == session["pid"]
    done = fresh.data("down", "--stop")
    assert (done["cancelled"], done["ended"]) == ([flight], [session["id"]])
    assert not alive(session["pid"])


def test_down_stop_starts_nothing_that_waited_for_what_it_ends(fresh: Shell) -> None:
    """The end of a turn lets the next one start: here the first turn holds back many others."""
    web = Web(fresh, start_daemon(fresh))
    names = [f"slow{number}" for number in range(6)]
    for name in names:
        web.register(name, "command", ["sleep", "60"])
    flights = [web.ask(name, "x") for name in names]
    for name in names:
        web.call("POST", "/v1/work", {"title": "Fix the flaky test", "ownerId": f"@{name}"})
    web.run_of("slow0")
    done = fresh.data("down", "--stop")
    assert set(done["cancelled"]) == set(flights)
    assert list_programs(fresh) == []
    start_daemon(fresh)
    assert "paused" not in fresh.data("status")
    wait_for(lambda: list_programs(fresh))  # work items keep their owners, who are told now
    assert fresh.data("down", "--stop")["ended"]
    assert list_programs(fresh) == []


def list_programs(shell: Shell) -> list[int]:
    """Return the processes that were started for agents of a home."""
    mark, found = f"SCOUT_RUN={shell.home}".encode(), list[int]()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_a_pause_of_the_operator_outlives_down_stop(fresh: Shell) -> None:
    start_daemon(fresh)
    fresh.say("pause", "--reason", "lunch")
    fresh.say("down", "--stop")
    start_daemon(fresh)
    assert "lunch" in fresh.say("status")
    fresh.say("resume")
    assert "scout resume or scout restart" in fresh.say("pause", "--until-restart")
    fresh.say("restart")
    assert "paused" not in fresh.say("status")


def test_down_stop_refuses_if_the_daemon_does_not_answer(fresh: Shell) -> None:
    """It cannot know what to end, so nothing is stopped; `scout down` stops the daemon alone."""
    daemon = start_daemon(fresh)
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        refused = fresh.type("down", "--stop")
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
    assert (refused.returncode, refused.stderr.partition(":")[0]) == (8, "busy"), refused
    assert fresh.data("status")["pid"] == daemon.pid


@pytest.mark.rows("R3.1-30", "R3.1-31", "R5.2-1", "R5.1-2")
def test_an_agent_is_woken_interrupted_and_its_session_stopped(fresh: Shell) -> None:
    web = Web(fresh, start_daemon(fresh))
    web.register("slow", "command", ["sleep", "60"])
    woken = fresh.say("wake", "@slow")
    session = web.get("/v1/sessions?live=true")["items"][0]["id"]
    assert woken == f"started: {session} of {web.get('/v1/agents/@slow')['address']} in command\n"
    assert fresh.say("up", "@slow").startswith(f"already live: {session} of @slow")
    flight = web.ask("slow", "x")
    pid = web.run_of("slow")["pid"]
    told = fresh.say("interrupt", "@slow", "--reason", "wrong branch")
    assert f"{flight} is cancelled: interrupted by" in told
    wait_for(lambda: not alive(pid))
    view = web.get(f"/v1/flights/{flight}")
    assert (view["state"], "wrong branch" in view["reason"]) == ("cancelled", True)
    shown = fresh.say("session", "stop", session)
    assert shown == f"stopped {session[:14]} of @slow (command)\n"
    assert "ended, resumable" in (inspected := fresh.say("session", "inspect", session))
    assert "not running" in inspected
    started = fresh.say("session", "start", "--agent", "@slow", "--cwd", ".", cwd=fresh.project("slow"))
    assert str(fresh.project("slow")) in started
    refused = fresh.type("session", "fork", session)
    assert (refused.returncode, "try: scout session start --agent" in refused.stderr) == (7, True)
    assert fresh.say("runtimes").splitlines()[0].split() == ["HARNESS", "READY", "VERSION", "CAN", "LACKS"]
    refused = fresh.type("open", "@slow")
    assert (refused.returncode, "needs a terminal" in refused.stderr) == (2, True)


def test_the_same_over_http(fresh: Shell) -> None:
    web = Web(fresh, start_daemon(fresh))
    web.register("upper", "command", ["tr", "a-z", "A-Z"])
    status, made = web.call("POST", "/v1/sessions", {"agent": "@upper", "permission": "observe"})
    assert (status, made["state"], made["permissionProfile"]) == (201, "live", "observe")
    assert web.call("POST", "/v1/agents/@upper/wake", {})[1]["outcome"] == "already live"
    assert web.call("POST", "/v1/agents/@upper/interrupt", {})[1]["interrupted"] is False
    assert web.get(f"/v1/sessions/{made['id']}")["address"].startswith("@upper")
    assert web.call("POST", f"/v1/sessions/{made['id']}/stop", {})[1]["state"] == "ended"
    assert web.call("POST", "/v1/sessions/attach", {"session": made["id"]})[1]["state"] == "live"
    assert {"echo", "command"} <= {one["name"] for one in web.get("/v1/runtimes")["items"]}
    assert web.call("POST", f"/v1/sessions/{made['id']}/fork", {})[0] == 409
    process = {"pid": os.getpid(), "pidStarted": "0"}
    assert web.call("POST", f"/v1/sessions/{made['id']}/open", process)[0] == 409
    assert web.call("POST", f"/v1/sessions/{made['id']}/close", {})[1]["terminal"] is None


# A daemon whose harness can be opened in a terminal: a port of the tests in a real daemon.
DAEMON = """
import asyncio, sys
from pathlib import Path
from scout.daemon import serve
from tests.broker.kept import Kept
made = serve._build_broker
def broker(settings, *more):
    found = made(settings, *more)
    kept = Kept(Path(settings.home) / "kept")
    kept.words = ("sh", "-c", "trap 'exit 0' INT; echo it is $KEPT; while :; do sleep 0.05; done")
    found.services.harnesses = {**found.services.harnesses, "acp": kept}
    return found
serve._build_broker = broker
from scout.daemon.__main__ import main
main()
"""


@pytest.mark.rows("R5.2-5")
def test_a_session_is_opened_in_a_terminal_and_given_back(fresh: Shell, tmp_path: Path) -> None:
    script = tmp_path / "daemon.py"
    script.write_text(DAEMON)
    environ = {**fresh.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, str(script), "--foreground"]
    with subprocess.Popen(words, env=environ, stderr=subprocess.DEVNULL) as daemon:
        try:
            wait_for(lambda: find_running(str(fresh.home)))
            web = Web(fresh, wait_for(lambda: wait_ready(str(fresh.home), 1)))
            web.register("ken", "acp", [])
            first = web.ask("ken", "one")
            wait_for(lambda: web.get(f"/v1/flights/{first}")["output"] == "one")
            session = web.get("/v1/sessions?agent=@ken")["items"][0]["id"]
            code, said = type_in_terminal(
                fresh, "open", "@ken", until=f"it is native-{session}", then=lambda _: asks_meanwhile(web)
            )
            assert (code, f"{session} was returned to Scout" in said) == (0, True)
            flight = web.get("/v1/flights?agent=@ken")["items"][0]["id"]
            assert web.get(f"/v1/flights/{flight}?wait=20")["output"] == "one two"
        finally:
            daemon.terminate()


def asks_meanwhile(web: Web) -> None:
    """What is asked while it is open waits and says why; then its program ends."""
    flight = web.ask("ken", "two")
    wait_for(lambda: "open in a terminal" in web.get(f"/v1/flights/{flight}")["reason"])
    terminal = web.get("/v1/sessions?agent=@ken")["items"][0]["terminal"]
    os.kill(terminal["pid"], signal.SIGINT)
