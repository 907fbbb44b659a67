"""The operation table: every operation Scout offers.

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
    finish,
    inbox,
    insight,
    observation,
    overview,
    questions,
    reservations,
    sessions,
    talk,
    tree,
    tree_view,
    work,
)
from scout.protocol.operation import Operation, local, operation_of
from scout.protocol.request import Request

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
        reservations,
        insight,
        access,
        tree,
        tree_view,
        finish,
    ),
    Request,
    lambda request: bool(request.operation),
)

# Operations without a request. Remedies may name them.
_LOCAL = (
    local("up", "Start the daemon if it is not running, and print its address."),
    local("open", "Continue an agent's session in this terminal.", "address"),
    local("down", "Stop the daemon. Running sessions keep running."),
    local("restart", "Restart the daemon."),
    local("doctor", "Check this installation and show how to fix problems."),
    local("demo", "Run a demo with two agents in two sample projects."),
    local("setup", "Connect Scout to a host program such as Claude Code.", "host?"),
    local("mcp", "Run as a stdio MCP server (started by the host).", host=""),
    local("hook", "Report a session event (called by the host).", "event", host=""),
    local("statusline", "Print a one-line summary (called by the host).", host=""),
    local("wait", "Wait for a flight to finish. Interrupting the wait does not stop the work.", "flightId"),
    local(
        "flight.wait",
        "Wait for a flight to finish. Interrupting the wait does not stop the work.",
        "flightId",
    ),
    local("explain", "Explain a diagnostic code.", "code?"),
    local("contract", "Print the prompt contract.", harness=""),
    local("config", "Show every setting and its source."),
    local("config.set", "Change a setting.", "key", "value"),
    local("config.roots", "Show or change the folders in which programs may be started.", add=""),
    local("verify", "Replay the log on a copy and compare the result with the tables."),
    local("backup", "Back up the store while it is in use.", "file"),
    local("restore", "Replace the store with a backup.", "file"),
    # Planned operations that remedies of the pure rooms already name (docs/decisions/0033).
    local("user.keys", "List a user's connector keys.", "user?"),
    local("user.link", "Link a chat account to a user by a one-time code.", "user", "connector"),
    local("mesh.status", "Show show the nodes."),
)

OPERATIONS: dict[str, Operation] = {
    row.name: row for row in (*(operation_of(request) for request in REQUESTS), *_LOCAL)
}


def check_remedy(remedy: Remedy) -> list[str]:
    """Return what is wrong with a remedy; empty if every surface can render it."""
    operation = OPERATIONS.get(remedy.operation)
    if operation is None:
        return [f"no operation {remedy.operation}"]
    known = {parameter.name: parameter.required for parameter in operation.parameters}
    unknown = [f"{operation.name} takes no {name}" for name in remedy.parameters if name not in known]
    needed = [name for name, required in known.items() if required and name not in remedy.parameters]
    return [*unknown, *(f"{operation.name} needs {name}" for name in needed)]


def command_line(remedy: Remedy) -> str:
    """Return the remedy as a command that can be pasted into a shell."""
    operation = OPERATIONS.get(remedy.operation)
    if operation is None:
        raise Refused(
            BadRequest(problem=f"there is no operation '{remedy.operation[:60]}'", field="operation")
        )
    flags: list[str] = []
    words: list[str] = []
    for parameter in operation.parameters:
        value = remedy.parameters.get(parameter.name)
        if parameter.positional:
            words += [_typed(one) for one in _values(value)]
        elif value is True:
            flags.append(parameter.option)
        else:  # a value that is too long to type, such as the content of a file, is left out
            typed = [one for one in _values(value) if len(one) <= _LONGEST_WORD]
            flags += [part for one in typed for part in (parameter.option, one)]
    guard = ["--"] if any(word.startswith("-") and word != _STANDARD_INPUT for word in words) else []
    return shlex.join(["scout", *operation.words, *flags, *guard, *words])


def _typed(word: str) -> str:
    """Return the word, or `-` for text too long to repeat: the command reads it from standard input."""
    return word if len(word) <= _LONGEST_WORD else _STANDARD_INPUT


def _values(value: object) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}={_setting(one)}" for key, one in cast(dict[str, object], value).items()]
    if isinstance(value, list | tuple):
        return [str(one) for one in cast(list[object], value)]
    return [] if value is None or value is False else [str(value)]


def _setting(value: object) -> str:
    """Return a value for `KEY=`: plain text, unless it would be read as JSON."""
    return value if isinstance(value, str) and not _is_json(value) else json.dumps(value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
