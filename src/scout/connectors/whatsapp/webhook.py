"""The webhook: who may call it, and what becomes of what it reports."""

import asyncio
import hashlib
import hmac
import logging
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs

from scout.base.codec import decode
from scout.base.record import Record
from scout.base.refusal import Refused
from scout.connectors.whatsapp.events import Notification, read_notification
from scout.connectors.whatsapp.listener import HookRequest, HookResponse
from scout.ports.connector import ConnectorError, InboundEvent

_LOG = logging.getLogger("scout.connectors.whatsapp")
_SMALL = 64 * 1024  # bytes that are hashed and decoded without a thread
_LONGEST_CHALLENGE = 512


class WebhookSecrets(Record):
    """What proves that a request comes from Meta."""

    app_secret: str
    verify_token: str
    phone_number_id: str


class MetaWebhook:
    """Answers the requests of Meta. A notification is acknowledged once everything in it was taken."""

    def __init__(self, secrets: WebhookSecrets, take: Callable[[InboundEvent], Awaitable[None]]) -> None:
        self._secrets = secrets
        self._take = take
        self._in_order = asyncio.Lock()

    async def answer(self, request: HookRequest) -> HookResponse:
        """Answer a challenge or a notification."""
        if request.method == "GET":
            return self._answer_challenge(request.query)
        if len(request.body) <= _SMALL:
            reported = self._read(request)
        else:
            reported = await asyncio.to_thread(self._read, request)
        return HookResponse(403) if reported is None else await self._receive(reported)

    def _answer_challenge(self, query: str) -> HookResponse:
        """Return the challenge to whoever knows the verify token."""
        given = {name: values[0] for name, values in parse_qs(query, errors="replace").items()}
        is_known = _is_equal(given.get("hub.verify_token", ""), self._secrets.verify_token)
        challenge = given.get("hub.challenge", "")
        if not is_known or given.get("hub.mode") != "subscribe" or len(challenge) > _LONGEST_CHALLENGE:
            return HookResponse(403)
        return HookResponse(200, challenge)

    def _read(self, request: HookRequest) -> list[InboundEvent] | None:
        """Return what a notification reports; None if its signature is wrong.

        A signed body that cannot be understood is acknowledged: Meta would send it for a week.
        """
        expected = hmac.digest(self._secrets.app_secret.encode(), request.body, hashlib.sha256).hex()
        if not _is_equal(request.headers.get("x-hub-signature-256", ""), f"sha256={expected}"):
            _LOG.warning("a request to the webhook has a wrong signature")
            return None
        try:
            return read_notification(decode(request.body, Notification), self._secrets.phone_number_id)
        except Refused as refused:
            _LOG.warning("a notification cannot be understood: %s", refused)
            return []

    async def _receive(self, reported: list[InboundEvent]) -> HookResponse:
        async with self._in_order:
            try:
                for inbound in reported:
                    await self._take(inbound)
            except ConnectorError as error:
                _LOG.info("a notification is not taken yet: %s", error)
                return HookResponse(503)
            except Exception:  # noqa: BLE001 (whatever it was, Meta sends it again)
                _LOG.exception("a notification was not taken")
                return HookResponse(503)
        return HookResponse(200)


def _is_equal(given: str, expected: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())
