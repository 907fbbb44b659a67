"""A refusal's remedies as the caller's own request, corrected: the same operation and parameters.

The pure rooms know which address would work or which option is missing, but not the request they serve. Here
the two meet, so that a remedy can be pasted as it stands.
"""

import base64
import hashlib
from collections.abc import Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from scout.base.codec import to_plain
from scout.base.refusal import PLACEHOLDER, BadRequest, Diagnostic, Remedy, WrongState
from scout.identity.address import fold
from scout.identity.problem import ReservedName
from scout.model.agent import CONFIG_KEYS
from scout.model.problems.request import NotFound, TooLarge
from scout.model.problems.session import HarnessUnavailable
from scout.model.problems.target import AmbiguousEndpoint, RemoteTarget
from scout.protocol.request import Request

_TARGETS = frozenset({"to", "projectPath", "targetSessionId", "channel", "conversationId", "broadcast"})
_NOT_REPEATED = frozenset({"idempotencyKey", "traceparent", "wait", "seen"})
# The fields that name one agent, in which a harness may be named too.
_AGENTS = ("address", "agent", "to", "target", "agentId")
_FOLDER = "projectPath"  # the field under which a refused folder is named
_FILE, _SEE = "message.txt", "See the attachment."  # a text that is too long for a body
_TEXTS = ("body", "message")
# The operation that lists the records of a noun.
_LISTS = {
    "agent": "who",
    "alias": "alias.list",
    "allowance": "allow.list",
    "ask": "flight.list",
    "attention item": "attention",
    "binding": "binding.list",
    "card": "card.list",
    "channel": "channel.list",
    "chat account": "user.keys",
    "connector": "connector.list",
    "conversation": "conversation.list",
    "delivery": "delivery.list",
    "endpoint": "who",
    "flight": "flight.list",
    "flight of yours": "flight.list",
    "grant": "grant.list",
    "message": "latest",
    "project": "project.list",
    "question": "question.list",
    "reservation": "reserve.list",
    "schedule": "cron.list",
    "session": "session.list",
    "task": "task.list",
    "token": "token.list",
    "user": "user.list",
    "work item": "work.list",
}
# Records that are found by a name, which a person may misspell.
_NAMED = frozenset({"channel", "connector", "schedule", "user"})
# What undoes a state: the operations of a noun, and the move that the state allows.
_WAYS_BACK = {
    ("agent", "revive"): "agent.revive",
    ("binding", "reopen"): "binding.reopen",
    ("cron", "resume"): "cron.resume",
    ("user", "revive"): "user.revive",
}
# What shows the record that a request names.
_SHOWS = {
    "agent": "show",
    "binding": "binding.show",
    "card": "card.show",
    "cron": "cron.show",
    "flight": "flight.get",
    "question": "question.show",
    "session": "session.inspect",
    "user": "user.show",
    "work": "work.show",
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
    if isinstance(problem, RemoteTarget):
        there = Remedy(operation=request.operation, parameters=own, why=f"on {problem.node}")
        return replace(problem, remedies=(there,))
    attached = _attach_body(request.operation, own) if isinstance(problem, TooLarge) else ()
    if attached:
        return replace(problem, remedies=attached)
    problem = _name_folder(request, own, problem)
    refused = str(getattr(problem, "address", "") or getattr(problem, "text", ""))
    corrected = [
        *_name_harness(request, own, problem),
        *_respell_setting(request, own, problem),
        *_respell_name(request, own, problem),
        *_undo_state(request, own, problem),
    ]
    corrected += [_correct(request.operation, own, refused, remedy) for remedy in problem.remedies]
    whole: dict[str, Remedy] = {}
    for one in corrected:
        if PLACEHOLDER not in one.parameters.values():
            whole.setdefault(_build_key(one), one)
    return replace(problem, remedies=tuple(whole.values()))


def attach_file(remedies: Sequence[Remedy]) -> tuple[Remedy, ...]:
    """Return the remedies of a long text for a caller that types commands: it attaches a file by its name."""
    return tuple(_attach_file(one) for one in remedies if one.operation != "attachment.put")


def _attach_file(remedy: Remedy) -> Remedy:
    named = [*remedy.parameters.get("attachments", ())]
    if not named or not named[-1].endswith(f":{_FILE}"):
        return remedy
    parameters = {**remedy.parameters, "attachments": [*named[:-1], _FILE]}
    return replace(remedy, parameters=parameters, why=f"write the text to {_FILE} first")


def _attach_body(operation: str, own: dict[str, Any]) -> tuple[Remedy, ...]:
    """Return the calls that send a long text as an attachment: store it, then send its hash."""
    text = str(own.get("body") or own.get("output") or "")
    sent = _suggest_attachment(operation, own)
    if not text or sent is None:
        return ()
    data = text.encode()
    file = f"{hashlib.sha256(data).hexdigest()}:{_FILE}"
    put = {"name": _FILE, "data": base64.b64encode(data).decode()}
    attached = {**sent.parameters, "body": _SEE, "attachments": [*own.get("attachments", ()), file]}
    return (
        Remedy(operation="attachment.put", parameters=put, why="store the text"),
        replace(sent, parameters=attached, why="then attach it"),
    )


def _suggest_attachment(operation: str, own: dict[str, Any]) -> Remedy | None:
    """Return the call that carries an attachment in place of a refused one."""
    if operation in ("ask", "send", "reply"):
        return Remedy(operation=operation, parameters=own)
    if operation == "flight.complete":
        return Remedy(operation="reply", parameters={"inReplyTo": own["flightId"], "body": _SEE})
    return Remedy(operation="send", parameters={"to": own["to"], "body": _SEE}) if "to" in own else None


def _name_folder(request: Request[Any], own: dict[str, Any], problem: Diagnostic) -> Diagnostic:
    """Return the refusal of a folder under the name of the caller's field, with the folder offered there."""
    fields = {one.name: one.encode_name for one in msgspec.structs.fields(type(request))}
    field = fields.get(request.folder_field, _FOLDER)
    is_asked = field == _FOLDER and (request.operation == "ask" or _FOLDER not in own)
    if not isinstance(problem, BadRequest) or problem.field != _FOLDER or is_asked:
        return problem
    offered = [one.parameters[_FOLDER] for one in problem.remedies if _FOLDER in one.parameters]
    again = [Remedy(operation=request.operation, parameters={**own, field: one}) for one in offered]
    return replace(problem, field=field, remedies=tuple(again))


def _name_harness(request: Request[Any], own: dict[str, Any], problem: Diagnostic) -> list[Remedy]:
    """Return the caller's request with a harness that works: one of several, or the nearest name."""
    if isinstance(problem, AmbiguousEndpoint):
        named = dict(zip(problem.harnesses, (one.address for one in problem.candidates), strict=False))
        given = [_add_harness(request, own, one, named.get(one)) for one in problem.harnesses]
    elif isinstance(problem, HarnessUnavailable):
        near = [one.address for one in problem.candidates]
        given = [_respell_harness(own, problem.harness, one) for one in near]
    else:
        return []
    return [Remedy(operation=request.operation, parameters=one) for one in given if one is not None]


def _add_harness(
    request: Request[Any], own: dict[str, Any], harness: str, address: str | None
) -> dict[str, Any] | None:
    """Return the parameters with a harness: as an option, or else as part of the agent's address."""
    if "harness" in request.__struct_fields__:
        return {**own, "harness": harness}
    field = next((name for name in _AGENTS if name in own), None)
    return {**own, field: address} if field is not None and address else None


def _respell_harness(own: dict[str, Any], misspelt: str, harness: str) -> dict[str, Any] | None:
    """Return the parameters with another harness where they hold the misspelt one."""
    for field in ("harness", "check"):
        if own.get(field) == misspelt:
            return {**own, field: harness}
    config: Any = own.get("config")
    if isinstance(config, dict) and cast("dict[str, Any]", config).get("harness") == misspelt:
        return {**own, "config": {**config, "harness": harness}}
    for field in (name for name in _AGENTS if isinstance(own.get(name), str)):
        for mark in ("#", ".harness:"):
            if f"{mark}{misspelt}" in own[field]:
                return {**own, field: own[field].replace(f"{mark}{misspelt}", f"{mark}{harness}")}
    return None


def _respell_setting(request: Request[Any], own: dict[str, Any], problem: Diagnostic) -> list[Remedy]:
    """Return the caller's request with the nearest key, or the nearest value, of an agent's setting."""
    given: Any = own.get(request.settings_field) if request.settings_field else None
    if not isinstance(problem, BadRequest) or not isinstance(given, dict) or problem.field not in given:
        return []
    config = cast("dict[str, Any]", given)
    field, near = problem.field, [one.address for one in problem.candidates]
    if field in CONFIG_KEYS:
        fixed = [{**config, field: value} for value in near]
    else:
        fixed = [{key if name == field else name: value for name, value in config.items()} for key in near]
    return [
        Remedy(operation=request.operation, parameters={**own, request.settings_field: one}) for one in fixed
    ]


def _respell_name(request: Request[Any], own: dict[str, Any], problem: Diagnostic) -> list[Remedy]:
    """Return the caller's request with the nearest names in place of an unknown one."""
    if isinstance(problem, NotFound) and problem.noun in _NAMED:
        field = next((name for name, value in own.items() if value == problem.id), None)
    else:
        field = "connector" if isinstance(problem, BadRequest) and problem.field == "connector" else None
    near = [one.address for one in problem.candidates] if field is not None else []
    return [Remedy(operation=request.operation, parameters={**own, str(field): one}) for one in near]


def _undo_state(request: Request[Any], own: dict[str, Any], problem: Diagnostic) -> list[Remedy]:
    """Return what undoes the state that a refused move met, for the record that the request names."""
    noun = request.operation.partition(".")[0]
    if not isinstance(problem, WrongState) or problem.remedies or noun not in _SHOWS:
        return []
    words = [one for one in request.words if one in own]
    same = {words[0]: own[words[0]]} if words else {}
    found = [_WAYS_BACK.get((noun, move)) for move in problem.accepts]
    return [Remedy(operation=one, parameters=same) for one in (*found, _SHOWS[noun]) if one]


def _rename(operation: str, own: dict[str, Any], problem: ReservedName) -> Diagnostic:
    """Return the refusal with the caller's request under the free name it offers last."""
    offer = problem.remedies[-1]
    free = str(_find_proposed_address(offer)).removeprefix("@")
    for key, value in own.items():
        if isinstance(value, str) and fold(value) == problem.word:
            other: Any = free
        elif isinstance(value, list | tuple) and problem.word in cast(list[object], value):
            other = [free if one == problem.word else one for one in cast(list[object], value)]
        else:
            continue
        if isinstance(value, str) and value.startswith("/"):  # a folder keeps its name; its agent does not
            parameters = {"definitionId": free, "projectRoot": value}
            return replace(
                problem, remedies=(replace(offer, operation="agent.register", parameters=parameters),)
            )
        renamed = replace(offer, operation=operation, parameters={**own, key: other})
        return replace(problem, remedies=(renamed,))
    return problem


def _build_key(remedy: Remedy) -> str:
    return repr((remedy.operation, sorted(remedy.parameters.items())))


def list_parameters(request: Request[Any]) -> dict[str, Any]:
    """Return the caller's parameters by wire name, without defaults and secrets."""
    said: dict[str, Any] = to_plain(request)
    left_out = {*_NOT_REPEATED, request.secret_field}
    defaults = {field.encode_name: field.default for field in msgspec.structs.fields(type(request))}
    return {
        name: value
        for name, value in said.items()
        if name not in left_out and value not in (None, [], (), {}, defaults[name])
    }


def _correct(operation: str, own: dict[str, Any], refused: str, remedy: Remedy) -> Remedy:
    whole = own.keys() <= remedy.parameters.keys() and PLACEHOLDER not in remedy.parameters.values()
    if remedy.operation == operation and whole:
        return remedy
    if remedy.operation == operation and remedy.parameters:
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
    """Return the parameters with the caller's text where a remedy needs one."""
    blank = [name for name in _TEXTS if given.get(name) == PLACEHOLDER and "body" in own]
    return {**given, **dict.fromkeys(blank, own.get("body"))}


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
