"""Attention items: a person's inbox, and the return path of each answer to the blocked record."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.access.permission import PermissionRequest
from scout.model.ref import Ref


class AttentionState(StrEnum):
    OPEN = "open"
    NOTIFIED = "notified"
    RESOLVED = "resolved"
    DENIED = "denied"
    ANSWERED = "answered"
    EXPIRED = "expired"
    DISMISSED = "dismissed"


class AttentionMove(StrEnum):
    NOTIFY = "notify"
    APPROVE = "approve"
    DENY = "deny"
    ANSWER = "answer"
    EXPIRE = "expire"
    DISMISS = "dismiss"


ATTENTION = Machine(
    "attention item",
    AttentionState.OPEN,
    {
        AttentionState.OPEN: {
            AttentionMove.NOTIFY: AttentionState.NOTIFIED,
            AttentionMove.APPROVE: AttentionState.RESOLVED,
            AttentionMove.DENY: AttentionState.DENIED,
            AttentionMove.ANSWER: AttentionState.ANSWERED,
            AttentionMove.EXPIRE: AttentionState.EXPIRED,
            AttentionMove.DISMISS: AttentionState.DISMISSED,
        },
        AttentionState.NOTIFIED: {
            # A second sink may notify again.
            AttentionMove.NOTIFY: AttentionState.NOTIFIED,
            AttentionMove.APPROVE: AttentionState.RESOLVED,
            AttentionMove.DENY: AttentionState.DENIED,
            AttentionMove.ANSWER: AttentionState.ANSWERED,
            AttentionMove.EXPIRE: AttentionState.EXPIRED,
            AttentionMove.DISMISS: AttentionState.DISMISSED,
        },
        AttentionState.RESOLVED: {},
        AttentionState.DENIED: {},
        AttentionState.ANSWERED: {},
        AttentionState.EXPIRED: {},
        AttentionState.DISMISSED: {},
    },
)


class AttentionKind(StrEnum):
    APPROVAL = "approval"
    QUESTION = "question"
    PERMISSION = "permission"
    WAITING = "waiting"
    REVIEW = "review"
    FAILURE = "failure"
    SETUP = "setup"
    NOTIFY = "notify"
    CONSULT = "consult"


class Risk(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


_URGENCY = {Risk.HIGH: 0, Risk.MEDIUM: 1, Risk.LOW: 2}


class AttentionAction(Record):
    """One button: its move, its label, and the text it answers with."""

    move: AttentionMove
    label: str
    value: str | None = None


class ReturnPath(Record, omit_defaults=True):
    """The destination of the answer: a harness request, a flight, a question or a conversation."""

    session_id: str | None = None
    request: str | None = None
    flight_id: str | None = None
    question_id: str | None = None
    work_item_id: str | None = None
    conversation_id: str | None = None


class Attention(Mutable):
    """One item for one user. `source`: the agent or record that raised it; `dedupe`: its deduplication key.

    `permission`: the exact action that a program requests. `rank`: position among the open items of the same
    agent and risk, from 1; lists sort by it, so that agents take turns. `allowance_id`: the standing decision
    that allowed it.
    """

    kind: AttentionKind
    user: str
    agent_id: str | None = None
    source: Ref
    title: str
    body: str = ""
    risk: Risk = Risk.LOW
    actions: tuple[AttentionAction, ...]
    return_path: ReturnPath = ReturnPath()
    default_action: str | None = None
    state: AttentionState = AttentionState.OPEN
    answer: str | None = None
    decided_by: str | None = None
    reason: str = ""
    dedupe: str | None = None
    expires_at: Time | None = None
    permission: PermissionRequest | None = None
    rank: int = 1
    allowance_id: str | None = None

    @property
    def urgency(self) -> int:
        """The sort key by risk; the highest risk comes first."""
        return _URGENCY[self.risk]


_APPROVE = AttentionAction(move=AttentionMove.APPROVE, label="Approve")
_DENY = AttentionAction(move=AttentionMove.DENY, label="Deny")
_ANSWER = AttentionAction(move=AttentionMove.ANSWER, label="Answer")
_DONE = AttentionAction(move=AttentionMove.APPROVE, label="Done")
_DISMISS = AttentionAction(move=AttentionMove.DISMISS, label="Dismiss")

_ACTIONS = {
    AttentionKind.APPROVAL: (_APPROVE, _DENY, _DISMISS),
    AttentionKind.QUESTION: (_ANSWER, _DISMISS),
    AttentionKind.PERMISSION: (_APPROVE, _DENY, _DISMISS),
    AttentionKind.WAITING: (_DONE, _ANSWER, _DISMISS),
    AttentionKind.REVIEW: (_APPROVE, _DENY, _DISMISS),
    AttentionKind.FAILURE: (_DONE, _ANSWER, _DISMISS),
    AttentionKind.SETUP: (_DONE, _DISMISS),
    AttentionKind.NOTIFY: (_DISMISS,),
    AttentionKind.CONSULT: (_APPROVE, _DENY, _ANSWER, _DISMISS),
}

_BLOCKING = frozenset(AttentionKind) - {AttentionKind.NOTIFY, AttentionKind.CONSULT}


def list_actions(kind: AttentionKind, options: tuple[str, ...] = ()) -> tuple[AttentionAction, ...]:
    """Return the actions of a kind; each option becomes one answer."""
    answers = tuple(AttentionAction(move=AttentionMove.ANSWER, label=text, value=text) for text in options)
    return answers + _ACTIONS[kind]


def assess_risk(request: PermissionRequest) -> Risk:
    """Return the risk of a request: high if it has hidden characters or is cut, else medium."""
    return Risk.HIGH if request.hidden or request.cut else Risk.MEDIUM


def check_attention(attention: Attention) -> Attention:
    """Return the item; refuse a consult without a default action."""
    if attention.kind is AttentionKind.CONSULT and not attention.default_action:
        problem = "a consult continues without an answer, so it needs a default action"
        raise Refused(BadRequest(problem=problem, field="defaultAction"))
    return attention


def is_blocking(attention: Attention) -> bool:
    """Whether work is blocked on this item: it is open, and neither a notice nor a consult."""
    return attention.state not in ATTENTION.terminal and attention.kind in _BLOCKING


def notify_attention(attention: Attention, now: Time) -> Attention:
    """Record that a person was notified."""
    return move_record(ATTENTION, attention, AttentionMove.NOTIFY, now)


def decide_attention(
    attention: Attention,
    move: AttentionMove,
    by: str,
    now: Time,
    *,
    answer: str | None = None,
    reason: str = "",
    seen: int | None = None,
) -> Attention:
    """Approve, deny, answer or dismiss the item; the first decision wins, from any surface."""
    ATTENTION.after(attention.state, move)
    offered = tuple(dict.fromkeys(action.move for action in attention.actions))
    if move not in offered:
        problem = f"a {attention.kind} takes {', '.join(offered)}, not {move}"
        raise Refused(BadRequest(problem=problem, field="move"))
    if move is AttentionMove.ANSWER and not (answer or "").strip():
        raise Refused(BadRequest(problem="an answer needs a text", field="answer"))
    return move_record(
        ATTENTION, attention, move, now, seen=seen, answer=answer, decided_by=by, reason=reason
    )


def expire_attention(attention: Attention, now: Time) -> Attention:
    """Expire the item without an answer; a consult takes its default action."""
    return move_record(ATTENTION, attention, AttentionMove.EXPIRE, now, answer=attention.default_action)
