"""Signing in by a link, and everything that is refused."""

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon, Reply, eventually
from tests.surface.site import Site
from tests.web.visitor import Visitor

_FOREIGN = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site"}
_LINK = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}


@pytest.fixture
def ada(site: Site) -> Visitor:
    made = Visitor(site)
    assert made.enter().status == 303
    return made


@pytest.mark.rows("R4.4-1", "R4.4-3")
def test_a_link_leads_to_a_clean_address(site: Site) -> None:
    visitor = Visitor(site)
    reply = visitor.enter()
    assert (reply.status, reply.headers["location"]) == (303, "/")
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Domain" not in cookie
    assert visitor.get("/").status == 200


@pytest.mark.rows("R4.4-1")
def test_a_link_works_once(site: Site) -> None:
    visitor = Visitor(site)
    assert visitor.enter().status == 303
    again = Visitor(site, visitor.link)
    reply = again.enter()
    assert reply.status == 401
    assert "set-cookie" not in reply.headers
    assert _is_way_in(reply)


def test_a_revoked_link_is_refused(site: Site) -> None:
    visitor = Visitor(site)
    (link,) = [
        one
        for one in site.get("/v1/tokens", limit=200)["items"]
        if one["kind"] == "link" and one["state"] == "active"
    ][:1]
    site.post(f"/v1/tokens/{link['id']}/revoke")
    assert visitor.enter().status == 401


def test_other_tokens_are_no_links(site: Site) -> None:
    visitor = Visitor(site)
    for secret in (site.daemon.token, "sct_unknown", "%00", "a" * 5000):
        reply = visitor.get(f"/enter/{secret}")
        assert reply.status == 401, secret
        assert "set-cookie" not in reply.headers


@pytest.mark.rows("R4.4-6")
def test_signed_out_nothing_but_the_way_in_is_shown(site: Site) -> None:
    nobody = Visitor(site)
    for path in ("/", "/inbox", "/design"):
        reply = nobody.get(path)
        assert reply.status == 401
        assert _is_way_in(reply)


def test_a_session_is_a_listed_credential(site: Site, ada: Visitor) -> None:
    me = ada.call("GET", "/v1/whoami").json
    (listed,) = [one for one in site.get("/v1/tokens", limit=200)["items"] if one["id"] == me["tokenId"]]
    assert (listed["kind"], listed["label"], listed["hashed"]) == ("browser", "browser", "")
    assert ada.cookie not in str(listed)


def test_the_secret_is_sent_once(ada: Visitor) -> None:
    assert ada.secret
    assert ada.read_secret(ada.get("/")) == ""


@pytest.mark.rows("R4.4-4")
def test_the_api_needs_the_secret(ada: Visitor) -> None:
    assert ada.call("GET", "/v1/whoami").status == 200
    for method, path in (("GET", "/v1/whoami"), ("GET", "/v1/events"), ("POST", "/v1/pause")):
        assert ada.call(method, path, {} if method == "POST" else None, secret="-").status == 403
        bare = ada.site.daemon.call(
            method, path, None, {"Host": ada.host, "Cookie": f"scout={ada.cookie}"}, token=None
        )
        assert bare.status == 401


@pytest.mark.rows("R4.4-4")
def test_the_cookie_is_no_bearer_token(ada: Visitor) -> None:
    reply = ada.site.daemon.call("GET", "/v1/whoami", token=ada.cookie)
    assert reply.status == 401
    assert "scout web" in str(reply.json["remedies"])


@pytest.mark.rows("R4.4-3")
def test_the_cookie_counts_on_no_other_host(ada: Visitor) -> None:
    port = ada.site.daemon.port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        reply = ada.call("GET", "/v1/whoami", headers={"Host": host})
        assert reply.status == 401
        assert ada.call("GET", "/", headers={"Host": host}).status == 404
    assert ada.call("GET", "/", headers={"Host": f"evil.localhost:{port}"}).status == 403


@pytest.mark.parametrize("path", ["/v1/pause", "/sign-out"])
def test_another_site_changes_nothing(ada: Visitor, path: str) -> None:
    assert ada.call("POST", path, {}, _FOREIGN).status == 403
    assert ada.get("/").status == 200


@pytest.mark.rows("R4.4-6")
def test_another_site_reads_nothing(ada: Visitor) -> None:
    assert ada.call("GET", "/", headers=_FOREIGN).status == 403
    assert ada.call("GET", "/v1/now", headers=_FOREIGN).status == 403
    frame = {**_LINK, "Sec-Fetch-Dest": "iframe"}
    assert ada.call("GET", "/", headers=frame).status == 403


def test_documents_refuse_frames_and_foreign_scripts(ada: Visitor) -> None:
    headers = ada.get("/").headers
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    for part in ("frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"):
        assert part in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"


def test_a_link_on_another_site_opens_the_page_in_two_steps(ada: Visitor) -> None:
    """A browser sends no strict cookie with such a request; the document loads itself again, with the cookie."""
    cookie, ada.cookie = ada.cookie, ""
    hop = ada.get("/inbox", _LINK)
    assert hop.status == 200
    assert b'http-equiv="refresh" content="0"' in hop.body
    ada.cookie = cookie
    assert b"<h1>Inbox</h1>" in ada.get("/inbox").body


def test_signing_out_ends_the_session(ada: Visitor) -> None:
    assert ada.call("POST", "/sign-out", secret="").status == 401
    assert ada.call("GET", "/sign-out").status == 400
    reply = ada.call("POST", "/sign-out")
    assert reply.status == 204
    assert "Max-Age=0" in reply.headers["set-cookie"]
    assert _is_way_in(ada.get("/"))
    assert ada.call("GET", "/v1/whoami").status == 401


@pytest.mark.rows("R4.4-5")
def test_a_revoked_session_ends_its_open_stream(site: Site, ada: Visitor) -> None:
    me = ada.call("GET", "/v1/whoami").json
    head = f"GET /v1/events HTTP/1.1\r\nHost: {ada.host}\r\nCookie: scout={ada.cookie}\r\nScout-Page: {ada.secret}\r\n\r\n"

    def revoke() -> None:
        site.post(f"/v1/tokens/{me['tokenId']}/revoke")

    _read_until_the_end(site, head.encode(), revoke)
    assert _is_way_in(ada.get("/"))


def _read_until_the_end(site: Site, head: bytes, then: Callable[[], None]) -> None:
    with socket.create_connection(("127.0.0.1", site.daemon.port), timeout=30) as line:
        line.sendall(head)
        seen = b""
        while b"following" not in seen:
            seen += line.recv(65536)
        then()
        while not seen.endswith(b"\r\n0\r\n\r\n"):  # the last chunk
            data = line.recv(65536)
            assert data, seen
            seen += data


def test_what_only_the_command_makes_is_refused(site: Site) -> None:
    for kind in ("link", "browser"):
        problem = site.refused("POST", "/v1/tokens", kind=kind)
        assert "scout web" in str(problem["remedies"])


def test_agents_get_no_link(site: Site) -> None:
    assert site.agent("linkless").refused("POST", "/v1/web/links")["code"] == "forbidden"


def test_a_link_does_nothing_else(site: Site) -> None:
    visitor = Visitor(site)
    link = visitor.link.rpartition("/")[2]
    assert site.refused("GET", "/v1/now", token=link)["code"] == "forbidden"
    assert site.refused("POST", "/v1/pause", token=link)["code"] == "forbidden"


def test_files_are_sent_with_their_types_and_checked_again_cheaply(ada: Visitor) -> None:
    ada.cookie = ""
    for name, kind in (
        ("page.css", "text/css"),
        ("main.js", "text/javascript"),
        ("favicon.svg", "image/svg+xml"),
    ):
        reply = ada.get(f"/assets/{name}")
        assert reply.headers["content-type"].startswith(kind)
        assert ada.get(f"/assets/{name}", {"If-None-Match": reply.headers["etag"]}).status == 304
    assert ada.get("/assets/../app.py").status in (400, 404)
    assert ada.get("/assets/%2e%2e").status == 404
    assert ada.get("/favicon.ico").headers["content-type"] == "image/svg+xml"


@pytest.mark.rows("R4.4-15")
def test_the_first_load_is_small_and_nothing_comes_from_elsewhere(ada: Visitor) -> None:
    document = ada.get("/").body.decode()
    names = {"page.css", "favicon.svg", "tables.json"}
    found = set[str]()
    waiting = ["main.js"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += re.findall(r'"\./([\w-]+\.js)"', ada.get(f"/assets/{name}").body.decode())
    total = len(document) + sum(len(ada.get(f"/assets/{name}").body) for name in names | found)
    assert total <= 200_000
    for name in ("page.css", *found):
        assert not re.search(rb"https?://(?!www\.w3\.org)", ada.get(f"/assets/{name}").body), name
    assert "http" not in document.replace("http-equiv", "")


@pytest.mark.rows("R4.4-2")
def test_the_command_opens_a_file_that_only_its_owner_reads() -> None:
    with a_shell() as shell:
        opened = shell.folder / "opened"
        browser = shell.folder / "browser"
        browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {opened}\n')
        browser.chmod(0o755)
        daemon = Daemon(shell.home, start_daemon(shell))
        said = shell.say("web", BROWSER=str(browser))
        argument = eventually(lambda: opened.read_text() if opened.exists() else "")
        assert argument.startswith("file://")
        assert "enter" not in argument
        file = Path(argument.removeprefix("file://"))
        assert file.stat().st_mode & 0o777 == 0o600
        (url,) = set(re.findall(r"http://[\w.:/-]+/enter/[\w-]+", file.read_text()))
        assert said.startswith("opened http://scout-")
        assert Visitor(Site(shell, daemon), url).enter().status == 303


def test_the_command_prints_the_link(site: Site) -> None:
    told = site.shell.data("web", "--no-open")
    assert set(told) == {"url", "expiresAt", "opened"}
    assert Visitor(site, told["url"]).enter().status == 303
    plain = site.shell.say("web", "--no-open").strip()
    assert Visitor(site, plain).enter().status == 303


def _is_way_in(reply: Reply) -> bool:
    text = reply.body.decode()
    return "scout web" in text and "<nav" not in text and "main.js" not in text
