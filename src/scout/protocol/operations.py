"""The operation table: what can be asked of Scout.

Routes, OpenAPI, the client, the command line and remedies are read off it, so that every surface can
render a remedy as its own next step.
"""

import json
import shlex
from typing import Any, cast

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.registry import classes_in
from scout.protocol import (
    access,
    agents,
    allowances,
    asks,
    attention,
    channels,
    enrolment,
    inbox,
    insight,
    observation,
    overview,
    questions,
    sessions,
    talk,
    work,
)
from scout.protocol.local import LOCAL
from scout.protocol.operation import Operation, operation_of
from scout.protocol.request import Request

__all__ = ["OPERATIONS", "REQUESTS", "check_remedy", "command_line"]

_LONGEST_WORD = 4000
_STANDARD_INPUT = "-"

REQUESTS: tuple[type[Request[Any]], ...] = classes_in(
    (
        overview,
        agents,
        sessions,
        enrolment,
        talk,
        inbox,
        channels,
        asks,
        observation,
        questions,
        work,
        attention,
        allowances,
        insight,
        access,
    ),
    Request,
    lambda request: bool(request.operation),
)

OPERATIONS: dict[str, Operation] = {
    row.name: row for row in (*(operation_of(request) for request in REQUESTS), *LOCAL)
}


def check_remedy(remedy: Remedy) -> list[str]:
    """What the table does not know about a remedy; empty when it can be rendered anywhere."""
    operation = OPERATIONS.get(remedy.operation)
    if operation is None:
        return [f"no operation {remedy.operation}"]
    known = {parameter.name: parameter.required for parameter in operation.parameters}
    unknown = [f"{operation.name} takes no {name}" for name in remedy.parameters if name not in known]
    needed = [name for name, required in known.items() if required and name not in remedy.parameters]
    return [*unknown, *(f"{operation.name} needs {name}" for name in needed)]


def command_line(remedy: Remedy) -> str:
    """The remedy as a command that can be pasted into a shell."""
    operation = OPERATIONS.get(remedy.operation)
    if operation is None:
        raise Refused(
            BadRequest(problem=f"no operation is called '{remedy.operation[:60]}'", field="operation")
        )
    flags: list[str] = []
    words: list[str] = []
    for parameter in operation.parameters:
        value = remedy.parameters.get(parameter.name)
        if parameter.positional:
            words += [_typed(one) for one in _values(value)]
        elif value is True:
            flags.append(parameter.option)
        else:
            flags += [part for one in _values(value) for part in (parameter.option, one)]
    guard = ["--"] if any(word.startswith("-") and word != _STANDARD_INPUT for word in words) else []
    return shlex.join(["scout", *operation.words, *flags, *guard, *words])


def _typed(word: str) -> str:
    """A long text is not repeated on a command line: it is read from standard input."""
    return word if len(word) <= _LONGEST_WORD else _STANDARD_INPUT


def _values(value: object) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}={_setting(one)}" for key, one in cast(dict[str, object], value).items()]
    if isinstance(value, list | tuple):
        return [str(one) for one in cast(list[object], value)]
    return [] if value is None or value is False else [str(value)]


def _setting(value: object) -> str:
    """A value behind `KEY=`: text as it is, unless it would be read as JSON."""
    return value if isinstance(value, str) and not _is_json(value) else json.dumps(value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
