"""HTTP calls to a chat platform: bounded answers, failures as `ConnectorError`, no secret in a reason."""

import asyncio
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

import httpx2

from scout.base.codec import decode
from scout.base.refusal import Refused
from scout.ports.connector import ConnectorError, FailureKind

T = TypeVar("T")
_PATIENCE = 30.0  # seconds for a whole call
_CONNECTING = 10.0
_LONGEST = 16 * 1024 * 1024  # bytes of an answer
_SMALL = 64 * 1024  # bytes that are decoded without a thread
_LONGEST_WAIT = 24 * 3600.0
_LONGEST_REASON = 300
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)
_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.InvalidURL,
    httpx2.LocalProtocolError,
    httpx2.PoolTimeout,
    httpx2.UnsupportedProtocol,
)


class Answer(NamedTuple):
    """What a platform answered. `headers` ignore case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class RequestParts(TypedDict, total=False):
    """The parts of a request, as httpx2 takes them."""

    headers: dict[str, str]
    params: dict[str, str]
    json: Any
    data: dict[str, str]
    content: bytes
    files: dict[str, tuple[str, bytes, str]]


Explain = Callable[[Answer], ConnectorError | None]


# -- failures ----------------------------------------------------------------------------------------


def explain_status(answer: Answer) -> ConnectorError | None:
    """Return the failure that a status means by HTTP alone; None for a success."""
    if 200 <= answer.status < 300:
        return None
    words = answer.body[:_LONGEST_REASON].decode(errors="replace")
    reason = f"answered {answer.status} {words}"
    if answer.status in (408, 429) or answer.status >= 500:
        wait = limit_wait(answer.headers.get("retry-after"))
        may_have_acted = answer.status in (500, 502, 504)
        return ConnectorError(FailureKind.RETRY, reason, retry_after=wait, uncertain=may_have_acted)
    kind = FailureKind.CREDENTIALS if answer.status == 401 else FailureKind.REFUSED
    return ConnectorError(kind, reason)


def limit_wait(seconds: str | float | None) -> float | None:
    """Return the wait that a platform asks for, at most a day; None for anything but a number."""
    try:
        found = math.nan if seconds is None else float(seconds)
    except ValueError:
        return None
    return None if math.isnan(found) else min(max(found, 0.0), _LONGEST_WAIT)


def decode_body(body: bytes, kind: type[T]) -> T:
    """Decode an answer. Anything that does not fit is an error of the platform, and worth another try."""
    try:
        return decode(body, kind)
    except Refused as refused:
        raise ConnectorError(FailureKind.RETRY, f"cannot be understood: {refused}", uncertain=True) from None


def check_media_type(media_type: str) -> str:
    """Return a media type that a header can carry; the one of any bytes otherwise."""
    return media_type if _MEDIA_TYPE.fullmatch(media_type) else "application/octet-stream"


class _TooLongError(Exception):
    """The answer is longer than its limit."""


# -- calls -------------------------------------------------------------------------------------------


class PlatformCalls:
    """The HTTP calls of one connector.

    `explain` returns the failure that an answer means. A token is sent to the base URL, and over HTTPS to the
    `domains` of the platform. Redirects are not followed, because the token would go with them.
    """

    def __init__(
        self,
        platform: str,
        base_url: str,
        *,
        secrets: tuple[str, ...] = (),
        explain: Explain = explain_status,
        domains: tuple[str, ...] = (),
    ) -> None:
        self._platform = platform
        self._base = base_url.rstrip("/")
        self._secrets = tuple(one for one in secrets if one)
        self._explain = explain
        self._domains = domains
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def call(
        self,
        method: str,
        url: str,
        kind: type[T],
        *,
        patience: float = _PATIENCE,
        **parts: Unpack[RequestParts],
    ) -> T:
        """Make a request and decode its answer. `url`: absolute, or a path below the base URL."""
        answer = await self.send(method, url, patience=patience, **parts)
        try:
            if len(answer.body) <= _SMALL:
                return decode_body(answer.body, kind)
            return await asyncio.to_thread(decode_body, answer.body, kind)
        except ConnectorError as error:
            raise self.name_failure(error) from None

    async def send(
        self, method: str, url: str, *, patience: float = _PATIENCE, **parts: Unpack[RequestParts]
    ) -> Answer:
        """Make a request and return its answer, which is a success."""
        try:
            answer = await self._exchange(method, url, patience, _LONGEST, parts)
        except _TooLongError:
            reason = f"answered with more than {_LONGEST} bytes"
            raise self._fail(FailureKind.RETRY, reason, uncertain=True) from None
        if failure := self._explain(answer):
            raise self.name_failure(failure)
        return answer

    async def download(self, url: str, limit: int, *, headers: dict[str, str] | None = None) -> Answer:
        """Fetch a file of at most `limit` bytes."""
        try:
            answer = await self._exchange("GET", url, _PATIENCE * 4, limit, {"headers": headers or {}})
        except _TooLongError:
            raise self._fail(FailureKind.REFUSED, f"the file has more than {limit} bytes") from None
        if failure := explain_status(answer):
            raise self.name_failure(self._explain(answer) or failure)
        return answer

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def name_failure(self, error: ConnectorError) -> ConnectorError:
        """Return a failure with the platform's name before its reason, and without secrets in it."""
        return self._fail(error.kind, error.reason, error.retry_after, uncertain=error.uncertain)

    def _fail(
        self, kind: FailureKind, reason: str, retry_after: float | None = None, *, uncertain: bool = False
    ) -> ConnectorError:
        for secret in self._secrets:
            reason = reason.replace(secret, "***")
        words = f"{self._platform}: {' '.join(reason.split())}"
        return ConnectorError(kind, words[:_LONGEST_REASON], retry_after=retry_after, uncertain=uncertain)

    async def _exchange(
        self, method: str, url: str, patience: float, limit: int, parts: RequestParts
    ) -> Answer:
        address = url if "://" in url else f"{self._base}/{url.lstrip('/')}"
        try:
            async with asyncio.timeout(patience):
                client = await self._open()
                self._check_token(address, parts)
                async with client.stream(method, address, **parts) as response:
                    body = await _read(response, limit)
        except _NEVER_SENT as error:
            raise self._fail(FailureKind.RETRY, f"cannot be reached: {error}") from None
        except ValueError as error:  # such as half of a surrogate pair
            raise self._fail(FailureKind.REFUSED, f"cannot be sent: {error}") from None
        except TimeoutError:
            reason = f"did not answer within {patience:g} s"
            raise self._fail(FailureKind.RETRY, reason, uncertain=True) from None
        except (httpx2.HTTPError, httpx2.StreamError) as error:
            reason = f"the connection broke: {error or type(error).__name__}"
            raise self._fail(FailureKind.RETRY, reason, uncertain=True) from None
        return Answer(response.status_code, response.headers, body)

    def _check_token(self, address: str, parts: RequestParts) -> None:
        """Refuse to send a token anywhere but to the platform, whatever its answers name."""
        if "Authorization" not in parts.get("headers", {}):
            return
        url, base = httpx2.URL(address), httpx2.URL(self._base)
        is_known = url.scheme == "https" and any(f".{url.host}".endswith(f".{one}") for one in self._domains)
        if not is_known and (url.scheme, url.netloc) != (base.scheme, base.netloc):
            raise self._fail(FailureKind.REFUSED, f"the token is not sent to {url.host}")

    async def _open(self) -> httpx2.AsyncClient:
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(_make_client)
            return self._client


def _make_client() -> httpx2.AsyncClient:
    """Make the client in a thread, because it reads the trusted certificates.

    Answers are asked for uncompressed, so that a small one cannot become a large one.
    """
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(None, connect=_CONNECTING),
        headers={"Accept-Encoding": "identity", "User-Agent": "scout"},
        follow_redirects=False,
        trust_env=False,
    )


async def _read(response: httpx2.Response, limit: int) -> bytes:
    parts, total = list[bytes](), 0
    async for part in response.aiter_raw():
        total += len(part)
        if total > limit:
            raise _TooLongError
        parts.append(part)
    return b"".join(parts)
