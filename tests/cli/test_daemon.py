"""The daemon from the outside: started, found, replaced, stopped, looked at; the store beside it."""

import json
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from scout import __version__
from scout.base.refusal import Family
from tests.cli.running import Shell, start_daemon
from tests.store.old_store import load, stores

pytestmark = pytest.mark.slow


@pytest.mark.rows("R0-34", "R4.1-15")
def test_a_verb_starts_the_daemon_and_says_so_once(fresh: Shell) -> None:
    first = fresh.type("whoami", SCOUT_AUTOSTART="1")
    assert first.returncode == 0, first.stderr
    (said,) = first.stderr.splitlines()
    assert said.startswith("scout: started the daemon (pid ")
    assert "http://127.0.0.1:" in said
    assert fresh.type("whoami", SCOUT_AUTOSTART="1").stderr == ""


@pytest.mark.rows("R0-35")
def test_no_verb_starts_it_when_told_so(fresh: Shell) -> None:
    refused = fresh.type("send", "@arc", "hi")
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (5, "try: scout up")
    assert not (fresh.home / "scout.db").exists()


def test_up_is_idempotent_and_down_too(fresh: Shell) -> None:
    assert fresh.type("status").returncode == Family.UNREACHABLE.exit_code
    first, second = fresh.data("up"), fresh.data("up")
    assert first == second == fresh.data("status")
    assert "already running" in fresh.say("up")
    assert fresh.data("down") == {"stopped": True, "pid": first["pid"], "open": [], "running": []}
    assert fresh.data("down") == {"stopped": False, "pid": None, "open": [], "running": []}
    assert fresh.say("down") == "no daemon was running\n"


@pytest.mark.rows("R0-39")
def test_restart_replaces_it_at_the_same_address_and_ends_no_wait(fresh: Shell) -> None:
    before = fresh.data("up")
    item = fresh.data("need", "--no-wait", "Which colour?")["id"]
    words = [*fresh.program, "attention", "show", item, "--wait", "--timeout", "60"]
    with subprocess.Popen(words, env=fresh.environ, cwd=fresh.folder, stderr=subprocess.PIPE) as waiting:
        after = fresh.data("restart")
        assert before["pid"] != after["pid"]
        assert before["url"] == after["url"]
        fresh.say("dismiss", item)
        assert waiting.wait(60) == 7  # it waits on at the new daemon, until the item is dismissed
        assert waiting.stderr is not None
        assert b"busy" not in waiting.stderr.read()


def test_an_upgrade_of_the_store_is_told_and_waited_for(fresh: Shell) -> None:
    fresh.home.mkdir(parents=True, exist_ok=True)
    load(stores()[9], fresh.home / "scout.db")
    up = fresh.type("up")
    assert up.returncode == 0, up.stderr
    assert "scout: upgrading the store (less than 1 MB) once, after a copy of it" in up.stderr
    assert (fresh.home / "scout.db.before-10").is_file()
    assert "upgrading" not in fresh.type("restart").stderr


def test_it_comes_up_after_a_kill(fresh: Shell) -> None:
    pid = fresh.data("up")["pid"]
    os.kill(pid, signal.SIGKILL)
    back = fresh.type("who", SCOUT_AUTOSTART="1")
    assert back.returncode == 0, back.stderr


@pytest.mark.rows("R0-38")
def test_another_version_is_said_once(fresh: Shell) -> None:
    start_daemon(fresh)
    probe = (
        "import sys, scout; scout.__version__ = '9.9.9'\n"
        "from scout.cli.fast import run; sys.exit(run(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe, "inbox"], env=fresh.environ, capture_output=True, text=True, check=False
    )
    told = f"scout: the daemon is version {__version__}, this command is 9.9.9; try: scout restart\n"
    assert (done.returncode, done.stderr) == (0, told)


def test_foreground_stays_until_told(fresh: Shell) -> None:
    words = [sys.executable, "-m", "scout", "up", "--foreground"]
    with subprocess.Popen(words, env=fresh.environ, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "ready" in line:
                break
        assert fresh.data("status")["pid"] == process.pid
        assert "is already running" in fresh.type("up", "--foreground").stderr
        process.send_signal(signal.SIGINT)
        process.stderr.read()
        assert process.wait(60) == 0


def test_open_work_is_listed_or_cancelled(fresh: Shell) -> None:
    start_daemon(fresh)
    work = fresh.project("slow")
    fresh.say(
        "agent",
        "register",
        "slow",
        "--project",
        ".",
        "--harness",
        "command",
        "--command",
        "sleep 60",
        cwd=work,
    )
    flight = fresh.data("ask", "@slow", "x", "--no-wait")["flightId"]
    assert fresh.data("down", "--stop")["cancelled"] == [flight]
    start_daemon(fresh)
    assert fresh.data("flight", "get", flight)["state"] == "cancelled"


def test_a_unit_file_is_printed_written_and_taken_away(fresh: Shell) -> None:
    user = {"HOME": str(fresh.folder)}
    printed = fresh.say("up", "--install", "--print", **user)
    assert "-m scout.daemon --foreground" in printed
    assert str(fresh.home) in printed
    assert "systemctl --user enable --now scout" in fresh.say("up", "--install", **user)
    (file,) = fresh.folder.rglob("scout.service")
    assert file.read_text() == printed
    removed = fresh.say("up", "--uninstall", **user)
    assert "removed" in removed
    assert removed.splitlines()[-1] == f"your data stays in {fresh.home}"
    assert not file.exists()


# -- the store ----------------------------------------------------------------------------------


@pytest.mark.rows("R2.3-29", "R6-5")
def test_verify_backup_and_restore(fresh: Shell) -> None:
    assert fresh.type("verify").returncode == Family.UNKNOWN.exit_code
    start_daemon(fresh)
    fresh.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=fresh.project("arc"))
    fresh.say("send", "@arc", "kept")
    assert "clean: the tables match the log" in fresh.say("verify")
    assert fresh.data("verify")["clean"] is True
    copy = fresh.folder / "copy.db"
    assert fresh.data("backup", str(copy))["bytes"] == copy.stat().st_size
    refused = fresh.type("backup", str(copy)).stderr
    other = copy.with_name(f"{copy.stem}-2{copy.suffix}")
    assert refused.splitlines()[-2:] == [
        f"bad_request: {copy} already exists",
        f"try: scout backup {other}",
    ]
    fresh.say("backup", str(other))
    fresh.say("send", "@arc", "gone afterwards")
    refused = fresh.type("restore", str(copy))
    assert (refused.returncode, refused.stderr.splitlines()[-1]) == (7, "try: scout down")
    fresh.say("down")
    kept = Path(fresh.data("restore", str(copy))["kept"])
    assert kept.exists()
    start_daemon(fresh)
    bodies = [one["body"] for one in fresh.data("message", "list", "--to", "@arc")["items"]]
    assert bodies == ["kept"]


def test_what_is_redacted_leaves_backups_too(fresh: Shell) -> None:
    start_daemon(fresh)
    fresh.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=fresh.project("arc"))
    asked = fresh.data("ask", "@arc", "swordfish")
    copies = [fresh.folder / name for name in ("one.db", "two.db")]
    for copy in copies:
        fresh.say("backup", str(copy))
        assert b"swordfish" in copy.read_bytes()
    for message in fresh.data("message", "list", "--to", "@arc")["items"]:
        fresh.say("redact", message["id"])
    assert fresh.say("backup", "--redact", str(copies[0])).endswith("removed 2 redacted messages\n")
    assert b"swordfish" not in copies[0].read_bytes()
    assert fresh.data("backup", "--redact", str(copies[0]))["redacted"] == 0
    fresh.say("down")
    assert "removed from it what was redacted since: 2" in fresh.say("restore", str(copies[1]))
    assert b"swordfish" not in (fresh.home / "scout.db").read_bytes()
    assert "clean: the tables match the log" in fresh.say("verify")
    start_daemon(fresh)
    assert fresh.data("flight", "get", asked["flightId"]).get("output") == ""
    assert "collab.message.redacted" in fresh.say("log", "--json")


@pytest.mark.rows("R2.3-29", "R6-2")
def test_verify_prints_the_difference(fresh: Shell) -> None:
    import sqlite3

    start_daemon(fresh)
    fresh.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=fresh.project("arc"))
    fresh.say("down")
    store = sqlite3.connect(fresh.home / "scout.db")
    store.execute("DELETE FROM agents WHERE id = (SELECT max(id) FROM agents)")
    store.commit()
    store.close()
    found = fresh.type("verify")
    assert found.returncode == Family.FAILURE.exit_code
    assert "differs: agents agt_" in found.stdout
    assert found.stderr.splitlines()[-1].startswith("try: scout restore")
    assert json.loads(fresh.type("verify", "--json").stdout)["clean"] is False


# -- the doctor ---------------------------------------------------------------------------------


def test_the_doctor_finds_mends_and_reports(fresh: Shell) -> None:
    sick = fresh.type("doctor")
    assert (sick.returncode, sick.stderr.splitlines()[-1]) == (9, "try: scout up")
    start_daemon(fresh)
    (fresh.home / "token").chmod(0o644)
    assert "try: scout doctor --fix" in fresh.type("doctor").stderr
    assert "was open to others (644); now 600" in fresh.say("doctor", "--fix")
    assert fresh.data("doctor")["well"] is True
    fresh.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=fresh.project("arc"))
    fresh.say("send", "@arc", "a body that must not be seen")
    report = fresh.folder / "report.tar.gz"
    fresh.say("doctor", "--bundle", str(report))
    assert report.stat().st_mode & 0o077 == 0
    texts = _texts(report)
    assert set(texts) == {"about.json", "doctor.json", "settings.json", "daemon.json", "scout.log"}
    whole = "\n".join(texts.values())
    assert json.loads(texts["daemon.json"])["counts"]["events"] > 0
    assert "must not be seen" not in whole
    assert (fresh.home / "token").read_text().strip() not in whole


def _texts(file: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    with tarfile.open(file) as archive:
        for member in archive.getmembers():
            data = archive.extractfile(member)
            assert data is not None
            found[Path(member.name).name] = data.read().decode()
    return found


def test_the_demo_ends_well_and_leaves_nothing(fresh: Shell) -> None:
    user = {"TMPDIR": str(fresh.folder / "tmp")}
    (fresh.folder / "tmp").mkdir()
    shown = fresh.say("demo", **user)
    for fact in ("registered @arc", "sent msg_", "reviewed: ", "try: scout ", "So paste it:", "Try next"):
        assert fact in shown
    assert list((fresh.folder / "tmp").iterdir()) == []
