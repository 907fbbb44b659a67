"""Starting and stopping real daemons."""

import json
import os
import signal
import socket
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scout.daemon import lock, start
from tests.daemon.daemons import Daemon, Reply, daemon, environment, eventually

# Each of these is a process with its own interpreter, which is a good part of a second.
pytestmark = pytest.mark.slow


@pytest.mark.rows("R0-19", "R0-20", "R7-3")
def test_everything_on_disk_is_the_owners_alone(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        one.call("POST", "/v1/attachments", {"name": "a", "data": "YQ=="})
        found = {
            file.relative_to(one.home): file.lstat().st_mode for file in [one.home, *one.home.rglob("*")]
        }
    names = {str(name) for name in found}
    assert {"scout.db", "blobs", "sessions", "logs", "token", "node.key", "lock"} <= names
    wrong = {
        str(name): oct(mode)
        for name, mode in found.items()
        if stat.S_IMODE(mode) != (0o700 if stat.S_ISDIR(mode) else 0o600)
    }
    assert wrong == {}


@pytest.mark.rows("R0-27", "R0-28", "R0-31")
def test_the_daemon_says_where_it_really_is(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        facts = one.running.facts()
        assert one.port > 0
        assert one.call("GET", "/v1/status").json == facts
        assert one.call("GET", "/v1/status", unix=True).json == facts
        assert list(facts) == ["url", "socket", "pid", "version", "node", "home"]
        assert facts["home"] == str(one.home)
        found = start.find_running(str(one.home))
        assert found is not None
        assert found.facts() == facts
        assert stat.S_IMODE(Path(one.running.socket).stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(one.running.socket).parent.stat().st_mode) == 0o700
    assert start.find_running(str(one.home)) is None
    assert not Path(one.running.socket).exists()


@pytest.mark.rows("R0-33")
def test_a_second_start_finds_the_first(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        again, fresh = start.start(str(one.home), environ=environment(one.home), timeout=60)
        assert (again.pid, fresh) == (one.running.pid, False)
        assert list(one.home.glob("*pid*")) == []


@pytest.mark.rows("R0-33", "R0-37")
def test_many_starts_at_once_bring_up_one_daemon(tmp_path: Path) -> None:
    home = tmp_path / "home"
    seen = environment(home)

    def started_once(_: int) -> tuple[start.Running, bool]:
        return start.start(str(home), environ=seen, timeout=40)

    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(started_once, range(4)))
    try:
        assert len({running.pid for running, _ in started}) == 1
        assert [fresh for _, fresh in started].count(True) == 1
        assert all(Path(f"/proc/{running.pid}").exists() for running, _ in started)
    finally:
        assert start.stop(str(home), timeout=60)


def test_a_killed_daemon_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with daemon(home) as one:
        one.register("survivor")
        token = one.token
        os.kill(one.running.pid, signal.SIGKILL)
        os.waitpid(one.running.pid, 0)
        assert Path(one.running.socket).exists()
        assert start.find_running(str(home)) is None
    with daemon(home) as two:
        assert two.token == token
        assert [
            item["definitionId"] for item in two.call("GET", "/v1/agents?query=survivor").json["items"]
        ] == ["survivor"]


@pytest.mark.rows("R0-30")
def test_a_taken_port_names_its_holder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(start.NotStarted) as refused:
            start.start(str(home), environ=environment(home, SCOUT_PORT=str(port)), timeout=60)
    problem = refused.value.problem
    assert (problem["code"], problem["port"], problem["pid"]) == ("port_in_use", port, os.getpid())
    assert problem["process"] == Path("/proc/self/comm").read_text().strip()
    assert problem["remedies"][0]["command"].startswith("scout config set port ")
    assert refused.value.exit_code == 9
    assert start.find_running(str(home)) is None


@pytest.mark.rows("R0-26")
def test_the_port_is_7432_on_loopback_unless_said(tmp_path: Path) -> None:
    home = tmp_path / "home"
    seen = environment(home)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 7432))
        except OSError:
            pytest.skip("somebody uses the port")
    del seen["SCOUT_PORT"]
    running, _ = start.start(str(home), environ=seen, timeout=60)
    assert start.stop(str(home), timeout=60)
    assert running.url == "http://127.0.0.1:7432"


@pytest.mark.rows("R7-5")
@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_listening_for_others_must_be_asked_for_by_name(tmp_path: Path, host: str) -> None:
    home = tmp_path / "home"
    with pytest.raises(start.NotStarted) as refused:
        start.start(str(home), environ=environment(home, SCOUT_HOST=host), timeout=60)
    assert refused.value.problem["code"] == "forbidden"
    assert "tokens included" in refused.value.problem["message"]


def test_who_asks_for_it_gets_it(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", "--insecure-bind", SCOUT_HOST="0.0.0.0") as one:
        assert one.call("GET", "/v1/whoami").status == 200
        assert one.call("GET", "/v1/whoami", headers={"Host": "evil.example"}).status == 403


def test_a_wrong_setting_is_said_at_once(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with pytest.raises(start.NotStarted) as refused:
        start.start(str(home), environ=environment(home, SCOUT_PORT="many"), timeout=60)
    assert refused.value.problem["code"] == "bad_request"
    assert refused.value.exit_code == 2


def _threads(one: Daemon) -> list[str]:
    tasks = Path(f"/proc/{one.running.pid}/task").iterdir()
    return [(task / "comm").read_text().strip() for task in tasks]


@pytest.mark.rows("R0-42")
def test_the_daemon_is_one_process_with_few_threads(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        one.register("busy")

        def used(number: int) -> tuple[Reply, Reply]:
            written = one.call("POST", "/v1/messages", {"to": "busy", "body": str(number)})
            return written, one.call("GET", "/v1/agents")

        with ThreadPoolExecutor(8) as pool:
            replies = [reply for pair in pool.map(used, range(60)) for reply in pair]
        assert {reply.status for reply in replies} == {200, 201}
        children = Path(f"/proc/{one.running.pid}/task/{one.running.pid}/children").read_text()
        assert children == ""
        assert len(_threads(one)) <= 12


def test_an_idle_keep_alive_connection_does_not_hold_the_daemon(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        idle = socket.create_connection(("127.0.0.1", one.port), timeout=60)
        idle.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        found = b""
        while not found.endswith(b"}"):
            found += idle.recv(4096)
        assert found.startswith(b"HTTP/1.1 200")
    with idle:
        assert idle.recv(1) == b""


def test_a_request_under_way_is_finished(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        one.register("last")
        body = b'{"to": "last", "body": "words"}'
        lines = f"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {one.token}\r\nContent-Length: {len(body)}\r\n\r\n"
        client = socket.create_connection(("127.0.0.1", one.port), timeout=60)
        client.sendall(lines.encode() + body[:10])
        # The daemon has begun to read: it answers others on other connections in the meantime.
        assert one.call("GET", "/health").status == 200
        os.kill(one.running.pid, signal.SIGTERM)

        def closed() -> bool:
            try:
                socket.create_connection(("127.0.0.1", one.port), timeout=1).close()
            except ConnectionRefusedError:
                return True
            return False

        assert eventually(closed)
        client.sendall(body[10:])
        with client:
            assert client.recv(4096).startswith(b"HTTP/1.1 201")
        assert eventually(lambda: not lock.is_held(str(one.home)))


def test_in_the_foreground_it_logs_to_the_terminal_and_ends_with_the_interrupt(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with subprocess.Popen(
        [sys.executable, "-m", "scout.daemon", "--foreground"],
        env=environment(home),
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as process:
        assert process.stderr is not None
        assert "ready at http://127.0.0.1:" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_a_refusal_in_the_foreground_says_what_to_try(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "scout.daemon", "--foreground", "--port", port],
            env=environment(home),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    assert done.returncode == 9
    assert done.stderr.splitlines()[-1].startswith("try: scout config set port ")


def test_the_clients_side_loads_only_the_standard_library() -> None:
    code = "import sys, scout.daemon.start; print([name for name in ('msgspec', 'asyncio', 'subprocess', 'uvicorn') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout.strip() == "[]"


def test_a_daemon_that_dies_at_once_is_reported_with_its_last_words(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "scout.db").write_bytes(b"this is no database" * 100)
    with pytest.raises(start.NotStarted) as refused:
        start.start(str(home), environ=environment(home), timeout=60)
    assert refused.value.problem["message"]
    assert refused.value.exit_code != 0
    assert (home / "scout.db").read_bytes().startswith(b"this is no database")
    assert json.dumps(refused.value.problem)
