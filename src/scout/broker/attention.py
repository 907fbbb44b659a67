"""The person's one inbox: what agents put into it, and who sees it. `deciding` takes things out of it."""

from typing import Any

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.broker import lineage, needing, owning, posting
from scout.broker.held import count_held
from scout.broker.page import before, sought
from scout.broker.turn import Turn
from scout.broker.views import enriched
from scout.model.attention import Attention, AttentionKind, ReturnPath, is_blocking
from scout.model.conversation import check_body
from scout.model.flight import FLIGHT, Flight, FlightMove
from scout.model.work_item import WorkItem, WorkState
from scout.policy.attention import may_read_attention
from scout.policy.permit import is_person_for
from scout.protocol.attention import (
    AttentionView,
    Consult,
    GetAttention,
    ListAttention,
    Need,
    Notify,
    RaiseAttention,
)
from scout.protocol.request import Page

__all__ = ["consult", "find", "get", "inbox_of", "list_attention", "need", "notify", "raise_item", "view_of"]

Raising = RaiseAttention | Need | Consult | Notify


# -- looking -----------------------------------------------------------------------------------------


def view_of(turn: Turn, item: Attention) -> AttentionView:
    """An item, and how the agent is called that raised it or waits for it."""
    return enriched(AttentionView, count_held(turn, item), agent_address=turn.address(item.agent_id))


def find(turn: Turn, ident: str) -> Attention:
    """An item that is for the caller in person, or that the caller raised; to others there is none."""
    item = turn.need(Attention, "attention item", ident)
    if not may_read_attention(turn.actor, item):
        raise turn.missing("attention item", ident)
    return item


def get(turn: Turn, request: GetAttention) -> AttentionView:
    """One item as it is."""
    return view_of(turn, find(turn, request.attention_id))


def list_attention(turn: Turn, request: ListAttention) -> Page[AttentionView]:
    """What needs the caller in person; an agent sees what it raised itself. Newest first."""
    listed = sought(
        lambda bound, limit: _some(turn, request, bound, limit),
        lambda item: request.kind in (None, item.kind),
        before(request.cursor),
        request.limit,
        turn.rules.limits,
    )
    return Page(items=tuple(view_of(turn, one) for one in listed.items), next=listed.next)


def _some(turn: Turn, request: ListAttention, bound: str, limit: int) -> list[Attention]:
    many, user = turn.ledger.many, inbox_of(turn)
    if user is None or request.raised:
        query, agent = "attention_by" if request.all else "attention_by_open", turn.actor.agent_id
        found = many(Attention, query, agent=agent, before=bound, limit=limit)
        return [one for one in found if may_read_attention(turn.actor, one)]
    query = "attention_all" if request.all else "attention_open"
    return many(Attention, query, user=user, before=bound, limit=limit)


def inbox_of(turn: Turn) -> str | None:
    """The user whose inbox the caller reads: the operator's, or that of the person it is."""
    if turn.is_operator:
        return turn.actor.user or turn.world.operator
    return turn.actor.user if is_person_for(turn.actor, turn.actor.user) else None


# -- raising -----------------------------------------------------------------------------------------


def raise_item(turn: Turn, request: RaiseAttention) -> AttentionView:
    """Put something before the person; whoever is blocked by it waits."""
    return _raised(
        turn,
        request,
        request.kind,
        title=request.title,
        body=request.body,
        risk=request.risk,
        options=request.options,
        default_action=request.default_action,
    )


def need(turn: Turn, request: Need) -> AttentionView:
    """A question that its asker cannot go on without."""
    asked = _said(request.question)
    return _raised(turn, request, AttentionKind.QUESTION, **asked, risk=request.risk, options=request.options)


def consult(turn: Turn, request: Consult) -> AttentionView:
    """A question whose asker goes on."""
    return _raised(
        turn,
        request,
        AttentionKind.CONSULT,
        **_said(request.question),
        risk=request.risk,
        options=request.options,
        default_action=request.default_action,
    )


def notify(turn: Turn, request: Notify) -> AttentionView:
    """Something to know."""
    return _raised(turn, request, AttentionKind.NOTIFY, **_said(request.message))


def _said(text: str) -> dict[str, str]:
    """A text as a title, and as a body where a line does not hold it."""
    title = needing.title_of(check_body(text))
    if not title:
        raise Refused(BadRequest(problem="a person is asked something: it needs a text", field="question"))
    return {"title": title, "body": "" if title == text.strip() else text}


def _raised(turn: Turn, request: Raising, kind: AttentionKind, **said: Any) -> AttentionView:
    user = turn.actor.user or turn.world.operator
    person = needing.person_of(turn, user)
    flight = _blocked_flight(turn, request.flight_id)
    work = _blocked_work(turn, request.work_item_id)
    item = needing.put(
        turn,
        kind,
        user=user,
        source=turn.sender,
        agent_id=turn.sender,
        return_path=ReturnPath(
            session_id=turn.actor.session_id,
            flight_id=flight.id if flight else None,
            work_item_id=work.id if work else None,
            conversation_id=posting.dm_of(turn, person, turn.sender).id if person != turn.sender else None,
        ),
        dedupe=_dedupe(turn, request, work),
        expires_at=_end(turn, request.expires_in),
        **said,
    )
    if is_blocking(item):
        needing.blocked(turn, item, flight, work)
    return view_of(turn, item)


def _dedupe(turn: Turn, request: Raising, work: WorkItem | None) -> str | None:
    """A text of the caller's own; what an item of work begins to wait for is the one item about it."""
    if request.dedupe:
        return f"{turn.sender} {request.dedupe}"
    begins = work is not None and work.state in (WorkState.OPEN, WorkState.WORKING)
    return work.id if work is not None and begins else None


def _end(turn: Turn, seconds: float | None) -> Time | None:
    if seconds is not None and seconds <= 0:
        raise Refused(BadRequest(problem="it is over after more than 0 seconds", field="expiresIn"))
    return turn.now.plus(seconds) if seconds is not None else None


def _blocked_flight(turn: Turn, named: str | None) -> Flight | None:
    """The flight that the caller works on; one that is named is not over yet."""
    flight = lineage.worked_on(turn, named)
    if flight is not None and flight.state in FLIGHT.terminal:
        FLIGHT.after(flight.state, FlightMove.WAIT)
    return flight


def _blocked_work(turn: Turn, named: str | None) -> WorkItem | None:
    """A work item of the caller's, or of one that it controls."""
    if named is None:
        return None
    work = turn.need(WorkItem, "work item", named)
    owning.check_mover(turn, "work item", work.id, work.owner_id)
    return work
