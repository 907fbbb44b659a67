"""Changes of a record: check the caller's revision, apply the move, increment the revision."""

from enum import StrEnum
from typing import Any, TypeVar

import msgspec

from scout.base.machine import Machine
from scout.base.record import Record
from scout.base.refusal import Refused, WrongRevision
from scout.base.time import Time


class Mutable(Record):
    """The common fields of records that change in place."""

    id: str
    revision: int = 1
    created_at: Time
    updated_at: Time


R = TypeVar("R", bound=Mutable)
S = TypeVar("S", bound=StrEnum)
M = TypeVar("M", bound=StrEnum)


def change_record(noun: str, record: R, now: Time, *, seen: int | None = None, **changes: Any) -> R:
    """Return the record with `changes`; refuse if it changed after the caller read revision `seen`."""
    if seen is not None and seen != record.revision:
        raise Refused(WrongRevision(noun=noun, id=record.id, seen=seen, current=record.revision))
    return msgspec.structs.replace(record, revision=record.revision + 1, updated_at=now, **changes)


def move_record(
    machine: Machine[S, M],
    record: R,
    move: M,
    now: Time,
    *,
    seen: int | None = None,
    field: str = "state",
    **changes: Any,
) -> R:
    """Return the record after `move`; `field` is the name of its state field."""
    following = machine.after(getattr(record, field), move)
    return change_record(machine.noun, record, now, seen=seen, **{field: following}, **changes)
