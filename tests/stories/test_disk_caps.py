"""What runs leave on the disk stays within its limits, and whoever looks for what was removed is told so."""

import base64
import subprocess

import pytest

from tests.cli.running import Shell, a_shell
from tests.daemon.daemons import Daemon, Reply, daemon, eventually

pytestmark = pytest.mark.slow

KIB = 1024


def list_runs(shell: Shell) -> set[str]:
    """The folders of the runs that are still there, by the ids of their deliveries."""
    return {path.parent.name for path in (shell.home / "sessions").glob("*/*/pid")}


def writer(shell: Shell, name: str, script: str) -> None:
    shell.say("agent", "register", name, "--command", f"sh -c '{script}'", cwd=shell.project("desk"))


def ask(shell: Shell, whom: str) -> str:
    flight: str = shell.data("ask", whom, "write", "--no-wait")["flightId"]
    eventually(lambda: shell.data("flight", "get", flight)["state"] == "completed")
    return flight


def test_the_oldest_ended_runs_are_removed_and_a_live_one_stays() -> None:
    with a_shell() as shell, daemon(shell.home, SCOUT_LIMITS_RUN_OUTPUT_TOTAL=str(400 * KIB)):
        writer(shell, "slow", f"while [ ! -e {shell.folder}/go ]; do sleep 0.05; done; echo done")
        live = shell.data("ask", "@slow", "work", "--no-wait")["flightId"]
        eventually(lambda: shell.data("flight", "get", live)["state"] == "running")
        running = list_runs(shell)
        writer(shell, "loud", "head -c 120000 /dev/zero | tr \\\\0 x; echo said >&2")
        flights = [ask(shell, "@loud") for _ in range(5)]

        # Five runs of 120 kB do not fit into 400 KiB: the oldest go, the newest and the one that runs stay.
        eventually(lambda: len(list_runs(shell)) <= 4)
        assert running <= list_runs(shell)
        first, last = (shell.data("flight", "get", one) for one in (flights[0], flights[-1]))
        assert first["output"].startswith("xxx")  # the answer is in the store, and stays
        told = shell.say("session", "tail", last["sessionId"])
        assert "removed to stay within limits.runOutputTotal" in told
        assert "xxx" in told
        assert "said" in shell.data("session", "inspect", last["sessionId"])["logTail"]
        assert "400 KiB" in shell.type("doctor", SCOUT_LIMITS_RUN_OUTPUT_TOTAL=str(400 * KIB)).stdout

        (shell.folder / "go").touch()
        eventually(lambda: shell.data("flight", "get", live)["state"] == "completed")


def test_a_session_whose_runs_are_all_removed_says_so() -> None:
    with a_shell() as shell, daemon(shell.home, SCOUT_LIMITS_RUN_OUTPUT_TOTAL="1"):
        writer(shell, "short", "echo hello")
        session = shell.data("flight", "get", ask(shell, "@short"))["sessionId"]
        eventually(lambda: not list_runs(shell))
        removed = "The output of 1 earlier run was removed to stay within limits.runOutputTotal."
        assert removed in shell.say("session", "tail", session)
        assert removed in shell.say("session", "inspect", session)
        ask(shell, "@short")  # it works on
        eventually(lambda: "2 earlier runs" in shell.say("session", "tail", session))


def test_pictures_are_removed_and_diff_says_so() -> None:
    with a_shell() as shell, daemon(shell.home, SCOUT_LIMITS_PICTURES_TOTAL="1"):
        project = shell.project("desk")
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"]):
            identity = ["-c", "user.name=desk", "-c", "user.email=desk@localhost"]
            subprocess.run(["git", *identity, *words], cwd=project, check=True)
        writer(shell, "author", "echo text > page.txt; echo done")
        flight = ask(shell, "@author")
        eventually(lambda: not any((shell.home / "sessions").glob("*/snapshots")))
        refused = shell.type("diff", flight)
        assert refused.returncode != 0
        assert "removed to stay within limits.picturesTotal" in refused.stderr


def test_a_run_that_writes_too_much_is_stopped() -> None:
    with a_shell() as shell, daemon(shell.home, SCOUT_LIMITS_RUN_OUTPUT=str(64 * KIB)):
        writer(shell, "flood", "while true; do echo flood; done")
        flight = shell.data("ask", "@flood", "write", "--no-wait")["flightId"]
        told = eventually(lambda: _get_failure(shell, flight))
        assert "more than 65536 bytes" in told


def _get_failure(shell: Shell, flight: str) -> str:
    told = shell.data("flight", "get", flight)
    return str(told) if told["state"] == "failed" else ""


def put(scout: Daemon, data: bytes) -> Reply:
    return scout.call("POST", "/v1/attachments", {"name": "a", "data": base64.b64encode(data).decode()})


def test_an_attachment_that_does_not_fit_is_refused_and_the_stored_ones_stay() -> None:
    with a_shell() as shell, daemon(shell.home, SCOUT_LIMITS_ATTACHMENTS_TOTAL=str(20 * KIB)) as scout:
        first = put(scout, b"a" * 10_000)
        assert first.status == 201
        refused = put(scout, b"b" * 10_000)
        assert (refused.status, refused.json["code"]) == (413, "too_large")
        assert "limits.attachmentsTotal" in str(refused.json["remedies"])
        assert put(scout, b"a" * 10_000).json["sha256"] == first.json["sha256"]  # it is there already
        assert scout.call("GET", f"/v1/attachments/{first.json['sha256']}").status == 200
