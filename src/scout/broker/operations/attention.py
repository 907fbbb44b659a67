"""The person's one inbox: what agents put into it, and who sees it. `deciding` takes things out of it."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.broker.operations import ask_chain
from scout.broker.routing import attention_items, posts
from scout.broker.routing.attention_items import count_held, decide_by_allowance
from scout.broker.routing.views import extend_record
from scout.broker.transaction.paging import before, cursor, filtered_page, page, size
from scout.broker.transaction.transaction import Transaction, require_owner, subject_of
from scout.model.attention import (
    ATTENTION,
    Attention,
    AttentionKind,
    ReturnPath,
    is_blocking,
    risk_of_permission,
)
from scout.model.conversation import check_body
from scout.model.flight import FLIGHT, Flight, FlightMove
from scout.model.permission import PermissionRequest, title_of_request
from scout.model.ref import RefKind
from scout.model.work_item import WorkItem, WorkState
from scout.policy.permit import Deed, Subject, is_person_for, may_read_attention
from scout.protocol.attention import (
    AgentNeeds,
    AttentionPage,
    AttentionView,
    Consult,
    GetAttention,
    ListAttention,
    Need,
    Notify,
    RaiseAttention,
)
from scout.protocol.request import Page

_ROWS = 200
_DIGITS = 16
Raising = RaiseAttention | Need | Consult | Notify


# -- looking -----------------------------------------------------------------------------------------


def view_of(tx: Transaction, item: Attention) -> AttentionView:
    """An item, how those behind it are called, and whether the caller may decide it."""
    return extend_record(
        AttentionView,
        count_held(tx, item),
        agent_address=tx.address(item.agent_id),
        decided_by_address=tx.address(item.decided_by) if item.decided_by else None,
        may_decide=item.state not in ATTENTION.terminal and tx.allows(Deed.APPROVE, requester_of(tx, item)),
    )


def requester_of(tx: Transaction, item: Attention) -> Subject:
    """Who asked for it, by which credential: neither may say yes to it."""
    raised = item.source.kind is RefKind.AGENT
    agent = tx.agent(item.source.id if raised else item.agent_id)
    own = item.source.id in tx.services.own_agents  # raised by Scout, in whosever transaction that was
    first = (
        tx.ledger.facts("events_at", ref=f"attention:{item.id}", after=0, limit=1)
        if raised and not own
        else ()
    )
    by_token = next((one.metadata.token_id for one in first), None)
    subject = subject_of(agent) if agent else Subject(name=item.id)
    return replace(subject, name=item.id, user=item.user, requester_token_id=by_token)


def find(tx: Transaction, ident: str) -> Attention:
    """An item that is for the caller in person, or that the caller raised; to others there is none."""
    item = tx.need(Attention, "attention item", ident)
    if not may_read_attention(tx.actor, item):
        raise tx.missing("attention item", ident)
    return item


def get(tx: Transaction, request: GetAttention) -> AttentionView:
    """One item as it is."""
    return view_of(tx, find(tx, request.attention_id))


def list_attention(tx: Transaction, request: ListAttention) -> AttentionPage:
    """What needs the caller in person; an agent sees what it raised itself."""
    user, limits = inbox_of(tx), tx.rules.limits
    if user is None or request.raised or request.all:
        read, is_wanted = _newest_first(tx, request, user), _wanted(tx, request)
        listed = filtered_page(read, is_wanted, before(request.cursor), request.limit, limits)
    else:
        listed = in_turn(tx, user, _wanted(tx, request), cursor(request.cursor), request.limit)
    items = tuple(view_of(tx, one) for one in listed.items)
    return AttentionPage(items=items, next=listed.next, agents=needs_of(tx, user) if user else ())


def _wanted(tx: Transaction, request: ListAttention) -> Callable[[Attention], bool]:
    """Whether an item is of the kind, agent and flight that is asked for, and the caller may read it."""
    agent = tx.resolve(request.agent).agent.id if request.agent else None

    def is_wanted(item: Attention) -> bool:
        of_agent = agent in (None, item.agent_id)
        of_flight = request.flight in (None, item.return_path.flight_id)
        of_kind = request.kind in (None, item.kind)
        return of_kind and of_agent and of_flight and may_read_attention(tx.actor, item)

    return is_wanted


def _newest_first(
    tx: Transaction, request: ListAttention, user: str | None
) -> Callable[[str, int], list[Attention]]:
    many = tx.ledger.many
    if user is None or request.raised:
        query, agent = "attention_by" if request.all else "attention_by_open", tx.actor.agent_id
        return lambda bound, limit: many(Attention, query, agent=agent, before=bound, limit=limit)
    return lambda bound, limit: many(Attention, "attention_all", user=user, before=bound, limit=limit)


def in_turn(
    tx: Transaction,
    user: str,
    is_wanted: Callable[[Attention], bool] = lambda item: True,
    place: str | None = None,
    limit: int | None = None,
) -> Page[Attention]:
    """What is open: the riskiest first, then each agent's oldest, then each agent's next one."""
    wanted, (urgency, rank, after) = size(limit, tx.rules.limits), _place_of(place)
    found: list[Attention] = []
    while len(found) <= wanted:
        bound = {"user": user, "urgency": urgency, "rank": rank, "after": after}
        rows = tx.ledger.many(Attention, "attention_in_turn", **bound, limit=_ROWS)
        found += filter(is_wanted, rows)
        if len(rows) < _ROWS:
            break
        urgency, rank, after = rows[-1].urgency, rows[-1].rank, rows[-1].id
    return page(found, wanted, lambda one: f"{one.urgency} {one.rank} {one.id}")


def _place_of(text: str | None) -> tuple[int, int, str]:
    """The place in the order that a cursor stands for; none is the beginning."""
    match (text or "0 0 -").split(" "):
        case [urgency, rank, after] if urgency.isdecimal() and rank.isdecimal() and len(rank) < _DIGITS:
            return int(urgency[:1]), int(rank), after
        case _:
            raise Refused(BadRequest(problem="this is no cursor of this list", field="cursor"))


def needs_of(tx: Transaction, user: str) -> tuple[AgentNeeds, ...]:
    """How much each agent needs of a user; who needs the riskiest comes first."""
    counted: dict[str | None, dict[int, int]] = {}
    for agent_id, urgency, count in tx.ledger.rows("attention_counts", user=user):
        counted.setdefault(agent_id, {})[urgency] = count
    ordered = sorted(counted.items(), key=lambda one: (min(one[1]), one[0] or ""))
    return tuple(
        AgentNeeds(agent_id=agent_id, address=tx.address(agent_id), open=sum(by.values()), high=by.get(0, 0))
        for agent_id, by in ordered
    )


def inbox_of(tx: Transaction) -> str | None:
    """The user whose inbox the caller reads: the operator's, or that of the person it is."""
    if tx.is_operator:
        return tx.actor.user or tx.services.operator
    return tx.actor.user if is_person_for(tx.actor, tx.actor.user) else None


# -- raising -----------------------------------------------------------------------------------------


def raise_item(tx: Transaction, request: RaiseAttention) -> AttentionView:
    """Put something before the person; whoever is blocked by it waits."""
    return _raised(
        tx,
        request,
        request.kind,
        title=request.title,
        body=request.body,
        risk=request.risk,
        options=request.options,
        default_action=request.default_action,
    )


def need(tx: Transaction, request: Need) -> AttentionView:
    """A question that its asker cannot go on without."""
    asked = _said(request.question)
    return _raised(tx, request, AttentionKind.QUESTION, **asked, risk=request.risk, options=request.options)


def consult(tx: Transaction, request: Consult) -> AttentionView:
    """A question whose asker goes on."""
    return _raised(
        tx,
        request,
        AttentionKind.CONSULT,
        **_said(request.question),
        risk=request.risk,
        options=request.options,
        default_action=request.default_action,
    )


def notify(tx: Transaction, request: Notify) -> AttentionView:
    """Something to know."""
    return _raised(tx, request, AttentionKind.NOTIFY, **_said(request.message))


def raise_permission(tx: Transaction, wish: PermissionRequest, expires_in: float) -> AttentionView:
    """What the program of a session wants to do and may not yet."""
    asked = RaiseAttention(title=title_of_request(wish), expires_in=expires_in)
    said = {"title": asked.title, "body": wish.words, "risk": risk_of_permission(wish), "permission": wish}
    return _raised(tx, asked, AttentionKind.PERMISSION, **said)


def _said(text: str) -> dict[str, str]:
    """A text as a title, and as a body where a line does not hold it."""
    title = attention_items.title_of(check_body(text))
    if not title:
        raise Refused(BadRequest(problem="a person is asked something: it needs a text", field="question"))
    return {"title": title, "body": "" if title == text.strip() else text}


def _raised(tx: Transaction, request: Raising, kind: AttentionKind, **said: Any) -> AttentionView:
    user = tx.actor.user or tx.services.operator
    person = attention_items.person_of(tx, user)
    flight = _blocked_flight(tx, request.flight_id)
    work = _blocked_work(tx, request.work_item_id)
    item = attention_items.open_item(
        tx,
        kind,
        user=user,
        source=tx.sender,
        agent_id=tx.sender,
        return_path=ReturnPath(
            session_id=tx.actor.session_id,
            flight_id=flight.id if flight else None,
            work_item_id=work.id if work else None,
            conversation_id=posts.direct_conversation(tx, person, tx.sender).id
            if person != tx.sender
            else None,
        ),
        dedupe=_dedupe(tx, request, work),
        expires_at=_end(tx, request.expires_in),
        **said,
    )
    item = decide_by_allowance(tx, item)
    if is_blocking(item):
        attention_items.block_on_item(tx, item, flight, work)
    return view_of(tx, item)


def _dedupe(tx: Transaction, request: Raising, work: WorkItem | None) -> str | None:
    """A text of the caller's own; what an item of work begins to wait for is the one item about it."""
    if request.dedupe:
        return f"{tx.sender} {request.dedupe}"
    begins = work is not None and work.state in (WorkState.OPEN, WorkState.WORKING)
    return work.id if work is not None and begins else None


def _end(tx: Transaction, seconds: float | None) -> Time | None:
    if seconds is not None and seconds <= 0:
        raise Refused(BadRequest(problem="it is over after more than 0 seconds", field="expiresIn"))
    return tx.now.plus(seconds) if seconds is not None else None


def _blocked_flight(tx: Transaction, named: str | None) -> Flight | None:
    """The flight that the caller works on; one that is named is not over yet."""
    flight = ask_chain.enclosing_flight(tx, named)
    if flight is not None and flight.state in FLIGHT.terminal:
        FLIGHT.after(flight.state, FlightMove.WAIT)
    return flight


def _blocked_work(tx: Transaction, named: str | None) -> WorkItem | None:
    """A work item of the caller's, or of one that it controls."""
    if named is None:
        return None
    work = tx.need(WorkItem, "work item", named)
    require_owner(tx, "work item", work.id, work.owner_id)
    return work
