"""Two machines in one mesh, through the command line: two daemons with a home each, and a real NATS server."""

import contextlib
import json
import os
import re
import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
_PATIENCE = 60.0


class Machines:
    """The machine that founded the mesh, and the one that joined as `mini`."""

    def __init__(self, desk: Shell, mini: Shell) -> None:
        self.desk = desk
        self.mini = mini
        self.name = str(desk.data("status")["node"])  # of the first machine


@pytest.fixture
def shells() -> Generator[tuple[Shell, Shell]]:
    with ExitStack() as stack:
        shells = stack.enter_context(a_shell()), stack.enter_context(a_shell())
        for shell in shells:
            start_daemon(shell)
        try:
            yield shells
        finally:
            for shell in reversed(shells):
                shell.type("down", "--stop")


@pytest.fixture
def machines(shells: tuple[Shell, Shell]) -> Machines:
    desk, mini = shells
    up = desk.data("mesh", "up", "--host", "127.0.0.1")
    assert (up["member"], up["founder"], up["connected"]) == (True, True, True), up
    line = desk.data("mesh", "invite", "--name", "mini")["line"]
    joined = mini.data("mesh", "join", line)
    assert (joined["node"], joined["connected"]) == ("mini", True), joined
    return Machines(desk, mini)


def wait_for(check: Callable[[], Any]) -> Any:
    """Ask again until there is an answer."""
    return eventually(check, _PATIENCE)


def lists(shell: Shell, address: str) -> bool:
    return address in [one["address"] for one in shell.data("who", "--all-nodes")["items"]]


def is_online(shell: Shell, count: int) -> bool:
    nodes = shell.data("mesh", "nodes")["items"]
    return len(nodes) == count and all(one["state"] == "online" for one in nodes)


@pytest.mark.rows("R8.s-1", "R8.j-1", "R8.d-1", "R8.d-2", "R8.v-5")
def test_two_machines_found_join_list_and_resolve_each_other(machines: Machines) -> None:
    desk, mini, name = machines.desk, machines.mini, machines.name
    wait_for(lambda: is_online(desk, 2))
    wait_for(lambda: is_online(mini, 2))
    desk.say("agent", "register", "hudson", "--harness", "echo", "--config", "description=reviews code")
    mini.say("agent", "register", "hudson", "--harness", "echo")
    mini.say("agent", "register", "arc", "--harness", "echo")
    wait_for(lambda: lists(desk, "@arc"))
    wait_for(lambda: lists(mini, f"@hudson.node:{name}"))
    assert "@arc" not in desk.say("who")
    found = mini.data("resolve", f"@hudson.node:{name}")
    assert found["description"] == "reviews code"
    assert mini.data("resolve", "@hudson")["address"] == "@hudson"
    assert "only match" in desk.say("resolve", "--explain", "@arc")
    assert desk.data("show", "@arc")["node"] == "mini"
    for words in (("session", "list", "--agent", "@arc"), ("session", "tail", "@arc"), ("open", "@arc")):
        refused = desk.type(*words)
        assert refused.returncode == 7, (words, refused.stdout, refused.stderr)
        assert "remote_target: @arc lives on mini" in refused.stderr
        assert "# on mini" in refused.stderr, refused.stderr
    refused = desk.type("agent", "retire", "@arc")
    assert "try: scout agent retire @arc  # on mini" in refused.stderr
    unknown = mini.type("resolve", "@hudson.node:minj")
    assert "no node is called minj" in unknown.stderr


@pytest.mark.rows("R8.s-3", "R8.j-3", "R8.j-5")
def test_the_founder_invites_removes_and_says_who_is_there(machines: Machines) -> None:
    desk, mini, name = machines.desk, machines.mini, machines.name
    wait_for(lambda: is_online(desk, 2))
    assert "2 machines" in desk.say("mesh")
    assert "mesh: founded at" in desk.say("status")
    assert "connected" in desk.say("doctor", within=120)
    elsewhere = mini.type("mesh", "invite")
    assert (
        f"not_founder: only the machine that founded the mesh can do this: run it on {name}"
        in elsewhere.stderr
    )
    assert f"try: scout mesh invite  # on {name}" in elsewhere.stderr
    taken = desk.type("mesh", "invite", "--name", "mini")
    assert "try: scout mesh invite --name mini-2" in taken.stderr
    assert mini.data("mesh", "rename", "studio")["node"] == "studio"
    wait_for(lambda: "studio" in desk.say("mesh", "nodes"))
    mini.say("mesh", "rotate")
    wait_for(lambda: is_online(desk, 2))
    kept = desk.say("down")
    assert "the mesh server keeps running for 1 other machine (" in kept
    start_daemon(desk)
    wait_for(lambda: is_online(desk, 2))
    assert desk.data("mesh", "remove", "studio")["state"] == "removed"
    wait_for(
        lambda: (
            "connected" not in json.dumps(mini.data("mesh", "status").get("connected", False))
            or not mini.data("mesh")["connected"]
        )
    )
    assert "studio" not in desk.say("mesh", "nodes")
    left = mini.data("mesh", "leave")
    assert not left["member"]
    again = mini.type("mesh", "rotate")
    assert "try: scout mesh up" in again.stderr


def test_a_server_that_does_not_answer_is_told_what_changed_when_it_does(machines: Machines) -> None:
    desk, mini = machines.desk, machines.mini
    wait_for(lambda: is_online(desk, 2))
    pid = int(desk.data("mesh")["server"]["pid"])
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_for(lambda: not desk.data("mesh").get("connected"))
        assert "other machines learn the name when it does" in desk.say("mesh", "rename", "tower")
        line = desk.data("mesh", "invite", "--name", "third")["line"]
        assert desk.data("mesh", "remove", "mini")["state"] == "removed"
    finally:
        with contextlib.suppress(ProcessLookupError):  # the daemon may have replaced it by now
            os.kill(pid, signal.SIGCONT)
    wait_for(lambda: desk.data("mesh").get("connected"))
    with a_shell() as third:
        start_daemon(third)
        try:
            joined = wait_for(lambda: join(third, line))
            assert joined["node"] == "third"
            wait_for(lambda: "tower" in third.say("mesh", "nodes"))
            wait_for(lambda: not mini.data("mesh").get("connected"))
        finally:
            third.type("down", "--stop")


def join(shell: Shell, line: str) -> Any:
    """Join a mesh, or nothing while its server does not know of the invitation."""
    done = shell.type("mesh", "join", line, "--json")
    return json.loads(done.stdout) if done.returncode == 0 else None


@pytest.mark.rows("R8.j-5")
def test_a_removed_machine_waits_for_nobody(machines: Machines) -> None:
    """What is under way when a machine is removed fails there at once, and a new ask is refused."""
    desk, mini, name = machines.desk, machines.mini, machines.name
    desk.say("agent", "register", "hudson", "--harness", "echo", "--config", "wakePolicy=manual")
    wait_for(lambda: lists(mini, "@hudson"))
    waiting = mini.data("ask", "@hudson", "are you there?", "--no-wait")["flightId"]
    desk.say("mesh", "remove", "mini")
    asked = mini.type("ask", "@hudson", "and now?", within=20)
    assert asked.returncode != 0
    said = asked.stdout + asked.stderr
    assert "peer_unreachable" in said or "this node was removed from the mesh" in said, said
    ended = wait_for(lambda: _find_end(mini, waiting))
    assert (ended["state"], ended["error"]["code"]) == ("failed", "peer_unreachable")
    assert ended["error"]["message"] == "this node was removed from the mesh"
    refused = mini.type("ask", "@hudson", "and later?")
    assert refused.stderr.startswith(f"peer_unreachable: node {name} "), refused.stderr
    assert "the founder removed this node from the mesh" in mini.say("mesh", "status")


def _find_end(shell: Shell, flight: str) -> Any:
    found = shell.data("flight", "get", flight)
    return found if found.get("error") else None


@pytest.mark.rows("R8.d-3")
def test_a_machine_that_stops_is_unreachable_within_five_seconds(machines: Machines) -> None:
    desk, mini = machines.desk, machines.mini
    mini.say("agent", "register", "arc", "--harness", "echo")
    wait_for(lambda: lists(desk, "@arc"))
    mini.say("down")
    began = time.monotonic()
    wait_for(lambda: "unreachable" in desk.say("mesh", "nodes"))
    assert time.monotonic() - began < 10  # five, and the time of a command on a busy machine
    assert desk.data("show", "@arc")["status"] == "unreachable"
    told = desk.type("resolve", "@nobody.node:mini")
    assert "peer_unreachable: node mini is unreachable since" in told.stderr
    start_daemon(mini)
    wait_for(lambda: is_online(desk, 2))


@pytest.mark.rows("R8.j-2")
def test_an_invitation_works_once(shells: tuple[Shell, Shell]) -> None:
    desk, mini = shells
    desk.say("mesh", "up", "--host", "127.0.0.1")
    line = desk.data("mesh", "invite", "--name", "mini")["line"]
    mini.say("mesh", "join", line)
    mini.say("mesh", "leave")
    refused = mini.type("mesh", "join", line)
    assert refused.returncode != 0
    assert "invitation" in refused.stderr or "login" in refused.stderr
    assert not mini.data("mesh")["member"]


def test_an_address_of_no_machine_is_refused_with_one_that_works(shells: tuple[Shell, Shell]) -> None:
    desk = shells[0]
    for host in ("0000", "0x7f.1", "no such host", "198.51.100.7", "nowhere.invalid"):
        refused = desk.type("mesh", "up", "--host", host)
        assert refused.returncode == 2, refused.stderr
        assert "(at host)" in refused.stderr
        (remedy,) = re.findall(r"try: scout (mesh up --host \S+)", refused.stderr)
    assert not desk.data("mesh")["member"]
    desk.say(*remedy.split())
    assert desk.data("mesh").get("connected")


def test_a_port_of_another_program_is_refused_with_its_name(shells: tuple[Shell, Shell]) -> None:
    desk = shells[0]
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        refused = desk.type("mesh", "up", "--host", "127.0.0.1", "--port", str(port))
    assert refused.returncode != 0
    assert f"port_in_use: port {port} is used by " in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert "try: scout mesh up --host 127.0.0.1" in refused.stderr
    desk.say("mesh", "up", "--host", "127.0.0.1")
