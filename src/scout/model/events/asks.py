"""Events of asks, flights, deliveries, usage and the sweeper's reminders."""

from collections.abc import Mapping

from scout.base.record import Record
from scout.base.time import Time
from scout.model.ask import Ask
from scout.model.delivery import Delivery, DeliveryMove
from scout.model.events.envelope import Changed, Event
from scout.model.flight import Flight, FlightMove
from scout.model.ref import Ref
from scout.model.usage import Usage


class AskCreated(Event, tag="collab.ask.created"):
    """A tracked ask was created."""

    payload: Changed[Ask]


class FlightEvent(Event):
    payload: Changed[Flight]


class FlightQueued(FlightEvent, tag="collab.flight.queued"):
    """A flight was queued: the first attempt at an ask, or a retry."""


class FlightUpdated(FlightEvent, tag="collab.flight.updated"):
    """The flight's phase, reason or next check changed; its state did not."""


class FlightStarted(FlightEvent, tag="collab.flight.started"):
    """The target accepted the prompt."""


class FlightWaiting(FlightEvent, tag="collab.flight.waiting"):
    """The flight is blocked until something else happens."""


class FlightResumed(FlightEvent, tag="collab.flight.resumed"):
    """The flight is no longer blocked."""


class FlightCompleted(FlightEvent, tag="collab.flight.completed"):
    """The flight completed with a reply."""


class FlightFailed(FlightEvent, tag="collab.flight.failed"):
    """The flight failed; the error gives the reason and the remedy."""


class FlightCancelled(FlightEvent, tag="collab.flight.cancelled"):
    """The flight was cancelled."""


FLIGHT_EVENTS: Mapping[FlightMove, type[FlightEvent]] = {
    FlightMove.START: FlightStarted,
    FlightMove.WAIT: FlightWaiting,
    FlightMove.RESUME: FlightResumed,
    FlightMove.COMPLETE: FlightCompleted,
    FlightMove.FAIL: FlightFailed,
    FlightMove.CANCEL: FlightCancelled,
}


class DeliveryEvent(Event):
    payload: Changed[Delivery]


class DeliveryRequested(DeliveryEvent, tag="collab.delivery.requested"):
    """A delivery to a target was requested; the metadata holds the wake decision."""


class DeliveryLeased(DeliveryEvent, tag="collab.delivery.leased"):
    """An attempt started, or its holder renewed the lease."""


class DeliveryWoken(DeliveryEvent, tag="collab.delivery.woken"):
    """A program was started or resumed for the delivery."""


class DeliveryAcked(DeliveryEvent, tag="collab.delivery.acked"):
    """The target accepted the delivery."""


class DeliveryNacked(DeliveryEvent, tag="collab.delivery.nacked"):
    """The target rejected the attempt; the delivery is retried."""


class DeliveryFailed(DeliveryEvent, tag="collab.delivery.failed"):
    """An attempt ended without a result; the delivery is retried, perhaps as a repeat."""


class DeliveryDeadLettered(DeliveryEvent, tag="collab.delivery.dead_lettered"):
    """No attempts are left; the sender gets a bounce."""


class DeliveryCancelled(DeliveryEvent, tag="collab.delivery.cancelled"):
    """The delivery is no longer needed."""


DELIVERY_EVENTS: Mapping[DeliveryMove, type[DeliveryEvent]] = {
    DeliveryMove.LEASE: DeliveryLeased,
    DeliveryMove.RENEW: DeliveryLeased,
    DeliveryMove.ACK: DeliveryAcked,
    DeliveryMove.NACK: DeliveryNacked,
    DeliveryMove.EXPIRE: DeliveryFailed,
    DeliveryMove.DEAD_LETTER: DeliveryDeadLettered,
    DeliveryMove.CANCEL: DeliveryCancelled,
}


class UsageReported(Event, tag="collab.usage.reported"):
    """Token usage was reported."""

    payload: Changed[Usage]


class Nudge(Record):
    """One reminder to one holder. `count`: reminders so far; `escalated_from`: the holder it bypassed."""

    holder_id: str
    about: Ref
    rule: str
    count: int
    escalated_from: str | None = None
    next_at: Time | None = None


class Unwatched(Record):
    """A record that the sweeper no longer sends reminders about, and why."""

    about: Ref
    reason: str


class SweepNudged(Event, tag="collab.sweep.nudged"):
    """The sweeper reminded the holder of a next move."""

    payload: Nudge


class SweepSettled(Event, tag="collab.sweep.settled"):
    """The move that a reminder was about was made, or is no longer needed."""

    payload: Unwatched
