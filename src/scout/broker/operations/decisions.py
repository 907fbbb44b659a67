"""Decide attention items: each is decided once, and the answer goes back to the blocked record."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused, Remedy, WrongState
from scout.broker.operations import allowances, attention, questions, work
from scout.broker.routing import attention_items, posts, wake
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import (
    ATTENTION,
    Attention,
    AttentionKind,
    AttentionMove,
    AttentionState,
    decide_attention,
    expire_attention,
    is_blocking,
)
from scout.model.conversation import Conversation, Message, MessageKind
from scout.model.events.envelope import Metadata
from scout.model.events.talk import ATTENTION_EVENTS
from scout.model.flight import Flight
from scout.model.problems.request import Forbidden
from scout.model.question import Question, QuestionState
from scout.model.ref import RefKind
from scout.model.session import Session, SessionState
from scout.model.work_item import WorkItem, WorkState
from scout.policy.directory import Party
from scout.policy.permit import Deed, is_requester
from scout.policy.wake import Cause, Occasion
from scout.protocol.attention import (
    AnswerAttention,
    ApproveAttention,
    AttentionView,
    DecideAttention,
    Decided,
    DecidedItems,
    DenyAttention,
    DismissAttention,
    ListAttention,
)
from scout.protocol.questions import AnswerQuestion, CloseQuestion, DeclineQuestion, ReopenQuestion
from scout.protocol.work import AcceptWork, ReopenWork, ResumeWork, SubmitWork

_AT_ONCE = 200
Deciding = AnswerAttention | ApproveAttention | DenyAttention | DismissAttention


_DECISIONS: dict[AttentionMove, Callable[[str, DecideAttention], Deciding]] = {
    AttentionMove.APPROVE: lambda ident, by: ApproveAttention(
        attention_id=ident, reason=by.reason, always=by.always, scope=by.scope, until=by.until
    ),
    AttentionMove.DENY: lambda ident, by: DenyAttention(attention_id=ident, reason=by.reason),
    AttentionMove.ANSWER: lambda ident, by: AnswerAttention(
        attention_id=ident, answer=by.answer or "", reason=by.reason
    ),
    AttentionMove.DISMISS: lambda ident, by: DismissAttention(attention_id=ident, reason=by.reason),
}


def answer(tx: Transaction, request: AnswerAttention) -> AttentionView:
    """Answer an item."""
    return _decide(tx, request, AttentionMove.ANSWER, request.answer)


def approve(tx: Transaction, request: ApproveAttention) -> AttentionView:
    """Approve an item."""
    return _decide(tx, request, AttentionMove.APPROVE)


def deny(tx: Transaction, request: DenyAttention) -> AttentionView:
    """Deny an item."""
    return _decide(tx, request, AttentionMove.DENY)


def dismiss(tx: Transaction, request: DismissAttention) -> AttentionView:
    """Dismiss an item without answering."""
    return _decide(tx, request, AttentionMove.DISMISS)


def decide_several(tx: Transaction, request: DecideAttention) -> DecidedItems:
    """Decide several items independently; an item that cannot be decided is reported and stops no other."""
    if request.move not in _DECISIONS:
        problem = f"a person can {', '.join(_DECISIONS)}, not {request.move}"
        raise Refused(BadRequest(problem=problem, field="move"))
    if request.always and request.move is not AttentionMove.APPROVE:
        raise Refused(BadRequest(problem="only an approval can be remembered", field="always"))
    return DecidedItems(items=tuple(_decide_one(tx, request, ident) for ident in _choose_items(tx, request)))


def _choose_items(tx: Transaction, request: DecideAttention) -> list[str]:
    """Return the ids of the named items and of the agent's or flight's open items."""
    chosen = list(request.attention_ids)
    if request.agent is not None or request.flight is not None:
        listing = ListAttention(agent=request.agent, flight=request.flight, limit=_AT_ONCE)
        chosen += [one.id for one in attention.list_attention(tx, listing).items]
    if not chosen and request.agent is None and request.flight is None:
        problem = "give attentionIds, an agent or a flight"
        raise Refused(BadRequest(problem=problem, field="attentionIds"))
    return list(dict.fromkeys(chosen))[:_AT_ONCE]


def _decide_one(tx: Transaction, request: DecideAttention, ident: str) -> Decided:
    made, known = _DECISIONS[request.move](ident, request), len(tx.events)
    try:
        item = _decide(tx, made, request.move, request.answer)
    except Refused as refused:
        if len(tx.events) > known:
            raise  # roll back the whole transaction rather than keep half a decision
        return Decided(attention_id=ident, decided=False, problem=refused.diagnostic.message)
    return Decided(attention_id=item.id, decided=True, item=item)


def _decide(
    tx: Transaction, request: Deciding, move: AttentionMove, text: str | None = None
) -> AttentionView:
    item = attention.find(tx, request.attention_id)
    if not (move is AttentionMove.DISMISS and attention.may_always_dismiss(tx, item)):
        _require_decider(tx, item, move)
    if item.state in ATTENTION.terminal:
        raise Refused(_build_too_late(tx, item, move))
    decided = decide_attention(
        item, move, tx.sender, tx.now, answer=text, reason=request.reason, seen=request.revision
    )
    remote = item.source.kind is RefKind.NODE
    if remote and isinstance(request, ApproveAttention) and request.always:
        problem = "an item of another node is decided once; a standing decision is made on its node"
        raise Refused(BadRequest(problem=problem, field="always"))
    if isinstance(request, ApproveAttention) and request.always:
        decided = replace(decided, allowance_id=allowances.remember(tx, item, request).id)
    tx.record(ATTENTION_EVENTS[move], decided, move=move, reason=request.reason)
    if not remote:  # its own node applies it
        _apply_decision(tx, decided, move)
    return attention.show_item(tx, decided)


def _require_decider(tx: Transaction, item: Attention, move: AttentionMove) -> None:
    """Refuse a caller who may not decide the item; nobody decides what they raised themselves."""
    requester = attention.find_requester(tx, item)
    if not is_requester(tx.actor, requester):
        tx.permit(Deed.APPROVE, requester)
        return
    remedies = (Remedy(operation="attention.show", parameters={"attentionId": item.id}),)
    if attention.may_always_dismiss(tx, item):
        withdraw = Remedy(
            operation="attention.dismiss", parameters={"attentionId": item.id}, why="withdraw your item"
        )
        remedies = (withdraw, *remedies)
    raised_for = requester.agent_id if requester.agent_id != tx.actor.agent_id else None
    by = f"this credential raised it for {tx.address(raised_for)}" if raised_for else "you raised it"
    who = "the operator on the web page (`scout web`)" if raised_for and tx.is_operator else "another person"
    raise Refused(
        Forbidden(action=move, subject=item.id, needs=(who,), reason=by, remedies=remedies),
    )


def _build_too_late(tx: Transaction, item: Attention, move: AttentionMove) -> WrongState:
    """Return the refusal of a second decision, with the first one."""
    said = f" '{item.answer}'" if item.answer else ""
    by = f" by {tx.address(item.decided_by)}" if item.decided_by else ""
    return WrongState(
        noun=ATTENTION.noun,
        state=item.state,
        move=move,
        accepts=(),
        terminal=True,
        how=f"it was {item.state}{said}{by} at {item.updated_at}",
        remedies=(Remedy(operation="attention.show", parameters={"attentionId": item.id}),),
    )


def expire_item(tx: Transaction, item: Attention) -> Attention:
    """Expire an unanswered item: resume what it blocked, and notify the agent that waits for the answer."""
    over = expire_attention(item, tx.now)
    reason = f"no answer in time; the default applies: {over.answer}" if over.answer else "no answer in time"
    tx.record(ATTENTION_EVENTS[AttentionMove.EXPIRE], over, move=AttentionMove.EXPIRE, reason=reason)
    flights = attention_items.resume_blocked_records(tx, over)
    if is_blocking(item):
        _send_decision(tx, over, reason, flights)
    return over


# -- returning the decision --------------------------------------------------------------------------


def _apply_decision(tx: Transaction, item: Attention, move: AttentionMove) -> None:
    """Apply a decision to the item's question or work item, or send it to the agent that raised the item."""
    match tx.get(Question, item.source.id), tx.get(WorkItem, item.source.id):
        case Question() as question, _:
            _apply_to_question(tx, question, item, move)
        case _, WorkItem() as found:
            _apply_to_work(tx, found, item, move)
        case _ if item.kind is not AttentionKind.NOTIFY:
            words = _describe_decision(item)
            _send_decision(tx, item, words, attention_items.resume_blocked_records(tx, item))
        case _:
            pass


def _describe_decision(item: Attention) -> str:
    """Return a decision in words."""
    said = {
        AttentionState.RESOLVED: "approved",
        AttentionState.DENIED: "denied",
        AttentionState.ANSWERED: item.answer or "",
        AttentionState.DISMISSED: "dismissed without an answer",
    }[item.state]
    return f"{said}: {item.reason}" if item.reason else said


def _apply_to_question(tx: Transaction, question: Question, item: Attention, move: AttentionMove) -> None:
    """Answer or decline an open question; close or reopen an answered one."""
    ident, reason = question.id, item.reason
    if question.state is QuestionState.OPEN:
        if move is AttentionMove.ANSWER:
            questions.answer(tx, AnswerQuestion(question_id=ident, answer=item.answer or ""))
        else:
            questions.decline(tx, DeclineQuestion(question_id=ident, reason=reason))
    elif question.state is QuestionState.ANSWERED:
        if move is AttentionMove.DENY:
            questions.reopen(tx, ReopenQuestion(question_id=ident, reason=reason))
        else:
            questions.close(tx, CloseQuestion(question_id=ident, reason=reason))


def _apply_to_work(tx: Transaction, item: WorkItem, decided: Attention, move: AttentionMove) -> None:
    """Resume waiting work, accept or reopen work in review, submit other work; ignore a dismissal."""
    words = _describe_decision(decided)
    if move is AttentionMove.DISMISS:
        return
    if item.state is WorkState.WAITING and move is AttentionMove.ANSWER:
        work.resume(tx, ResumeWork(work_item_id=item.id, reason=f"{decided.id} is {decided.state}"))
        _send_to_agent(tx, decided, decided.agent_id, words, ())
    elif item.state is WorkState.WAITING:
        work.resume(tx, ResumeWork(work_item_id=item.id, reason=words))
    elif item.state is WorkState.REVIEW and move is AttentionMove.APPROVE:
        work.accept(tx, AcceptWork(work_item_id=item.id, reason=decided.reason))
    elif item.state is WorkState.REVIEW:
        work.reopen(tx, ReopenWork(work_item_id=item.id, reason=decided.reason or words))
    else:
        work.submit(tx, SubmitWork(work_item_id=item.id, summary=decided.answer or decided.reason))


def _send_decision(tx: Transaction, item: Attention, words: str, flights: Sequence[Flight]) -> None:
    """Send a decision as a message to the agent that asked, unless it long-polls this item.

    A flight that asked continues with the answer, in its current turn or in a new one.
    """
    asker = item.source.id
    if item.answer and asker in tx.services.own_agents:
        asker = item.agent_id or asker  # an item raised by Scout is about an agent
    if item.source.kind is RefKind.AGENT:
        _send_to_agent(tx, item, asker, words, flights)


def _send_to_agent(
    tx: Transaction, item: Attention, asker: str | None, words: str, flights: Sequence[Flight]
) -> None:
    if asker is None or asker in (tx.sender, *tx.services.own_agents):
        return
    place = posts.ensure_direct_conversation(tx, tx.sender, asker)
    awaited = tx.services.is_awaited(f"{item.id} {asker}")
    for flight in (flights or [None])[: 1 if awaited else None]:
        message = posts.post_message(
            tx,
            place.id,
            f"{words}\n(to {item.id}: {item.title})",
            kind=MessageKind.ANSWER,
            ask_id=flight.ask_id if flight else None,
            flight_id=flight.id if flight else None,
            work_item_id=item.return_path.work_item_id,
            metadata=Metadata(target_agents=(asker,)),
        )
        if not awaited:
            session = flight.session_id if flight else _find_session_id(tx, item)
            _deliver_decision(tx, message, Party(agent_id=asker, session_id=session), place)


def _deliver_decision(tx: Transaction, message: Message, asker: Party, place: Conversation) -> None:
    occasion = Occasion(
        cause=Cause.ANSWER,
        sender=Party(agent_id=tx.sender, session_id=tx.actor.session_id),
        kind=MessageKind.ANSWER,
        targets=(asker,),
        place=wake.build_wake_context(tx, place),
    )
    wake.deliver_message(tx, message, asker.agent_id, wake.decide_who_is_woken(tx, occasion))


def _find_session_id(tx: Transaction, item: Attention) -> str | None:
    """Return the id of the session that asked, if it is still live."""
    session = tx.get(Session, item.return_path.session_id)
    return session.id if session is not None and session.state is SessionState.LIVE else None
