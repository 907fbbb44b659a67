"""Chains of open asks: loop detection and the maximum chain length."""

from collections.abc import Sequence

from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, Refused, Remedy
from scout.model.problems.session import AskLoop
from scout.policy.limits import Limits, raise_limit
from scout.policy.obligation import Party


class Link(Record):
    """One ask: while it is open, the asker waits for the target. The ids are empty before it is created."""

    asker: Party
    asker_address: str
    target: Party
    target_address: str
    ask_id: str = ""
    flight_id: str = ""
    body_hash: str = ""


class ChainDecision(Record):
    """The ask is allowed as number `length` in its chain of waiting asks, of at most `limit`."""

    rule: str
    chain: tuple[str, ...]
    length: int
    limit: int


def check_chain(
    lineage: Sequence[Link], ask: Link, limits: Limits, open_asks: Sequence[Link] = ()
) -> ChainDecision:
    """Check whether the ask may be made inside `lineage`, the asks that led to it (oldest first).

    `open_asks` are the open asks of the same asker.
    """
    above = (*lineage, ask)
    chain = (above[0].asker_address, *(link.target_address for link in above))
    limit = limits.ask_chain
    for link in open_asks:
        if link.target.is_same(ask.target) and link.body_hash == ask.body_hash:
            raise Refused(AskLoop(chain=chain, limit=limit, remedies=(_wait_for(link),)))
    if any(link.asker.is_same(ask.target) for link in above):
        raise Refused(AskLoop(chain=chain, limit=limit, remedies=(_find_back_link(ask, lineage),)))
    if len(above) > limit:
        remedies = (*(_suggest_question(link) for link in lineage[-1:]), raise_limit("askChain", limit))
        raise Refused(AskLoop(chain=chain, limit=limit, remedies=remedies))
    rule = "within another ask" if lineage else "first ask"
    return ChainDecision(rule=rule, chain=chain, length=len(above), limit=limit)


def find_clarification(lineage: Sequence[Link], asker: Party) -> Link | None:
    """Return the open ask in which this asker waits; a question in its flight is not a loop."""
    return next((link for link in reversed(lineage) if link.asker.is_same(asker)), None)


def _find_back_link(ask: Link, lineage: Sequence[Link]) -> Remedy:
    """Suggest a question to the waiting agent, or a new session for an agent that asks itself."""
    waiting = find_clarification(lineage, ask.target)
    return _suggest_session(ask) if waiting is None else _suggest_question(waiting)


def _suggest_question(link: Link) -> Remedy:
    return Remedy(
        operation="question.create",
        parameters={"to": link.asker_address, "flightId": link.flight_id, "body": PLACEHOLDER},
        why=f"{link.asker_address} waits in that flight: a question there is not a loop",
    )


def _suggest_session(ask: Link) -> Remedy:
    parameters = {"to": ask.target_address, "sessionPolicy": "new", "body": "TEXT"}
    return Remedy(operation="ask", parameters=parameters, why="you are the target: use a new session")


def _wait_for(link: Link) -> Remedy:
    parameters = {"flightId": link.flight_id}
    return Remedy(operation="flight.wait", parameters=parameters, why="the same ask is already running")
