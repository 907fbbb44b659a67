"""Requests of a program to a person during a turn, and how the answer gets back to the program."""

from scout.broker.delivery.session_records import PreparedTurn
from scout.broker.routing import attention_items
from scout.broker.routing.attention_items import decide_by_allowance
from scout.broker.transaction.transaction import Transaction
from scout.model.access.permission import PermissionRequest, build_request, format_request_title
from scout.model.attention import (
    ATTENTION,
    Attention,
    AttentionKind,
    AttentionState,
    ReturnPath,
    Risk,
    assess_risk,
)
from scout.model.flight import Flight
from scout.ports import Asked, HumanAnswer, NeedsHuman, RequestSettled
from scout.store.ledger import LAST

_SOME = 200
_KINDS = {Asked.PERMISSION: AttentionKind.PERMISSION, Asked.QUESTION: AttentionKind.QUESTION}


def ask_person(tx: Transaction, prepared: PreparedTurn, need: NeedsHuman) -> Attention:
    """Open an item in the person's inbox; a request repeated after a restart gets the same item.

    The flight waits for the item. If it expires, the program gets a denial.
    """
    flight = tx.get(Flight, prepared.flight_id)
    item = _find_item(tx, prepared, need.request)
    if item is None:
        item = decide_by_allowance(tx, _open_item(tx, prepared, need, flight))
    if item.state not in ATTENTION.terminal:
        attention_items.block_on_item(tx, item, flight, None)
    return item


def _open_item(tx: Transaction, prepared: PreparedTurn, need: NeedsHuman, flight: Flight | None) -> Attention:
    spec = prepared.spec
    agent = tx.agent(spec.agent_id)
    wish = _read_permission(need)
    return attention_items.open_item(
        tx,
        _KINDS[need.kind],
        user=(agent.owner if agent else None) or tx.services.operator,
        source=spec.session_id,
        options=need.options,
        agent_id=spec.agent_id,
        title=format_request_title(wish) if wish else attention_items.shorten_title(need.question),
        body=wish.words if wish else "\n".join(filter(None, (need.question, need.detail))),
        risk=assess_risk(wish) if wish else Risk.LOW,
        permission=wish,
        return_path=ReturnPath(
            session_id=spec.session_id,
            request=need.request,
            flight_id=prepared.flight_id,
            conversation_id=flight.conversation_id if flight else None,
        ),
        expires_at=tx.now.plus(tx.rules.periods.human_answer),
    )


def _read_permission(need: NeedsHuman) -> PermissionRequest | None:
    """Return the permission that is asked for, read from its words if the program gives nothing else."""
    if need.kind is not Asked.PERMISSION:
        return None
    return need.wish or build_request("", need.detail, need.question)


def _find_item(tx: Transaction, prepared: PreparedTurn, request: str) -> Attention | None:
    """Return the item of an earlier request with this name, decided or not."""
    raised = tx.ledger.many(Attention, "attention_by", agent=prepared.spec.agent_id, before=LAST, limit=_SOME)
    same = (prepared.spec.session_id, request)
    return next((one for one in raised if _get_request(one) == same), None)


def _get_request(item: Attention) -> tuple[str | None, str | None]:
    return item.return_path.session_id, item.return_path.request


def withdraw_request(tx: Transaction, prepared: PreparedTurn, event: RequestSettled) -> None:
    """Close a request that the program no longer waits for."""
    item = _find_item(tx, prepared, event.request)
    if item is not None and item.state not in ATTENTION.terminal:
        attention_items.close_item(tx, item, "the program continued without an answer")


def withdraw_all_requests(tx: Transaction, prepared: PreparedTurn) -> None:
    """Close every open request of a turn that has ended."""
    raised = tx.ledger.many(
        Attention, "attention_by_open", agent=prepared.spec.agent_id, before=LAST, limit=_SOME
    )
    for item in raised:
        session_id, request = _get_request(item)
        if session_id == prepared.spec.session_id and request is not None:
            attention_items.close_item(tx, item, "the turn that asked has ended")


def is_decided(item: Attention) -> bool:
    """Whether there is a decision to return to the program."""
    return item.return_path.request is not None and item.state in ATTENTION.terminal


def build_answer(item: Attention) -> HumanAnswer:
    """Return the decision in the form of the port; everything except an approval is a denial."""
    if item.state is AttentionState.ANSWERED:
        return HumanAnswer(allow=True, text=item.answer or "")
    return HumanAnswer(allow=item.state is AttentionState.RESOLVED, text=item.reason)
