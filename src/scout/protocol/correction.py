"""A refusal's remedies as the caller's own request, corrected: the same operation and parameters.

The pure rooms know which address would work or which option is missing, but not the request they serve. Here
the two meet, so that a remedy can be pasted as it stands.
"""

from typing import Any, cast

import msgspec
from msgspec.structs import replace

from scout.base.codec import to_plain
from scout.base.refusal import PLACEHOLDER, Diagnostic, Remedy
from scout.identity.problem import ReservedName
from scout.identity.segment import fold
from scout.model.problems.request import NotFound
from scout.protocol.request import Request

_TARGETS = frozenset({"to", "projectPath", "targetSessionId", "channel", "conversationId", "broadcast"})
_NOT_REPEATED = frozenset({"idempotencyKey", "wait", "seen"})
# The operation that lists the records of a noun.
_LISTS = {
    "agent": "who",
    "alias": "alias.list",
    "ask": "flight.list",
    "attention item": "attention",
    "card": "card.list",
    "channel": "channel.list",
    "conversation": "conversation.list",
    "delivery": "delivery.list",
    "endpoint": "who",
    "flight": "flight.list",
    "grant": "grant.list",
    "message": "latest",
    "session": "session.list",
    "token": "token.list",
}


def list_remedies(problem: Diagnostic) -> tuple[Remedy, ...]:
    """Return the remedies to show. A refusal without its own still names a next call."""
    if problem.remedies:
        return problem.remedies
    if isinstance(problem, NotFound) and problem.noun in _LISTS:
        return (Remedy(operation=_LISTS[problem.noun], parameters={}, why="list them"),)
    return (Remedy(operation="explain", parameters={"code": problem.code}, why="explain this code"),)


def correct_remedies(request: Request[Any], problem: Diagnostic) -> Diagnostic:
    """Return the refusal with remedies that repeat the caller's request, without incomplete ones."""
    own = list_parameters(request)
    if isinstance(problem, ReservedName):
        return _rename(request.operation, own, problem)
    refused = str(getattr(problem, "address", "") or getattr(problem, "text", ""))
    corrected = [_correct(request.operation, own, refused, remedy) for remedy in problem.remedies]
    whole = {
        _build_key(one): one for one in reversed(corrected) if PLACEHOLDER not in one.parameters.values()
    }
    return replace(problem, remedies=tuple(reversed(whole.values())))


def _rename(operation: str, own: dict[str, Any], problem: ReservedName) -> Diagnostic:
    """Return the refusal with the caller's request under the free name it offers last."""
    named = [key for key, value in own.items() if isinstance(value, str) and fold(value) == problem.word]
    if not named:
        return problem
    offer = problem.remedies[-1]
    free = str(_find_proposed_address(offer)).removeprefix("@")
    renamed = replace(offer, operation=operation, parameters={**own, named[0]: free})
    return replace(problem, remedies=(renamed,))


def _build_key(remedy: Remedy) -> str:
    return repr((remedy.operation, sorted(remedy.parameters.items())))


def list_parameters(request: Request[Any]) -> dict[str, Any]:
    """Return the caller's parameters by wire name, without defaults."""
    said: dict[str, Any] = to_plain(request)
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(type(request))}
    return {
        name: value
        for name, value in said.items()
        if name not in _NOT_REPEATED and value not in (None, [], (), {}, defaults[name])
    }


def _correct(operation: str, own: dict[str, Any], refused: str, remedy: Remedy) -> Remedy:
    if remedy.operation == operation:
        return replace(remedy, parameters=_merge(own, remedy.parameters))
    address, field = _find_proposed_address(remedy), _find_field(own, refused)
    if address and field:
        return replace(remedy, operation=operation, parameters=_substitute(own, field, refused, address))
    return replace(remedy, parameters=_fill_body(remedy.parameters, own))


def _merge(own: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the caller's request with other options, or else with another target."""
    options = {name: value for name, value in given.items() if name not in (*_TARGETS, "body")}
    if options and own.keys() & _TARGETS:
        return {**own, **options}
    replaced = _TARGETS if given.keys() & _TARGETS else frozenset[str]()
    kept = {name: value for name, value in own.items() if name not in replaced}
    return _fill_body({**kept, **given}, own)


def _fill_body(given: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    if given.get("body") == PLACEHOLDER and "body" in own:
        return {**given, "body": own["body"]}
    return given


def _find_proposed_address(remedy: Remedy) -> str | None:
    """Return the address with which a remedy replaces the refused one."""
    match remedy.parameters:
        case {"address": str(address)} if remedy.operation == "resolve":
            return address
        case {"texts": [str(text)]}:
            return text
        case {"projectPath": str(folder), "body": body} if body == PLACEHOLDER:
            return f"project:{folder}"
        case _:
            return None


def _find_field(own: dict[str, Any], refused: str) -> str | None:
    """Return the field that holds the refused text: whole, in a list, or as a body's first word."""
    return next((name for name, value in own.items() if refused and _contains_text(value, refused)), None)


def _contains_text(value: object, refused: str) -> bool:
    if isinstance(value, list | tuple):
        return refused in cast(list[object], value)
    return isinstance(value, str) and (value[:200] == refused or value.split(None, 1)[:1] == [refused])


def _substitute(own: dict[str, Any], field: str, refused: str, address: str) -> dict[str, Any]:
    value = own[field]
    if isinstance(value, list | tuple):
        return {**own, field: [address if one == refused else one for one in cast(list[object], value)]}
    return {**own, field: address if value[:200] == refused else value.replace(refused, address, 1)}
