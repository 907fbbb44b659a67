"""Host and Origin checks: requests from other sites and for foreign host names are refused.

A page on the internet can make a browser send requests to loopback, and can point its own host name at
127.0.0.1. Neither may read or change anything, so Host and Origin are checked before anything else.
"""

from collections.abc import Collection
from urllib.parse import urlsplit

from scout.api.asgi import Scope
from scout.base.refusal import BadRequest, Refused
from scout.model.problems.request import Forbidden

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})

# If repeated, these could be interpreted differently by two readers of the same request.
_ONCE = frozenset(
    {
        b"authorization",
        b"cookie",
        b"content-length",
        b"content-type",
        b"host",
        b"idempotency-key",
        b"last-event-id",
        b"mcp-session-id",
        b"origin",
        b"scout-as",
        b"scout-directory",
        b"scout-page",
        b"sec-fetch-site",
    }
)
_OWN_SITE = frozenset({b"same-origin", b"none"})  # `same-site` could be another port of this machine


def read_headers(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers by name; a repeated header that must be unique is refused."""
    found: dict[bytes, bytes] = {}
    for name, value in scope["headers"]:
        if name in found and name in _ONCE:
            header = name.decode("latin-1")
            raise Refused(BadRequest(problem=f"the header {header} is given twice", field=header))
        found[name] = value
    return found


class Guard:
    """Admits requests that name this machine; `hosts` are additional names it listens on."""

    def __init__(self, hosts: Collection[str] = ()) -> None:
        self._hosts = LOOPBACK | {host.lower() for host in hosts}
        self._known: set[tuple[bytes | None, bytes | None, int | None]] = set()

    def check(self, scope: Scope, headers: dict[bytes, bytes], *, is_visit: bool = False) -> None:
        """Refuse a foreign Host or Origin. `is_visit`: a person follows a link, which may be on any site."""
        host, origin = headers.get(b"host"), headers.get(b"origin")
        site = headers.get(b"sec-fetch-site", b"none")
        if site not in _OWN_SITE and not is_visit:
            raise _build_refusal("call from another site", site)
        server = scope.get("server")
        port: int | None = server[1] if server else None
        seen = (host, origin, port)
        if seen in self._known:
            return
        if port is not None:  # a browser cannot open the unix socket, so its Host needs no check
            self._check_host(host)
        if origin is not None:
            self._check_origin(origin, host, port)
        if len(self._known) < 64:
            self._known.add(seen)

    def _check_host(self, host: bytes | None) -> None:
        if host is None or _read_host(b"//" + host) not in self._hosts:
            raise _build_refusal("call by the host name", host or b"(none)")

    def _check_origin(self, origin: bytes, host: bytes | None, port: int | None) -> None:
        if port is None and host is not None and origin == b"http://" + host:
            return
        ours = (
            origin.startswith(b"http://") and _read_host(origin) in self._hosts and _read_port(origin) == port
        )
        if port is None or not ours:
            raise _build_refusal("call by a page", origin)


def _read_host(url: bytes) -> str | None:
    try:
        parts = urlsplit(url.decode("ascii"))
        _ = parts.port  # raises ValueError if it is not a number
        strange = parts.path or parts.query or parts.fragment or "@" in parts.netloc
        return None if strange else parts.hostname
    except ValueError:
        return None


def _read_port(url: bytes) -> int | None:
    try:
        return urlsplit(url.decode("ascii")).port or 80
    except ValueError:
        return None


def _build_refusal(action: str, subject: bytes) -> Refused:
    needs = ("a request of this machine's own programs or pages",)
    return Refused(Forbidden(action=action, subject=subject.decode("latin-1")[:200], needs=needs))
