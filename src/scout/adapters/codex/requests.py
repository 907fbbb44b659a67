"""Codex's requests as questions to a person, and a person's answers in Codex's format."""

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from scout.adapters.transcript import Entry, get_object, get_text, to_list
from scout.model.access.permission import build_request
from scout.ports import Asked, HumanAnswer, NeedsHuman

_COMMAND = "item/commandExecution/requestApproval"
_FILES = "item/fileChange/requestApproval"
_PERMISSIONS = "item/permissions/requestApproval"
_ELICITATION = "mcpServer/elicitation/request"
_QUESTIONS = "item/tool/requestUserInput"


def build_request_name(program: str, ident: object) -> str:
    """Return the name of a request. Each program counts its requests from zero, so the name has both."""
    return f"{program}/{json.dumps(ident)}"


def read_request(program: str, message: Entry, changes: str = "") -> NeedsHuman | None:
    """Return the question of a request; None if no person can answer it. `changes`: the files it is about."""
    method, params = get_text(message, "method"), get_object(message, "params")
    ask = _ASKING.get(method)
    needed = ask(build_request_name(program, message.get("id")), params) if ask else None
    if needed is None or method != _FILES or not changes:
        return needed
    return replace(needed, wish=build_request("apply_patch", changes, needed.question))


def answer_request(message: Entry, answer: HumanAnswer) -> Any:
    """Return the result for a request."""
    return _REPLYING[get_text(message, "method")](get_object(message, "params"), answer)


# -- asking --------------------------------------------------------------------------------------------


def _read_command(request: str, params: Entry) -> NeedsHuman:
    command, host = (
        get_text(params, "command"),
        get_text(get_object(params, "networkApprovalContext"), "host"),
    )
    question = f"May it reach {host}?" if host else "May it run this command outside its sandbox?"
    if get_text(params, "kind") == "writeStdin":
        question = "May it write to this command?"
    words, tool = _add_reason(question, params), f"network {host}" if host else "shell"
    return _build_permission(request, words, tool, {"command": command} if command else "")


def _build_permission(request: str, words: str, tool: str, given: object) -> NeedsHuman:
    return NeedsHuman(request=request, question=words, wish=build_request(tool, given, words))


def _read_files(request: str, params: Entry) -> NeedsHuman:
    root = get_text(params, "grantRoot")
    question = f"May it write below {root} from now on?" if root else "May it change these files?"
    return _build_permission(
        request, _add_reason(question, params), "apply_patch", {"path": root} if root else ""
    )


def _read_permissions(request: str, params: Entry) -> NeedsHuman:
    question = _add_reason("May it have these permissions for this turn?", params)
    return _build_permission(request, question, "permissions", _list_granted(params))


def _read_elicitation(request: str, params: Entry) -> NeedsHuman | None:
    """Return a tool approval or a question of an MCP server; None for a form with several fields."""
    fields = get_object(get_object(params, "requestedSchema"), "properties")
    message = get_text(params, "message") or f"{get_text(params, 'serverName')} asks"
    if len(fields) > 1:
        return None
    if fields:
        (field,) = fields.values()
        options = tuple(str(one) for one in to_list(field.get("enum")))
        return NeedsHuman(request=request, question=message, kind=Asked.QUESTION, options=options)
    given = get_text(params, "url") or get_object(params, "_meta").get("tool_params")
    return _build_permission(request, message, get_text(params, "serverName"), given)


def _read_questions(request: str, params: Entry) -> NeedsHuman | None:
    """Return one question for all; several are answered with one line each."""
    questions = to_list(params.get("questions"))
    if not questions:
        return None
    words = [get_text(one, "question") or get_text(one, "header") for one in questions]
    if len(words) > 1:
        words = [f"{number}. {one}" for number, one in enumerate(words, 1)]
    options = to_list(questions[0].get("options")) if len(questions) == 1 else []
    return NeedsHuman(
        request=request,
        question="\n".join(words),
        kind=Asked.QUESTION,
        detail="" if len(words) == 1 else "one line for each answer",
        options=tuple(get_text(one, "label") for one in options),
    )


def _add_reason(question: str, params: Entry) -> str:
    reason = get_text(params, "reason").strip()
    return f"{question} {reason}" if reason else question


_ASKING: dict[str, Callable[[str, Entry], NeedsHuman | None]] = {
    _COMMAND: _read_command,
    _FILES: _read_files,
    _PERMISSIONS: _read_permissions,
    _ELICITATION: _read_elicitation,
    _QUESTIONS: _read_questions,
}


# -- answering -----------------------------------------------------------------------------------------


def _build_decision(_: Entry, answer: HumanAnswer) -> Any:
    return {"decision": "accept" if answer.allow else "decline"}


def _list_granted(params: Entry) -> Entry:
    wanted = get_object(params, "permissions")
    return {name: value for name, value in wanted.items() if value is not None}


def _build_grant(params: Entry, answer: HumanAnswer) -> Any:
    return {"permissions": _list_granted(params) if answer.allow else {}, "scope": "turn"}


def _fill_form(params: Entry, answer: HumanAnswer) -> Any:
    fields = get_object(get_object(params, "requestedSchema"), "properties")
    if not answer.allow:
        return {"action": "decline", "content": None}
    return {"action": "accept", "content": dict.fromkeys(fields, answer.text) or None}


def _map_answers(params: Entry, answer: HumanAnswer) -> Any:
    """Map the lines of an answer to the questions; the last question gets the rest."""
    names = [get_text(one, "id") for one in to_list(params.get("questions"))]
    lines = answer.text.split("\n", len(names) - 1) if answer.allow and answer.text else []
    given = dict(zip(names, lines, strict=False))
    return {"answers": {name: {"answers": [given[name]] if name in given else []} for name in names}}


_REPLYING: dict[str, Callable[[Entry, HumanAnswer], Any]] = {
    _COMMAND: _build_decision,
    _FILES: _build_decision,
    _PERMISSIONS: _build_grant,
    _ELICITATION: _fill_form,
    _QUESTIONS: _map_answers,
}
