"""Every fact the log can hold: one list of all event types, and how a stored one is read."""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from scout.base.codec import decode
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.model.ask_event import (
    AskCreated,
    DeliveryAcked,
    DeliveryCancelled,
    DeliveryDeadLettered,
    DeliveryFailed,
    DeliveryLeased,
    DeliveryNacked,
    DeliveryRequested,
    DeliveryWoken,
    FlightCancelled,
    FlightCompleted,
    FlightFailed,
    FlightQueued,
    FlightResumed,
    FlightStarted,
    FlightUpdated,
    FlightWaiting,
    SweepNudged,
    SweepSettled,
    UsageReported,
)
from scout.model.directory_event import (
    AliasBrokenEvent,
    AliasCreated,
    AliasRemoved,
    AliasRepaired,
    AliasRetargeted,
    BindingClosed,
    BindingCreated,
    BindingReopened,
    CardCreated,
    CardExpired,
    CardRevoked,
    CardUsed,
    GrantCreated,
    GrantExpired,
    GrantRevoked,
    KeyFreed,
    KeyLinked,
    NodeAdmitted,
    NodeCreated,
    NodeLeft,
    NodeLost,
    NodePaused,
    NodeRecovered,
    NodeRemoved,
    NodeResumed,
    NodeUpdated,
    ScheduleCreated,
    ScheduleEnded,
    ScheduleFired,
    SchedulePaused,
    ScheduleResumed,
    ScheduleUpdated,
    TokenCreated,
    TokenExpired,
    TokenRevoked,
    UserCreated,
    UserDeleted,
    UserRestored,
    UserUpdated,
)
from scout.model.envelope import Event
from scout.model.presence_event import (
    AgentHeartbeat,
    AgentOffline,
    AgentOnline,
    AgentRegistered,
    AgentRetired,
    AgentRevived,
    AgentSleeping,
    AgentUpdated,
    AgentWoken,
    EndpointAttaching,
    EndpointClaimed,
    EndpointFailed,
    EndpointLost,
    EndpointReady,
    EndpointRecovered,
    EndpointRegistered,
    EndpointReleased,
    EndpointStale,
    EndpointStopped,
    EndpointUpdated,
    EndpointWaking,
    SessionEnded,
    SessionLost,
    SessionReady,
    SessionResumed,
    SessionStarted,
    SessionUpdated,
)
from scout.model.talk_event import (
    AllowanceCreated,
    AllowanceRevoked,
    AttachmentStored,
    AttentionAnswered,
    AttentionCreated,
    AttentionDenied,
    AttentionDismissed,
    AttentionExpired,
    AttentionNotified,
    AttentionResolved,
    ConversationArchived,
    ConversationCreated,
    ConversationCursor,
    ConversationMember,
    ConversationPolicy,
    MessagePosted,
    MessageRedacted,
    QuestionAnswered,
    QuestionClosed,
    QuestionCreated,
    QuestionDeclined,
    QuestionReopened,
    WorkItemCreated,
    WorkItemUpdated,
)

__all__ = ["ALL", "UPCASTS", "AnyEvent", "Upcast", "event_type", "read_event"]

Upcast = Callable[[dict[str, Any]], dict[str, Any]]

AnyEvent = (
    MessagePosted
    | MessageRedacted
    | AttachmentStored
    | ConversationCreated
    | ConversationPolicy
    | ConversationArchived
    | ConversationMember
    | ConversationCursor
    | QuestionCreated
    | QuestionAnswered
    | QuestionClosed
    | QuestionDeclined
    | QuestionReopened
    | WorkItemCreated
    | WorkItemUpdated
    | AttentionCreated
    | AttentionNotified
    | AttentionResolved
    | AttentionDenied
    | AttentionAnswered
    | AttentionExpired
    | AttentionDismissed
    | AllowanceCreated
    | AllowanceRevoked
    | AskCreated
    | FlightQueued
    | FlightUpdated
    | FlightStarted
    | FlightWaiting
    | FlightResumed
    | FlightCompleted
    | FlightFailed
    | FlightCancelled
    | DeliveryRequested
    | DeliveryLeased
    | DeliveryWoken
    | DeliveryAcked
    | DeliveryNacked
    | DeliveryFailed
    | DeliveryDeadLettered
    | DeliveryCancelled
    | UsageReported
    | SweepNudged
    | SweepSettled
    | AgentRegistered
    | AgentUpdated
    | AgentSleeping
    | AgentWoken
    | AgentRetired
    | AgentRevived
    | AgentHeartbeat
    | AgentOnline
    | AgentOffline
    | EndpointRegistered
    | EndpointUpdated
    | EndpointAttaching
    | EndpointWaking
    | EndpointReady
    | EndpointClaimed
    | EndpointReleased
    | EndpointLost
    | EndpointFailed
    | EndpointStale
    | EndpointStopped
    | EndpointRecovered
    | SessionStarted
    | SessionReady
    | SessionUpdated
    | SessionEnded
    | SessionLost
    | SessionResumed
    | AliasCreated
    | AliasRetargeted
    | AliasBrokenEvent
    | AliasRepaired
    | AliasRemoved
    | CardCreated
    | CardUsed
    | CardExpired
    | CardRevoked
    | BindingCreated
    | BindingClosed
    | BindingReopened
    | UserCreated
    | UserUpdated
    | UserDeleted
    | UserRestored
    | KeyLinked
    | KeyFreed
    | ScheduleCreated
    | ScheduleUpdated
    | ScheduleFired
    | SchedulePaused
    | ScheduleResumed
    | ScheduleEnded
    | GrantCreated
    | GrantRevoked
    | GrantExpired
    | TokenCreated
    | TokenRevoked
    | TokenExpired
    | NodeCreated
    | NodeUpdated
    | NodeLost
    | NodeRecovered
    | NodeLeft
    | NodeRemoved
    | NodeAdmitted
    | NodePaused
    | NodeResumed
)

ALL: tuple[type[Event], ...] = AnyEvent.__args__


@functools.cache
def event_type(event: type[Event]) -> str:
    """The wire name of an event class."""
    return str(event.__struct_config__.tag)


# (type, version) → how to make the next version of it. A stored event is never rewritten.
UPCASTS: Mapping[tuple[str, int], Upcast] = {}


_BY_TYPE = {event_type(event): event for event in ALL}


class _Header(Record):
    type: str
    v: int = 1


def read_event(data: bytes | str, upcasts: Mapping[tuple[str, int], Upcast] = UPCASTS) -> Event:
    """A stored or sent event in its current version; fields that this version does not know are ignored."""
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
