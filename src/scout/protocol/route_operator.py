"""The route operator in requests: a body that begins with `>> target` names its own target."""

import re
from typing import Any, TypeVar

from msgspec.structs import replace

from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.identity.route import find_route
from scout.protocol.asks import MakeAsk
from scout.protocol.request import Request
from scout.protocol.talk import Send

R = TypeVar("R", bound=Request[Any])

_BEGINNING = re.compile(r"\s*(?:/scout:(?:ask|send)[^\S\n]+)?>>(?!>)")
_WHO = Remedy(operation="who", parameters={}, why="list agents")


def apply_route(request: R) -> R:
    """Return the request with the target named in its body, unless a target is given elsewhere."""
    if not isinstance(request, MakeAsk | Send):
        return request
    if request.to is not None:
        return _remove_operator(request, request.to) if _BEGINNING.match(request.to) else request
    if _has_target(request):
        return request
    beginning = _BEGINNING.match(request.body)
    if beginning is None:
        return request
    try:
        route = find_route(request.body)
    except Refused as refusal:
        rest = request.body[beginning.end() :].lstrip().partition(" ")[2]
        raise Refused(_add_body(request.operation, refusal.diagnostic, rest)) from None
    assert route is not None  # the body begins with the operator
    return replace(request, to=route.address, body=route.body)


def _remove_operator(request: R, to: str) -> R:
    """Return the request with the operator removed from its target; any other text stays as it is."""
    route = find_route(to)
    return request if route is None or route.body else replace(request, to=route.address)


def _has_target(request: MakeAsk | Send) -> bool:
    """Whether a request without `to` names its target elsewhere."""
    if isinstance(request, MakeAsk):
        return request.project_path is not None or request.target_session_id is not None
    places = (request.channel, request.conversation_id, request.thread)
    return any(one is not None for one in places) or request.broadcast


def _add_body(operation: str, problem: Diagnostic, body: str) -> Diagnostic:
    """Return the refusal with remedies that send the body to each likely reading of the target."""
    readings = [(one, one.parameters["texts"][0]) for one in problem.remedies if one.operation == "parse"]
    again = [
        replace(one, operation=operation, parameters={"to": text, "body": body})
        for one, text in readings
        if body and not text.startswith(">>")
    ]
    explain = [one for one in problem.remedies if one.operation != "parse"]
    return replace(problem, remedies=(*again, *explain) or (_WHO,))
