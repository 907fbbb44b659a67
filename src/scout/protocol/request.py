"""A request: one operation as one class. Its fields are the parameters, its docstring is the help.

Routes, OpenAPI, the client, the command line and remedies are all read off these classes.
"""

import re
from typing import Annotated, Any, ClassVar, Generic, TypeVar, get_args

from msgspec import UNSET, UnsetType

from scout.base.record import Record
from scout.model.moment import Moment
from scout.protocol.parameters import Key, describe

T = TypeVar("T")
PastMoment = Moment | UnsetType  # left out of results that show the present
_CAPITAL = re.compile(r"[A-Z]")


class Page(Record, Generic[T]):
    """One page of a list. `next` is the cursor of the next page, None on the last.

    `moment`: it shows the past, as it was then.
    """

    items: tuple[T, ...]
    next: str | None = None
    moment: PastMoment = UNSET


class Request(Record, Generic[T], forbid_unknown_fields=True):
    """`operation` is its name; `route` is empty for operations of the command line only.

    `words` are the positional parameters of the command, `flags` the flags that
    are not spelled as their parameter. `typed` is the command, where that is not the operation's name.
    `permission` says who may. `folder_field` names the parameter that is a folder, `settings_field` the
    one that holds an agent's settings: the broker looks at these on disk before it answers.
    `secret_field` names the parameter that holds secrets: no refusal repeats it.
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
    secret_field: ClassVar[str] = ""


class Write(Request[T], Generic[T]):
    """A request that changes something. Repeated with the same key, it runs once."""

    writes: ClassVar[bool] = True

    idempotency_key: Annotated[
        Key | None,
        describe("client-chosen key; repeating a request with the same key returns the first result"),
    ] = None


def get_result_type(request: type[Request[Any]]) -> Any:
    """Return the result type of a request: the type argument of its base class."""
    bases: tuple[Any, ...] = getattr(request, "__orig_bases__", ())
    return next(argument for base in bases for argument in get_args(base))


def build_flag(request: type[Request[Any]], name: str) -> str:
    """Return the command-line flag of a parameter."""
    spelled = request.flags.get(name) or _CAPITAL.sub(lambda capital: f"-{capital[0].lower()}", name)
    return f"--{spelled}"
