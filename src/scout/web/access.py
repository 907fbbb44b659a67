"""Who is at the browser: the page's host name, the cookie, and the secret of one tab.

Cookies ignore ports, so another server on this machine can receive one. Three things follow. The page has a
host name that no other program uses, and its cookie counts only there. The cookie alone reads documents and
nothing else: every call to the API also needs a secret that only the page's origin can store. And a browser
session is no bearer token, so a cookie that leaks cannot be presented as one.
"""

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import urlsplit

from scout.base.refusal import Refused, Remedy
from scout.model.problems.request import Forbidden, Unauthenticated
from scout.protocol.scout import Credential

COOKIE = "scout"
SECRET_HEADER = b"scout-page"
_LONGEST = 200  # characters of a secret
_SIGN_IN = Remedy(operation="web", parameters={}, why="sign in again")


class PageAccess:
    """Reads the credential of a browser. `key` is random and stored once for each Scout home."""

    def __init__(self, key: bytes, url: str) -> None:
        self._key = key
        port = urlsplit(url).port or 80
        self.host = f"scout-{self._derive('host')[:10]}.localhost"
        self.url = f"http://{self.host}:{port}"

    def is_own_host(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request was made by the page's host name, which has no case and may end in a dot."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        return host.partition(":")[0].removesuffix(".") == self.host

    def read_session(self, headers: Mapping[bytes, bytes]) -> Credential | None:
        """Return the credential of the cookie, which is enough to read a document; None without one."""
        if not self.is_own_host(headers):
            return None
        secret = _read_cookie(headers.get(b"cookie", b"").decode("latin-1"))
        return Credential(secret=secret, page=True) if secret else None

    def read_credential(self, headers: Mapping[bytes, bytes]) -> Credential | None:
        """Return the credential of a call to the API: the cookie together with the secret of the page."""
        session = self.read_session(headers)
        if session is None or session.secret is None:
            return None
        given = headers.get(SECRET_HEADER)
        if given is None:
            reason, needs = "the cookie alone is not enough", ("the secret of the signed-in page",)
            raise Refused(Unauthenticated(reason=reason, needs=needs, remedies=(_SIGN_IN,)))
        if not hmac.compare_digest(given, self.derive_secret(session.secret).encode()):
            action, subject = "call the API", "this secret of a page"
            needs = ("the secret of the signed-in page",)
            raise Refused(Forbidden(action=action, subject=subject, needs=needs, remedies=(_SIGN_IN,)))
        return session

    def derive_secret(self, session: str) -> str:
        """Return the page's secret of a browser session. It cannot be computed from the cookie alone."""
        return self._derive(f"page {session}")

    def _derive(self, purpose: str) -> str:
        return hmac.new(self._key, purpose.encode(), hashlib.sha256).hexdigest()


def write_cookie(secret: str, seconds: int) -> bytes:
    """Return the header value that sets the cookie; an empty secret removes it."""
    age = seconds if secret else 0
    return f"{COOKIE}={secret}; Path=/; Max-Age={age}; HttpOnly; SameSite=Strict".encode()


def _read_cookie(header: str) -> str | None:
    """Return the session in a Cookie header; None if it is missing or given twice."""
    pairs = [part.strip().partition("=") for part in header.split(";")]
    found = [value for name, _, value in pairs if name == COOKIE]
    return found[0] if len(found) == 1 and 0 < len(found[0]) <= _LONGEST else None
