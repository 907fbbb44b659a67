"""Whether the logs of the nodes of a mesh agree with each other, and with what callers were told.

Nothing that a caller was told is lost, nothing took effect twice, each conversation has one order, and every
envelope has ended.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from scout.model.events.asks import FlightEvent
from scout.model.events.envelope import Event
from scout.model.events.mesh import EnvelopeEvent, EnvelopeReceived
from scout.model.events.talk import MessagePosted
from scout.model.flight import FLIGHT, FlightState
from scout.model.mesh.envelope import ReceiptState
from scout.model.mesh.outbox import OutboxEntry
from scout.model.mesh_receipt import OutboxState

Log = Sequence[Event]
_TAKEN = (OutboxState.ACCEPTED, OutboxState.DELIVERED)


class Told:
    """What callers were told, each with the names of the node that said so and of the node that it concerns."""

    def __init__(self) -> None:
        self.messages: dict[tuple[str, str], list[str]] = {}
        self.flights: dict[tuple[str, str], list[str]] = {}

    def add_message(self, sender: str, receiver: str, ident: str) -> None:
        self.messages.setdefault((sender, receiver), []).append(ident)

    def add_flight(self, asker: str, runner: str, ident: str) -> None:
        self.flights.setdefault((asker, runner), []).append(ident)

    @property
    def all(self) -> list[tuple[str, str, str]]:
        """Each message and flight with its two nodes."""
        kinds = (self.messages, self.flights)
        return [(*nodes, one) for kind in kinds for nodes, idents in kind.items() for one in idents]


def check_logs(logs: Mapping[str, Log], told: Told) -> None:
    """Compare the logs of all nodes, by name, once nothing is under way any more."""
    for (sender, receiver), idents in told.messages.items():
        _check_messages(logs[sender], logs[receiver], idents, f"{sender} to {receiver}")
    for nodes, idents in told.flights.items():
        for name in nodes:
            _check_flights(logs[name], idents, name)
    for name, log in logs.items():
        _check_taken_once(log, name)
        _check_outbox(name, log, [other for one, other in logs.items() if one != name])


def find_open(log: Log) -> list[OutboxEntry]:
    """The envelopes of a log that have no receipt yet."""
    return [
        one for one in _list_outbox(log).values() if one.state in (OutboxState.QUEUED, OutboxState.FORWARDED)
    ]


def find_unfinished(log: Log, idents: Sequence[str]) -> list[str]:
    """Which of these flights have not ended in a log."""
    ended = {ident for ident, state in _list_ends(log) if state in FLIGHT.terminal}
    return [one for one in idents if one not in ended]


def find_missing(log: Log, idents: Sequence[str]) -> list[str]:
    """Which of these messages are not in a log."""
    posted = {one.payload.message_id for one in log if isinstance(one, MessagePosted)}
    return [one for one in idents if one not in posted]


def _check_messages(sent: Log, received: Log, idents: Sequence[str], way: str) -> None:
    here, there = _group_posted(sent, idents), _group_posted(received, idents)
    assert sorted(one for line in here.values() for one in line) == sorted(idents), f"not stored: {way}"
    assert there == here, f"lost, doubled or out of order: {way}"


def _group_posted(log: Log, idents: Sequence[str]) -> dict[str, list[str]]:
    """The messages of each conversation in the order of the log."""
    wanted, lines = {*idents}, dict[str, list[str]]()
    for one in log:
        if isinstance(one, MessagePosted) and one.payload.message_id in wanted:
            lines.setdefault(one.target.id, []).append(one.payload.message_id)
    return lines


def _check_flights(log: Log, idents: Sequence[str], name: str) -> None:
    ends = Counter(_list_ends(log))
    assert {one: ends[one, FlightState.COMPLETED] for one in idents} == dict.fromkeys(idents, 1), name
    others = [one for one in ends if one[0] in {*idents} and one[1] is not FlightState.COMPLETED]
    assert not others, f"ended twice on {name}"


def _list_ends(log: Log) -> list[tuple[str, FlightState]]:
    records = (one.payload.record for one in log if isinstance(one, FlightEvent))
    return [(one.id, one.state) for one in records if one.state in FLIGHT.terminal]


def _check_taken_once(log: Log, name: str) -> None:
    received = (one.payload for one in log if isinstance(one, EnvelopeReceived))
    taken = Counter(one.envelope_id for one in received if one.authentic)
    assert not [ident for ident, number in taken.items() if number > 1], f"taken twice on {name}"


def _check_outbox(name: str, log: Log, others: Sequence[Log]) -> None:
    """Every envelope has ended, and the other node has what it confirmed."""
    applied = {
        one.payload.envelope_id
        for other in others
        for one in other
        if isinstance(one, EnvelopeReceived) and one.payload.outcome is ReceiptState.ACCEPTED
    }
    for ident, entry in _list_outbox(log).items():
        assert entry.state in _TAKEN, f"{ident} of {name} is {entry.state}: {entry.problem}"
        assert ident in applied, f"{ident} of {name} was confirmed and not applied"


def _list_outbox(log: Log) -> dict[str, OutboxEntry]:
    """The last state of each envelope."""
    return {one.payload.record.id: one.payload.record for one in log if isinstance(one, EnvelopeEvent)}
