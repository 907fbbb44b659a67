"""Events of the mesh: envelopes to other nodes, and envelopes that came from them."""

from collections.abc import Mapping

from scout.base.record import Record
from scout.model.events.envelope import Changed, Event
from scout.model.flight import FlightError
from scout.model.mesh.envelope import ReceiptState
from scout.model.mesh.outbox import OutboxEntry
from scout.model.mesh_receipt import OutboxState


class EnvelopeEvent(Event):
    payload: Changed[OutboxEntry]


class EnvelopeQueued(EnvelopeEvent, tag="collab.envelope.queued"):
    """An envelope waits to be published, for the first time or again."""


class EnvelopeForwarded(EnvelopeEvent, tag="collab.envelope.forwarded"):
    """The server of the mesh has the envelope."""


class EnvelopeAccepted(EnvelopeEvent, tag="collab.envelope.accepted"):
    """The other node has stored the envelope and applied it."""


class EnvelopeDelivered(EnvelopeEvent, tag="collab.envelope.delivered"):
    """The agent on the other node has what the envelope carried."""


class EnvelopeRefused(EnvelopeEvent, tag="collab.envelope.refused"):
    """The other node refused the envelope; the problem says why."""


class EnvelopeExpired(EnvelopeEvent, tag="collab.envelope.expired"):
    """No receipt came in time, or the envelope is no longer needed."""


class ReceivedEnvelope(Record, omit_defaults=True):
    """An envelope that came from another node, taken once.

    `subject`: the record that it told about. `authentic`: it was signed by the node that it names; only then
    its id counts as taken. `problem`: why nothing came of it. `moved_to`: where its target lives now.
    """

    envelope_id: str
    node_id: str
    kind: str
    outcome: ReceiptState
    authentic: bool = True
    subject: str | None = None
    conversation_id: str | None = None
    sender: str | None = None
    problem: FlightError | None = None
    moved_to: str | None = None


class EnvelopeReceived(Event, tag="collab.envelope.received"):
    """An envelope came from another node, and was applied or refused."""

    payload: ReceivedEnvelope


class ForgottenEnvelopes(Record):
    """The envelopes that came before event `before` are no longer known: no node can repeat them."""

    before: int


class EnvelopesForgotten(Event, tag="collab.envelope.forgotten"):
    """The ids of old envelopes from other nodes were removed."""

    payload: ForgottenEnvelopes


OUTBOX_EVENTS: Mapping[OutboxState, type[EnvelopeEvent]] = {
    OutboxState.QUEUED: EnvelopeQueued,
    OutboxState.FORWARDED: EnvelopeForwarded,
    OutboxState.ACCEPTED: EnvelopeAccepted,
    OutboxState.DELIVERED: EnvelopeDelivered,
    OutboxState.REFUSED: EnvelopeRefused,
    OutboxState.EXPIRED: EnvelopeExpired,
}
