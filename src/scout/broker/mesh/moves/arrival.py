"""An agent arrives from another node of the operator, with everything that it brings, in one transaction."""

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.mesh import files
from scout.broker.mesh.messages import deliver_message, require_recipient
from scout.broker.mesh.moves.departure import deliver_here
from scout.broker.operations.agents import build_name_taken
from scout.broker.routing import attention_items
from scout.broker.routing.registration import break_alias_named
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent, arrive_from_node
from scout.model.alias import Alias
from scout.model.conversation import Message
from scout.model.delivery import Delivery
from scout.model.events.directory import AliasCreated
from scout.model.events.presence import AgentMoved
from scout.model.events.talk import QuestionCreated, WorkItemCreated
from scout.model.mesh.envelope import MailPayload, MovePayload
from scout.model.problems.request import Forbidden
from scout.model.question import Question
from scout.model.remote_agent import scope_path
from scout.model.work_item import WorkItem
from scout.policy.directory import Wanted
from scout.policy.wake import Cause

_SOME = 20


def take_agent(tx: Transaction, node_id: str, payload: MovePayload) -> str:
    """Take an agent from the node on which it lived: the same id, under the operator of this node."""
    known = tx.ledger.own_agent(payload.agent.id)
    if known is not None and known.moved_from == node_id and known.moved_to != node_id:
        return known.id  # the node repeats a move whose id is forgotten
    _check_origin(tx, payload.agent, node_id)
    path = scope_path(payload.agent.path, tx.services.operator)
    node = tx.services.node
    agent = arrive_from_node(payload.agent, node_id, tx.now, node=node, path=path, known=known)
    _check_names(tx, agent, path)
    tx.ledger.drop_remote_agent(agent.id)
    tx.record(AgentMoved, agent, move="arrive", reason=_name_origin(tx, payload.agent))
    tx.cache.forget_mirror()
    break_alias_named(tx, agent)
    for alias in payload.aliases:
        _take_alias(tx, alias)
    for item in payload.work_items:
        _take_work(tx, item)
    for question in payload.questions:
        _take_question(tx, question)
    return agent.id


def _name_origin(tx: Transaction, agent: Agent) -> str:
    return f"from node {agent.node}"


def _check_origin(tx: Transaction, agent: Agent, node_id: str) -> None:
    """Refuse an agent that does not live on the node that sends it."""
    holder = tx.agent(agent.id)
    if holder is not None and not (holder.is_remote and holder.home_id == node_id):
        needs = ("the node on which the agent lives",)
        raise Refused(Forbidden(action="move", subject=tx.address(agent.id), needs=needs))


def _check_names(tx: Transaction, agent: Agent, path: AgentPath) -> None:
    """Refuse an agent whose handle or path another agent of this node has."""
    if agent.definition_id is not None:
        wanted = Wanted(
            definition_id=agent.definition_id,
            workspace=agent.workspace,
            profile=agent.profile,
            node=agent.node,
            exact=True,
        )
        for holder in tx.everybody.find(wanted, 1):
            raise Refused(build_name_taken("agent", f"@{agent.definition_id} on {agent.node}", holder))
    at_path = tx.everybody.at_path(path)
    if at_path is not None and at_path.id != agent.id:
        raise Refused(build_name_taken("agent", f"{path} on {agent.node}", at_path))


def _take_alias(tx: Transaction, alias: Alias) -> None:
    """Create an alias under its name; one that is used here stays as it is."""
    owner = tx.services.operator
    taken = tx.ledger.one(Alias, "alias_named", owner=owner, name=alias.name) or tx.get(Alias, alias.id)
    if taken is None and not tx.everybody.find(Wanted(definition_id=alias.name, own=True), 1):
        tx.record(AliasCreated, replace(alias, owner=owner), move="create", reason="it came with its agent")


def _take_work(tx: Transaction, item: WorkItem) -> None:
    known = tx.get(WorkItem, item.id)
    if known is None or known.revision < item.revision:
        tx.record(WorkItemCreated, item, move="create", reason="it came with its agent")
        attention_items.sync_item(tx, item)


def _take_question(tx: Transaction, question: Question) -> None:
    if tx.get(Question, question.id) is None:
        copy = replace(question, flight_id=None, ask_id=None)
        tx.record(QuestionCreated, copy, move="create", reason="it came with its agent")
        attention_items.sync_item(tx, copy)


# -- unread mail -------------------------------------------------------------------------------------


def take_mail(tx: Transaction, node_id: str, payload: MailPayload) -> str:
    """Deliver a message that the agent had not read on its old node."""
    message, agent = payload.message, require_recipient(tx, payload.to)
    if agent.moved_from != node_id:
        needs = ("the node from which the agent came",)
        raise Refused(Forbidden(action="deliver", subject=tx.address(agent.id), needs=needs))
    if tx.get(Message, message.id) is None:
        deliver_message(tx, message, agent, Cause.SEND)
        files.request_files(tx, node_id, message)
        return message.id
    for delivery in tx.ledger.many(Delivery, "deliveries_of_message", message=message.id, limit=_SOME):
        if delivery.target == agent.id:
            deliver_here(tx, delivery, "its target came to this node")
    return message.id
