"""The operation table: every operation Scout offers.

Routes, OpenAPI, the client, the command line and remedies are read off it, so that every surface can
render a remedy as its own next step.
"""

import functools
import json
import shlex
from typing import Any, cast

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.registry import list_classes
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
    log,
    mesh,
    observation,
    overview,
    questions,
    reservations,
    sessions,
    talk,
    work,
)
from scout.protocol.imports import requests as import_requests
from scout.protocol.operation import Operation, build_local_operation, build_operation
from scout.protocol.people import bindings, connectors, schedules, tasks, users
from scout.protocol.request import Request
from scout.protocol.tree import finish, spawn, view

_LONGEST_WORD = 4000
_STANDARD_INPUT = "-"

REQUESTS: tuple[type[Request[Any]], ...] = list_classes(
    (
        overview,
        log,
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
        schedules,
        tasks,
        insight,
        access,
        spawn,
        view,
        finish,
        users,
        bindings,
        connectors,
        mesh,
        import_requests,
    ),
    Request,
    lambda request: bool(request.operation),
)

# Operations without a request. Remedies may name them.
_LOCAL = (
    build_local_operation("up", "Start the daemon if it is not running, and print its address."),
    build_local_operation("open", "Continue an agent's session in this terminal.", "address"),
    build_local_operation("down", "Stop the daemon. Running sessions keep running."),
    build_local_operation("restart", "Restart the daemon."),
    build_local_operation("doctor", "Check this installation and show how to fix problems."),
    build_local_operation("upgrade", "Compare the command, the daemon and the store after an upgrade."),
    build_local_operation("tui", "Open the terminal application."),
    build_local_operation("demo", "Run a demo with two agents in two sample projects."),
    build_local_operation("setup", "Connect Scout to a host program such as Claude Code.", "host?"),
    build_local_operation("mcp", "Run as a stdio MCP server (started by the host).", host=""),
    build_local_operation("hook", "Report a session event (called by the host).", "event", host=""),
    build_local_operation("statusline", "Print a one-line summary (called by the host).", host=""),
    build_local_operation(
        "wait", "Wait for a flight to finish. Interrupting the wait does not stop the work.", "flightId"
    ),
    build_local_operation(
        "flight.wait",
        "Wait for a flight to finish. Interrupting the wait does not stop the work.",
        "flightId",
    ),
    build_local_operation("explain", "Explain a diagnostic code.", "code?"),
    build_local_operation("contract", "Print the prompt contract.", harness=""),
    build_local_operation("config", "Show every setting and its source."),
    build_local_operation("config.set", "Change a setting.", "key", "value"),
    build_local_operation(
        "config.roots", "Show or change the folders in which programs may be started.", add=""
    ),
    build_local_operation("verify", "Replay the log on a copy and compare the result with the tables."),
    build_local_operation("backup", "Back up the store while it is in use.", "file"),
    build_local_operation("restore", "Replace the store with a backup.", "file"),
)

OPERATIONS: dict[str, Operation] = {
    row.name: row for row in (*(build_operation(request) for request in REQUESTS), *_LOCAL)
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


def build_command_line(remedy: Remedy) -> str:
    """Return the remedy as a command that can be pasted into a shell."""
    given = tuple(remedy.parameters.items())
    if all(value.__class__ is str and len(value) <= _LONGEST_WORD for _, value in given):
        return _build_known_line(remedy.operation, given)  # the same hints are given again and again
    return _build_line(remedy)


@functools.lru_cache(maxsize=4096)
def _build_known_line(operation: str, parameters: tuple[tuple[str, str], ...]) -> str:
    return _build_line(Remedy(operation=operation, parameters=dict(parameters)))


def _build_line(remedy: Remedy) -> str:
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
            words += [_shorten_word(one) for one in _list_values(value)]
        elif value is True:
            flags.append(parameter.option)
        else:  # a value that is too long to type, such as the content of a file, is left out
            typed = [one for one in _list_values(value) if len(one) <= _LONGEST_WORD]
            flags += [part for one in typed for part in (parameter.option, one)]
    guard = ["--"] if any(word.startswith("-") and word != _STANDARD_INPUT for word in words) else []
    return shlex.join(["scout", *operation.words, *flags, *guard, *words])


def _shorten_word(word: str) -> str:
    """Return the word, or `-` for text too long to repeat: the command reads it from standard input."""
    return word if len(word) <= _LONGEST_WORD else _STANDARD_INPUT


def _list_values(value: object) -> list[str]:
    if isinstance(value, dict):
        return [f"{key}={_format_setting(one)}" for key, one in cast(dict[str, object], value).items()]
    if isinstance(value, list | tuple):
        return [str(one) for one in cast(list[object], value)]
    return [] if value is None or value is False else [str(value)]


def _format_setting(value: object) -> str:
    """Return a value for `KEY=`: plain text, unless it would be read as JSON."""
    return value if isinstance(value, str) and not _is_json(value) else json.dumps(value)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
