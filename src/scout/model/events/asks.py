"""Events of what is being done: asks, flights, deliveries, usage, the sweeper's nudges."""

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
    """Somebody asked for something to be done and tracked."""

    payload: Changed[Ask]


class FlightEvent(Event):
    payload: Changed[Flight]


class FlightQueued(FlightEvent, tag="collab.flight.queued"):
    """An attempt at an ask exists: the first, or a retry."""


class FlightUpdated(FlightEvent, tag="collab.flight.updated"):
    """Another phase, reason or next check in the same state."""


class FlightStarted(FlightEvent, tag="collab.flight.started"):
    """The target took the prompt."""


class FlightWaiting(FlightEvent, tag="collab.flight.waiting"):
    """It cannot go on before something else happens."""


class FlightResumed(FlightEvent, tag="collab.flight.resumed"):
    """What it waited for has happened."""


class FlightCompleted(FlightEvent, tag="collab.flight.completed"):
    """There is a reply."""


class FlightFailed(FlightEvent, tag="collab.flight.failed"):
    """It did not work out; the error says why and what to do."""


class FlightCancelled(FlightEvent, tag="collab.flight.cancelled"):
    """Somebody decided that it is not needed."""


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
    """Something is to reach a target; the wake decision is in the metadata."""


class DeliveryLeased(DeliveryEvent, tag="collab.delivery.leased"):
    """An attempt begins, or its holder is still at it."""


class DeliveryWoken(DeliveryEvent, tag="collab.delivery.woken"):
    """A program was started or resumed for it."""


class DeliveryAcked(DeliveryEvent, tag="collab.delivery.acked"):
    """The target took it."""


class DeliveryNacked(DeliveryEvent, tag="collab.delivery.nacked"):
    """The target did not take it now; there will be another attempt."""


class DeliveryFailed(DeliveryEvent, tag="collab.delivery.failed"):
    """An attempt ended without a word; there will be another, perhaps a repeat."""


class DeliveryDeadLettered(DeliveryEvent, tag="collab.delivery.dead_lettered"):
    """No attempt is left; the sender gets a bounce."""


class DeliveryCancelled(DeliveryEvent, tag="collab.delivery.cancelled"):
    """Nobody needs it any more."""


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
    """Tokens were spent."""

    payload: Changed[Usage]


class Nudge(Record):
    """One reminder to one holder; `count` is how many this record has had, `escalated` who it went past."""

    holder_id: str
    about: Ref
    rule: str
    count: int
    escalated_from: str | None = None
    next_at: Time | None = None


class Unwatched(Record):
    """What the sweeper does not remind anybody of any more, and why."""

    about: Ref
    reason: str


class SweepNudged(Event, tag="collab.sweep.nudged"):
    """The sweeper reminded the holder of a next move."""

    payload: Nudge


class SweepSettled(Event, tag="collab.sweep.settled"):
    """What somebody was reminded of has been done, or is no longer to be done."""

    payload: Unwatched
