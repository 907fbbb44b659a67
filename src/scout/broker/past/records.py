"""Single records and the summary as they were at a moment."""

from msgspec.structs import replace

from scout.base.time import Time
from scout.broker.operations import agents, attention, flights, questions, work
from scout.broker.past import lists, views
from scout.broker.past.reader import OPEN_FLIGHTS, PastReader
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, Lifecycle
from scout.model.attention import Attention
from scout.model.flight import FLIGHT, Flight
from scout.model.moment import Moment
from scout.model.node import Node, Pause
from scout.model.question import Question
from scout.model.work_item import Relation, WorkItem
from scout.protocol.agents import AgentDetail, ShowAgent, Who
from scout.protocol.asks import FlightView, GetFlight
from scout.protocol.attention import AttentionView, GetAttention
from scout.protocol.overview import Now, ShowNow
from scout.protocol.questions import GetQuestion, QuestionView
from scout.protocol.work import GetWork, WorkView

_SHOWN = 20
_COUNTED = 1000
_HOUR = 3600


def show_agent(tx: Transaction, request: ShowAgent, moment: Moment) -> AgentDetail:
    """Return one agent as it was."""
    past = PastReader(tx, moment)
    agent = past.need(Agent, "agent", agents.find(tx, request.address))
    return views.build_past_agent_detail(past, agent)


def get_flight(tx: Transaction, request: GetFlight, moment: Moment) -> FlightView:
    """Return one flight as it was."""
    past = PastReader(tx, moment)
    flight = past.need(Flight, "flight", flights.find_readable(tx, request.flight_id))
    return replace(views.build_past_flight_view(past, flight), moment=moment)


def get_work(tx: Transaction, request: GetWork, moment: Moment) -> WorkView:
    """Return one work item as it was, with the steps up to then."""
    past = PastReader(tx, moment)
    item = past.need(WorkItem, "work item", work.get_readable(tx, request.work_item_id))
    steps = tuple(step for step in work.list_steps(tx, item) if step.seq <= moment.seq)
    related = _list_relations(past, item)
    return views.build_past_work_view(past, item, steps=steps, related_by=related, moment=moment)


def _list_relations(past: PastReader, item: WorkItem) -> tuple[Relation, ...]:
    """Return the relations that other items had to this one."""
    then = (past.records.get(WorkItem, one.id) for one in work.list_relating(past.tx, item))
    found = [
        Relation(kind=relation.kind, work_item_id=other.id)
        for other in then
        if other is not None
        for relation in other.relations
        if relation.work_item_id == item.id
    ]
    return tuple(dict.fromkeys(found))


def get_attention(tx: Transaction, request: GetAttention, moment: Moment) -> AttentionView:
    """Return one attention item as it was."""
    past = PastReader(tx, moment)
    item = past.need(Attention, "attention item", attention.find(tx, request.attention_id))
    return replace(views.build_past_item_view(past, item), moment=moment)


def get_question(tx: Transaction, request: GetQuestion, moment: Moment) -> QuestionView:
    """Return one question as it was."""
    past = PastReader(tx, moment)
    question = past.need(Question, "question", questions.find_readable(tx, request.question_id))
    return replace(views.build_past_question_view(past, question), moment=moment)


# -- the summary ---------------------------------------------------------------------------------------


def show_now(tx: Transaction, request: ShowNow, moment: Moment) -> Now:
    """Return the summary as it was."""
    past, user = PastReader(tx, moment), attention.find_inbox_user(tx)
    since = request.since or moment.at.plus(-_HOUR)
    me = tx.actor.agent_id or ""
    party = None if tx.is_operator else me
    open_ = past.read_page(
        Flight,
        lambda one: party in (None, one.requester_id),
        states=OPEN_FLIGHTS,
        party=party,
        limit=_SHOWN,
    )
    needs = lists.list_in_turn(past, user)[:_SHOWN] if user else []
    finished = _list_finished(past, me, since)
    return Now(
        at=moment.at,
        since=since,
        needs_me=tuple(views.build_past_item_view(past, one) for one in needs),
        needs_by_agent=lists.list_needs(past, user) if user else (),
        unread=None,
        open=tuple(views.build_past_flight_view(past, one) for one in open_.items),
        finished=tuple(views.build_past_flight_view(past, one) for one in finished[:_SHOWN]),
        finished_count=len(finished),
        online=lists.list_agents(tx, Who(online=True, limit=_SHOWN), moment).items,
        agents=_count_agents(past),
        paused=_find_pause(past),
        moment=moment,
    )


def _list_finished(past: PastReader, me: str, since: Time) -> list[Flight]:
    """Return what finished for the caller since a time, newest first. What is finished never changes."""
    values = {"agent": me, "since": int(since), "until": int(past.moment.at), "limit": _COUNTED}
    found = past.tx.ledger.many(Flight, "flights_finished_between", **values)
    then = (past.records.get(Flight, one.id) for one in found)
    return [one for one in then if one is not None and one.state in FLIGHT.terminal]


def _count_agents(past: PastReader) -> int:
    """Count the agents that `who` lists, among the newest thousand."""
    page = past.records.list_newest(Agent, limit=_COUNTED)
    known = ((past.tx.agent(one.id), one.state) for one in page)
    return sum(
        agent is not None
        and past.tx.view.shows(agent)
        and agents.is_agent(agent)
        and state != Lifecycle.RETIRED
        for agent, state in known
    )


def _find_pause(past: PastReader) -> Pause | None:
    """Return whether this machine was paused."""
    here = past.tx.ledger.one(Node, "local_node")
    node = past.records.get(Node, here.id) if here is not None else None
    return node.paused if node is not None else None
