"""Every event type of the log, and the reader for stored events."""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from scout.base.codec import decode
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.registry import list_classes
from scout.model.events import asks, directory, presence, reservations, talk
from scout.model.events.envelope import Event

Upcast = Callable[[dict[str, Any]], dict[str, Any]]

ALL: tuple[type[Event], ...] = list_classes(
    (talk, asks, presence, directory, reservations),
    Event,
    lambda event: event.__struct_config__.tag != event.__name__,  # a base class has no wire name
)

if TYPE_CHECKING:
    AnyEvent = Event
else:
    AnyEvent = Union[ALL]  # noqa: UP007 (the classes are only known at run time)


@functools.cache
def get_event_type(event: type[Event]) -> str:
    """Return the wire name of an event class."""
    return str(event.__struct_config__.tag)


# (type, version) → the function that converts it to the next version. Stored events are never rewritten.
UPCASTS: Mapping[tuple[str, int], Upcast] = {}


_BY_TYPE = {get_event_type(event): event for event in ALL}


class _Header(Record):
    type: str
    v: int = 1


def read_event(data: bytes | str, upcasts: Mapping[tuple[str, int], Upcast] = UPCASTS) -> Event:
    """Read a stored or sent event, upgraded to its current version; unknown fields are ignored."""
    header = decode(data, _Header)
    kind = _BY_TYPE.get(header.type)
    if kind is None:
        raise Refused(BadRequest(problem=f"unknown event type '{header.type:.60}'", field="type"))
    if (header.type, header.v) not in upcasts:
        return decode(data, kind)
    fields, version = decode(data, dict[str, Any]), header.v
    while lift := upcasts.get((header.type, version)):
        version += 1
        fields = {**lift(fields), "v": version}
    return decode(fields, kind)
