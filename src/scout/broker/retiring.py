"""What an agent leaves behind when it goes out of service: nothing that is stuck."""

from scout.broker import reaching, settle
from scout.broker.turn import Turn
from scout.model.agent import Agent
from scout.model.delivery import Delivery, dead_letter
from scout.model.endpoint import ENDPOINT, EndpointMove
from scout.model.flight import Flight, error_of, fail_flight
from scout.store.ledger import LAST

__all__ = ["take_down"]

_MANY = 1000


def take_down(turn: Turn, agent: Agent) -> None:
    """Nothing reaches a retired agent: its endpoints stop, its asks fail, its mail goes back."""
    for endpoint in turn.endpoints(agent.id):
        if endpoint.state not in ENDPOINT.terminal:
            reaching.move(turn, endpoint, EndpointMove.STOP, "its agent is retired")
    gone = reaching.retired(agent)
    while flights := turn.ledger.many(Flight, "flights_open_to", agent=agent.id, before=LAST, limit=_MANY):
        for flight in flights:
            settle.finish(turn, flight, fail_flight(flight, error_of(gone), turn.now))
    while mail := turn.ledger.many(Delivery, "inbox", agent=agent.id, after="", limit=_MANY):
        for delivery in mail:
            settle.delivered(turn, delivery, dead_letter(delivery, "its agent is retired", turn.now))
