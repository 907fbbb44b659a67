"""Lists as they were at a moment. Each answers the request of the same name with `at`."""

from collections import Counter

from scout.broker.operations import agents, attention
from scout.broker.past import views
from scout.broker.past.reader import OPEN_FLIGHTS, OPEN_ITEMS, PastReader
from scout.broker.transaction.paging import build_page, decode_bound, get_page_size
from scout.broker.transaction.transaction import Transaction, build_subject, require_reader
from scout.model.agent import Agent
from scout.model.attention import Attention
from scout.model.flight import FLIGHT, Flight
from scout.model.moment import Moment
from scout.model.question import Question
from scout.model.session import Session, SessionState, is_refused_attach
from scout.model.work_item import WORK_ITEM, WorkItem, WorkState
from scout.policy.permit import Deed
from scout.protocol.agents import AgentView, Who
from scout.protocol.asks import FlightView, ListFlights
from scout.protocol.attention import AgentNeeds, AttentionPage, ListAttention
from scout.protocol.questions import ListQuestions, QuestionView
from scout.protocol.request import Page
from scout.protocol.sessions import ListedSession, ListSessions
from scout.protocol.work import ListWork, WorkView

_OPEN_WORK = tuple(state for state in WorkState if state not in WORK_ITEM.settled)
_RUNNING = (SessionState.STARTING, SessionState.LIVE)
_MOST = 1000


# -- agents --------------------------------------------------------------------------------------------


def list_agents(tx: Transaction, request: Who, moment: Moment) -> Page[AgentView]:
    """List the agents that existed and that the caller sees now, newest first."""
    past = PastReader(tx, moment)
    if request.query or request.project_root:
        listed = _list_named(past, request)
    elif request.online:
        listed = _list_online(past, request)
    else:
        listed = past.read_page(
            Agent,
            lambda agent: _is_listed(past, request, agent),
            cursor=request.cursor,
            limit=request.limit,
        )
    shown = tuple(views.build_past_agent_view(past, agent) for agent in listed.items)
    return Page(items=shown, next=listed.next, moment=moment)


def _is_listed(past: PastReader, request: Who, agent: Agent) -> bool:
    """Whether an agent was listed, in the state it was in; who may see it is decided by how it is now."""
    today = past.tx.agent(agent.id)
    return today is not None and past.tx.view.shows(today) and agents.is_kind_listed(request, agent)


def _list_named(past: PastReader, request: Who) -> Page[Agent]:
    """Find agents by name, description or project as they are now: names never change."""
    tx = past.tx
    wanted, bound = get_page_size(request.limit, tx.rules.limits), decode_bound(request.cursor)
    found: list[Agent] = []
    for _ in range(_MOST // wanted + 1):
        rows = agents.read_candidates(tx, request, bound, wanted + 1)
        then = (past.records.get(Agent, one.id) for one in rows)
        found += [one for one in then if one is not None and _is_listed(past, request, one)]
        if len(rows) <= wanted or len(found) > wanted:
            break
        bound = rows[-1].id
    online = {*past.list_online()} if request.online else None
    kept = [one for one in found if online is None or one.id in online]
    return build_page(kept, wanted, lambda agent: agent.id)


def _list_online(past: PastReader, request: Who) -> Page[Agent]:
    then = (past.records.get(Agent, one) for one in sorted(past.list_online(), reverse=True))
    listed = [one for one in then if one is not None and _is_listed(past, request, one)]
    bound = decode_bound(request.cursor)
    wanted = get_page_size(request.limit, past.tx.rules.limits)
    return build_page([one for one in listed if one.id < bound], wanted, lambda agent: agent.id)


# -- flights, sessions -----------------------------------------------------------------------------------


def list_flights(tx: Transaction, request: ListFlights, moment: Moment) -> Page[FlightView]:
    """List flights in the states they were in, newest first; the operator sees all."""
    past, party = PastReader(tx, moment), None if tx.is_operator and not request.mine else tx.sender
    target = None
    if request.agent is not None:
        agent = tx.resolve(request.agent).agent
        if agent.id != tx.sender:
            tx.permit(Deed.READ, build_subject(agent))
        party = target = agent.id
    states = (request.state,) if request.state is not None else OPEN_FLIGHTS if request.open else None
    ended = request.state in FLIGHT.terminal
    listed = past.read_page(
        Flight,
        lambda one: party is None or party == (one.target if target else one.requester_id),
        states=None if ended else states,
        within=states if ended else None,
        party=party,
        cursor=request.cursor,
        limit=request.limit,
    )
    shown = tuple(views.build_past_flight_view(past, one) for one in listed.items)
    return Page(items=shown, next=listed.next, moment=moment)


def list_sessions(tx: Transaction, request: ListSessions, moment: Moment) -> Page[ListedSession]:
    """List the sessions of agents that the caller sees now, newest first."""
    past = PastReader(tx, moment)
    agent = tx.resolve(request.agent).agent if request.agent else None

    def is_wanted(session: Session) -> bool:
        ended = request.live and session.state is SessionState.ENDED
        return not (ended or is_refused_attach(session)) and tx.directory.agent(session.agent_id) is not None

    listed = past.read_page(
        Session,
        is_wanted,
        states=_RUNNING if request.live and agent is None else None,
        party=agent.id if agent else None,
        cursor=request.cursor,
        limit=request.limit,
    )
    shown = tuple(views.build_past_session(past, one) for one in listed.items)
    return Page(items=shown, next=listed.next, moment=moment)


# -- work, questions -------------------------------------------------------------------------------------


def list_work(tx: Transaction, request: ListWork, moment: Moment) -> Page[WorkView]:
    """List work items as they were, if the caller may read them now, newest first."""
    past, party = PastReader(tx, moment), None if tx.is_operator and not request.owed else tx.sender
    owner = None
    if request.owner_id is not None and not request.owed:
        party = owner = tx.resolve(request.owner_id).agent.id
        require_reader(tx, owner)

    def is_wanted(item: WorkItem) -> bool:
        if request.owed:
            own = item.next_move_owner_id == tx.sender
        elif owner is not None:
            own = item.owner_id == owner
        else:
            own = party is None or party in (item.owner_id, item.requester_id, item.next_move_owner_id)
        return own and request.label in (None, *item.labels) and may_read_work(past, item)

    states = (request.state,) if request.state is not None else None if request.all else _OPEN_WORK
    ended = request.state in WORK_ITEM.settled
    listed = past.read_page(
        WorkItem,
        is_wanted,
        states=None if ended else states,
        within=states if ended else None,
        party=party,
        cursor=request.cursor,
        limit=request.limit,
    )
    shown = tuple(views.build_past_work_view(past, one) for one in listed.items)
    return Page(items=shown, next=listed.next, moment=moment)


def may_read_work(past: PastReader, item: WorkItem) -> bool:
    """Whether the caller may read a work item as it is now."""
    now = past.tx.get(WorkItem, item.id)
    if now is None:
        return False
    return past.may_read(now.owner_id, now.requester_id, now.next_move_owner_id, now.reviewer_id)


def list_questions(tx: Transaction, request: ListQuestions, moment: Moment) -> Page[QuestionView]:
    """List the caller's questions as they were, newest first; the operator sees all."""
    past, me = PastReader(tx, moment), tx.sender
    every = tx.is_operator and not (request.owed or request.asked)

    def is_wanted(question: Question) -> bool:
        if request.state not in (None, question.state) or (request.asked and question.asker_id != me):
            return False
        return not request.owed or question.next_move_owner_id == me

    listed = past.read_page(
        Question, is_wanted, party=None if every else me, cursor=request.cursor, limit=request.limit
    )
    shown = tuple(views.build_past_question_view(past, one) for one in listed.items)
    return Page(items=shown, next=listed.next, moment=moment)


# -- attention -------------------------------------------------------------------------------------------


def list_attention(tx: Transaction, request: ListAttention, moment: Moment) -> AttentionPage:
    """List the items of the caller's inbox as they were; an agent sees the items it raised."""
    past, user = PastReader(tx, moment), attention.choose_inbox_user(tx, request.user)
    raised = user is None or request.raised
    party = tx.actor.agent_id if raised else user
    is_wanted = attention.build_filter(tx, request)

    def is_own(item: Attention) -> bool:
        return (item.agent_id if raised else item.user) == party and is_wanted(item)

    if party is None:
        listed: Page[Attention] = Page(items=())
    elif raised or request.all:
        states = None if request.all else OPEN_ITEMS
        listed = past.read_page(
            Attention, is_own, states=states, party=party, cursor=request.cursor, limit=request.limit
        )
    else:
        wanted = get_page_size(request.limit, tx.rules.limits)
        listed = Page(items=tuple(one for one in list_in_turn(past, party) if is_own(one))[:wanted])
    return AttentionPage(
        items=tuple(views.build_past_item_view(past, one) for one in listed.items),
        next=listed.next,
        agents=list_needs(past, user) if user else (),
        moment=moment,
    )


def list_in_turn(past: PastReader, user: str) -> list[Attention]:
    """Return the items that waited for a user: highest risk first, then in turn by agent."""
    mine = [one for one in past.open_items if one.user == user]
    return sorted(mine, key=lambda one: (one.urgency, one.rank, one.id))


def list_needs(past: PastReader, user: str) -> tuple[AgentNeeds, ...]:
    """Count the items of each agent that waited for a user, highest risk first."""
    mine = list_in_turn(past, user)
    counts = Counter(one.agent_id for one in mine)
    high = Counter(one.agent_id for one in mine if one.urgency == 0)
    return tuple(
        AgentNeeds(agent_id=one, address=past.tx.address(one), open=counts[one], high=high[one])
        for one in counts
    )
