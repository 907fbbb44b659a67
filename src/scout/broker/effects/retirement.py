"""The effects of retiring an agent: everything that waits for it is settled."""

from scout.broker.effects import (
    answers,
    dependencies,
    flight_state,
    reservations,
    scheduled_runs,
    session_end,
)
from scout.broker.routing import routes
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.delivery import Delivery, dead_letter
from scout.model.endpoint import ENDPOINT, EndpointMove
from scout.model.flight import Flight, build_error, fail_flight
from scout.model.question import Question, QuestionState
from scout.model.session import SESSION, Session
from scout.store.ledger import LAST

_MANY = 1000
_REASON = "its agent is retired"


def release_obligations(tx: Transaction, agent: Agent) -> None:
    """End a retired agent's sessions, fail its asks, and return its mail.

    Questions to it are declined; its work and owed moves pass to others.
    """
    gone = routes.build_retired_refusal(tx, agent)
    while flights := tx.ledger.many(Flight, "flights_open_to", agent=agent.id, before=LAST, limit=_MANY):
        for flight in flights:
            flight_state.finish_flight(tx, flight, fail_flight(flight, build_error(gone), tx.now))
    while mail := tx.ledger.many(Delivery, "inbox", agent=agent.id, after="", limit=_MANY):
        for delivery in mail:
            flight_state.record_delivery(tx, delivery, dead_letter(delivery, _REASON, tx.now))
    _stop_endpoints(tx, agent)
    reservations.release_for_agent(tx, agent.id, _REASON)
    reason = f"{gone.address} is retired"
    _settle_questions(tx, agent, reason)
    dependencies.pass_on_work(tx, agent.id, reason)
    scheduled_runs.end_agent_schedule(tx, agent, reason)


def _stop_endpoints(tx: Transaction, agent: Agent) -> None:
    """End the agent's sessions and stop its other endpoints."""
    before = LAST
    while sessions := tx.ledger.many(Session, "sessions_of", agent=agent.id, before=before, limit=_MANY):
        for session in sessions:
            if session.state not in SESSION.settled:
                session_end.record_session_end(tx, session, _REASON)
        before = sessions[-1].id
    for endpoint in tx.endpoints(agent.id):
        if endpoint.state not in ENDPOINT.terminal:
            routes.record_endpoint_move(tx, endpoint, EndpointMove.STOP, _REASON)


def _settle_questions(tx: Transaction, agent: Agent, reason: str) -> None:
    """Close the questions it asked; decline those it had to answer, and notify their askers."""
    asked = {"agent": agent.id, "before": LAST, "limit": _MANY}
    while questions := tx.ledger.many(Question, "questions_asked_open", **asked):
        for question in questions:
            answers.record_close(tx, question, reason)
    while questions := tx.ledger.many(Question, "questions_owed", **asked):
        for question in questions:
            assert question.state is QuestionState.OPEN  # the asker closes an answered one
            answers.record_decline(tx, question, reason)
