"""What a program asks of a person in the middle of its turn, and how the answer gets back to it."""

from scout.broker.delivery.session_records import PreparedTurn
from scout.broker.routing import attention_items
from scout.broker.routing.attention_items import decide_by_allowance
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import (
    ATTENTION,
    Attention,
    AttentionKind,
    AttentionState,
    ReturnPath,
    Risk,
    risk_of_permission,
)
from scout.model.flight import Flight
from scout.model.permission import PermissionRequest, request_of, title_of_request
from scout.ports import Asked, HumanAnswer, NeedsHuman, RequestSettled
from scout.store.ledger import LAST

_SOME = 200
_KINDS = {Asked.PERMISSION: AttentionKind.PERMISSION, Asked.QUESTION: AttentionKind.QUESTION}


def ask_person(tx: Transaction, prepared: PreparedTurn, need: NeedsHuman) -> Attention:
    """The item in the person's inbox; what a program asks again after a restart is the same item.

    Its flight waits for exactly this. Without an answer in time the program is told no.
    """
    flight = tx.get(Flight, prepared.flight_id)
    item = _item_of(tx, prepared, need.request)
    if item is None:
        item = decide_by_allowance(tx, _put(tx, prepared, need, flight))
    if item.state not in ATTENTION.terminal:
        attention_items.block_on_item(tx, item, flight, None)
    return item


def _put(tx: Transaction, prepared: PreparedTurn, need: NeedsHuman, flight: Flight | None) -> Attention:
    spec = prepared.spec
    agent = tx.agent(spec.agent_id)
    wish = _wish(need)
    return attention_items.open_item(
        tx,
        _KINDS[need.kind],
        user=(agent.owner if agent else None) or tx.services.operator,
        source=spec.session_id,
        options=need.options,
        agent_id=spec.agent_id,
        title=title_of_request(wish) if wish else attention_items.title_of(need.question),
        body=wish.words if wish else "\n".join(filter(None, (need.question, need.detail))),
        risk=risk_of_permission(wish) if wish else Risk.LOW,
        permission=wish,
        return_path=ReturnPath(
            session_id=spec.session_id,
            request=need.request,
            flight_id=prepared.flight_id,
            conversation_id=flight.conversation_id if flight else None,
        ),
        expires_at=tx.now.plus(tx.rules.periods.human_answer),
    )


def _wish(need: NeedsHuman) -> PermissionRequest | None:
    """What a permission is asked for; a program that says it in words only is taken by them."""
    if need.kind is not Asked.PERMISSION:
        return None
    return need.wish or request_of("", need.detail, need.question)


def _item_of(tx: Transaction, prepared: PreparedTurn, request: str) -> Attention | None:
    """What was asked by this request before, decided or not."""
    raised = tx.ledger.many(Attention, "attention_by", agent=prepared.spec.agent_id, before=LAST, limit=_SOME)
    same = (prepared.spec.session_id, request)
    return next((one for one in raised if _request_of(one) == same), None)


def _request_of(item: Attention) -> tuple[str | None, str | None]:
    return item.return_path.session_id, item.return_path.request


def withdraw_request(tx: Transaction, prepared: PreparedTurn, event: RequestSettled) -> None:
    """The program went on by itself: nobody needs to answer any more."""
    item = _item_of(tx, prepared, event.request)
    if item is not None and item.state not in ATTENTION.terminal:
        attention_items.close_item(tx, item, "the program went on without an answer")


def withdraw_all_requests(tx: Transaction, prepared: PreparedTurn) -> None:
    """The turn is over, and so is all that its program asked in it."""
    if not tx.services.harnesses[prepared.harness].capabilities.permissions:
        return
    raised = tx.ledger.many(
        Attention, "attention_by_open", agent=prepared.spec.agent_id, before=LAST, limit=_SOME
    )
    for item in raised:
        session_id, request = _request_of(item)
        if session_id == prepared.spec.session_id and request is not None:
            attention_items.close_item(tx, item, "the turn that asked is over")


def is_decided(item: Attention) -> bool:
    """Whether a program can be told what came of its request."""
    return item.return_path.request is not None and item.state in ATTENTION.terminal


def find_answer(item: Attention) -> HumanAnswer:
    """A decision in the words of the port: whatever is not a yes is a no."""
    if item.state is AttentionState.ANSWERED:
        return HumanAnswer(allow=True, text=item.answer or "")
    return HumanAnswer(allow=item.state is AttentionState.RESOLVED, text=item.reason)
