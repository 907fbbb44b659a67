"""The web page as an ASGI application on its own host name: documents, sign-in, sign-out and files."""

import asyncio
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

from scout.base.refusal import BadRequest, Diagnostic, Refused, get_status
from scout.model.problems.request import Unauthenticated
from scout.protocol.access import RevokeToken, RotateToken
from scout.protocol.agents import WhoAmI
from scout.protocol.attention import ListAttention
from scout.protocol.log import ReadLog
from scout.protocol.overview import ShowStatus
from scout.protocol.scout import Admission, Credential, Gate
from scout.web.access import PageAccess, write_cookie
from scout.web.files import load_files
from scout.web.layout import HEADERS, Frame, PageBody, build_document, build_hop, build_way_in
from scout.web.past import build_banner
from scout.web.refusal import show_refusal
from scout.web.slider import PastPlace, read_activity
from scout.web.views.request import PageRequest
from scout.web.views.table import NAV, find_view, keep_moment, list_paths

Send = Callable[[dict[str, Any]], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]

_LOG = logging.getLogger("scout.web")
_KEPT = 1000  # first documents that may wait for their secret
_PLACES = ("at", "cursor", "before", "after")  # parameters of one moment or one page
_SPECIAL = (r"/enter/[^/]+", r"/sign-out", r"/assets/[^/]+", r"/favicon\.ico")


class WebPage:
    """Answers browsers. `access` knows the page's host name and reads cookies."""

    def __init__(self, gate: Gate, access: PageAccess, session_seconds: float) -> None:
        self._gate = gate
        self._access = access
        self._seconds = int(session_seconds)
        self._paths = re.compile("|".join((*_SPECIAL, *list_paths())).encode())
        self._first = dict[str, None]()  # sessions whose first document has not been sent

    # -- asked by the application ------------------------------------------------------------------

    def answers(self, raw_path: bytes, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request is for the page: by its host name, and one of its paths."""
        return self._access.is_own_host(headers) and self._paths.fullmatch(raw_path) is not None

    def is_visit(self, method: str, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a person follows a link to the page. Such a request only reads, wherever the link is."""
        mode, place = headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")
        return method == "GET" and mode == b"navigate" and place == b"document"

    def read_credential(self, headers: Mapping[bytes, bytes]) -> Credential | None:
        """Return the credential of a browser's call to the API; None if it brings none."""
        return self._access.read_credential(headers)

    # -- requests ----------------------------------------------------------------------------------

    async def __call__(self, scope: dict[str, Any], headers: Mapping[bytes, bytes], send: Send) -> None:
        path, method = scope["raw_path"].decode("latin-1"), scope["method"]
        try:
            status, more, body = await self._answer(method, path, scope["query_string"], headers)
        except Refused as refused:
            status, more, body = _build_refusal(refused.diagnostic)
        except Exception as error:  # noqa: BLE001 (every internal error is answered and logged)
            reference = f"err_{secrets.token_hex(6)}"
            _LOG.error("%s: %s %s", reference, method, path, exc_info=error)
            said = f"Internal error. Search the daemon log for {reference}."
            status, more, body = 500, (*HEADERS[1:], (b"content-type", b"text/plain")), said.encode()
        length = (b"content-length", b"%d" % len(body))
        await send({"type": "http.response.start", "status": status, "headers": [*more, length]})
        await send({"type": "http.response.body", "body": b"" if method == "HEAD" else body})

    async def _answer(
        self, method: str, path: str, query: bytes, headers: Mapping[bytes, bytes]
    ) -> tuple[int, Headers, bytes]:
        if path == "/sign-out":
            return await self._sign_out(method, headers)
        if method not in ("GET", "HEAD"):
            raise Refused(BadRequest(problem=f"the method here is GET, not {method[:20]}", field="method"))
        if path.startswith("/assets/") or path == "/favicon.ico":
            return await _send_file(path, headers)
        if path.startswith("/enter/"):
            return await self._enter(unquote(path.removeprefix("/enter/")))
        return await self._show(path, query, headers)

    async def _enter(self, code: str) -> tuple[int, Headers, bytes]:
        """Exchange a link for a browser session, once."""
        try:
            link = await self._gate.admit(Credential(secret=code))
            me = await link.call(WhoAmI())
            if me.kind != "link":
                raise Refused(Unauthenticated(reason="this is not a sign-in link", needs=("a sign-in link",)))
            minted = await link.call(RotateToken(token_id=me.token_id))
        except Refused:
            return 401, HEADERS, build_way_in()
        while len(self._first) >= _KEPT:
            del self._first[next(iter(self._first))]
        self._first[minted.secret] = None
        cookie = (b"set-cookie", write_cookie(minted.secret, self._seconds))
        return 303, ((b"location", b"/"), cookie, *HEADERS), b""

    async def _sign_out(self, method: str, headers: Mapping[bytes, bytes]) -> tuple[int, Headers, bytes]:
        """End the browser session, everywhere it is used, and remove its cookie."""
        if method != "POST":
            raise Refused(BadRequest(problem=f"the method here is POST, not {method[:20]}", field="method"))
        credential = self._access.read_credential(headers)
        if credential is not None:
            scout = await self._gate.admit(credential)
            me = await scout.call(WhoAmI())
            await scout.call(RevokeToken(token_id=me.token_id, reason="signed out"))
        gone = (b"set-cookie", write_cookie("", 0))
        return 204, (gone, *HEADERS), b""

    async def _show(
        self, path: str, query: bytes, headers: Mapping[bytes, bytes]
    ) -> tuple[int, Headers, bytes]:
        credential = self._access.read_session(headers)
        if credential is None and headers.get(b"sec-fetch-site") in (b"cross-site", b"same-site"):
            return 200, HEADERS, build_hop()
        if credential is None:
            return 401, HEADERS, build_way_in()
        try:
            scout = await self._gate.admit(credential)
        except Refused:
            gone = (b"set-cookie", write_cookie("", 0))
            return 401, (gone, *HEADERS), build_way_in()
        frame = await _build_frame(scout, path)
        body, links = await _build_body(scout, path, query), NAV
        await asyncio.sleep(0)  # a large view and its document are two steps of the event loop
        asked = _read_query(query)
        if asked.get("at") and body.status == HTTPStatus.OK:
            place = PastPlace(path, {name: value for name, value in asked.items() if name not in _PLACES})
            banner = build_banner(await read_activity(scout), place, body)
            at = str(body.moment.at) if body.moment is not None else asked["at"]
            frame, links = frame._replace(banner=banner), keep_moment(at)
        if credential.secret in self._first:
            del self._first[credential.secret]
            frame = frame._replace(secret=self._access.derive_secret(credential.secret))
        return body.status, HEADERS, build_document(links, frame, body)


async def _build_frame(scout: Admission, path: str) -> Frame:
    """Read what every document shows. The log is read first, so that no event is missed after it."""
    newest = await scout.call(ReadLog(newest=True, limit=1))
    needs = await scout.call(ListAttention(limit=1))
    status = await scout.call(ShowStatus())
    me = await scout.call(WhoAmI())
    paused = (status.paused.reason or "no turns are started") if status.paused is not None else None
    return Frame(
        path=path,
        needs=sum(one.open for one in needs.agents),
        seq=newest.items[-1].seq if newest.items else 0,
        paused=paused,
        who=f"{me.address or me.user or ''} on {me.node}",
        token_id=me.token_id,
    )


async def _build_body(scout: Admission, path: str, query: bytes) -> PageBody:
    view, segments = find_view(path)
    try:
        return await view(PageRequest(scout, segments, _read_query(query)))
    except ValueError:  # too many fields in the query
        return show_refusal(BadRequest(problem="the address has too many parameters", field="query"))
    except Refused as refused:
        return show_refusal(refused.diagnostic)


def _read_query(query: bytes) -> dict[str, str]:
    return dict(parse_qsl(query.decode("ascii", "replace"), max_num_fields=20))


async def _send_file(path: str, headers: Mapping[bytes, bytes]) -> tuple[int, Headers, bytes]:
    name = "favicon.svg" if path == "/favicon.ico" else path.removeprefix("/assets/")
    file = (await asyncio.to_thread(load_files)).get(name)
    if file is None:
        return 404, HEADERS, build_way_in()
    known = (
        (b"content-type", file.media_type),
        (b"etag", file.tag),
        (b"cache-control", b"no-cache"),
        *HEADERS[3:],
    )
    if headers.get(b"if-none-match") == file.tag:
        return 304, known, b""
    return 200, known, file.body


def _build_refusal(diagnostic: Diagnostic) -> tuple[int, Headers, bytes]:
    status = get_status(type(diagnostic))
    return (
        status,
        (*HEADERS[1:], (b"content-type", b"text/plain; charset=utf-8")),
        diagnostic.message.encode(),
    )
