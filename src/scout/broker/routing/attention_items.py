"""Attention items: records that need a person. At most one open item per dedupe key."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.base.time import Time
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.access.allowance import Allowance, AllowanceKind
from scout.model.access.permission import PermissionRequest
from scout.model.access.token import TokenKind
from scout.model.agent import Agent, Lifecycle, PermissionProfile
from scout.model.attention import (
    ATTENTION,
    Attention,
    AttentionKind,
    AttentionMove,
    ReturnPath,
    check_attention,
    decide_attention,
    list_actions,
)
from scout.model.events.asks import FLIGHT_EVENTS
from scout.model.events.talk import ATTENTION_EVENTS, AttentionCreated, WorkItemUpdated
from scout.model.flight import Flight, FlightMove, FlightPhase, FlightState, resume_flight, wait_flight
from scout.model.question import Question, QuestionState
from scout.model.ref import Ref
from scout.model.session import Session
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import WorkItem, WorkMove, WorkState, resume_work, wait_work
from scout.policy.allowance import Asker, find_allowance
from scout.policy.limits import (
    Alarm,
    build_alarm,
    check_attention_rate,
    check_open_attention,
    check_wake_budget,
)
from scout.policy.permit import is_person_for
from scout.protocol.operations import build_command_line
from scout.store.ledger import LAST, Ledger

WAITS = "waiting for a person to decide"  # readers of the item see its title instead
_TITLE = 120
_MANY = 200  # maximum open flights read per agent
_HELD = "held:"
_ALLOWANCES = 500


def find_person(tx: Transaction, user: str) -> str:
    """Return the id of the agent that represents a user; the operator's if the user is retired or unknown."""
    if user == tx.services.operator:
        return tx.services.operator_agent
    path = str(AgentPath.root(user, "direct"))
    found = tx.ledger.one(Agent, "agent_at_path", path=path)
    in_service = found is not None and found.lifecycle is not Lifecycle.RETIRED
    return found.id if found is not None and in_service else tx.services.operator_agent


def find_person_for(tx: Transaction, agent_id: str | None) -> str:
    """Return the person who is responsible for an agent: its user."""
    agent = tx.agent(agent_id)
    return find_person(tx, (agent.owner if agent else None) or tx.services.operator)


def shorten_title(text: str) -> str:
    """Return the first line of a text, shortened to title length."""
    line = next((one.strip() for one in text.splitlines() if one.strip()), "")
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"


def open_item(
    tx: Transaction,
    kind: AttentionKind,
    *,
    user: str,
    source: str,
    options: tuple[str, ...] = (),
    **more: Any,
) -> Attention:
    """Open an item in a user's inbox, or return the open one with the same dedupe key."""
    dedupe = more.get("dedupe")
    if dedupe is not None:
        same = _find_same(tx, user, dedupe)
        if same is not None:
            return same
    agent_id = more.get("agent_id")
    _check_raising(tx, agent_id)
    item = Attention(
        id=tx.mint("att"),
        created_at=tx.now,
        updated_at=tx.now,
        kind=kind,
        user=user,
        source=Ref.to(source),
        actions=list_actions(kind, options),
        **more,
    )
    ranked = replace(item, rank=_compute_rank(tx, item)) if agent_id else item
    return tx.record(AttentionCreated, check_attention(ranked), move="create")


def _find_same(tx: Transaction, user: str, dedupe: str) -> Attention | None:
    """Return a user's open item about the same thing."""
    found = tx.ledger.many(Attention, "attention_about", dedupe=dedupe)
    return next((one for one in found if one.user == user), None)


def _compute_rank(tx: Transaction, item: Attention) -> int:
    return tx.ledger.value("attention_rank", user=item.user, agent=item.agent_id, urgency=item.urgency)


def _check_raising(tx: Transaction, agent_id: str | None) -> None:
    """Limit the items that one agent raises, so that it cannot bury those of others. People are exempt."""
    actor, ledger, limits = tx.actor, tx.ledger, tx.rules.limits
    if actor.kind is not TokenKind.AGENT or agent_id is None or is_person_for(actor, actor.user):
        return
    some = limits.attention_per_minute - 1
    earlier = ledger.one(Attention, "attention_raised_before", agent=agent_id, some=some)
    name = tx.address(agent_id)
    check_attention_rate(name, earlier.created_at if earlier else None, limits, tx.now)
    opened = ledger.value("attention_open_count", agent=agent_id, limit=limits.open_attention)
    check_open_attention(name, opened, limits)


# -- items about records -----------------------------------------------------------------------------


class _Matter(NamedTuple):
    """What a person must do about a record, and the agent that waits for it."""

    kind: AttentionKind
    title: str
    agent_id: str


def sync_item(tx: Transaction, record: Question | WorkItem) -> None:
    """Open an item while a person holds the record's next move, and close it when the record moves on."""
    holder = tx.agent(record.next_move_owner_id)
    person = holder is not None and holder.is_person and not holder.is_remote
    matter = _choose_matter(record) if person else None
    asked = _find_open_item(tx, record)
    for item in tx.ledger.many(Attention, "attention_about", dedupe=record.id):
        if item != asked and (matter is None or not _is_same(item, matter, holder)):
            close_item(tx, item)
    if matter is not None and holder is not None and asked is None:
        _open_matter_item(tx, record, matter, holder)


def _is_same(item: Attention, matter: _Matter, holder: Agent | None) -> bool:
    mine = holder is not None and item.user == holder.owner
    return mine and (item.kind, item.title) == (matter.kind, matter.title)


def _find_open_item(tx: Transaction, record: Question | WorkItem | Flight) -> Attention | None:
    """Return the open item that a record waits for, if any."""
    on = None if isinstance(record, Question) else record.waiting_on
    item = tx.get(Attention, on.ref) if on is not None else None
    return item if item is not None and item.state not in ATTENTION.terminal else None


def _choose_matter(record: Question | WorkItem) -> _Matter | None:
    if isinstance(record, Question):
        if record.state is not QuestionState.OPEN:
            return None  # the answer arrives as mail: nothing to decide
        return _Matter(AttentionKind.QUESTION, shorten_title(record.body), record.asker_id)
    if record.state is WorkState.REVIEW:
        return _Matter(AttentionKind.REVIEW, shorten_title(f"review: {record.title}"), record.owner_id)
    if record.state is not WorkState.WAITING:
        return _Matter(
            AttentionKind.WAITING, shorten_title(f"yours to do: {record.title}"), record.requester_id
        )
    on = record.waiting_on
    if on is not None and on.kind is WaitingKind.APPROVAL:
        return _Matter(AttentionKind.APPROVAL, shorten_title(f"approve: {record.title}"), record.owner_id)
    return _Matter(AttentionKind.WAITING, shorten_title(f"waiting for you: {record.title}"), record.owner_id)


def _open_matter_item(tx: Transaction, record: Question | WorkItem, matter: _Matter, holder: Agent) -> None:
    question = record if isinstance(record, Question) else None
    open_item(
        tx,
        matter.kind,
        user=holder.owner or tx.services.operator,
        source=record.id,
        options=question.options if question and question.state is QuestionState.OPEN else (),
        agent_id=matter.agent_id if matter.agent_id != holder.id else None,
        title=matter.title,
        body=_get_body(record),
        return_path=ReturnPath(
            question_id=question.id if question else None,
            work_item_id=None if question else record.id,
            conversation_id=record.conversation_id,
        ),
        dedupe=record.id,
    )


def _get_body(record: Question | WorkItem) -> str:
    if isinstance(record, Question):
        return record.answer or record.body
    return "\n".join(one for one in (record.reason, record.progress.summary, record.description) if one)


def close_item(tx: Transaction, item: Attention, reason: str = "settled elsewhere") -> None:
    """Dismiss an item whose subject was settled in another way."""
    by, step = tx.services.system_agent, AttentionMove.DISMISS
    gone = decide_attention(item, step, by, tx.now, reason=reason)
    tx.record(ATTENTION_EVENTS[step], gone, move=step, reason=reason, source=by)
    resume_blocked_records(tx, gone)


# -- blocked records ---------------------------------------------------------------------------------


def block_on_item(tx: Transaction, item: Attention, flight: Flight | None, work: WorkItem | None) -> None:
    """Make the blocked flight and work item wait for this item, with the person as owner of the next move."""
    person, reason = find_person(tx, item.user), WAITS
    if flight is not None and flight.state is FlightState.RUNNING:
        on = WaitingOn(kind=WaitingKind.OPERATOR, ref=item.id)
        waiting = wait_flight(flight, on, tx.now, next_move_owner_id=person, reason=reason)
        tx.record(FLIGHT_EVENTS[FlightMove.WAIT], waiting, move=FlightMove.WAIT, reason=reason)
    if work is not None and work.state in (WorkState.OPEN, WorkState.WORKING):
        on = WaitingOn(kind=WaitingKind.APPROVAL, ref=item.id)
        held = wait_work(work, on, person, tx.now, reason=reason)
        tx.record(WorkItemUpdated, held, move=WorkMove.WAIT, reason=reason)


def resume_blocked_records(tx: Transaction, item: Attention) -> list[Flight]:
    """Resume the flights and the work item that wait for this item; return the flights.

    Their reasons omit the answer, because others can read them.
    """
    step, reason = FlightMove.RESUME, f"{item.id} is {item.state}"
    mine = tx.ledger.many(Flight, "flights_open_to", agent=item.agent_id, before=LAST, limit=_MANY)
    waiting = [one for one in mine if one.state is FlightState.WAITING and _is_waiting_for(one, item)]
    flights = [resume_flight(one, tx.now) for one in waiting]
    for flight in flights:
        tx.record(FLIGHT_EVENTS[step], flight, move=step, reason=reason)
        _block_again(tx, item, flight)
    work = tx.get(WorkItem, item.return_path.work_item_id)
    if work is not None and work.state is WorkState.WAITING and _is_waiting_for(work, item):
        tx.record(WorkItemUpdated, resume_work(work, tx.now), move=WorkMove.RESUME, reason=reason)
    return flights


def _block_again(tx: Transaction, decided: Attention, flight: Flight) -> None:
    """Block the flight on the next open item if its program raised several at once."""
    raised = tx.ledger.many(Attention, "attention_by_open", agent=decided.agent_id, before=LAST, limit=_MANY)
    others = [one for one in raised if one.return_path.flight_id == flight.id and one.return_path.request]
    if others:
        block_on_item(tx, others[-1], flight, None)


def _is_waiting_for(record: Flight | WorkItem, item: Attention) -> bool:
    return record.waiting_on is not None and record.waiting_on.ref == item.id


def close_flight_items(tx: Transaction, flight: Flight) -> None:
    """Close the items of a finished flight, unless another flight waits for the same item."""
    item = _find_open_item(tx, flight)
    if item is not None:
        others = tx.ledger.many(Flight, "flights_open_to", agent=flight.target, before=LAST, limit=_MANY)
        if not any(one.id != flight.id and _is_waiting_for(one, item) for one in others):
            close_item(tx, item, f"flight {flight.id} has ended")
    for item in tx.ledger.many(Attention, "attention_about", dedupe=flight.id):
        close_item(tx, item, f"flight {flight.id} has ended")


# -- alarms ------------------------------------------------------------------------------------------


def open_alarm(tx: Transaction, alarm: Alarm, user: str | None = None, about: str | None = None) -> Attention:
    """Open an alarm's item with its remedies; the broker is its source in any caller's transaction.

    `about`: the agent that receives the answer; default the caller.
    """
    tries = [f"try: {build_command_line(remedy)}" for remedy in alarm.remedies]
    return open_item(
        tx,
        alarm.kind,
        user=user or tx.actor.user or tx.services.operator,
        source=tx.services.system_agent,
        agent_id=about or tx.actor.agent_id,
        title=alarm.title,
        body="\n".join([alarm.body, *tries]),
        dedupe=alarm.dedupe,
    )


def raise_alarm(tx: Transaction, problem: Diagnostic) -> None:
    """Open an item for the operator if the problem is an alarm."""
    alarm = build_alarm(problem)
    if alarm is not None:
        open_alarm(tx, alarm)


def report_wake_budget(tx: Transaction, conversation_id: str, wakes: Sequence[Time], name: str) -> None:
    """Raise the alarm that agents have used up a conversation's wake budget."""
    try:
        check_wake_budget(conversation_id, wakes, tx.rules.limits, tx.now, name=name)
    except Refused as refusal:
        raise_alarm(tx, refusal.diagnostic)


# -- held flights: one open item per agent -----------------------------------------------------------


def list_held_flights(ledger: Ledger, agent_id: str) -> list[Flight]:
    """Return the held flights of an agent that wait for the operator, oldest first."""
    found = ledger.many(Flight, "flights_open_to", agent=agent_id, before=LAST, limit=_MANY)
    return [one for one in reversed(found) if _is_waiting_for_operator(one)]


def _is_waiting_for_operator(flight: Flight) -> bool:
    on = flight.waiting_on
    return flight.phase is FlightPhase.HELD and on is not None and on.kind is WaitingKind.OPERATOR


def open_held_item(tx: Transaction, agent_id: str, why: str, remedies: Sequence[Remedy]) -> None:
    """Make sure that there is one open item about the flights held for an agent."""
    agent = tx.need(Agent, "agent", agent_id)
    user, dedupe = agent.owner or tx.services.operator, f"{_HELD}{agent_id}"
    if _find_same(tx, user, dedupe) is not None:
        return
    tries = [f"try: {build_command_line(remedy)}" for remedy in remedies]
    open_item(
        tx,
        AttentionKind.WAITING,
        user=user,
        source=tx.services.system_agent,
        agent_id=agent_id,
        title=f"{tx.address(agent_id)} {why}",
        body="\n".join(tries),
        dedupe=dedupe,
    )


def has_held_item(ledger: Ledger, agent_id: str) -> bool:
    """Whether there is an open item about the flights held for an agent."""
    return bool(ledger.many(Attention, "attention_about", dedupe=f"{_HELD}{agent_id}"))


def close_held_item(tx: Transaction, agent_id: str) -> None:
    """Close the item once no flight of the agent is held."""
    if list_held_flights(tx.ledger, agent_id):
        return
    for item in tx.ledger.many(Attention, "attention_about", dedupe=f"{_HELD}{agent_id}"):
        close_item(tx, item, "no ask is held any more")


def count_held_asks(tx: Transaction, item: Attention) -> Attention:
    """Return the item with the current number of held asks in its title; the count is not stored."""
    if not (item.dedupe or "").startswith(_HELD) or item.agent_id is None:
        return item
    count = len(list_held_flights(tx.ledger, item.agent_id))
    asks = "1 ask waits" if count == 1 else f"{count} asks wait"
    return replace(item, title=f"{item.title}: {asks}") if count else item


# -- allowances --------------------------------------------------------------------------------------


def decide_by_allowance(tx: Transaction, item: Attention) -> Attention:
    """Approve the item at once if an allowance covers it."""
    wish = item.permission
    found = (
        find_allowance(_list_allowances(tx, item.user, wish), wish, describe_asker(tx, item), tx.now)
        if wish
        else None
    )
    if found is None:
        return item
    move, by, reason = AttentionMove.APPROVE, tx.services.system_agent, f"allowed by {found.id}"
    decided = decide_attention(item, move, found.created_by, tx.now, reason=reason)
    allowed = replace(decided, allowance_id=found.id)
    return tx.record(ATTENTION_EVENTS[move], allowed, move=move, reason=reason, source=by)


def _list_allowances(tx: Transaction, user: str, wish: PermissionRequest) -> list[Allowance]:
    """Return the allowances that may cover a request."""
    subjects = {AllowanceKind.TOOL: wish.tool, AllowanceKind.PATH: ""}
    if wish.command is not None:
        subjects[AllowanceKind.COMMAND] = wish.command
    return [
        one
        for kind, subject in subjects.items()
        for one in tx.ledger.many(
            Allowance, "allowances_about", user=user, what=kind, subject=subject, limit=_ALLOWANCES
        )
    ]


def describe_asker(tx: Transaction, item: Attention) -> Asker:
    """Return the asking program's agent, directory and permission profile."""
    agent = tx.agent(item.agent_id)
    session = tx.get(Session, item.return_path.session_id)
    profile = session.permission_profile if session else None
    own = agent.config.permission_profile if agent else None
    return Asker(
        user=item.user,
        agent_id=item.agent_id,
        session_id=item.return_path.session_id,
        project_root=agent.project_root if agent else None,
        directory=session.cwd if session else None,
        profile=profile or own or PermissionProfile.WORKSPACE_WRITE,
    )
