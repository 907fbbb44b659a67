"""Requests of `scout.protocol` as HTTP requests; results and refusals from HTTP responses."""

from collections.abc import Mapping
from typing import Any, TypeVar

from scout.base.codec import decode, to_plain
from scout.base.refusal import BadRequest, Candidate, Diagnostic, Refused, Remedy
from scout.client.http import build_target
from scout.model.problems.diagnostics import find_diagnostic
from scout.model.problems.request import Busy
from scout.protocol.request import Request, get_result_type

T = TypeVar("T")


class UnknownCode(BadRequest, tag="unknown_code"):
    """The daemon refused with a code that this client does not know. Its facts are kept as they came.

    The client and the daemon have different versions. `scout restart` starts the daemon of this version.
    """

    said: str
    facts: dict[str, Any]

    @property
    def code(self) -> str:
        return self.said


def encode_request(request: Request[Any]) -> tuple[str, str, bytes]:
    """Return method, target and body of a request."""
    fields = to_plain(request)
    fields.pop("idempotencyKey", None)  # sent as a header
    return build_target(type(request).route, fields)


def decode_response(request: Request[T], status: int, body: bytes) -> T:
    """Return the typed result of a request, or raise the refusal."""
    if status >= 400:
        raise decode_refusal(status, body)
    return decode(body, get_result_type(type(request)))


def decode_refusal(status: int, body: bytes) -> Refused:
    """Return the refusal that a problem document describes."""
    try:
        document = decode(body, dict[str, Any])
    except Refused:
        document = {"message": f"the daemon answered {status} without a reason"}
    return Refused(_decode_diagnostic(document))


def _decode_diagnostic(document: Mapping[str, Any]) -> Diagnostic:
    try:
        return decode(dict(document), find_diagnostic(str(document.get("code"))))
    except Refused:
        message = str(document.get("message") or document.get("detail") or document.get("title"))
        return UnknownCode(
            problem=message,
            said=str(document.get("code", "unknown_code")),
            facts={name: value for name, value in document.items() if name not in _ENVELOPE},
            candidates=_decode_list(document, "candidates", Candidate),
            remedies=_decode_list(document, "remedies", Remedy),
        )


_ENVELOPE = frozenset({"type", "title", "status", "detail", "code", "message", "candidates", "remedies"})


def _decode_list(document: Mapping[str, Any], name: str, kind: type[T]) -> tuple[T, ...]:
    try:
        return decode(document.get(name) or [], tuple[kind, ...])
    except Refused:
        return ()


def report_no_daemon(where: str, why: str) -> Refused:
    """Return the refusal for a daemon that does not listen."""
    up = Remedy(operation="up", parameters={}, why="start the daemon")
    return Refused(Busy(reason=f"no daemon answers at {where}: {why}", remedies=(up,)))


def report_lost(where: str, why: str) -> Refused:
    """Return the refusal for a connection that broke on every attempt."""
    doctor = Remedy(operation="doctor", parameters={})
    return Refused(Busy(reason=f"the connection to {where} broke: {why}", remedies=(doctor,)))
