"""Asks: "do this and track it" (the seeds' invocation). An ask never changes; its flights do."""

from enum import StrEnum

from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time

_LONGEST_NAME = 200


class ReplyMode(StrEnum):
    """How the asker receives the result."""

    NONE = "none"
    INLINE = "inline"
    NOTIFY = "notify"


class IfUnreachable(StrEnum):
    REFUSE = "refuse"
    QUEUE = "queue"


class SessionPolicy(StrEnum):
    """The session that takes the ask; `existing` and `fork` name one."""

    NEW = "new"
    REUSE = "reuse"
    EXISTING = "existing"
    FORK = "fork"


class AskedChild(StrEnum):
    """A child of the target that takes the ask: its memory, or a new search agent."""

    MEMORY = "memory"
    SEARCH = "search"


class AskOrigin(Record):
    """How a client outside of Scout names an ask: `context_id` groups asks, `message_id` is the message."""

    context_id: str
    message_id: str


class AskLink(Record, omit_defaults=True):
    """An ask of another node in a chain: who waits for whom, and a hash of what was asked."""

    ask_id: str
    asker: str
    asker_canonical: str
    asker_session_id: str | None = None
    target: str
    target_canonical: str
    target_session_id: str | None = None
    flight_id: str = ""
    body_hash: str = ""


class Ask(Record):
    """One ask. `resolved`: the canonical address of its target; `chain`: the asks it is nested in.

    `ancestors`: those of the chain that other nodes hold, so that a loop across nodes is found.
    `traceparent`: the W3C context of what caused it, if that is traced.
    """

    id: str
    conversation_id: str
    message_id: str
    sender: str
    sender_session_id: str | None = None
    target: str
    resolved: str | None = None
    alias_id: str | None = None
    alias_revision: int | None = None
    project_path: str | None = None
    session_policy: SessionPolicy = SessionPolicy.REUSE
    target_session_id: str | None = None
    harness: str | None = None
    model: str | None = None
    node: str | None = None
    reply_to: str | None = None
    reply_to_session_id: str | None = None
    reply_mode: ReplyMode = ReplyMode.INLINE
    if_unreachable: IfUnreachable = IfUnreachable.REFUSE
    work_item_id: str | None = None
    card_id: str | None = None
    chain: tuple[str, ...] = ()
    ancestors: tuple[AskLink, ...] = ()
    origin: AskOrigin | None = None
    created_at: Time
    expires_at: Time | None = None
    traceparent: str | None = None


class AskReceipt(Record, omit_defaults=True):
    """The result returned to the asker once the ask is on disk. `node`: the target's, if it is another one.

    Harness and model: `requested` by the ask, `resolved` by the settings, `observed` in the session.
    """

    conversation_id: str
    message_id: str
    ask_id: str
    flight_id: str
    state: str
    phase: str
    target: str
    address: str | None = None
    node: str | None = None
    canonical: str | None = None
    endpoint_id: str | None = None
    session_id: str | None = None
    work_item_id: str | None = None
    card_id: str | None = None
    alias_id: str | None = None
    alias_revision: int | None = None
    reason: str | None = None
    next_check_at: Time | None = None
    next_move_owner_id: str | None = None
    harness_requested: str | None = None
    harness_resolved: str | None = None
    harness_observed: str | None = None
    model_requested: str | None = None
    model_resolved: str | None = None
    model_observed: str | None = None
    effort: str | None = None
    attempts: int | None = None
    may_repeat: bool = False
    output: str | None = None
    notes: tuple[str, ...] = ()


def check_ask(ask: Ask) -> Ask:
    """Return the ask; refuse a session policy that contradicts its target session, and long names."""
    origin = ask.origin
    if origin is not None and max(len(origin.context_id), len(origin.message_id)) > _LONGEST_NAME:
        problem = f"a name of your own for an ask has at most {_LONGEST_NAME} characters"
        raise Refused(BadRequest(problem=problem, field="origin"))
    names = ask.session_policy in (SessionPolicy.EXISTING, SessionPolicy.FORK)
    if names != (ask.target_session_id is not None):
        problem = "existing and fork need a session; new and reuse take none"
        raise Refused(BadRequest(problem=problem, field="targetSessionId"))
    return ask
