"""Attention items: raise, read and list items that need a person. `decisions` decides them."""

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.broker.operations import flights
from scout.broker.routing import attention_items, posts, users
from scout.broker.routing.attention_items import count_held_asks, decide_by_allowance
from scout.broker.routing.remote import find_node_name
from scout.broker.routing.views import extend_record
from scout.broker.transaction.paging import (
    build_filtered_page,
    build_page,
    decode_bound,
    decode_cursor,
    get_page_size,
)
from scout.broker.transaction.transaction import Transaction, build_subject, require_owner
from scout.model.access.permission import PermissionRequest, format_request_title
from scout.model.attention import (
    ATTENTION,
    Attention,
    AttentionKind,
    ReturnPath,
    assess_risk,
    is_blocking,
)
from scout.model.conversation import check_body
from scout.model.flight import FLIGHT, Flight, FlightMove
from scout.model.ref import RefKind
from scout.model.work_item import WorkItem, WorkState
from scout.policy.permit import Deed, Subject, is_person_for, is_requester, may_read_attention
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


# -- reading -----------------------------------------------------------------------------------------


def show_item(tx: Transaction, item: Attention) -> AttentionView:
    """Return the item's view: addresses of its agents, and whether the caller may decide it."""
    requester, is_open = find_requester(tx, item), item.state not in ATTENTION.terminal
    may_decide = is_open and tx.allows(Deed.APPROVE, requester)
    return extend_record(
        AttentionView,
        count_held_asks(tx, item),
        agent_address=tx.address(item.agent_id),
        agent_node=find_node_name(tx, item.agent_id),
        decided_by_address=tx.address(item.decided_by) if item.decided_by else None,
        may_decide=may_decide,
        may_dismiss=may_decide or (is_open and may_always_dismiss(tx, item)),
        raised_by_you=is_requester(tx.actor, requester),
    )


def may_always_dismiss(tx: Transaction, item: Attention) -> bool:
    """Whether the caller raised the item or is the operator: a dismissal grants nothing."""
    return item.source.id == tx.sender or tx.is_operator


def find_requester(tx: Transaction, item: Attention) -> Subject:
    """Return the requesting agent and credential; neither may approve the item."""
    raised = item.source.kind is RefKind.AGENT
    agent = tx.agent(item.source.id if raised else item.agent_id)
    own = item.source.id in tx.services.own_agents  # raised by Scout, in any caller's transaction
    first = tx.ledger.log.list_at(item.id, 0, 1) if raised and not own else ()
    by_token = next((one.metadata.token_id for one in first), None)
    subject = build_subject(agent) if agent else Subject(name=item.id)
    return replace(subject, name=item.id, user=item.user, requester_token_id=by_token)


def find(tx: Transaction, ident: str) -> Attention:
    """Return an item that is for the caller in person or that it raised; for others it does not exist."""
    item = tx.need(Attention, "attention item", ident)
    if may_read_attention(tx.actor, item):
        return item
    if tx.actor.is_person and tx.allows(Deed.APPROVE, find_requester(tx, item)):
        return item  # a person who controls the agent
    raise tx.missing("attention item", ident)


def get(tx: Transaction, request: GetAttention) -> AttentionView:
    """Return one item."""
    return show_item(tx, find(tx, request.attention_id))


def list_attention(tx: Transaction, request: ListAttention) -> AttentionPage:
    """List the items in the caller's inbox; an agent sees the items it raised."""
    user, limits = choose_inbox_user(tx, request.user), tx.rules.limits
    if user is None or request.raised or request.all:
        read, is_wanted = _list_newest_first(tx, request, user), build_filter(tx, request)
        listed = build_filtered_page(read, is_wanted, decode_bound(request.cursor), request.limit, limits)
    else:
        listed = list_in_turn(
            tx, user, build_filter(tx, request), decode_cursor(request.cursor), request.limit
        )
    items = tuple(show_item(tx, one) for one in listed.items)
    return AttentionPage(items=items, next=listed.next, agents=list_needs(tx, user) if user else ())


def choose_inbox_user(tx: Transaction, name: str | None) -> str | None:
    """Return the user whose inbox is listed: the caller's, or a named one that the caller decides for."""
    if name is None:
        return find_inbox_user(tx)
    user = users.need_user(tx, name).name
    if not tx.is_operator and user not in tx.actor.own_users:
        raise Refused(users.build_unknown_user(tx, name))
    return user


def build_filter(tx: Transaction, request: ListAttention) -> Callable[[Attention], bool]:
    """Return a filter: the item matches the requested kind, agent and flight, and the caller may read it."""
    agent = tx.resolve(request.agent).agent.id if request.agent else None

    def is_wanted(item: Attention) -> bool:
        of_agent = agent in (None, item.agent_id)
        of_flight = request.flight in (None, item.return_path.flight_id)
        of_kind = request.kind in (None, item.kind)
        return of_kind and of_agent and of_flight and may_read_attention(tx.actor, item)

    return is_wanted


def _list_newest_first(
    tx: Transaction, request: ListAttention, user: str | None
) -> Callable[[str, int], list[Attention]]:
    many = tx.ledger.many
    if user is None or request.raised:
        query, agent = "attention_by" if request.all else "attention_by_open", tx.actor.agent_id
        return lambda bound, limit: many(Attention, query, agent=agent, before=bound, limit=limit)
    return lambda bound, limit: many(Attention, "attention_all", user=user, before=bound, limit=limit)


def list_in_turn(
    tx: Transaction,
    user: str,
    is_wanted: Callable[[Attention], bool] = lambda item: True,
    place: str | None = None,
    limit: int | None = None,
) -> Page[Attention]:
    """List open items: highest risk first, then round robin over agents, each agent's oldest first."""
    wanted, (urgency, rank, after) = get_page_size(limit, tx.rules.limits), _parse_position(place)
    found: list[Attention] = []
    while len(found) <= wanted:
        bound = {"user": user, "urgency": urgency, "rank": rank, "after": after}
        rows = tx.ledger.many(Attention, "attention_in_turn", **bound, limit=_ROWS)
        found += filter(is_wanted, rows)
        if len(rows) < _ROWS:
            break
        urgency, rank, after = rows[-1].urgency, rows[-1].rank, rows[-1].id
    return build_page(found, wanted, lambda one: f"{one.urgency} {one.rank} {one.id}")


def _parse_position(text: str | None) -> tuple[int, int, str]:
    """Decode a cursor into a position in the order; no cursor is the beginning."""
    match (text or "0 0 -").split(" "):
        case [urgency, rank, after] if urgency.isdecimal() and rank.isdecimal() and len(rank) < _DIGITS:
            return int(urgency[:1]), int(rank), after
        case _:
            raise Refused(BadRequest(problem="this is not a cursor of this list", field="cursor"))


def list_needs(tx: Transaction, user: str) -> tuple[AgentNeeds, ...]:
    """Count each agent's open items for a user, highest risk first."""
    counted: dict[str | None, dict[int, int]] = {}
    for agent_id, urgency, count in tx.ledger.rows("attention_counts", user=user):
        counted.setdefault(agent_id, {})[urgency] = count
    ordered = sorted(counted.items(), key=lambda one: (min(one[1]), one[0] or ""))
    return tuple(
        AgentNeeds(agent_id=agent_id, address=tx.address(agent_id), open=sum(by.values()), high=by.get(0, 0))
        for agent_id, by in ordered
    )


def find_inbox_user(tx: Transaction) -> str | None:
    """Return the user whose inbox the caller reads: the operator's, or the person's own; None for agents."""
    if tx.is_operator:
        return tx.actor.user or tx.services.operator
    return tx.actor.user if is_person_for(tx.actor, tx.actor.user) else None


# -- raising -----------------------------------------------------------------------------------------


def raise_item(tx: Transaction, request: RaiseAttention) -> AttentionView:
    """Raise an attention item; a flight or work item that it blocks waits for it."""
    return _raise(
        tx,
        request,
        request.kind,
        title=request.title,
        body=request.body,
        risk=request.risk,
        options=request.options,
        default_action=request.default_action,
    )


def raise_need(tx: Transaction, request: Need) -> AttentionView:
    """Raise a question that blocks its asker until it is answered."""
    asked = _split_text(request.question)
    return _raise(tx, request, AttentionKind.QUESTION, **asked, risk=request.risk, options=request.options)


def raise_consult(tx: Transaction, request: Consult) -> AttentionView:
    """Raise a question that does not block its asker."""
    return _raise(
        tx,
        request,
        AttentionKind.CONSULT,
        **_split_text(request.question),
        risk=request.risk,
        options=request.options,
        default_action=request.default_action,
    )


def raise_notice(tx: Transaction, request: Notify) -> AttentionView:
    """Raise a notification, which needs no answer."""
    return _raise(tx, request, AttentionKind.NOTIFY, **_split_text(request.message))


def raise_permission(tx: Transaction, wish: PermissionRequest, expires_in: float) -> AttentionView:
    """Raise a permission request of a session's program."""
    asked = RaiseAttention(title=format_request_title(wish), expires_in=expires_in)
    said = {"title": asked.title, "body": wish.words, "risk": assess_risk(wish), "permission": wish}
    return _raise(tx, asked, AttentionKind.PERMISSION, **said)


def _split_text(text: str) -> dict[str, str]:
    """Return a text as a title, with the full text as body if the title cuts it."""
    title = attention_items.shorten_title(check_body(text))
    if not title:
        raise Refused(BadRequest(problem="a question to a person needs a text", field="question"))
    return {"title": title, "body": "" if title == text.strip() else text}


def _raise(tx: Transaction, request: Raising, kind: AttentionKind, **said: Any) -> AttentionView:
    user = tx.actor.user or tx.services.operator
    person = attention_items.find_person(tx, user)
    flight = _find_blocked_flight(tx, request.flight_id)
    work = _find_blocked_work(tx, request.work_item_id)
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
            conversation_id=posts.ensure_direct_conversation(tx, person, tx.sender).id
            if person != tx.sender
            else None,
        ),
        dedupe=_choose_dedupe_key(tx, request, work),
        expires_at=_end_item(tx, request.expires_in),
        **said,
    )
    item = decide_by_allowance(tx, item)
    if is_blocking(item):
        attention_items.block_on_item(tx, item, flight, work)
    return show_item(tx, item)


def _choose_dedupe_key(tx: Transaction, request: Raising, work: WorkItem | None) -> str | None:
    """Return the dedupe key: the caller's, or the work item's id if the work item starts waiting."""
    if request.dedupe:
        return f"{tx.sender} {request.dedupe}"
    begins = work is not None and work.state in (WorkState.OPEN, WorkState.WORKING)
    return work.id if work is not None and begins else None


def _end_item(tx: Transaction, seconds: float | None) -> Time | None:
    if seconds is not None and seconds <= 0:
        raise Refused(BadRequest(problem="it must expire after more than 0 seconds", field="expiresIn"))
    return tx.now.plus(seconds) if seconds is not None else None


def _find_blocked_flight(tx: Transaction, named: str | None) -> Flight | None:
    """Return the flight that the caller works on; refuse a finished one."""
    flight = flights.find_enclosing_flight(tx, named)
    if flight is not None and flight.state in FLIGHT.terminal:
        FLIGHT.after(flight.state, FlightMove.WAIT)
    return flight


def _find_blocked_work(tx: Transaction, named: str | None) -> WorkItem | None:
    """Return a work item owned by the caller or by an agent that it controls."""
    if named is None:
        return None
    work = tx.need(WorkItem, "work item", named)
    require_owner(tx, "work item", work.id, work.owner_id)
    return work
