"""A browser as the daemon sees it: a cookie, the secret of the page, and the headers that browsers add."""

import re
from collections.abc import Mapping

from tests.daemon.daemons import Reply
from tests.surface.site import Site

_SECRET = re.compile(r'name="scout-page" content="([0-9a-f]+)"')


class Visitor:
    """Signed in by a link, unless `link` is empty."""

    def __init__(self, site: Site, link: str | None = None) -> None:
        self.site = site
        self.link = site.post("/v1/web/links")["url"] if link is None else link
        self.host = self.link.partition("//")[2].partition("/")[0] or "nobody.localhost"
        self.cookie = self.secret = ""

    def enter(self) -> Reply:
        """Follow the link, and load the first document."""
        reply = self.get(f"/enter/{self.link.rpartition('/')[2]}")
        if found := re.match(r"scout=([^;]+);", reply.headers.get("set-cookie", "")):
            self.cookie = found[1]
            self.secret = self.read_secret(self.get("/"))
        return reply

    @staticmethod
    def read_secret(document: Reply) -> str:
        """The secret of the page in a document; empty in any but the first."""
        found = _SECRET.search(document.body.decode())
        return found[1] if found else ""

    def get(self, path: str, headers: Mapping[str, str] = {}) -> Reply:
        return self.call("GET", path, headers=headers)

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] = {},
        *,
        secret: str | None = None,
    ) -> Reply:
        """One request with the cookie; `secret` is the page's for the API unless given."""
        sent = {"Host": self.host}
        if self.cookie:
            sent["Cookie"] = f"scout={self.cookie}"
        shown = self.secret if secret is None else secret
        if shown and (path.startswith("/v1/") or method != "GET"):
            sent["Scout-Page"] = shown
        return self.site.daemon.call(method, path, body, {**sent, **headers}, token=None)
