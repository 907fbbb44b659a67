"""Other pages in the same browser: another site, a frame, and a server on another port of this machine."""

import http.server
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import SECONDS, Desk
from tests.surface.site import Site

expect.set_options(timeout=SECONDS)


class _Stranger(http.server.BaseHTTPRequestHandler):
    """A server that an agent could start: it keeps what it was sent, and serves a page."""

    seen: list[dict[str, str]]
    page = "<title>stranger</title>"

    def do_GET(self) -> None:
        type(self).seen.append({name.lower(): value for name, value in self.headers.items()})
        body = self.page.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name that the base class has)
        """Nothing is printed."""


@contextmanager
def _a_stranger(page: str) -> Generator[tuple[int, list[dict[str, str]]]]:
    kind = type("Stranger", (_Stranger,), {"seen": [], "page": page})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1], kind.seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.rows("R4.4-7")
def test_a_server_on_another_port_does_not_get_the_cookie(desk: Desk) -> None:
    with _a_stranger("<title>stranger</title>") as (port, seen):
        for host in ("127.0.0.1", "localhost", "other.localhost"):
            desk.page.goto(f"http://{host}:{port}/")
        assert len(seen) >= 3
        assert all("scout=" not in one.get("cookie", "") for one in seen)


@pytest.mark.rows("R4.4-7")
def test_a_server_that_gets_the_cookie_cannot_act_with_it(desk: Desk, site: Site) -> None:
    """Under the page's own host name on another port, which only a program that knows the name can be at."""
    host = desk.base.partition("//")[2].partition(":")[0]
    with _a_stranger("<title>stranger</title>") as (port, seen):
        desk.page.goto(f"http://{host}:{port}/")
        stolen = next(one["cookie"] for one in seen if "scout=" in one.get("cookie", ""))
        headers = {"Host": f"{host}:{site.daemon.port}", "Cookie": stolen}
        assert site.daemon.call("POST", "/v1/pause", {}, headers, token=None).status == 401
        assert site.daemon.call("GET", "/v1/now", None, headers, token=None).status == 401
        assert site.daemon.call("GET", "/v1/whoami", token=stolen.partition("=")[2]).status == 401
        stored = desk.page.evaluate("sessionStorage.getItem('scout-page')")
        assert stored is None  # another port is another origin
        tried = desk.page.evaluate(
            f"fetch('{desk.base.rpartition(':')[0]}:{site.daemon.port}/v1/pause', {{method: 'POST', mode: 'no-cors',"
            " credentials: 'include', body: '{}'}).then((a) => a.type, (e) => String(e))"
        )
        assert tried  # whatever the browser says, the daemon was not paused
    assert site.get("/v1/status").get("paused") is None


def test_no_frame_shows_the_page(desk: Desk) -> None:
    with _a_stranger(f'<title>stranger</title><iframe src="{desk.base}/inbox"></iframe>') as (port, _):
        page = desk.context.new_page()
        page.goto(f"http://127.0.0.1:{port}/")
        frame = page.frames[1]
        assert "Inbox" not in frame.evaluate("document.body ? document.body.innerText : ''")


def test_a_link_on_another_site_opens_the_page(desk: Desk) -> None:
    with _a_stranger(f'<title>stranger</title><a href="{desk.base}/inbox">Scout</a>') as (port, _):
        desk.page.goto(f"http://127.0.0.1:{port}/")
        desk.page.get_by_role("link", name="Scout").click()
        expect(desk.page.get_by_role("heading", level=1)).to_have_text("Inbox")


def test_the_file_of_the_command_signs_in(make_desk: Callable[..., Desk], site: Site) -> None:
    """`scout web` opens a file that leads to the link: a request that another site began."""
    desk = make_desk()
    browser = site.shell.folder / "browser-stub"
    browser.write_text("#!/bin/sh\nexit 0\n")
    browser.chmod(0o755)
    site.shell.say("web", BROWSER=str(browser))
    desk.page.goto((site.shell.home / "web-open.html").as_uri())
    expect(desk.page.get_by_role("heading", level=1)).to_have_text("Now")
    desk.wait_until_live()
    assert "enter" not in desk.page.url
