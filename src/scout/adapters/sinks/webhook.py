"""Webhooks: notices as signed JSON, so that the receiver can verify the sender."""

import asyncio
import hashlib
import hmac
from urllib.parse import urlsplit

import httpx2

from scout.base.codec import encode
from scout.ports import Clock, Notice

_PATIENCE = 10.0  # seconds


def sign(secret: str, seconds: int, body: bytes) -> str:
    """Return `t=<seconds>,v1=<HMAC-SHA256 of "<seconds>.<body>" in hex>`."""
    mac = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"


class Webhook:
    """Posts notices to one URL, without following redirects. Any response but 2xx is a failure."""

    def __init__(self, url: str, secret: str, clock: Clock) -> None:
        self._url = url
        self._secret = secret
        self._clock = clock

    @property
    def name(self) -> str:
        """The host, without the path, which is often a secret."""
        return f"webhook {urlsplit(self._url).hostname}"

    async def tell(self, notice: Notice) -> None:
        """Post a notice. Raises an exception if it was not accepted."""
        body = encode(notice)
        seconds = int(self._clock.now()) // 1_000_000
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "scout",
            "Scout-Signature": sign(self._secret, seconds, body),
        }
        async with await asyncio.to_thread(_make_client) as http:
            answer = await http.post(self._url, content=body, headers=headers)
        if not answer.is_success:
            raise OSError(f"{self.name} answered {answer.status_code}")


def _make_client() -> httpx2.AsyncClient:
    """Make the client in a thread, because it reads the trusted certificates."""
    return httpx2.AsyncClient(timeout=_PATIENCE, follow_redirects=False, trust_env=False)
