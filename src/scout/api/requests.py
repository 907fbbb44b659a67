"""Decoding a request from the path, query or body. A refusal names the field that is wrong."""

from typing import Any

import msgspec

from scout.api.asgi import Gone, Receive
from scout.api.routes import HttpRoute, RouteMatch
from scout.base.codec import decode
from scout.base.outside import check_each_once, check_number, check_outside, decode_text
from scout.base.refusal import BadRequest, Candidate, Refused
from scout.model.problems.request import TooLarge
from scout.model.trace import parse_traceparent
from scout.model.wire_names import restore_names
from scout.policy.nearest import rank_names
from scout.protocol.request import Request


class WrongMedia(Exception):  # noqa: N818 (an answer, not a fault)
    """The media type of the body is not supported."""

    def __init__(self, kind: bytes) -> None:
        super().__init__(kind)
        problem = f"expected a body of application/json, got {kind.decode('latin-1')[:60]}"
        self.diagnostic = BadRequest(problem=problem, field="content-type")


async def read_body(receive: Receive, headers: dict[bytes, bytes], limit: int) -> bytes:
    """Return the body; refuse one larger than the limit."""
    declared = headers.get(b"content-length", b"0")
    _check_size(int(declared) if declared.isdigit() else 0, limit)
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        _check_size(len(body), limit)
        message = await receive()
        body += message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise Gone
    _check_size(len(body), limit)
    kind = headers.get(b"content-type")
    if body and kind is not None and kind.partition(b";")[0].strip().lower() != b"application/json":
        raise WrongMedia(kind)
    return body


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


def read(
    found: RouteMatch, query: bytes, body: bytes, key: bytes | None, trace: bytes | None = None
) -> Request[Any]:
    """Return the request, with the idempotency key and the trace context from the header or the body."""
    route = found.route
    if route.has_body:
        _check_no_query(query)
        check_each_once(body)
        request = _read_request_body(found, body)
    elif route.empty is not None and not query:
        return route.empty
    else:  # these texts were checked when they were decoded
        fields = {**_read_query_fields(route, query), **_read_path_fields(found)}
        request = decode(fields, route.request, strict=False)
    if key is not None and "idempotencyKey" in route.known:
        request = _add_key(request, key)
    if trace is not None and "traceparent" in route.known:
        request = _add_trace(request, trace)
    _check_numbers(route, request)
    for name in route.objects:
        if given := getattr(request, name):
            check_outside(given, name)
    return request


def _read_path_fields(found: RouteMatch) -> dict[str, Any]:
    names = found.route.inside
    return {name: decode_text(raw, name) for name, raw in zip(names, found.segments, strict=True)}


def _read_query_fields(route: HttpRoute, query: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for part in query.split(b"&") if query else ():
        raw_name, _, raw_value = part.partition(b"=")
        name = decode_text(raw_name.replace(b"+", b" "), "query")
        value = decode_text(raw_value.replace(b"+", b" "), name[:60])
        if value.lower() == "null" and name not in route.texts:
            raise Refused(BadRequest(problem="expected a value, got null: leave it out", field=name[:60]))
        if name in route.lists:
            fields.setdefault(name, []).append(value)
        elif name in fields:
            raise Refused(BadRequest(problem=f"'{name[:60]}' is given twice", field=name[:60]))
        else:
            fields[name] = value
    _check_not_in_path(route, fields)
    return _check_fields(route, fields)


def _check_not_in_path(route: HttpRoute, fields: dict[str, Any]) -> None:
    for name in route.inside:
        if name in fields:
            raise Refused(BadRequest(problem=f"'{name}' is part of the path", field=name))


def _check_no_query(query: bytes) -> None:
    if query:
        name = decode_text(query.partition(b"=")[0], "query")[:60]
        raise Refused(
            BadRequest(problem=f"unknown query parameter '{name}': fields go in the body", field=name)
        )


def _read_request_body(found: RouteMatch, body: bytes) -> Request[Any]:
    route = found.route
    if not route.inside and b"\\u0000" not in body:
        try:
            return decode(body or b"{}", route.request)
        except Refused:
            pass  # retry on the slow path, which accepts other integrations' names and reports the field
    fields = decode(body or b"{}", dict[str, Any])
    _check_not_in_path(route, fields)
    fields = {**_check_fields(route, fields), **_read_path_fields(found)}
    check_outside(fields)
    return decode(fields, route.request)


def _check_fields(route: HttpRoute, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields under Scout's names; refuse an unknown field with the nearest known ones."""
    if route.known.issuperset(fields):
        return fields
    renamed = restore_names(fields, route.known)
    for name in renamed:
        if name not in route.known:
            near = rank_names(name[:60], route.known.difference(route.inside), 3)
            raise Refused(
                BadRequest(
                    problem=f"unknown field '{name[:60]}'",
                    field=name[:60],
                    candidates=tuple(Candidate(address=one) for one in near),
                )
            )
    return renamed


def _add_key(request: Request[Any], raw: bytes) -> Request[Any]:
    key = decode_text(raw, "Idempotency-Key")
    if not 1 <= len(key) <= 200:
        raise Refused(BadRequest(problem="expected a key of 1 to 200 characters", field="Idempotency-Key"))
    given: str | None = getattr(request, "idempotency_key", None)
    if given not in {None, key}:
        problem = "the Idempotency-Key header and idempotencyKey have different values"
        raise Refused(BadRequest(problem=problem, field="idempotencyKey"))
    return msgspec.structs.replace(request, idempotency_key=key)


def _add_trace(request: Request[Any], raw: bytes) -> Request[Any]:
    """Return the request in its trace. The standard wants a header that cannot be read to be ignored."""
    context = parse_traceparent(raw.decode("latin-1").strip())
    if context is None or getattr(request, "traceparent", None) is not None:
        return request
    return msgspec.structs.replace(request, traceparent=str(context))


def _check_numbers(route: HttpRoute, request: Request[Any]) -> None:
    for name in (*route.integers, *route.floats):
        number = getattr(request, name)
        if number is not None:
            check_number(number, name)


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise Refused(TooLarge(what="request", size=size, limit=limit))
