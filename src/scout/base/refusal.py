"""Refusals: one exception that carries typed facts. The message is derived from the facts."""

from enum import Enum
from typing import Any, ClassVar

from scout.base.record import Record

PLACEHOLDER = "…"  # in a remedy: a value that only the caller knows


class Family(Enum):
    """A class of refusals: its exit code on the command line and its usual HTTP status."""

    REQUEST = (2, 400)
    UNKNOWN = (3, 404)
    AMBIGUOUS = (4, 409)
    UNREACHABLE = (5, 503)
    CREDENTIAL = (6, 403)
    CONFLICT = (7, 409)
    LIMIT = (8, 429)
    FAILURE = (9, 500)

    def __init__(self, exit_code: int, status: int) -> None:
        self.exit_code = exit_code
        self.status = status


class Remedy(Record, omit_defaults=True):
    """The next call that works: an operation and its parameters."""

    operation: str
    parameters: dict[str, Any]
    why: str = ""


class Candidate(Record, omit_defaults=True):
    """A likely target and the shortest address that reaches it."""

    address: str
    canonical: str = ""
    agent_id: str = ""
    why: str = ""


class Diagnostic(Record, tag_field="code"):
    """The facts of one refusal. Each code is a subclass; its docstring is what `explain` prints."""

    family: ClassVar[Family] = Family.REQUEST
    status: ClassVar[int | None] = None

    candidates: tuple[Candidate, ...] = ()
    remedies: tuple[Remedy, ...] = ()

    @property
    def code(self) -> str:
        return get_code(type(self))

    @property
    def message(self) -> str:
        """One sentence for a person, built from the facts."""
        raise NotImplementedError


def get_code(diagnostic: type[Diagnostic]) -> str:
    """Return the wire tag of a diagnostic class."""
    return str(diagnostic.__struct_config__.tag)


def get_status(diagnostic: type[Diagnostic]) -> int:
    """Return the HTTP status of a diagnostic class, by default the status of its family."""
    return diagnostic.status or diagnostic.family.status


class Refused(Exception):  # noqa: N818 (a refusal is a result, not an error)
    """The only exception that public functions of the pure layers raise."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic)
        self.diagnostic = diagnostic

    def __str__(self) -> str:
        return f"{self.diagnostic.code}: {self.diagnostic.message}"


class BadRequest(Diagnostic, tag="bad_request"):
    """The request is not valid for this operation.

    The message names the field, the expected value and the received one. Nothing was stored.
    """

    problem: str
    field: str = ""

    @property
    def message(self) -> str:
        return f"{self.problem} (at {self.field})" if self.field else self.problem


class WrongState(Diagnostic, tag="wrong_state"):
    """The record's state does not allow this move.

    `accepts` lists the allowed moves. In a terminal state the list is empty: the first
    terminal result wins and later ones are refused, so nothing can be finished twice. `how` explains
    how it reached that state, if known.
    """

    family: ClassVar[Family] = Family.CONFLICT

    noun: str
    state: str
    move: str
    accepts: tuple[str, ...]
    terminal: bool
    how: str = ""

    @property
    def message(self) -> str:
        article = "an" if self.noun[:1] in "aeio" else "a"  # a user
        here = f"{article} {self.noun} that is {self.state} does not allow '{self.move}'"
        if self.terminal:
            return f"{here}: {self.how or f'{self.state} is final'}"
        return f"{here}; allowed: {', '.join(self.accepts)}"


class WrongRevision(Diagnostic, tag="wrong_revision"):
    """The record changed after you read it.

    Read it again, check what changed, and retry with the new revision.
    """

    family: ClassVar[Family] = Family.CONFLICT

    noun: str
    id: str
    seen: int
    current: int

    @property
    def message(self) -> str:
        return f"{self.noun} {self.id} is at revision {self.current}; you read {self.seen}"
