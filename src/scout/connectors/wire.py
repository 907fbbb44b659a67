"""The base of what a platform sends."""

from typing import Any, TypeVar

import msgspec

from scout.base.record import Record

T = TypeVar("T")


class WireRecord(Record, rename=lambda name: name):
    """A part of an answer or event, with the platform's names. Fields that Scout does not use are ignored."""


def convert(raw: Any, kind: type[T]) -> T | None:
    """Return a part of an event; None if it has not the expected form, because anybody may have sent it."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError:
        return None
