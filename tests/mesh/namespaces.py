"""Machines with a network between them: namespaces joined by a bridge, which can be cut, lossy or slow.

The bridge is in a namespace too, so that nothing depends on the network of the host, nothing there changes,
and every network has the same addresses. A namespace has the name of the run's temporary folder in front:
what a failed run leaves is found by it (see `tests/leftovers.py`).
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import pytest

_PACKAGES = {"ip": "iproute2", "tc": "iproute2", "iptables": "iptables"}
_PATH = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_NUMBERS = count(1)
_OUTSIDE = "eth0"
_RATE = ("tbf", "rate", "256kbit", "burst", "8kb", "latency", "2s")  # a burst below one packet blocks all


class Host:
    """One machine of a network. What it does to itself stays in its own namespace."""

    def __init__(self, namespace: str, address: str) -> None:
        self.namespace = namespace
        self.address = address

    @property
    def runner(self) -> tuple[str, ...]:
        """The words that run a command on this machine."""
        return (find_program("ip"), "netns", "exec", self.namespace)

    def cut(self) -> None:
        """Drop every packet from and to the others, without telling anybody."""
        self._drop()

    def lose(self, share: float) -> None:
        """Drop this share of the packets, in each direction."""
        self._drop("-m", "statistic", "--mode", "random", "--probability", str(share))

    def slow(self) -> None:
        """Send at the rate of a bad mobile connection."""
        _run(*self.runner, find_program("tc"), "qdisc", "replace", "dev", _OUTSIDE, "root", *_RATE)

    def heal(self) -> None:
        """Undo all of it."""
        self._filter("-F")
        command = (find_program("tc"), "qdisc", "del", "dev", _OUTSIDE, "root")
        subprocess.run((*self.runner, *command), capture_output=True, check=False)  # there may be none

    def _drop(self, *match: str) -> None:
        for chain, direction in (("INPUT", "-i"), ("OUTPUT", "-o")):
            self._filter("-A", chain, direction, _OUTSIDE, *match, "-j", "DROP")

    def _filter(self, *words: str) -> None:
        _run(*self.runner, find_program("iptables"), "-w", *words)


@contextmanager
def network(count_of_hosts: int) -> Generator[tuple[Host, ...]]:
    """So many machines that reach each other and nobody else; removed at the end. Skips the test without rights."""
    require_network()
    base = f"{Path(tempfile.gettempdir()).name}-{os.getpid()}-{next(_NUMBERS)}"
    with ExitStack() as stack:
        hub = stack.enter_context(_namespace(f"{base}-hub"))
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        hosts = [Host(f"{base}-{one}", f"10.77.0.{one}") for one in range(1, count_of_hosts + 1)]
        for number, host in enumerate(hosts, 1):
            stack.enter_context(_namespace(host.namespace))
            _join(hub, f"port{number}", host)
        yield tuple(hosts)


def require_network() -> None:
    """Skip the test where no network namespaces can be made, and say what is missing."""
    for program, package in _PACKAGES.items():
        if shutil.which(program, path=_PATH) is None:
            pytest.skip(f"NOT PROVED HERE: {package} is not installed, so that no network can be cut")
    if os.getuid() != 0:
        pytest.skip("NOT PROVED HERE: needs root to make network namespaces")
    tried = subprocess.run(
        (find_program("ip"), "netns", "exec", _make_trial(), "true"), capture_output=True, check=False
    )
    _remove(_trial_name())
    if tried.returncode:
        pytest.skip("NOT PROVED HERE: needs root that may make network namespaces")


def find_program(name: str) -> str:
    found = shutil.which(name, path=_PATH)
    assert found is not None, f"{_PACKAGES[name]} is not installed"
    return found


def _trial_name() -> str:
    return f"{Path(tempfile.gettempdir()).name}-{os.getpid()}-trial"


def _make_trial() -> str:
    subprocess.run((find_program("ip"), "netns", "add", _trial_name()), capture_output=True, check=False)
    return _trial_name()


@contextmanager
def _namespace(name: str) -> Generator[str]:
    _ip("netns", "add", name)
    try:
        yield name
    finally:
        _remove(name)


def _remove(name: str) -> None:
    subprocess.run((find_program("ip"), "netns", "del", name), capture_output=True, check=False)


def _join(hub: str, port: str, host: Host) -> None:
    """Connect a machine with the bridge."""
    inside = ("-n", host.namespace)
    _ip("-n", hub, "link", "add", port, "type", "veth", "peer", "name", _OUTSIDE, "netns", host.namespace)
    _ip("-n", hub, "link", "set", port, "master", "bridge", "up")
    _ip(*inside, "address", "add", f"{host.address}/24", "dev", _OUTSIDE)
    for device in ("lo", _OUTSIDE):
        _ip(*inside, "link", "set", device, "up")


def _ip(*words: str) -> None:
    _run(find_program("ip"), *words)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, (command, done.stderr)
