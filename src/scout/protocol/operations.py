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
    endpoints,
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
from scout.protocol.operation import Operation, local, operation_of
from scout.protocol.request import Request

__all__ = ["OPERATIONS", "REQUESTS", "check_remedy", "command_line"]

_LONGEST_WORD = 4000
_STANDARD_INPUT = "-"

REQUESTS: tuple[type[Request[Any]], ...] = classes_in(
    (
        overview,
        agents,
        endpoints,
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

# Operations without a request. Remedies may name them.
_LOCAL = (
    local("up", "Start the daemon if none runs, and say where it is."),
    local("open", "Go on with an agent's session in this terminal.", "address"),
    local("down", "Stop the daemon; what it started goes on."),
    local("restart", "Replace the running daemon."),
    local("doctor", "Check this installation, and say what to mend."),
    local("demo", "Play the main job with two agents in two sample projects."),
    local("setup", "Connect Scout to a program you work in.", "host?"),
    local("mcp", "Be an MCP server on standard input and output.", host=""),
    local("hook", "Report what happens in a session; called by a host.", "event", host=""),
    local("statusline", "One line about what waits; called by a host.", host=""),
    local("wait", "Wait for a flight to finish; stopping to wait never stops the work.", "flightId"),
    local("flight.wait", "Wait for a flight to finish; stopping to wait never stops the work.", "flightId"),
    local("explain", "Explain a diagnostic code.", "code?"),
    local("contract", "Print the prompt contract.", harness=""),
    local("config", "Show every setting and where it comes from."),
    local("config.set", "Change a setting.", "key", "value"),
    local("config.roots", "Show or change the directories in which programs may be started.", add=""),
    local("verify", "Replay the log on a copy and compare it with the tables."),
    local("backup", "Copy the store while it is in use.", "file"),
    local("restore", "Put a copy in the place of the store.", "file"),
    # Later parts: collaboration, people, the mesh.
    local("tree", "Show an agent and those below it.", "address?"),
    local("spawn", "Create a child agent.", "slug", **{"from": "", "role": ""}),
    local("user.keys", "List a user's connector keys.", "user?"),
    local("user.link", "Link a chat account to a user by a one-time code.", "user", "connector"),
    local("mesh.status", "Show the nodes and their links."),
)

OPERATIONS: dict[str, Operation] = {
    row.name: row for row in (*(operation_of(request) for request in REQUESTS), *_LOCAL)
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
