"""Every diagnostic code, wherever it is declared, and what it means."""

import difflib
import textwrap
from typing import TYPE_CHECKING, Union

from scout.base import refusal
from scout.base.refusal import Candidate, Diagnostic, Refused, Remedy, get_code
from scout.base.registry import list_classes
from scout.identity import problem
from scout.model.problems import chats, mesh, people, request, session, target, tree
from scout.model.problems.request import NotFound

ALL: tuple[type[Diagnostic], ...] = list_classes(
    (problem, target, session, tree, chats, mesh, people, request, refusal),
    Diagnostic,
    # A base class has no name on the wire.
    lambda diagnostic: diagnostic.__struct_config__.tag != diagnostic.__name__,
)

if TYPE_CHECKING:
    AnyDiagnostic = Diagnostic
else:
    AnyDiagnostic = Union[ALL]  # noqa: UP007 (the classes are only known at run time)

_BY_CODE = {get_code(diagnostic): diagnostic for diagnostic in ALL}


def find_diagnostic(code: str) -> type[Diagnostic]:
    """The diagnostic with this code, or a refusal with the nearest ones."""
    found = _BY_CODE.get(code)
    if found is None:
        nearest = difflib.get_close_matches(code, _BY_CODE, n=3)
        candidates = tuple(Candidate(address=name) for name in nearest)
        remedies = tuple(Remedy(operation="explain", parameters={"code": name}) for name in nearest)
        every = Remedy(operation="explain", parameters={}, why="every code")
        raise Refused(
            NotFound(noun="diagnostic", id=code[:60], candidates=candidates, remedies=(*remedies, every))
        )
    return found


def explain(code: str) -> str:
    """What `scout explain CODE` prints."""
    first, _, rest = (find_diagnostic(code).__doc__ or "").partition("\n")
    return f"{first}\n{textwrap.dedent(rest)}".strip()
