"""The person's one inbox: what agents put into it, and who sees it. `deciding` takes things out of it."""

from typing import Any

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.broker import lineage, needing, owning, posting
from scout.broker.page import before, sought
from scout.broker.turn import Turn
from scout.broker.views import enriched
from scout.model.attention import Attention, AttentionKind, ReturnPath, is_blocking
from scout.model.conversation import check_body
from scout.model.flight import FLIGHT, Flight, FlightMove
from scout.model.work_item import WorkItem, WorkState
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

__all__ = ["consult", "find", "get", "list_attention", "need", "notify", "raise_item", "view_of"]

Raising = RaiseAttention | Need | Consult | Notify


# -- looking -----------------------------------------------------------------------------------------


def view_of(turn: Turn, item: Attention) -> AttentionView:
    """An item, and how the agent is called that raised it or waits for it."""
    return enriched(AttentionView, item, agent_address=turn.canonical(item.agent_id))


def find(turn: Turn, ident: str) -> Attention:
    """An item that is for the caller's user, or that the caller raised."""
    item = turn.need(Attention, "attention item", ident)
    mine = turn.actor.agent_id is not None and turn.actor.agent_id == item.agent_id
    if not (mine or turn.is_operator or item.user == turn.actor.user):
        raise turn.missing("attention item", ident)
    return item


def get(turn: Turn, request: GetAttention) -> AttentionView:
    """One item as it is."""
    return view_of(turn, find(turn, request.attention_id))


def list_attention(turn: Turn, request: ListAttention) -> Page[AttentionView]:
    """What needs the caller's user, or what the caller raised, newest first."""
    listed = sought(
        lambda bound, limit: _some(turn, request, bound, limit),
        lambda item: request.kind in (None, item.kind),
        before(request.cursor),
        request.limit,
        turn.rules.limits,
    )
    return Page(items=tuple(view_of(turn, one) for one in listed.items), next=listed.next)


def _some(turn: Turn, request: ListAttention, bound: str, limit: int) -> list[Attention]:
    many = turn.ledger.many
    if request.raised:
        query = "attention_by" if request.all else "attention_by_open"
        return many(Attention, query, agent=turn.sender, before=bound, limit=limit)
    user = turn.actor.user or turn.world.operator
    query = "attention_all" if request.all else "attention_open"
    return many(Attention, query, user=user, before=bound, limit=limit)


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
