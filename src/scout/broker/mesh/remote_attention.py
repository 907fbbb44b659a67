"""Attention items of other nodes of the same operator: listed here as copies, decided on their own node.

A copy has its node as its source. Deciding it here closes the copy and sends the decision to its node, which
applies it as if it were made there, and tells what became of the item.
"""

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.mesh.outbox_rows import queue_entry
from scout.broker.operations import decisions
from scout.broker.routing.remote import list_own_nodes
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import ATTENTION, Attention, AttentionMove, AttentionState, ReturnPath
from scout.model.events.envelope import Event
from scout.model.events.talk import (
    ATTENTION_EVENTS,
    AttentionCreated,
    AttentionEvent,
    AttentionNotified,
)
from scout.model.mesh.envelope import AttentionPayload, DecisionPayload, EnvelopeKind
from scout.model.problems.request import NotFound
from scout.model.ref import Ref, RefKind
from scout.protocol.attention import (
    AnswerAttention,
    ApproveAttention,
    DenyAttention,
    DismissAttention,
)

_MOVES = {
    AttentionState.RESOLVED: AttentionMove.APPROVE,
    AttentionState.DENIED: AttentionMove.DENY,
    AttentionState.ANSWERED: AttentionMove.ANSWER,
    AttentionState.EXPIRED: AttentionMove.EXPIRE,
    AttentionState.DISMISSED: AttentionMove.DISMISS,
}


def queue_attention(tx: Transaction, event: AttentionEvent) -> None:
    """Queue an item for the other nodes of the operator, or the decision of an item of another node."""
    item: Attention = event.payload.record
    if isinstance(event, AttentionNotified):
        return
    if item.source.kind is RefKind.NODE:
        _queue_decision(tx, item, event)
    elif tx.services.shares_attention and item.user == tx.services.operator:
        for node in list_own_nodes(tx):
            queue_entry(tx, node.id, EnvelopeKind.ATTENTION, item.id, seq=event.seq)


def _queue_decision(tx: Transaction, item: Attention, event: Event) -> None:
    """Send a decision that was made here; what the item's node tells is not sent back."""
    if item.state in ATTENTION.terminal and event.source.id != tx.services.system_agent:
        sender = tx.services.operator_agent
        queue_entry(tx, item.source.id, EnvelopeKind.DECISION, item.id, sender=sender, seq=event.seq)


def build_decision(item: Attention) -> DecisionPayload | None:
    """Return the decision of an item for its node."""
    move = _MOVES.get(item.state)
    return DecisionPayload(item_id=item.id, move=move, answer=item.answer) if move else None


# -- what other nodes tell ---------------------------------------------------------------------------


def apply_attention(tx: Transaction, node_id: str, payload: AttentionPayload) -> str:
    """Store a copy of an item of another node, or its new state."""
    told, known = payload.item, tx.get(Attention, payload.item.id)
    if known is not None and known.source.id != node_id:
        raise Refused(NotFound(noun="attention item of that node", id=told.id[:60]))
    agent = told.agent_id if tx.agent(told.agent_id) is not None else None
    copy = replace(
        told,
        user=tx.services.operator,
        agent_id=agent,
        source=Ref.to(node_id),
        return_path=ReturnPath(),
        dedupe=f"{node_id}:{told.id}",
        allowance_id=None,
        revision=known.revision + 1 if known is not None else 1,
        decided_by=told.decided_by if tx.agent(told.decided_by) is not None else None,
    )
    if known is None and told.state in ATTENTION.terminal:
        return told.id  # decided before it could be shown here
    if known is None:
        tx.record(AttentionCreated, copy, move="create")
    elif told.state in ATTENTION.terminal and (known.state, known.answer) != (told.state, told.answer):
        step = _MOVES[told.state]
        tx.record(ATTENTION_EVENTS[step], copy, move=step, reason=told.reason)
    return told.id


def apply_decision(tx: Transaction, payload: DecisionPayload) -> str:
    """Decide an item of this node as the operator on another node has decided it."""
    item = tx.get(Attention, payload.item_id)
    shared = tx.services.shares_attention and item is not None and item.user == tx.services.operator
    if item is None or not shared or item.source.kind is RefKind.NODE:
        raise Refused(NotFound(noun="attention item", id=payload.item_id[:60]))
    match payload.move:
        case AttentionMove.APPROVE:
            decisions.approve(tx, ApproveAttention(attention_id=item.id))
        case AttentionMove.DENY:
            decisions.deny(tx, DenyAttention(attention_id=item.id))
        case AttentionMove.ANSWER:
            decisions.answer(tx, AnswerAttention(attention_id=item.id, answer=payload.answer or ""))
        case AttentionMove.DISMISS:
            decisions.dismiss(tx, DismissAttention(attention_id=item.id))
        case _:
            raise Refused(BadRequest(problem=f"an item is not decided by '{payload.move:.40}'", field="move"))
    return item.id
