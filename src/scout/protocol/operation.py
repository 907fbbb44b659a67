"""One row of the operation table, shared by every surface."""

from typing import Any

import msgspec

from scout.base.record import Record
from scout.protocol.request import Request, build_flag


class Parameter(Record):
    """One parameter: positional on the command line, or a flag made from its name."""

    name: str
    positional: bool = False
    required: bool = False
    option: str = ""
    says: str = ""


class Operation(Record):
    """One operation: its name (dots separate the words of the command), description and permission.

    `request` is None for operations of the command line only.
    """

    name: str
    says: str
    permission: str = ""
    parameters: tuple[Parameter, ...] = ()
    request: type[Request[Any]] | None = None

    @property
    def words(self) -> tuple[str, ...]:
        own = self.request.typed if self.request is not None else ()
        return own or tuple(self.name.split("."))


def build_operation(request: type[Request[Any]]) -> Operation:
    """Return the row of a request, read off its class."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(request)}
    assert set(request.words) <= set(fields), request
    order = (*request.words, *(name for name in fields if name not in request.words))
    return Operation(
        name=request.operation,
        says=(request.__doc__ or "").partition("\n")[0],
        permission=request.permission,
        parameters=tuple(
            Parameter(
                name=name,
                positional=name in request.words,
                required=fields[name].required,
                option=build_flag(request, name),
                says=_get_description(fields[name].type),
            )
            for name in order
        ),
        request=request,
    )


def build_local_operation(name: str, says: str, *words: str, **flags: str) -> Operation:
    """Return a row without a request: its words (optional if they end in ?), then its flags."""
    named = [(word.rstrip("?"), not word.endswith("?")) for word in words]
    positional = [Parameter(name=word, positional=True, required=needed) for word, needed in named]
    options = [Parameter(name=name, option=f"--{flag or name}") for name, flag in flags.items()]
    return Operation(name=name, says=says, parameters=(*positional, *options))


def _get_description(kind: Any) -> str:
    """Return the description that `says` attached to a field's type."""
    notes: tuple[Any, ...] = getattr(kind, "__metadata__", ())
    return next((note.description for note in notes if getattr(note, "description", None)), "")
