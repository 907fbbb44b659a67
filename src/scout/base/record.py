"""A record: frozen, keyword-only, snake_case in Python and camelCase on the wire."""

from typing import Any, dataclass_transform

import msgspec


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class _RecordType(msgspec.StructMeta):
    """Metaclass that sets `kw_only` on every record; msgspec does not inherit it."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any) -> Any:
        options.setdefault("kw_only", True)
        return super().__new__(mcls, name, bases, namespace, **options)


class Record(msgspec.Struct, metaclass=_RecordType, frozen=True, rename="camel", gc=False):
    """The base class of everything that is stored or sent."""
