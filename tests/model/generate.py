"""Any record, from its own type: every field takes every shape that its type allows."""

import functools
import string
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from scout.base.ids import mint
from scout.base.time import Time
from scout.identity.address import QUALIFIERS, Address
from scout.identity.path import AgentPath
from scout.model.ref import PREFIXES, Ref

_TEXT = st.text(max_size=8)
_SEGMENT = st.text(string.ascii_lowercase + string.digits, min_size=1, max_size=6)
_ENTROPY = st.binary(min_size=10, max_size=10)

# On the wire a time has milliseconds.
TIMES = st.integers(0, 253_000_000_000_000).map(lambda milliseconds: Time(milliseconds * 1000))


def _ref(prefix: str, chance: bytes) -> Ref:
    return Ref.to(mint(prefix, 1_700_000_000_000, chance))


def _path(name: str, index: int) -> AgentPath:
    return AgentPath.parse(f"/u1/agent/x{name}/sub/{index}")  # no reserved word begins with x


REFS = st.builds(_ref, st.sampled_from(list(PREFIXES.values())), _ENTROPY)
PATHS = st.builds(_path, _SEGMENT, st.integers(0, 9))
ADDRESSES = st.builds(Address, definition_id=_SEGMENT, **{name: st.none() | _SEGMENT for name in QUALIFIERS})

_CUSTOM: dict[type, st.SearchStrategy[Any]] = {Time: TIMES, Ref: REFS, AgentPath: PATHS}


@functools.cache
def records(kind: Any) -> st.SearchStrategy[Any]:
    """Records of this type."""
    return _of(inspect.type_info(kind))


def _of(info: inspect.Type) -> st.SearchStrategy[Any]:  # noqa: PLR0912 (one case for each type there is)
    match info:
        case inspect.StructType(cls=cls) if cls is Address:
            return ADDRESSES
        case inspect.StructType(cls=cls, fields=fields):
            return st.builds(cls, **{field.name: _field(field) for field in fields})
        case inspect.CustomType(cls=cls):
            return _CUSTOM[cls]
        case inspect.EnumType(cls=cls):
            return st.sampled_from(list(cls))
        case inspect.UnionType(types=types):
            return st.one_of([_of(one) for one in types])
        case inspect.VarTupleType(item_type=item):
            return st.lists(_of(item), max_size=2).map(tuple)
        case inspect.DictType(value_type=value):
            return st.dictionaries(_TEXT, _of(value), max_size=2)
        case inspect.AnyType() | inspect.StrType():
            return _TEXT
        case inspect.IntType():
            return st.integers(0, 10**6)
        case inspect.FloatType():
            return st.floats(0, 1e6).map(lambda number: round(number, 3))
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case _:
            raise NotImplementedError(info)


def _field(field: inspect.Field) -> st.SearchStrategy[Any]:
    # The dimensions of a handle are folded text wherever they stand.
    handle = field.name in {"definition_id", "workspace", "profile"}
    return st.none() | _SEGMENT if handle else _of(field.type)


def wire_names(kind: type[msgspec.Struct]) -> set[str]:
    return {field.encode_name for field in msgspec.structs.fields(kind)}
