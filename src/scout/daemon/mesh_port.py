"""Where the server of the mesh listens: an address of this machine, and a port that is free there."""

import errno
import ipaddress
import re
import socket
from typing import NamedTuple

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.daemon.port import find_holder
from scout.model.problems.request import PortInUse

_ALL = "0.0.0.0"
_LABEL = r"(?!-)[a-z0-9-]{1,63}(?<!-)"
# The last label begins with a letter: `0`, `1.2` and `0x7f` are numbers that C libraries take for addresses.
_HOST_NAME = re.compile(rf"(?=.{{1,253}}$)(?:{_LABEL}\.)*(?=[a-z]){_LABEL}", re.IGNORECASE)


class ServerAddress(NamedTuple):
    """The host and port of the server, and the hosts at which other machines find it."""

    host: str
    port: int
    hosts: tuple[str, ...]


def choose_address(host: str, port: int) -> ServerAddress:
    """Return where the server can listen. No host: on all addresses. No port: on any that is free."""
    host = host or _ALL
    with _open(host) as probe:
        try:
            probe.bind((host, port))
        except OSError as error:
            raise Refused(_explain(host, port, error)) from None
        port = int(probe.getsockname()[1])
    return ServerAddress(host, port, _list_addresses() if _is_unspecified(host) else (host,))


def _open(host: str) -> socket.socket:
    """Open a socket of the family that an address or a host name has."""
    if not _is_address(host) and not _HOST_NAME.fullmatch(host):
        raise Refused(_build_refusal("neither an IP address nor a host name"))
    try:
        family = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][0]
    except OSError:
        raise Refused(_build_refusal(f"'{host}' is not known on this machine")) from None
    probe = socket.socket(family, socket.SOCK_STREAM)
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return probe


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_unspecified(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified


def _explain(host: str, port: int, error: OSError) -> BadRequest | PortInUse:
    """Build the refusal of an address that cannot be bound."""
    free = Remedy(operation="mesh.up", parameters={"host": host}, why="use any free port")
    match error.errno:
        case errno.EADDRINUSE:
            pid, process = find_holder(port)
            return PortInUse(port=port, pid=pid, process=process, remedies=(free,))
        case errno.EACCES:
            problem = f"this user may not listen on port {port}"
            return BadRequest(problem=problem, field="port", remedies=(free,))
        case _:
            return _build_refusal(f"'{host}' is not an address of this machine")


def _build_refusal(problem: str) -> BadRequest:
    host = _list_addresses()[0]
    remedy = Remedy(operation="mesh.up", parameters={"host": host}, why="listen on this machine's address")
    return BadRequest(problem=problem, field="host", remedies=(remedy,))


def _list_addresses() -> tuple[str, ...]:
    """Return the address from which this machine would reach others; nothing is sent to find it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ("127.0.0.1",)
        return (str(probe.getsockname()[0]),)
