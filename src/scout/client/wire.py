"""Requests as they are sent, answers and refusals as they are read."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from scout.base.codec import decode, encode, plain
from scout.base.refusal import BadRequest, Candidate, Diagnostic, Refused, Remedy
from scout.model.problems.diagnostics import by_code
from scout.model.problems.request import Busy
from scout.protocol.request import Request, result_of

__all__ = ["Sent", "UnknownCode", "lost", "no_daemon", "read_answer", "refusal", "sent"]

T = TypeVar("T")
_INSIDE = re.compile(r"\{(\w+)\}")


class UnknownCode(BadRequest, tag="unknown_code"):
    """The daemon refused with a code that this client does not know; its facts are kept as they came.

    They are of different versions. `scout restart` starts the daemon of this version.
    """

    said: str
    facts: dict[str, Any]

    @property
    def code(self) -> str:
        return self.said


class Sent:
    """A request on its way."""

    __slots__ = ("body", "method", "target")

    def __init__(self, method: str, target: str, body: bytes | None) -> None:
        self.method, self.target, self.body = method, target, body


def sent(request: Request[Any]) -> Sent:
    """Method, target and body: names in the route's path, then query (GET) or JSON."""
    method, _, path = type(request).route.partition(" ")
    fields = {name: value for name, value in plain(request).items() if value is not None}
    fields.pop("idempotencyKey", None)  # it travels as a header

    def fill(found: re.Match[str]) -> str:
        return quote(str(fields.pop(found[1])), safe="")

    path = _INSIDE.sub(fill, path)
    if method != "GET":
        return Sent(method, path, encode(fields))
    query = urlencode({name: _text(value) for name, value in fields.items()}, doseq=True)
    return Sent(method, f"{path}?{query}" if query else path, None)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def read_answer(request: Request[T], status: int, body: bytes) -> T:
    """The answer in its own type, or the refusal, raised."""
    if status >= 400:
        raise refusal(status, body)
    return decode(body, result_of(type(request)))


def refusal(status: int, body: bytes) -> Refused:
    """A problem document as the refusal it was made from."""
    try:
        told = decode(body, dict[str, Any])
    except Refused:
        told = {"message": f"the daemon answered {status} without a reason"}
    return Refused(_diagnostic(told))


def _diagnostic(told: Mapping[str, Any]) -> Diagnostic:
    try:
        return decode(dict(told), by_code(str(told.get("code"))))
    except Refused:
        message = str(told.get("message") or told.get("detail") or told.get("title"))
        return UnknownCode(
            problem=message,
            said=str(told.get("code", "unknown_code")),
            facts={name: value for name, value in told.items() if name not in _ENVELOPE},
            candidates=_each(told, "candidates", Candidate),
            remedies=_each(told, "remedies", Remedy),
        )


_ENVELOPE = frozenset({"type", "title", "status", "detail", "code", "message", "candidates", "remedies"})


def _each(told: Mapping[str, Any], name: str, kind: type[T]) -> tuple[T, ...]:
    try:
        return decode(told.get(name) or [], tuple[kind, ...])
    except Refused:
        return ()


def no_daemon(where: str, why: str) -> Refused:
    """Nobody listens there."""
    up = Remedy(operation="up", parameters={}, why="start the daemon")
    return Refused(Busy(reason=f"no daemon answers at {where}: {why}", remedies=(up,)))


def lost(where: str, why: str) -> Refused:
    """The connection broke, and broke again."""
    doctor = Remedy(operation="doctor", parameters={})
    return Refused(Busy(reason=f"the connection to {where} broke: {why}", remedies=(doctor,)))
