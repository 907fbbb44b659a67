"""What needs a person, typed at a real daemon: asked in one terminal, decided in another."""

import json
import signal
import stat
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scout.cli.connection.refusal import DENIED, OPEN
from scout.daemon.start import start
from tests.adapters.receiving import read_arguments, receiver, stand_in
from tests.cli.running import Shell

pytestmark = pytest.mark.slow  # each command is a process of its own


def worker(shell: Shell, name: str) -> dict[str, Any]:
    """What an agent has in its environment."""
    return {"SCOUT_TOKEN": shell.data("agent", "register", name)["token"]}


def asking(shell: Shell, environ: dict[str, Any], *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "scout", *words],
        cwd=shell.folder,
        env={**shell.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def until(found: Callable[[], Any]) -> Any:
    end = time.monotonic() + 60
    while not (there := found()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
    return there


def find_item(shell: Shell, title: str) -> dict[str, Any] | None:
    items = shell.data("attention")["items"]
    return next((one for one in items if one["title"] == title), None)


@pytest.mark.rows("R3.1-33", "R3.1-34")
def test_a_need_waits_for_the_answer_that_another_terminal_gives(shell: Shell) -> None:
    environ = worker(shell, "needy")
    waiting = asking(shell, environ, "need", "Deploy", "now?", "--option", "yes", "--option", "no")
    item = until(lambda: find_item(shell, "Deploy now?"))
    listed = shell.say("attention")
    short = item["id"][:14]
    assert f"scout answer {short} yes" in listed
    assert f"scout dismiss {short}" in listed
    assert item["id"] not in listed
    shell.say("answer", short, "yes")
    out, _ = waiting.communicate(timeout=60)
    assert (waiting.returncode, out) == (0, "yes\n")
    late = shell.type("attention", "answer", item["id"], "no")
    assert (late.returncode, "it was answered 'yes' by" in late.stderr) == (7, True)


def test_a_no_has_an_exit_code_of_its_own(shell: Shell) -> None:
    environ = worker(shell, "risky")
    item = shell.data("attention", "raise", "Drop the table?", "--risk", "high", **environ)
    assert "high risk" in shell.say("attention", "list", "--kind", "approval")
    assert shell.type("attention", "approve", item["id"], **environ).returncode == 6
    assert shell.type("attention", "show", item["id"], "--timeout", "0.1", **environ).returncode == OPEN
    waiting = asking(shell, environ, "attention", "show", item["id"], "--wait")
    shell.say("attention", "deny", item["id"], "we need it")
    out, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, out, "we need it" in err) == (DENIED, "denied\n", True)
    assert "we need it" in shell.say("attention", "show", item["id"])
    gone = shell.data("need", "Or this?", "--no-wait", **environ)
    shell.say("attention", "dismiss", gone["id"])
    assert shell.type("attention", "show", gone["id"], "--wait", **environ).returncode == 7


def test_ctrl_c_leaves_the_question_and_says_how_to_come_back(shell: Shell) -> None:
    environ = worker(shell, "patient")
    waiting = asking(shell, environ, "need", "Still", "thinking?")
    item = until(lambda: find_item(shell, "Still thinking?"))
    waiting.send_signal(signal.SIGINT)
    _, err = waiting.communicate(timeout=60)
    assert (waiting.returncode, f"scout attention show {item['id']} --wait" in err) == (130, True)
    assert find_item(shell, "Still thinking?")
    shell.say("attention", "answer", item["id"], "no")
    back = shell.type("attention", "show", item["id"], "--wait", **environ)
    assert (back.returncode, back.stdout) == (0, "no\n")


def test_consult_and_notify(shell: Shell) -> None:
    environ = worker(shell, "chatty")
    consult = shell.data("consult", "Tabs?", "spaces", "--option", "tabs", **environ)
    assert "without an answer  spaces" in shell.say("attention", "show", consult["id"])
    assert shell.data("notify", "It is green.", **environ)["kind"] == "notify"
    assert shell.data("attention", "--raised", **environ)["items"][0]["title"] == "It is green."
    shell.say("attention", "approve", consult["id"], "why not")


def test_a_person_is_told_by_the_desktop_and_by_a_signed_webhook(fresh: Shell, tmp_path: Path) -> None:
    with receiver(500) as other:
        environ: dict[str, Any] = {
            "PATH": stand_in(tmp_path / "bin")["PATH"],
            "SCOUT_NOTIFY_DESKTOP": "1",
            "SCOUT_NOTIFY_WEBHOOKS": other.url,
            "SCOUT_PERIODS_BACK_OFF_FIRST": "0.1",
        }
        start(str(fresh.home), environ={**fresh.environ, **environ}, timeout=60)
        item = fresh.data("need", "Anybody there?", "--no-wait", **worker(fresh, "lonely"))
        until(lambda: fresh.data("attention", "show", item["id"])["state"] == "notified")
        assert read_arguments(tmp_path / "bin")[-2] == "Scout: Anybody there?"
        key = fresh.home / "webhook.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
        secret = key.read_text().strip()
        assert [json.loads(body)["title"] for _, body in other.seen] == ["Anybody there?"] * 2
        assert other.is_signed_with(secret)
        checked = fresh.say("doctor", "--bundle", str(tmp_path / "report.tar.gz"), **environ)
        assert "webhook" in checked
        shown = fresh.say("config", **environ)
        with tarfile.open(tmp_path / "report.tar.gz") as report:
            texts = [report.extractfile(one) for one in report.getmembers()]
            bundle = b"".join(one.read() for one in texts if one is not None).decode()
        assert secret not in shown + bundle
        assert "s3cret" not in bundle


def test_the_doctor_names_a_sink_that_cannot_work(fresh: Shell, tmp_path: Path) -> None:
    environ: dict[str, Any] = {
        "PATH": str(tmp_path),
        "SCOUT_NOTIFY_DESKTOP": "1",
        "SCOUT_NOTIFY_WEBHOOKS": "http://example.org/hook",
    }
    told = fresh.type("doctor", **environ).stdout
    assert "neither notify-send nor osascript" in told
    assert "example.org gets notices without encryption" in told
