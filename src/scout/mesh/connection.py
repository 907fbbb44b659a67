"""One connection to a NATS server, from login to loss. A lost one is not repaired: the link makes another.

The library would reconnect by itself, but it keeps its subscriptions silently, while Scout has to read the
directory again after every gap.
"""

import asyncio
import logging
import math
import re
import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import msgspec
from nats import errors
from nats.aio.client import Client, RawCredentials
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from scout.base.record import Record
from scout.base.refusal import Diagnostic, Refused
from scout.mesh.certificate import WrongCertificate, build_pinned_context
from scout.mesh.names import API
from scout.model.problems.mesh import CertificateMismatch, MeshLoginRefused, ServerTooOld
from scout.ports.mesh import MeshDown

NEEDED = (2, 11)
NEEDED_TEXT = "2.11"
_CONNECT = 3.0  # seconds to connect and log in
_REPLY = 5
_PING = 1.0  # seconds between two checks of the connection
_SILENCE = 2.5  # seconds without an answer until the connection counts as lost
_CLOSE = 1.0
_LOGIN_WORDS = ("authorization", "authentication")
_NOISE = "eof_received() has no effect"  # the library closes TLS in a way that every event loop warns about
_VERSION = re.compile(r"(\d+)\.(\d+)")
T = TypeVar("T")

logging.getLogger("asyncio").addFilter(lambda record: _NOISE not in record.getMessage())


class ServerLogin(Record):
    """Where a server is and how to log in. `seeds`: login keys, newest first. `inbox`: where replies go."""

    urls: tuple[str, ...]
    name: str
    inbox: str
    certificate: str | None = None
    credentials: str | None = None
    seeds: tuple[str, ...] = ()


class Connection:
    """A connection that is logged in. Its methods raise `MeshDown`."""

    def __init__(self, client: Client, url: str, problems: list[str], lost: asyncio.Event) -> None:
        self.client = client
        self._lost = lost
        self.url = url
        self.round_trip: float | None = None
        self._problems = problems

    @property
    def version(self) -> str:
        """The version of the server."""
        return str(_get_info(self.client).get("version", "unknown"))

    @property
    def server_id(self) -> str:
        """The id of the server, which it makes anew at each start."""
        return str(_get_info(self.client).get("server_id", ""))

    @property
    def is_clustered(self) -> bool:
        """Whether the server belongs to a cluster."""
        return bool(_get_info(self.client).get("cluster"))

    @property
    def known_urls(self) -> tuple[str, ...]:
        """Other servers of the same cluster."""
        return tuple(one.geturl() for one in self.client.discovered_servers)

    async def call(self, name: str, request: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Call the JetStream API and return its response; one with an error has the field `error`."""
        reply = await self.request(f"{API}.{name}", msgspec.json.encode(request) if request else b"")
        return msgspec.json.decode(reply.data, type=dict[str, Any])

    async def store(self, subject: str, data: bytes, headers: dict[str, str]) -> None:
        """Publish into a stream and wait until the server has it."""
        reply = await self.request(subject, data, headers)
        answer = msgspec.json.decode(reply.data, type=dict[str, Any])
        if error := answer.get("error"):
            raise MeshDown(f"the server did not store it: {error.get('description', 'no reason given')}")

    async def request(self, subject: str, data: bytes, headers: dict[str, str] | None = None) -> Msg:
        """Send a request and return its reply."""
        known = len(self._problems)
        try:
            return await _use(self.client.request(subject, data, timeout=_REPLY, headers=headers))
        except MeshDown:
            if self._problems[known:]:  # a right that is missing is told on the side
                raise MeshDown(self._problems[-1]) from None
            raise

    async def publish(self, subject: str, data: bytes, reply: str = "") -> None:
        """Send a message that nobody acknowledges."""
        await _use(self.client.publish(subject, data, reply=reply))

    async def subscribe(self, subject: str, take: Callable[[Msg], Awaitable[None]]) -> Subscription:
        """Receive messages, one after the other, until the subscription ends."""
        client: Any = self.client  # one of its parameters has no type
        return await _use(client.subscribe(subject, cb=take))

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; one of a lost connection has ended."""
        with suppress(MeshDown):
            await _use(subscription.unsubscribe())

    async def watch(self) -> None:
        """Measure the round trip every second until the connection is lost, which is raised."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                async with asyncio.timeout(_SILENCE):
                    await _use(self.client.flush(timeout=_REPLY))
            except TimeoutError:
                raise MeshDown(f"the server has not answered for {_SILENCE:g} seconds") from None
            except MeshDown as down:
                raise MeshDown(self._problems[-1] if self._problems else down.reason) from None
            self.round_trip = clock() - began
            with suppress(TimeoutError):
                async with asyncio.timeout(_PING):
                    await self._lost.wait()

    async def close(self) -> None:
        """Close it; without an answer of the server it is cut."""
        await _close(self.client)


async def connect(login: ServerLogin) -> Connection:
    """Connect to the first server that accepts one of the login keys. Raises `MeshDown`."""
    down = MeshDown("no server is known")
    credentials = await asyncio.to_thread(_read_credentials, login)
    context = await asyncio.to_thread(_build_context, login)
    for url in login.urls:
        for seed in login.seeds or ("",):
            try:
                return await _connect(url, login, _Access(context, seed, credentials))
            except MeshDown as error:
                down = error
                if down.refused is None:
                    break  # another key does not help
    raise down


async def _use(work: Awaitable[T]) -> T:
    """Await a call of the library, which fails only with `MeshDown`.

    A lost connection cancels what waits in the library: that is not a cancellation of this task. And
    `wait_for` of Python 3.11, which the library uses, drops a cancellation that arrives with the result.
    """
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()  # a group of tasks that failed leaves a count behind

    def fail(reason: str) -> BaseException:
        return asyncio.CancelledError() if task.cancelling() > before else MeshDown(reason)

    try:
        result = await work
    except asyncio.CancelledError:
        raise fail("the connection was lost") from None
    except errors.NoRespondersError:
        raise fail("nothing on the server answers") from None
    except (errors.Error, OSError, ValueError) as error:
        raise fail(_describe(error)) from None
    if task.cancelling() > before:
        raise asyncio.CancelledError
    return result


def is_new_enough(version: str) -> bool:
    """Whether a server of this version has what the mesh needs."""
    found = _VERSION.search(version)
    return found is not None and (int(found[1]), int(found[2])) >= NEEDED


class _Access(NamedTuple):
    context: ssl.SSLContext
    seed: str
    credentials: str | None


async def _connect(url: str, login: ServerLogin, access: _Access) -> Connection:
    client, problems, first, lost = Client(), list[str](), list[Exception](), asyncio.Event()

    async def note(error: Exception) -> None:
        problems.append(_describe(error))
        first.append(error)

    async def lose() -> None:
        lost.set()

    try:
        async with asyncio.timeout(_CONNECT):
            connecting = client.connect(
                url,
                name=login.name,
                error_cb=note,
                disconnected_cb=lose,
                verbose=True,  # or a refused login is hidden by the failure of what is sent after it
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=math.ceil(_CONNECT),
                ping_interval=1,
                max_outstanding_pings=2,
                inbox_prefix=login.inbox,
                tls=access.context,
                tls_handshake_first=login.certificate is not None,
                nkeys_seed_str=access.seed or None,
                user_credentials=RawCredentials(access.credentials) if access.credentials else None,
            )
            await _use(connecting)
        _check_server(client, url)
    except TimeoutError:
        await _close(client)
        raise MeshDown(f"the server did not answer within {_CONNECT:g} seconds") from None
    except MeshDown as down:
        await _close(client)
        raise (_explain(url, first[-1]) if first and down.refused is None else down) from None
    except BaseException:
        await _close(client)
        raise
    problems.clear()
    return Connection(client, url, problems, lost)


def _build_context(login: ServerLogin) -> ssl.SSLContext:
    return build_pinned_context(login.certificate) if login.certificate else ssl.create_default_context()


def _read_credentials(login: ServerLogin) -> str | None:
    """Read the credentials file; the library would read it on the event loop."""
    if login.credentials is None:
        return None
    try:
        return Path(login.credentials).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = f"{login.credentials} cannot be read: {error}"
        refused = Refused(MeshLoginRefused(url=login.urls[0], reason=reason))
        raise MeshDown(reason, refused=refused) from None


def _check_server(client: Client, url: str) -> None:
    """Refuse a server that is too old, or that talks in the clear although its URL demands TLS."""
    info = _get_info(client)
    version = str(info.get("version", "unknown"))
    if not is_new_enough(version):
        raise _refuse(ServerTooOld(where=url, version=version, needed=NEEDED_TEXT))
    if url.startswith("tls:") and not (info.get("tls_required") or info.get("tls_available")):
        raise MeshDown(f"the server at {url} does not encrypt its connections")


def _explain(url: str, error: Exception) -> MeshDown:
    """Turn what the library raised into one of two things: wait, or change something."""
    if isinstance(error, WrongCertificate):
        return _refuse(CertificateMismatch(url=url, expected=error.expected, found=error.found))
    text = _describe(error)
    if any(word in text.lower() for word in _LOGIN_WORDS):
        return _refuse(MeshLoginRefused(url=url, reason=text))
    return MeshDown(text)


def _refuse(diagnostic: Diagnostic) -> MeshDown:
    refused = Refused(diagnostic)
    return MeshDown(diagnostic.message, refused=refused)


def _describe(error: BaseException) -> str:
    """Return one line about an error of the library."""
    text = str(error).removeprefix("nats: ").strip().strip("'")
    return text or type(error).__name__


def _get_info(client: Client) -> dict[str, Any]:
    """Return what the server said about itself; the library shows only a part of it."""
    return cast("dict[str, Any]", getattr(client, "_server_info", None) or {})


async def _close(client: Client) -> None:
    """Close a connection, politely for a second. TLS would wait half a minute for a server that is gone."""
    with suppress(MeshDown, TimeoutError):
        async with asyncio.timeout(_CLOSE):
            await _use(client.close())
    transport = getattr(client, "_transport", None)
    for name in ("_io_writer", "_bare_io_writer"):
        writer: asyncio.StreamWriter | None = getattr(transport, name, None)
        if writer is not None:
            writer.transport.abort()
