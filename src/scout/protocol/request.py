"""A request: one operation as one class. Its fields are the parameters, its docstring says what it does.

Routes, OpenAPI, the client, the command line and remedies are all read off these classes.
"""

import re
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_args

from scout.base.record import Record
from scout.protocol.parameters import Key, says

__all__ = ["Page", "Request", "Write", "flag_of", "result_of"]

T = TypeVar("T")
_CAPITAL = re.compile(r"[A-Z]")


class Page(Record, Generic[T]):
    """Some of a list, and the cursor of the rest; `next` is None on the last page."""

    items: tuple[T, ...]
    next: str | None = None


class Request(Record, Generic[T], forbid_unknown_fields=True):
    """`operation` names it; `route` is empty for what only the command line does.

    `words` are the parameters that stand without a flag on the command line, `flags` the flags that
    are not spelled as their parameter. `typed` is the command, where that is not the operation's name.
    `permission` says who may. `folder_field` names the parameter that is a folder, `settings_field` the
    one that holds an agent's settings: the broker looks at these on disk before it answers.
    """

    operation: ClassVar[str] = ""
    typed: ClassVar[tuple[str, ...]] = ()
    route: ClassVar[str] = ""
    status: ClassVar[int] = 200
    words: ClassVar[tuple[str, ...]] = ()
    flags: ClassVar[dict[str, str]] = {}
    permission: ClassVar[str] = "any credential"
    writes: ClassVar[bool] = False
    folder_field: ClassVar[str] = ""
    settings_field: ClassVar[str] = ""


class Write(Request[T], Generic[T]):
    """A request that changes something: sent twice with one key, it is done once."""

    writes: ClassVar[bool] = True

    idempotency_key: Annotated[
        Key | None, says("a text of your own: the same request again under it gives the first answer")
    ] = None


def result_of(request: type[Request[Any]]) -> Any:
    """The type of the answer: what stands in the brackets of its base."""
    bases: tuple[Any, ...] = getattr(request, "__orig_bases__", ())
    return next(argument for base in bases for argument in get_args(base))


def flag_of(request: type[Request[Any]], name: str) -> str:
    """A parameter as a flag of the command line."""
    spelled = request.flags.get(name) or _CAPITAL.sub(lambda capital: f"-{capital[0].lower()}", name)
    return f"--{spelled}"
