"""What an agent leaves behind when it goes out of service: nothing that is stuck."""

from scout.broker import depending, reaching, responding, settle
from scout.broker.turn import Turn
from scout.model.agent import Agent
from scout.model.delivery import Delivery, dead_letter
from scout.model.endpoint import ENDPOINT, EndpointMove
from scout.model.flight import Flight, error_of, fail_flight
from scout.model.question import Question, QuestionState
from scout.store.ledger import LAST

__all__ = ["take_down"]

_MANY = 1000


def take_down(turn: Turn, agent: Agent) -> None:
    """Nothing reaches a retired agent: its endpoints stop, its asks fail, its mail goes back.

    Nobody waits for it either: what it was to answer is declined, what it owned or owed is another's.
    """
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
    reason = f"{gone.address} is retired"
    _questions(turn, agent, reason)
    depending.pass_on(turn, agent.id, reason)


def _questions(turn: Turn, agent: Agent, reason: str) -> None:
    """What it asked is not needed any more; what it was to answer is declined, and its asker told."""
    asked = {"agent": agent.id, "before": LAST, "limit": _MANY}
    while questions := turn.ledger.many(Question, "questions_asked_open", **asked):
        for question in questions:
            responding.close(turn, question, reason)
    while questions := turn.ledger.many(Question, "questions_owed", **asked):
        for question in questions:
            assert question.state is QuestionState.OPEN  # an answered one is its asker's
            responding.decline(turn, question, reason)
