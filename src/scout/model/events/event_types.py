"""Every event type of the log, and the reader for stored events."""

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Union

from scout.base.codec import decode
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.registry import list_classes
from scout.model.events import archives, asks, chats, directory, mesh, presence, reservations, talk
from scout.model.events.envelope import Event

Upcast = Callable[[dict[str, Any]], dict[str, Any]]

ALL: tuple[type[Event], ...] = list_classes(
    (talk, asks, presence, directory, reservations, chats, mesh, archives),
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
# A renamed type is upcast to its new name.
UPCASTS: Mapping[tuple[str, int], Upcast] = {
    ("collab.user.deleted", 1): lambda fields: {**fields, "type": "collab.user.retired"},
    ("collab.user.restored", 1): lambda fields: {**fields, "type": "collab.user.revived"},
}


_BY_TYPE = {get_event_type(event): event for event in ALL}


class _Header(Record):
    type: str
    v: int = 1


def read_event(data: bytes | str, upcasts: Mapping[tuple[str, int], Upcast] = UPCASTS) -> Event:
    """Read a stored or sent event, upgraded to its current version; unknown fields are ignored."""
    header = decode(data, _Header)
    if (header.type, header.v) not in upcasts:
        return decode(data, get_event_class(header.type))
    fields: dict[str, Any] = decode(data, dict[str, Any])
    version = header.v
    while lift := upcasts.get((fields["type"], version)):
        version += 1
        fields = {**lift(fields), "v": version}
    return decode(fields, get_event_class(fields["type"]))


def get_event_class(name: str) -> type[Event]:
    """Return the event class of a wire name; refuse an unknown name."""
    kind = _BY_TYPE.get(name)
    if kind is None:
        raise Refused(BadRequest(problem=f"unknown event type '{name:.60}'", field="type"))
    return kind
