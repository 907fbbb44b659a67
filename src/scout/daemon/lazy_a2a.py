"""A2A, loaded lazily: its libraries are large and an extra of the package, and few daemons need them."""
# ruff: noqa: PLC0415 (that is the point)

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable, Mapping
from email.utils import formatdate
from hashlib import sha256
from typing import TYPE_CHECKING

from scout.a2a.address import CARDS, PATHS
from scout.a2a.card import build_card
from scout.api.asgi import JSON, AsgiSend, Receive, Response, Scope
from scout.base.codec import encode
from scout.base.refusal import Refused
from scout.identity.path import AgentPath
from scout.model.problems.request import NotFound
from scout.model.problems.session import HarnessUnavailable, Missing
from scout.protocol.agents import Publication
from scout.protocol.scout import Scout

if TYPE_CHECKING:
    from scout.a2a.app import A2aSurface

_SLICE = 0.0001  # seconds for which the import may block other threads


class LazyA2a:
    """Loads the A2A surface at the first request for it."""

    paths = PATHS

    def __init__(self) -> None:
        self._begun: asyncio.Task[A2aSurface] | None = None

    async def __call__(self, scout: Scout, scope: Scope, receive: Receive, send: AsgiSend) -> None:
        if self._begun is None:
            self._begun = asyncio.get_running_loop().create_task(_load())
        surface = self._begun.result() if self._begun.done() else await asyncio.shield(self._begun)
        await surface(scout, scope, receive, send)

    def stop(self) -> None:
        """End all open requests."""
        if self._begun is not None and self._begun.done() and not self._begun.exception():
            self._begun.result().stop()

    async def close(self) -> None:
        """Stop, and wait for an import that has begun."""
        if self._begun is not None:
            await asyncio.wait({self._begun})
        self.stop()


async def _load() -> "A2aSurface":
    try:
        kind = await asyncio.to_thread(_import_surface)
    except ImportError as error:
        hint = f"{error.name} is missing: {sys.executable} -m pip install 'scout-broker[a2a]'"
        raise Refused(HarnessUnavailable(harness="a2a", missing=Missing.BINARY, hint=hint)) from None
    gc.freeze()  # these objects live as long as the daemon: the collector can skip them
    return await asyncio.to_thread(kind)


def _import_surface() -> "type[A2aSurface]":
    """Import with a short thread switch interval, so that the event loop is not blocked for long."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SLICE)
    try:
        from scout.a2a.app import A2aSurface
    finally:
        sys.setswitchinterval(usual)
    return A2aSurface


class AgentCards:
    """The cards of published agents, which everyone may read."""

    paths = CARDS

    def __init__(self, find: Callable[[AgentPath], Awaitable[Publication | None]], version: str) -> None:
        self._find = find
        self._version = version

    async def show(self, path: bytes, headers: Mapping[bytes, bytes]) -> Response:
        """Return the card, or that the client has it already."""
        published = await self._find(_read_agent(path))
        if published is None:
            raise _build_missing(path)
        body = encode(build_card(published, self._version))
        tag = b'"%b"' % sha256(body).hexdigest()[:32].encode()
        moment = formatdate(int(published.changed_at) / 1_000_000, usegmt=True).encode()
        fresh = ((b"etag", tag), (b"last-modified", moment), (b"cache-control", b"public, max-age=60"))
        if tag in headers.get(b"if-none-match", b""):
            return Response(b"", 304, fresh)
        return Response(body, 200, (*JSON, *fresh))


def _read_agent(path: bytes) -> AgentPath:
    found = CARDS.fullmatch(path)
    assert found is not None  # the application has matched it
    try:
        return AgentPath.parse(found[1].decode("ascii"))
    except (Refused, UnicodeDecodeError):
        raise _build_missing(path) from None


def _build_missing(path: bytes) -> Refused:
    return Refused(NotFound(noun="published agent", id=path.decode("latin-1")[:60]))
