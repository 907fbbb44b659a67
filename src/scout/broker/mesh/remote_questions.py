"""Questions between agents of two nodes: each node has the record, and the mover's node tells the other."""

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.broker.effects.answers import resume_waiting_flight
from scout.broker.mesh.messages import deliver_message, post_copy, require_recipient
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.agent import Agent
from scout.model.conversation import Conversation, Message, MessageKind
from scout.model.events.talk import QUESTION_EVENTS, QuestionCreated
from scout.model.mesh.envelope import QuestionPayload
from scout.model.problems.request import NotFound
from scout.model.question import QUESTION, Question, QuestionMove
from scout.policy.permit import Deed
from scout.policy.wake import Cause


def apply_question(tx: Transaction, node_id: str, payload: QuestionPayload) -> str:
    """Store a new question, or its new state, and deliver the message that asks or answers it."""
    told, known = payload.question, tx.get(Question, payload.question.id)
    own = require_recipient(tx, _find_own_party(tx, node_id, told))
    if known is None:
        tx.permit(Deed.ADDRESS, build_subject(own))
        _store_question(tx, told)
    else:
        _move_question(tx, known, told, payload.move)
    if payload.message is not None:
        _deliver(tx, told, payload.message, own)
    return told.id


def _find_own_party(tx: Transaction, node_id: str, question: Question) -> str:
    """Return the party of this node; the other one must be an agent of the node that tells."""
    for own, other in (
        (question.responder_id, question.asker_id),
        (question.asker_id, question.responder_id),
    ):
        theirs = tx.agent(other)
        if theirs is not None and theirs.is_remote and theirs.home_id == node_id:
            return own
    raise Refused(NotFound(noun="question of this node", id=question.id[:60]))


def _store_question(tx: Transaction, told: Question) -> None:
    """Store a question of another node. The flight and the work that it belongs to are there."""
    copy = replace(told, flight_id=None, work_item_id=None, ask_id=None)
    tx.record(QuestionCreated, copy, move="create", source=told.asker_id)
    attention_items.sync_item(tx, copy)


def _move_question(tx: Transaction, known: Question, told: Question, move: str) -> None:
    if (known.asker_id, known.responder_id) != (told.asker_id, told.responder_id):
        raise Refused(BadRequest(problem="a question keeps its parties on another node", field="question"))
    step = QuestionMove(move) if move in list(QuestionMove) else None
    if step is None or step not in QUESTION.accepts(known.state):
        return  # both moved at once: the own state stays, and the other node hears of it
    moved = replace(
        told,
        revision=known.revision + 1,
        flight_id=known.flight_id,
        work_item_id=known.work_item_id,
        ask_id=known.ask_id,
        created_at=known.created_at,
        updated_at=tx.now,
    )
    resume_waiting_flight(tx, known)
    mover = told.responder_id if step in (QuestionMove.ANSWER, QuestionMove.DECLINE) else told.asker_id
    tx.record(QUESTION_EVENTS[step], moved, move=step, reason=moved.reason, source=mover)
    attention_items.sync_item(tx, moved)


def _deliver(tx: Transaction, question: Question, message: Message, own: Agent) -> None:
    """Deliver the message; an asker that waits for the answer sees it now, so it is only posted."""
    if tx.services.is_awaited(f"{question.id} {own.id}"):
        place = tx.need(Conversation, "conversation", question.conversation_id or message.conversation_id)
        post_copy(tx, message, place, own.id)
        return
    asks = message.kind is MessageKind.QUESTION
    deliver_message(tx, message, own, Cause.QUESTION if asks else Cause.ANSWER)
