"""Socket Mode: one WebSocket through which Slack reports events until it asks for another one."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

import httpx2
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from scout.base.codec import decode, encode
from scout.base.refusal import Refused
from scout.connectors.slack.events import SlackEnvelope
from scout.ports.connector import ConnectorError, FailureKind

_LOG = logging.getLogger("scout.connectors.slack")
_OPENING = 15.0  # seconds
_CLOSING = 1.0  # Slack does not close its side
_PING = 20.0
_LONGEST = 8 * 1024 * 1024  # bytes of a frame
_BROKEN = (WebSocketException, OSError, ValueError)


async def listen(url: str, take: Callable[[SlackEnvelope], Awaitable[None]]) -> None:
    """Take envelopes until Slack asks for a new connection. Each is acknowledged once it is taken."""
    connection = await _open(url)
    try:
        if (await _receive_hello(connection)).type != "hello":
            raise ConnectorError(FailureKind.RETRY, "slack: the socket did not begin with hello")
        while (envelope := await _receive(connection)).type != "disconnect":
            if envelope.envelope_id:
                await take(envelope)
                await _acknowledge(connection, envelope)
    finally:
        await _close(connection)
    if envelope.reason == "link_disabled":
        raise ConnectorError(FailureKind.CREDENTIALS, "slack: Socket Mode is switched off for the app")
    _LOG.info("Slack asks for a new connection: %s", envelope.reason)


async def _open(url: str) -> ClientConnection:
    secure = await asyncio.to_thread(httpx2.create_ssl_context) if url.startswith("wss:") else None
    try:
        return await connect(
            url,
            ssl=secure,
            proxy=None,
            open_timeout=_OPENING,
            close_timeout=_CLOSING,
            ping_interval=_PING,
            max_size=_LONGEST,
        )
    except _BROKEN as error:
        raise _explain(error) from None


async def _close(connection: ClientConnection) -> None:
    """Close politely; at once if this is cancelled, too."""
    try:
        with contextlib.suppress(*_BROKEN):
            await connection.close()
    finally:
        connection.transport.abort()


async def _receive_hello(connection: ClientConnection) -> SlackEnvelope:
    """Return the first frame, which comes at once."""
    try:
        async with asyncio.timeout(_OPENING):
            return await _receive(connection)
    except TimeoutError as error:
        raise _explain(error) from None


async def _receive(connection: ClientConnection) -> SlackEnvelope:
    """Return the next frame. A frame that cannot be understood has nothing to acknowledge."""
    try:
        frame = await connection.recv()
    except _BROKEN as error:
        raise _explain(error) from None
    try:
        return decode(frame, SlackEnvelope)
    except Refused as refused:
        _LOG.warning("Slack sent a frame that cannot be understood: %s", refused)
        return SlackEnvelope(type="unknown")


async def _acknowledge(connection: ClientConnection, envelope: SlackEnvelope) -> None:
    try:
        await connection.send(encode({"envelope_id": envelope.envelope_id}), text=True)
    except _BROKEN as error:
        raise _explain(error) from None


def _explain(error: Exception) -> ConnectorError:
    """Return the failure. The text of the error is left out: it may have the URL, which is a secret."""
    return ConnectorError(FailureKind.RETRY, f"slack: the socket broke: {type(error).__name__}")
