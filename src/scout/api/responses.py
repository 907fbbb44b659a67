"""Responses as ASGI messages, and refusals as problem documents."""

import math
from typing import Any

from scout.api.asgi import EXCHANGE, AsgiSend, Exchange, Headers, Response, Scope
from scout.api.encoders import render_remedy
from scout.base.codec import encode, render
from scout.base.refusal import Diagnostic, get_status
from scout.model.problems.request import Busy, RateLimited, TooLarge
from scout.protocol.correction import list_remedies

INTERNAL = "internal"

_PROBLEM = (b"content-type", b"application/problem+json")
_CLOSE = (b"connection", b"close")


def get_exchange(scope: Scope) -> Exchange | None:
    """Return the exchange of a request; another server has none."""
    return scope.get("extensions", {}).get(EXCHANGE)


async def send_response(answer: Response, send: AsgiSend, exchange: Exchange | None = None) -> None:
    """Send a complete response, in one write where that is possible."""
    if exchange is not None and exchange.respond(answer):
        return
    length = (b"content-length", b"%d" % len(answer.body))
    headers = [*answer.headers, length]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def build_problem(diagnostic: Diagnostic, status: int | None = None, headers: Headers = ()) -> Response:
    """Return a refusal as a response."""
    document = build_problem_document(diagnostic, status)
    return Response(encode(document), document["status"], (_PROBLEM, *_list_headers(diagnostic), *headers))


def build_problem_document(diagnostic: Diagnostic, status: int | None = None) -> dict[str, Any]:
    """Return a refusal as an RFC 9457 document with Scout's own fields; remedies include commands."""
    facts = render(diagnostic)
    return {
        "type": f"urn:scout:diagnostic:{diagnostic.code}",
        "title": (type(diagnostic).__doc__ or "").partition("\n")[0],
        "status": status or get_status(type(diagnostic)),
        "detail": facts["message"],
        **facts,
        "remedies": [render_remedy(remedy) for remedy in list_remedies(diagnostic)],
    }


def build_internal_error(reference: str) -> Response:
    """Return the response to an internal error, with the reference to search for in the log."""
    said = f"internal error; search the daemon log for {reference}"
    document: dict[str, Any] = {
        "type": f"urn:scout:diagnostic:{INTERNAL}",
        "title": "Something went wrong inside Scout.",
        "status": 500,
        "detail": said,
        "code": INTERNAL,
        "message": said,
        "reference": reference,
        "candidates": [],
        "remedies": [],
    }
    return Response(encode(document), 500, (_PROBLEM,))


def _list_headers(diagnostic: Diagnostic) -> Headers:
    match diagnostic:
        case RateLimited(retry_after=seconds) | Busy(retry_after=seconds):
            return ((b"retry-after", b"%d" % max(1, math.ceil(min(seconds, 86_400)))),)
        case TooLarge():
            return (_CLOSE,)  # the rest of the body is not read
        case _ if get_status(type(diagnostic)) == 401:
            return ((b"www-authenticate", b'Bearer realm="scout"'),)
        case _:
            return ()
