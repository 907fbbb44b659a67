"""Work that depends on something: what it waits for, whose move that is, and what follows a new owner."""

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.effects import notices
from scout.broker.effects.notices import Told
from scout.broker.transaction import ownership
from scout.broker.transaction.transaction import Turn, subject_of
from scout.model.events.talk import WorkItemUpdated
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import WORK_ITEM, WorkItem, WorkMove, give_next_move, hand_over_work
from scout.policy.permit import Deed
from scout.policy.wake import Cause
from scout.store.ledger import LAST

__all__ = ["handed_over", "on_what", "pass_on"]

_MANY = 1000
_WAITED_FOR = (
    WaitingKind.ACTOR,
    WaitingKind.WORK_ITEM,
    WaitingKind.APPROVAL,
    WaitingKind.ARTIFACT,
    WaitingKind.CONDITION,
)


def on_what(turn: Turn, item: WorkItem, kind: WaitingKind, ref: str | None) -> tuple[WaitingOn, str]:
    """What an item waits for, and whose move that is unless somebody else is named."""
    if kind not in _WAITED_FOR:
        problem = f"a work item waits on {', '.join(_WAITED_FOR)}"
        raise Refused(BadRequest(problem=problem, field="on"))
    if kind in (WaitingKind.ACTOR, WaitingKind.WORK_ITEM) and ref is None:
        raise Refused(BadRequest(problem=f"waiting on {kind} needs to say which one", field="ref"))
    if kind is WaitingKind.ACTOR:
        agent = turn.resolve(ref or "").agent
        turn.permit(Deed.ADDRESS, subject_of(agent))
        return WaitingOn(kind=kind, ref=agent.id), agent.id
    if kind is WaitingKind.WORK_ITEM:
        other = _other(turn, item, ref or "")
        return WaitingOn(kind=kind, ref=other.id), other.owner_id
    holder = turn.world.operator_agent if kind is WaitingKind.APPROVAL else item.requester_id
    return WaitingOn(kind=kind, ref=ref), holder


def _other(turn: Turn, item: WorkItem, ident: str) -> WorkItem:
    """The item that is waited for: not settled, and not waiting for this one itself."""
    other = turn.need(WorkItem, "work item", ident)
    ownership.check_reader(turn, other.owner_id, other.requester_id, other.next_move_owner_id)
    if other.state in WORK_ITEM.settled:
        look = Remedy(operation="work.show", parameters={"workItemId": other.id})
        problem = f"{other.id} is {other.state}: there is nothing to wait for"
        raise Refused(BadRequest(problem=problem, field="ref", remedies=(look,)))
    chain: WorkItem | None = other
    while chain is not None:
        if chain.id == item.id:
            look = Remedy(operation="work.show", parameters={"workItemId": other.id})
            problem = f"{other.id} waits for {item.id} itself: neither could ever go on"
            raise Refused(BadRequest(problem=problem, field="ref", remedies=(look,)))
        chain = turn.ledger.get(WorkItem, chain.awaits)
    return other


def handed_over(turn: Turn, before: WorkItem, after: WorkItem, text: str, reason: str) -> Told[WorkItem]:
    """Store another owner and tell it; the items that wait for this one wait for that owner."""
    step = WorkMove.HAND_OVER
    if after.next_move_owner_id == after.owner_id:
        told = notices.recorded(
            turn, WorkItemUpdated, after, move=step, cause=Cause.ASSIGNMENT, text=text, reason=reason
        )
    else:
        told = notices.noted(
            turn, WorkItemUpdated, after, move=step, reason=reason, to=after.owner_id, text=text
        )
    for waiting in notices.awaiting(turn, after.id):
        if waiting.next_move_owner_id == before.owner_id:
            why = f"{after.id} has another owner"
            given = give_next_move(waiting, told.record.owner_id, why, turn.now)
            notices.noted(turn, WorkItemUpdated, given, move="next_move", reason=why)
    return told


# -- an agent that goes out of service ---------------------------------------------------------------


def pass_on(turn: Turn, agent_id: str, reason: str) -> None:
    """What a retired agent owned goes to its requester, what it owed to the owner; else to the operator."""
    while items := turn.ledger.many(WorkItem, "work_owned_open", agent=agent_id, before=LAST, limit=_MANY):
        for item in items:
            handed = hand_over_work(item, notices.keepers(turn, item)[0], turn.now, reason=reason)
            text = f"{item.title} is yours: {reason}\n\nwork item {item.id}"
            handed_over(turn, item, handed, text, reason)
    while items := turn.ledger.many(WorkItem, "work_owed", agent=agent_id, before=LAST, limit=_MANY):
        for item in items:
            given = give_next_move(item, notices.keepers(turn, item)[1], reason, turn.now)
            text = f"the next move of {item.title} is yours: {reason}\n\nwork item {item.id}"
            notices.recorded(
                turn, WorkItemUpdated, given, move="next_move", cause=Cause.MOVE, text=text, reason=reason
            )
