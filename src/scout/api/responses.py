"""Responses: records with additional names for other integrations, refusals as problem documents."""

import functools
import math
from typing import Any, TypeVar, cast, get_args

import msgspec

from scout.api.asgi import AsgiSend, Headers, Response
from scout.base.codec import encode, render
from scout.base.record import Record
from scout.base.refusal import Diagnostic, Refused, Remedy, get_status
from scout.model.problems.request import Busy, RateLimited, TooLarge
from scout.model.wire_names import OWN_IDS, to_wire
from scout.protocol.correction import list_remedies
from scout.protocol.operations import build_command_line
from scout.protocol.overview import Status

INTERNAL = "internal"

_PROBLEM = (b"content-type", b"application/problem+json")
_CLOSE = (b"connection", b"close")


async def send_response(answer: Response, send: AsgiSend) -> None:
    """Send a complete response."""
    length = (b"content-length", b"%d" % len(answer.body))
    headers = [*answer.headers, length]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


def encode_result(result: object) -> bytes:
    """Return a result as JSON; records also carry the names that other integrations use."""
    return encode(_to_wire(result))


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
        "remedies": [_render_remedy(remedy) for remedy in list_remedies(diagnostic)],
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


def _to_wire(value: object) -> object:
    if isinstance(value, Remedy):
        return _render_remedy(value)
    if isinstance(value, Record):
        return _render_record(value)
    if isinstance(value, tuple | list):
        return [_to_wire(one) for one in cast("tuple[object, ...]", value)]
    return value


def _render_record(record: Record) -> object:
    if isinstance(record, Status):
        return record  # unchanged, so that it equals the output of `scout status`
    kind = type(record)
    fields = to_wire(record)
    for name, wire in _list_record_fields(kind):
        if inner := _to_wire(getattr(record, name)):
            fields[wire] = inner
    for name in _list_own_ids(kind):
        fields.setdefault(name, fields["id"])
    return fields


@functools.cache
def _list_record_fields(kind: type[Record]) -> tuple[tuple[str, str], ...]:
    """Return the fields that may contain other records, with their wire names."""
    fields = msgspec.structs.fields(kind)
    return tuple((field.name, field.encode_name) for field in fields if _has_records(field.type))


def _has_records(kind: Any) -> bool:
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if isinstance(kind, type) and issubclass(kind, Record):
        return True
    return any(_has_records(argument) for argument in get_args(kind))


@functools.cache
def _list_own_ids(kind: type[Record]) -> tuple[str, ...]:
    return next((names for base, names in OWN_IDS.items() if issubclass(kind, base)), ())


def _render_remedy(remedy: Remedy) -> dict[str, Any]:
    known = {"operation": remedy.operation, "parameters": remedy.parameters, "why": remedy.why}
    try:
        return {**known, "command": build_command_line(remedy)}
    except Refused:
        return known


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
