"""Refusals of Scout as errors of A2A."""

from a2a.utils.errors import (
    A2AError,
    InternalError,
    InvalidParamsError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

from scout.base.codec import render
from scout.base.refusal import BadRequest, Diagnostic, Family, WrongState
from scout.model.problems.request import Forbidden, NotFound, NotOwner, TooLarge


def build_error(problem: Diagnostic) -> A2AError:
    """Return a refusal as an error of the protocol. What the caller may not see does not exist for it."""
    told = problem.message
    match problem:
        case NotFound() | Forbidden() | NotOwner():
            return TaskNotFoundError(message=told)
        case WrongState():
            return UnsupportedOperationError(message=told)
        case BadRequest() | TooLarge():
            return InvalidParamsError(message=told)
        case _ if problem.family in (Family.REQUEST, Family.AMBIGUOUS):
            return InvalidParamsError(message=told)
        case _:
            return InternalError(message=_get_title(problem), data=_list_facts(problem))


def _get_title(problem: Diagnostic) -> str:
    """Return what a refusal means in general: its facts, such as folders, are the operator's."""
    return (type(problem).__doc__ or "").partition("\n")[0]


def _list_facts(problem: Diagnostic) -> dict[str, str]:
    """Return the facts that help a client to decide when to try again."""
    facts = render(problem)
    return {name: str(facts[name]) for name in ("code", "retryAfter") if facts.get(name) is not None}
