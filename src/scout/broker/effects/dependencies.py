"""Work that depends on other records: what it waits for, whose move that is, and a change of owner."""

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.effects import notices
from scout.broker.effects.notices import Noticed
from scout.broker.routing import attention_items
from scout.broker.transaction.transaction import Transaction, build_subject, require_reader
from scout.model.events.talk import WorkItemUpdated
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import WORK_ITEM, WorkItem, WorkMove, give_next_move, hand_over_work
from scout.policy.permit import Deed
from scout.policy.wake import Cause
from scout.store.ledger import LAST

_MANY = 1000
_WAITED_FOR = (
    WaitingKind.ACTOR,
    WaitingKind.WORK_ITEM,
    WaitingKind.APPROVAL,
    WaitingKind.ARTIFACT,
    WaitingKind.CONDITION,
)


def describe_dependency(
    tx: Transaction, item: WorkItem, kind: WaitingKind, ref: str | None
) -> tuple[WaitingOn, str]:
    """Return what an item waits for, and whose move that is by default."""
    if kind not in _WAITED_FOR:
        problem = f"a work item waits on {', '.join(_WAITED_FOR)}"
        raise Refused(BadRequest(problem=problem, field="on"))
    if kind in (WaitingKind.ACTOR, WaitingKind.WORK_ITEM) and ref is None:
        raise Refused(BadRequest(problem=f"waiting on {kind} requires an id or an address", field="ref"))
    if kind is WaitingKind.ACTOR:
        agent = tx.resolve(ref or "").agent
        tx.permit(Deed.ADDRESS, build_subject(agent))
        return WaitingOn(kind=kind, ref=agent.id), agent.id
    if kind is WaitingKind.WORK_ITEM:
        other = _find_dependency(tx, item, ref or "")
        return WaitingOn(kind=kind, ref=other.id), other.owner_id
    person = attention_items.find_person_for(tx, item.owner_id)
    holder = person if kind is WaitingKind.APPROVAL else item.requester_id
    return WaitingOn(kind=kind, ref=ref), holder


def _find_dependency(tx: Transaction, item: WorkItem, ident: str) -> WorkItem:
    """Return the item that is waited for: not settled, and not waiting for this one."""
    other = tx.need(WorkItem, "work item", ident)
    require_reader(tx, other.owner_id, other.requester_id, other.next_move_owner_id)
    if other.state in WORK_ITEM.settled:
        look = Remedy(operation="work.show", parameters={"workItemId": other.id})
        problem = f"{other.id} is {other.state}: there is nothing to wait for"
        raise Refused(BadRequest(problem=problem, field="ref", remedies=(look,)))
    chain: WorkItem | None = other
    while chain is not None:
        if chain.id == item.id:
            look = Remedy(operation="work.show", parameters={"workItemId": other.id})
            problem = f"{other.id} waits for {item.id} itself: neither could continue"
            raise Refused(BadRequest(problem=problem, field="ref", remedies=(look,)))
        chain = tx.get(WorkItem, chain.awaits)
    return other


def record_handover(
    tx: Transaction, before: WorkItem, after: WorkItem, text: str, reason: str
) -> Noticed[WorkItem]:
    """Record a new owner and notify it; items that wait for this one wait for that owner."""
    step = WorkMove.HAND_OVER
    if after.next_move_owner_id == after.owner_id:
        told = notices.record_and_wake(
            tx, WorkItemUpdated, after, move=step, cause=Cause.ASSIGNMENT, text=text, reason=reason
        )
    else:
        told = notices.record_and_notify(
            tx, WorkItemUpdated, after, move=step, reason=reason, to=after.owner_id, text=text
        )
    for waiting in notices.find_waiting_items(tx, after.id):
        if waiting.next_move_owner_id == before.owner_id:
            why = f"{after.id} has another owner"
            given = give_next_move(waiting, told.record.owner_id, why, tx.now)
            notices.record_and_notify(tx, WorkItemUpdated, given, move="next_move", reason=why)
    return told


# -- retirement ------------------------------------------------------------------------------------


def pass_on_work(tx: Transaction, agent_id: str, reason: str) -> None:
    """Pass a retired agent's items to the requester and its owed moves to the owner, else to the operator."""
    while items := tx.ledger.many(WorkItem, "work_owned_open", agent=agent_id, before=LAST, limit=_MANY):
        for item in items:
            handed = hand_over_work(item, notices.find_keepers(tx, item)[0], tx.now, reason=reason)
            text = f"{item.title} is yours: {reason}\n\nwork item {item.id}"
            record_handover(tx, item, handed, text, reason)
    while items := tx.ledger.many(WorkItem, "work_owed", agent=agent_id, before=LAST, limit=_MANY):
        for item in items:
            given = give_next_move(item, notices.find_keepers(tx, item)[1], reason, tx.now)
            text = f"the next move of {item.title} is yours: {reason}\n\nwork item {item.id}"
            notices.record_and_wake(
                tx, WorkItemUpdated, given, move="next_move", cause=Cause.MOVE, text=text, reason=reason
            )
