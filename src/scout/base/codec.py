"""Encode and decode records as JSON, and derive their JSON Schema. Invalid input raises only `Refused`."""

import difflib
import functools
import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, get_origin

import msgspec
from msgspec import inspect
from msgspec.structs import astuple, fields

from scout.base.refusal import BadRequest, Candidate, Diagnostic, Refused
from scout.base.time import Time

T = TypeVar("T")
_NO_SUCH_WORD = "Invalid enum value "  # the beginning of msgspec's message
_MISSING = re.compile(r"Object missing required field (`[^`]+`)")
_LONGEST = 60  # characters that are compared with the allowed words


class _Text(Protocol):
    """A text type with one validating constructor."""

    @classmethod
    def parse(cls, text: object) -> Any: ...


def _to_wire(value: object) -> object:
    return str(value)


def _to_store(value: Any) -> object:
    return int(value) if value.__class__ is Time else str(value)


def _parse_text(kind: Any, value: object) -> Any:
    name_type: _Text = kind
    return name_type.parse(value)


def _build_schema(kind: type) -> dict[str, Any]:
    return {"type": "string", "format": "date-time"} if kind is Time else {"type": "string"}


@functools.cache
def _get_decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    # Compiling a msgspec decoder costs far more than decoding one value.
    return msgspec.json.Decoder(kind, dec_hook=_parse_text)


_SENT = msgspec.json.Encoder(enc_hook=_to_wire)
_STORED = msgspec.json.Encoder(enc_hook=_to_store)


def encode(value: object) -> bytes:
    """Return the JSON sent on the wire: camelCase names, times as text."""
    return _SENT.encode(value)


def encode_for_store(value: object) -> bytes:
    """Return the JSON written to the store: the wire form with times as integer microseconds."""
    return _STORED.encode(value)


def encode_each_for_store(values: Iterable[object]) -> list[bytes]:
    """Return the JSON of each value, as it is written to the store."""
    # A line break inside a text is escaped, so each line is one value.
    return _STORED.encode_lines(values).split(b"\n")[:-1]


def drop_defaults(records: Iterable[msgspec.Struct]) -> list[msgspec.Struct]:
    """Return records for `encode_for_store` whose JSON lacks the fields that have their defaults.

    Decoding adds them again, so a default of a stored record must not change.
    """
    return [_get_lean_type(record.__class__)(*astuple(record)) for record in records]


_REQUIRED = object()  # equal to no value


@functools.cache
def _get_lean_type(kind: type[msgspec.Struct]) -> Callable[..., msgspec.Struct]:
    """Return a type with the same fields that leaves out defaults; those of inner records stay."""
    known = fields(kind)
    return msgspec.defstruct(
        kind.__name__,
        [(field.name, Any, _copy_default(field)) for field in known],
        rename={field.name: field.encode_name for field in known},
        omit_defaults=True,
        frozen=True,
    )


def _copy_default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        # An empty dict is left out, an empty dict[str, str] is not: msgspec compares the types.
        return msgspec.field(default_factory=get_origin(field.default_factory) or field.default_factory)
    return msgspec.field(default=_REQUIRED if field.default is msgspec.NODEFAULT else field.default)


def to_plain(value: object) -> Any:
    """Return the wire form as dicts, lists or tuples, and scalars."""
    return msgspec.to_builtins(value, enc_hook=_to_wire)


def decode(data: object, kind: type[T], *, strict: bool = True) -> T:
    """Decode JSON bytes or text, or convert an already decoded object, to `kind` (wire or stored form).

    With `strict=False`, an object may hold numbers and booleans as text.
    """
    try:
        if isinstance(data, bytes | str):
            return _get_decoder(kind).decode(data)
        return msgspec.convert(data, type=kind, strict=strict, dec_hook=_parse_text)
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
        problem, _, field = str(error).partition(" - at ")
        raise Refused(_explain(kind, problem, field.strip("`$."))) from None


def _explain(kind: Any, problem: str, field: str) -> BadRequest:
    """Return the refusal of a value; for a word that is not among those allowed, with these words."""
    if missing := _MISSING.fullmatch(problem):
        return BadRequest(problem=f"the field {missing[1]} is missing", field=field)
    got = problem.removeprefix(_NO_SUCH_WORD)
    allowed = list_allowed_words(kind, field) if got != problem else ()
    if not allowed:
        return BadRequest(problem=problem, field=field)
    near = difflib.get_close_matches(got.strip("'")[:_LONGEST], allowed, n=3)
    return BadRequest(
        problem=f"expected one of {', '.join(allowed)}; got {got}",
        field=field,
        candidates=tuple(Candidate(address=one) for one in near),
    )


def list_allowed_words(kind: Any, field: str = "") -> tuple[str, ...]:
    """Return the words that a type allows in a field such as `config.kind`; empty if it allows others."""
    found = _strip_type(inspect.type_info(kind))
    for name in re.findall(r"[^.\[\]]+|\[\d+\]", field):
        found = _strip_type(_get_inner_type(found, name))
    if isinstance(found, inspect.EnumType):
        return tuple(str(one.value) for one in found.cls)
    return tuple(map(str, found.values)) if isinstance(found, inspect.LiteralType) else ()


def _get_inner_type(kind: inspect.Type, name: str) -> inspect.Type:
    """Return the type of a field of a record or of an item of a list; any for what has no fixed fields."""
    if isinstance(kind, inspect.StructType):
        return next((one.type for one in kind.fields if one.encode_name == name), inspect.AnyType())
    return kind.item_type if isinstance(kind, inspect.ListType | inspect.VarTupleType) else inspect.AnyType()


def _strip_type(kind: inspect.Type) -> inspect.Type:
    """Return a type without its notes and without null."""
    while isinstance(kind, inspect.Metadata | inspect.UnionType):
        if isinstance(kind, inspect.Metadata):
            kind = kind.type
        else:
            kind = next(one for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind


def render(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as every surface shows it: the code, the message, then the facts."""
    facts = to_plain(diagnostic)
    return {"code": facts.pop("code"), "message": diagnostic.message, **facts}


def build_schema(kinds: Iterable[Any]) -> dict[str, Any]:
    """Return the JSON Schema of the given records, each under its name in `$defs`."""
    _, components = msgspec.json.schema_components(
        list(kinds), schema_hook=_build_schema, ref_template="#/$defs/{name}"
    )
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": components}
