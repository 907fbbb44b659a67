"""A webhook: the notice as JSON, signed, so that its receiver can know where it comes from."""

import asyncio
import hashlib
import hmac
from urllib.parse import urlsplit

import httpx2

from scout.base.codec import encode
from scout.ports import Clock, Notice

_PATIENCE = 10.0  # seconds


def signature(secret: str, seconds: int, body: bytes) -> str:
    """`t=<seconds>,v1=<HMAC-SHA256 of "<seconds>.<body>" in hex>`."""
    mac = hmac.new(secret.encode(), f"{seconds}.".encode() + body, hashlib.sha256)
    return f"t={seconds},v1={mac.hexdigest()}"


class Webhook:
    """Posts notices to one address; it follows no other. Whatever is not a 2xx answer is a failure."""

    def __init__(self, url: str, secret: str, clock: Clock) -> None:
        self._url = url
        self._secret = secret
        self._clock = clock

    @property
    def name(self) -> str:
        """Without the path, which is often a secret itself."""
        return f"webhook {urlsplit(self._url).hostname}"

    async def tell(self, notice: Notice) -> None:
        """Post it, or raise what went wrong."""
        body = encode(notice)
        seconds = int(self._clock.now()) // 1_000_000
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "scout",
            "Scout-Signature": signature(self._secret, seconds, body),
        }
        async with await asyncio.to_thread(_client) as http:
            answer = await http.post(self._url, content=body, headers=headers)
        if not answer.is_success:
            raise OSError(f"{self.name} answered {answer.status_code}")


def _client() -> httpx2.AsyncClient:
    """Made off the loop: it reads the certificates that this machine trusts."""
    return httpx2.AsyncClient(timeout=_PATIENCE, follow_redirects=False, trust_env=False)
