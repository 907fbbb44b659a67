"""Views of records as they were. What is not followed is left out: places in line, attempts, live output."""

from scout.broker.past.reader import PastReader
from scout.broker.routing.remote import find_node_name
from scout.broker.routing.views import describe_runtime, extend_record, hide_redacted, show_reason
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Message
from scout.model.flight import Flight
from scout.model.question import Question
from scout.model.session import Session
from scout.model.work_item import WorkItem
from scout.policy.directory import Instance
from scout.protocol.agents import AgentDetail, AgentView
from scout.protocol.asks import FlightView
from scout.protocol.attention import AttentionView
from scout.protocol.questions import QuestionView
from scout.protocol.sessions import ListedSession
from scout.protocol.work import WorkView

_FEW = 20


def build_past_agent_view(past: PastReader, agent: Agent) -> AgentView:
    """Return an agent with the status it had and the names it has now."""
    return extend_record(AgentView, agent, **_build_agent_fields(past, agent))


def build_past_agent_detail(past: PastReader, agent: Agent) -> AgentDetail:
    """Return an agent with the endpoints, sessions and open flights it had."""
    newest = past.records.list_newest(Session, party=agent.id, limit=_FEW)
    return extend_record(
        AgentDetail,
        agent,
        **_build_agent_fields(past, agent),
        endpoints=tuple(past.list_endpoints(agent.id)),
        sessions=tuple(past.records.load_all(Session, newest)),
        open_flights=len(past.list_open_flights(agent.id)),
        unread=None,
        moment=past.moment,
    )


def _build_agent_fields(past: PastReader, agent: Agent) -> dict[str, object]:
    tx = past.tx
    return {
        "status": past.find_status(agent),
        "address": tx.address(agent.id),
        "alias": tx.alias(agent),
        "canonical": Instance(agent=agent).canonical,
        "minimal": tx.minimal(tx.instance(agent)),
        "label": agent.path.label(agent.config.name, agent.config.username),
        "description": agent.config.description,
    }


def build_past_flight_view(past: PastReader, flight: Flight) -> FlightView:
    """Return a flight with its addresses and its ask, from which redacted texts are gone."""
    tx = past.tx
    ask = tx.get(Ask, flight.ask_id)
    message = tx.get(Message, ask.message_id) if ask is not None else None
    shown = show_reason(tx, hide_redacted(tx, flight))
    return extend_record(
        FlightView,
        shown,
        target_address=tx.address(flight.target),
        requester_address=tx.address(flight.requester_id),
        target_node=find_node_name(tx, flight.target),
        requester_node=find_node_name(tx, flight.requester_id),
        body=message.body if message else "",
        remedies=flight.error.remedies if flight.error else (),
        **describe_runtime(tx, flight, past.records.get(Session, flight.session_id)),
    )


def build_past_work_view(past: PastReader, item: WorkItem, **more: object) -> WorkView:
    """Return a work item with its addresses."""
    tx, holder = past.tx, item.next_move_owner_id
    return extend_record(
        WorkView,
        show_reason(tx, item),
        owner_address=tx.address(item.owner_id),
        requester_address=tx.address(item.requester_id),
        next_move_address=tx.address(holder) if holder else None,
        **more,
    )


def build_past_item_view(past: PastReader, item: Attention) -> AttentionView:
    """Return an attention item. Nothing is decided in the past."""
    tx = past.tx
    return extend_record(
        AttentionView,
        item,
        agent_address=tx.address(item.agent_id),
        decided_by_address=tx.address(item.decided_by) if item.decided_by else None,
        may_decide=False,
    )


def build_past_question_view(past: PastReader, question: Question) -> QuestionView:
    """Return a question with its addresses and its work item as it was."""
    tx = past.tx
    return extend_record(
        QuestionView,
        question,
        asker_address=tx.address(question.asker_id),
        responder_address=tx.address(question.responder_id),
        work_item=past.records.get(WorkItem, question.work_item_id),
    )


def build_past_session(past: PastReader, session: Session) -> ListedSession:
    """Return a session with its agent's address."""
    return extend_record(ListedSession, session, address=past.tx.address(session.agent_id))
