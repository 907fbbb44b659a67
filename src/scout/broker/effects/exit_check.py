"""The exit check: an agent that is about to stop with open work gets one notice of what it owes."""

import asyncio
import logging
from typing import NamedTuple

from msgspec.structs import replace

from scout.broker.routing import posts, routes
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.conversation import MessageKind
from scout.model.delivery import Delivery
from scout.model.events.envelope import Metadata
from scout.model.events.presence import SessionUpdated
from scout.model.flight import Flight, FlightState
from scout.model.question import Question, QuestionState
from scout.model.session import SESSION, LiveTurn, Session, note_turn
from scout.model.work_item import WorkItem, WorkState
from scout.policy.tree.exit_check import (
    ExitDecision,
    OpenObligations,
    OwedAnswer,
    OwedAsk,
    OwedWork,
    decide_exit,
)
from scout.ports import GitFailed
from scout.store.ledger import LAST

_LOG = logging.getLogger("scout.tree")
_SOME = 20
_WITHIN = 5.0  # seconds for git; the check of the files is left out if it takes longer
_SPAWNED = "/.scout/worktrees/"  # in the folder of every agent that was spawned with a branch
_ACTIVE = (WorkState.OPEN, WorkState.WORKING)


class UncommittedFiles(NamedTuple):
    """The files of a spawned agent's work tree that are not committed."""

    folder: str = ""
    files: tuple[str, ...] = ()
    more: int = 0


NO_FILES = UncommittedFiles()


async def find_uncommitted(services: Services, folder: str | None) -> UncommittedFiles:
    """Return the uncommitted files of a spawned agent's work tree; none in any other folder."""
    trees = services.trees
    if trees is None or services.rules.exit_check == "clean" or folder is None or _SPAWNED not in folder:
        return NO_FILES
    look = asyncio.to_thread(trees.work_trees.state, folder, None, None, _SOME)
    try:
        state = await asyncio.wait_for(look, _WITHIN)
    except (GitFailed, TimeoutError) as problem:
        _LOG.warning("the exit check of %s says nothing about its files: %s", folder, problem)
        return NO_FILES
    return UncommittedFiles(folder, state.uncommitted, state.more_uncommitted)


def check_exit(tx: Transaction, session: Session, files: UncommittedFiles = NO_FILES) -> ExitDecision:
    """Decide which notice a session that stops gets, and remember it."""
    if tx.rules.exit_check == "clean" or tx.services.paused:
        return ExitDecision()
    known = session.live_turn or LiveTurn()
    decision = decide_exit(_read_owed(tx, session, files), known.told, tx.rules.exit_check, session.harness)
    if decision.told != known.told:
        after = note_turn(session, replace(known, told=decision.told), tx.now)
        tx.record(SessionUpdated, after, move="turn")
    return decision


def _read_owed(tx: Transaction, session: Session, files: UncommittedFiles) -> OpenObligations:
    me, many, page = session.agent_id, tx.ledger.many, {"before": LAST, "limit": _SOME}
    flights = many(Flight, "flights_open_to", agent=me, **page)
    questions = many(Question, "questions_owed", agent=me, **page)
    work = many(WorkItem, "work_owned_open", agent=me, **page)
    return OpenObligations(
        asks=tuple(_build_owed_ask(tx, one) for one in flights if _is_owed(one, session)),
        questions=tuple(
            OwedAnswer(question_id=one.id, asker=tx.address(one.asker_id), body=one.body)
            for one in questions
            if one.state is QuestionState.OPEN
        ),
        work=tuple(
            OwedWork(work_item_id=one.id, title=one.title)
            for one in work
            if one.state in _ACTIVE and one.next_move_owner_id == me
        ),
        folder=files.folder,
        files=files.files,
        more_files=files.more,
    )


def _is_owed(flight: Flight, session: Session) -> bool:
    """Whether the session took a flight and has its next move."""
    mine = flight.session_id in (None, session.id) and flight.next_move_owner_id == session.agent_id
    return mine and flight.state is FlightState.RUNNING


def _build_owed_ask(tx: Transaction, flight: Flight) -> OwedAsk:
    ask = tx.need(Ask, "ask", flight.ask_id)
    return OwedAsk(flight_id=flight.id, message_id=ask.message_id, sender=tx.address(ask.sender))


def tell_after_turn(tx: Transaction, session_id: str, files: UncommittedFiles) -> Delivery | None:
    """Tell an agent that Scout runs what it owes after its last turn: in one more turn, or in its inbox."""
    session = tx.get(Session, session_id)
    if session is None or session.state in SESSION.settled or _has_more_turns(tx, session.agent_id):
        return None
    decision = check_exit(tx, session, files)
    if not decision.text:
        return None
    agent, system = tx.need(Agent, "agent", session.agent_id), tx.services.system_agent
    message = posts.post_message(
        tx,
        posts.ensure_direct_conversation(tx, system, agent.id).id,
        decision.text,
        sender=system,
        kind=MessageKind.CHAT if decision.blocks else MessageKind.STATUS,
        metadata=Metadata(target_agents=(agent.id,)),
    )
    route = routes.choose_route(tx, agent)
    return posts.create_delivery(
        tx,
        message,
        agent.id,
        wake=decision.blocks and route.runs,
        rule="exit_check",
        reason="it stopped with open work",
        endpoint_id=route.endpoint.id if route.endpoint else None,
        session_id=session.id,
    )


def _has_more_turns(tx: Transaction, agent_id: str) -> bool:
    """Whether another turn of the agent is waiting: then this was not its last one."""
    waiting = tx.ledger.many(Delivery, "inbox", agent=agent_id, after="", limit=_SOME)
    return any(one.wake or one.flight_id is not None for one in waiting)
