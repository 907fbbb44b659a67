"""The credential of a browser: the cookie counts on the page's host only, and never alone for the API."""

import pytest

from scout.base.refusal import Refused
from scout.web.access import PageAccess, write_cookie

ACCESS = PageAccess(b"k" * 32, "http://127.0.0.1:7432")
COOKIE = (b"cookie", b"other=1; scout=sct_secret")


def _headers(*more: tuple[bytes, bytes], host: bytes | None = None) -> dict[bytes, bytes]:
    return dict([(b"host", host or f"{ACCESS.host}:7432".encode()), *more])


def test_the_host_name_is_the_homes_own_and_stays() -> None:
    assert ACCESS.host.startswith("scout-")
    assert ACCESS.host.endswith(".localhost")
    assert ACCESS.url == f"http://{ACCESS.host}:7432"
    assert PageAccess(b"k" * 32, "http://127.0.0.1:1").host == ACCESS.host
    assert PageAccess(b"j" * 32, "http://127.0.0.1:1").host != ACCESS.host


def test_a_host_name_has_no_case() -> None:
    assert ACCESS.is_own_host(_headers(host=f"{ACCESS.host.upper()}.:7432".encode()))


@pytest.mark.parametrize("host", [b"127.0.0.1:7432", b"localhost", b"scout-0.localhost:7432", b""])
def test_the_cookie_is_ignored_on_any_other_host(host: bytes) -> None:
    headers = {**_headers(COOKIE), b"host": host}
    assert ACCESS.read_session(headers) is None
    assert ACCESS.read_credential(headers) is None


def test_the_cookie_reads_documents() -> None:
    found = ACCESS.read_session(_headers(COOKIE))
    assert found is not None
    assert (found.secret, found.page) == ("sct_secret", True)


def test_the_api_needs_the_secret_of_the_page_too() -> None:
    with pytest.raises(Refused) as refused:
        ACCESS.read_credential(_headers(COOKIE))
    assert refused.value.diagnostic.code == "unauthenticated"
    with pytest.raises(Refused) as refused:
        ACCESS.read_credential(_headers(COOKIE, (b"scout-page", b"guessed")))
    assert refused.value.diagnostic.code == "forbidden"
    secret = ACCESS.derive_secret("sct_secret").encode()
    found = ACCESS.read_credential(_headers(COOKIE, (b"scout-page", secret)))
    assert found is not None
    assert found.page


@pytest.mark.parametrize("cookie", [b"", b"scout=", b"scout=a; scout=b", b"scout=" + b"x" * 201, b"scouts=a"])
def test_a_cookie_that_is_none_or_two(cookie: bytes) -> None:
    assert ACCESS.read_session(_headers((b"cookie", cookie))) is None


def test_the_cookie_is_for_this_host_and_no_script() -> None:
    assert write_cookie("sct_a", 60) == b"scout=sct_a; Path=/; Max-Age=60; HttpOnly; SameSite=Strict"
    assert b"Max-Age=0" in write_cookie("", 60)
