"""Results as JSON: each record type has an encoder that is built once.

Records also carry the names that other integrations use (`model/wire_names.py`). msgspec encodes the record
in one call; the additional names are put in front of its fields, so no dict is made on the way.
"""

import copy
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast, get_args

import msgspec
from msgspec.structs import FieldInfo, force_setattr

from scout.base.codec import encode
from scout.base.record import Record
from scout.base.refusal import Refused, Remedy
from scout.model.agent import Agent
from scout.model.wire_names import OWN_IDS, SYNONYMS, list_derived
from scout.protocol.operations import build_command_line
from scout.protocol.overview import Status

_Encode = Callable[[Any], bytes]
_ENCODERS: dict[type[Any], _Encode] = {}


def encode_result(result: object) -> bytes:
    """Return a result as JSON; records also carry the names that other integrations use."""
    known = _ENCODERS.get(type(result))
    return known(result) if known is not None else _add_encoder(type(result))(result)


def render_remedy(remedy: Remedy) -> dict[str, Any]:
    """Return a remedy with the command to type, if there is one."""
    known = {"operation": remedy.operation, "parameters": remedy.parameters, "why": remedy.why}
    try:
        return {**known, "command": build_command_line(remedy)}
    except Refused:
        return known


def _add_encoder(kind: type[Any]) -> _Encode:
    _ENCODERS[kind] = found = _build_encoder(kind)
    return found


def _build_encoder(kind: type[Any]) -> _Encode:
    if issubclass(kind, Remedy):
        return lambda remedy: encode(render_remedy(remedy))
    if issubclass(kind, Status):
        return encode  # unchanged, so that it equals the output of `scout status`
    if issubclass(kind, Record):
        return _RecordEncoder(kind)
    return _encode_list if issubclass(kind, tuple | list) else encode


def _encode_list(values: Any) -> bytes:
    return b"[" + b",".join([encode_result(one) for one in values]) + b"]"


class _OtherName(NamedTuple):
    """A field that is sent under another name too, unless it is left out because it has this value."""

    field: str
    key: bytes
    left_out: object


class _RecordEncoder:
    """Encodes the records of one type."""

    def __init__(self, kind: type[Record]) -> None:
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        omits = kind.__struct_config__.omit_defaults
        own_ids = next((names for base, names in OWN_IDS.items() if issubclass(kind, base)), ())
        pairs = [(own, seed) for own, seed in SYNONYMS.items()] + [("id", name) for name in own_ids]
        self._names = tuple(
            _OtherName(fields[own].name, b'"%b":' % seed.encode(), _get_left_out(fields[own], omits=omits))
            for own, seed in pairs
            if own in fields and seed not in fields
        )
        self._inner = tuple(field.name for field in fields.values() if _has_records(field.type))
        self._derives = issubclass(kind, Agent)

    def __call__(self, record: Record) -> bytes:
        body = encode(self._encode_inner(record))
        names: list[bytes] = []
        for field, key, left_out in self._names:
            value = getattr(record, field)
            if value is not left_out:
                names.append(key + encode(value))
        if self._derives:
            names += _encode_derived(record)
        if not names:
            return body
        return b"{" + b",".join(names) + (b"," if len(body) > 2 else b"") + body[1:]

    def _encode_inner(self, record: Record) -> Record:
        """Return the record with its inner records encoded already."""
        encoded = record
        for name in self._inner:
            value = getattr(record, name)
            if value and isinstance(value, Record | tuple | list):
                encoded = copy.copy(record) if encoded is record else encoded
                force_setattr(encoded, name, msgspec.Raw(encode_result(cast("object", value))))
        return encoded


def _encode_derived(record: Record) -> list[bytes]:
    derived = list_derived(record)
    also = {SYNONYMS[name]: value for name, value in derived.items() if name in SYNONYMS}
    return [b'"%b":%b' % (name.encode(), encode(value)) for name, value in (derived | also).items()]


def _get_left_out(field: FieldInfo, *, omits: bool) -> object:
    """Return the value with which msgspec leaves the field out; a new object if it never does."""
    return field.default if omits and not field.required else object()


def _has_records(kind: Any) -> bool:
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if isinstance(kind, type) and issubclass(kind, Record):
        return True
    return any(_has_records(argument) for argument in get_args(kind))
