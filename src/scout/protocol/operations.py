"""The operation table: what can be asked of Scout, and how it is spelled on the command line.

Remedies name an operation of this table, so every surface can render them as its own next step.
"""

import re
import shlex
from typing import cast

from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused, Remedy

__all__ = ["OPERATIONS", "Operation", "Parameter", "check_remedy", "command_line"]

_CAPITAL = re.compile(r"[A-Z]")


class Parameter(Record):
    """One parameter: a positional word on the command line, or a flag made from its name."""

    name: str
    positional: bool = False
    required: bool = False
    flag: str = ""

    @property
    def option(self) -> str:
        kebab = _CAPITAL.sub(lambda capital: f"-{capital[0].lower()}", self.name)
        return f"--{self.flag or kebab}"


class Operation(Record):
    """One operation: its name (dots become words of the command) and what it does."""

    name: str
    says: str
    parameters: tuple[Parameter, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.name.split("."))


def _word(name: str) -> Parameter:
    return Parameter(name=name, positional=True, required=True)


def _maybe(name: str) -> Parameter:
    return Parameter(name=name, positional=True)


def _option(name: str, flag: str = "") -> Parameter:
    return Parameter(name=name, flag=flag)


_TABLE = (
    Operation(name="parse", says="Read addresses without a directory.", parameters=(_word("texts"),)),
    Operation(
        name="resolve",
        says="Say what an address means, and why.",
        parameters=(_maybe("address"), _option("fleet"), _option("from")),
    ),
    Operation(name="explain", says="Explain a diagnostic code.", parameters=(_maybe("code"),)),
    Operation(name="contract", says="Print the prompt contract.", parameters=(_option("harness"),)),
    Operation(name="whoami", says="Say who you are to Scout."),
    Operation(name="who", says="List the agents you can see."),
    Operation(name="show", says="Show one agent.", parameters=(_word("address"),)),
    Operation(name="tree", says="Show an agent and those below it.", parameters=(_maybe("address"),)),
    Operation(name="runtimes", says="List the harnesses of this machine and what each lacks."),
    Operation(
        name="send",
        says="Post a durable message.",
        parameters=(
            _maybe("to"),
            _word("body"),
            _option("channel"),
            _option("attachments", "attach"),
        ),
    ),
    Operation(
        name="ask",
        says="Ask an agent or a project to do something, and track it.",
        parameters=(
            _maybe("to"),
            _maybe("body"),
            _option("projectPath", "project"),
            _option("harness"),
            _option("model"),
            _option("sessionPolicy", "session"),
            _option("ifUnreachable"),
        ),
    ),
    Operation(name="flight.list", says="List flights.", parameters=(_option("agent"),)),
    Operation(name="flight.wait", says="Wait for a flight.", parameters=(_word("flightId"),)),
    Operation(name="flight.retry", says="Try an ask again in a new flight.", parameters=(_word("flightId"),)),
    Operation(
        name="question.create",
        says="Ask for information, without asking for work.",
        parameters=(_word("to"), _word("body"), _option("flightId", "flight")),
    ),
    Operation(name="need", says="Ask the person at this machine and wait.", parameters=(_word("question"),)),
    Operation(
        name="why",
        says="Explain a decision from the records it rested on.",
        parameters=(_word("id"),),
    ),
    Operation(
        name="spawn",
        says="Create a child agent.",
        parameters=(_word("slug"), _option("from"), _option("role")),
    ),
    Operation(name="agent.revive", says="Bring a retired agent back.", parameters=(_word("address"),)),
    Operation(
        name="alias.set",
        says="Give an agent or session a short name of your own.",
        parameters=(_word("name"), _word("target")),
    ),
    Operation(name="alias.remove", says="Remove an alias.", parameters=(_word("name"),)),
    Operation(
        name="session.start",
        says="Start a harness session for an agent.",
        parameters=(
            _option("agent"),
            _option("harness"),
            _option("model"),
            _option("node"),
            _option("permission"),
        ),
    ),
    Operation(
        name="session.attach",
        says="Attach a running or resumable session to an agent.",
        parameters=(_word("session"), _option("agent")),
    ),
    Operation(name="session.list", says="List sessions."),
    Operation(name="token.create", says="Make a credential.", parameters=(_option("kind"),)),
    Operation(
        name="grant.add",
        says="Allow an agent something it may not do by default.",
        parameters=(
            _word("action"),
            _option("agent"),
            _option("path"),
            _option("channel"),
            _option("project"),
            _option("user"),
        ),
    ),
    Operation(name="config.set", says="Change a setting.", parameters=(_word("key"), _word("value"))),
    Operation(
        name="config.roots",
        says="Show or change the directories in which programs may be started.",
        parameters=(_option("add"),),
    ),
    Operation(name="user.keys", says="List a user's connector keys.", parameters=(_maybe("user"),)),
    Operation(
        name="user.link",
        says="Link a chat account to a user by a one-time code.",
        parameters=(_word("user"), _word("connector")),
    ),
    Operation(name="usage", says="Show what was spent, by ledger."),
    Operation(name="mesh.status", says="Show the nodes and their links."),
)

OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _TABLE}


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
        values = _values(remedy.parameters.get(parameter.name))
        if parameter.positional:
            words += values
        elif values:
            flags += [parameter.option, *values]
    return shlex.join(["scout", *operation.words, *flags, *words])


def _values(value: object) -> list[str]:
    if isinstance(value, list):
        return [str(one) for one in cast(list[object], value)]
    return [] if value is None else [str(value)]
