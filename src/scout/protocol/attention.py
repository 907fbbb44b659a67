"""Requests about what needs the human: raised by agents, decided by a person, first answer wins."""

from typing import Annotated, ClassVar

from scout.base.record import Record
from scout.base.time import Time
from scout.model.allowance import AllowanceScope
from scout.model.attention import Attention, AttentionKind, AttentionMove, Risk
from scout.protocol.parameters import Address, Body, Cursor, Key, Limit, Revision, Seconds, Words, says
from scout.protocol.request import Request, Write

__all__ = [
    "AgentNeeds",
    "Always",
    "AnswerAttention",
    "AnyUse",
    "ApproveAttention",
    "AttentionPage",
    "AttentionView",
    "Consult",
    "DecideAttention",
    "Decided",
    "DecidedItems",
    "DenyAttention",
    "DismissAttention",
    "For",
    "GetAttention",
    "ListAttention",
    "Need",
    "Notify",
    "PathPattern",
    "RaiseAttention",
    "Until",
]

AttentionId = Annotated[Words, says("the item's id")]
_RETURN: dict[str, str] = {"flightId": "flight", "workItemId": "work", "expiresIn": "expires-in"}
Wait = Annotated[Seconds, says("answer after the decision or this many seconds, at most 60")]
ExpiresIn = Annotated[Seconds | None, says("seconds after which it is over by itself")]
Dedupe = Annotated[Key | None, says("a text of your own: raised again under it, an open item stays one")]
FlightOf = Annotated[Words | None, says("the flight that is blocked by it; the one you work on, unless said")]
WorkOf = Annotated[Words | None, says("the work item that is blocked by it")]


_STANDING: dict[str, str] = {"scope": "for", "anyUse": "any-use"}
Always = Annotated[bool, says("let the same through from now on, without asking")]
For = Annotated[AllowanceScope | None, says("for whom: agent, project or everywhere; default agent")]
Until = Annotated[Time | None, says("until when; default until it is revoked")]
AnyUse = Annotated[bool, says("any use of the same tool, not only this one")]
PathPattern = Annotated[Words | None, says("the same tool on files that match this absolute pattern")]


class AttentionView(Attention):
    """An attention item, how those behind it are called, and whether you may decide it."""

    agent_address: str = ""
    decided_by_address: str | None = None
    may_decide: bool = False


class AgentNeeds(Record):
    """How much one agent needs of you, and how much of it is risky; Scout itself has no agent."""

    agent_id: str | None
    address: str
    open: int
    high: int


class AttentionPage(Record):
    """Items, and how much each agent needs of you in all."""

    items: tuple[AttentionView, ...]
    next: str | None = None
    agents: tuple[AgentNeeds, ...] = ()


class ListAttention(Request[AttentionPage]):
    """List what needs you: by risk, then in turn by agent, oldest first; with --all, newest first."""

    operation: ClassVar[str] = "attention"
    route: ClassVar[str] = "GET /v1/attention"
    permission: ClassVar[str] = "a person: theirs; an agent: what it raised"

    all: Annotated[bool, says("also what is settled")] = False
    kind: Annotated[AttentionKind | None, says("only of this kind")] = None
    agent: Annotated[Address | None, says("only of this agent")] = None
    flight: Annotated[Words | None, says("only of this flight")] = None
    raised: Annotated[bool, says("what you raised yourself, instead of what needs you")] = False
    cursor: Cursor = None
    limit: Limit = None


class GetAttention(Request[AttentionView]):
    """Show an item, at once or when it is decided."""

    operation: ClassVar[str] = "attention.show"
    route: ClassVar[str] = "GET /v1/attention/{attentionId}"
    words: ClassVar[tuple[str, ...]] = ("attentionId",)
    permission: ClassVar[str] = "the person it is for, or the agent that raised it"

    attention_id: AttentionId
    wait: Annotated[Seconds, says("wait this long for a decision, at most 60; then as it is")] = 0


class RaiseAttention(Write[AttentionView]):
    """Put something before the human: an approval, a permission, a review, a failure, a set-up."""

    operation: ClassVar[str] = "attention.raise"
    route: ClassVar[str] = "POST /v1/attention"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("title",)
    flags: ClassVar[dict[str, str]] = {**_RETURN, "options": "option", "defaultAction": "default"}
    permission: ClassVar[str] = "any agent, to its own user"

    title: Annotated[Words, says("what it is, in a line")]
    kind: Annotated[AttentionKind, says("what kind of thing it is")] = AttentionKind.APPROVAL
    body: Annotated[str, says("more about it")] = ""
    risk: Annotated[Risk, says("low, medium or high")] = Risk.LOW
    options: Annotated[tuple[Words, ...], says("an answer to choose from")] = ()
    default_action: Annotated[Words | None, says("what you do if nobody answers")] = None
    flight_id: FlightOf = None
    work_item_id: WorkOf = None
    expires_in: ExpiresIn = None
    dedupe: Dedupe = None
    wait: Wait = 0


class Need(Write[AttentionView]):
    """Ask the person at this machine and wait: you cannot go on without the answer."""

    operation: ClassVar[str] = "need"
    route: ClassVar[str] = "POST /v1/attention/need"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("question",)
    flags: ClassVar[dict[str, str]] = {**_RETURN, "options": "option"}
    permission: ClassVar[str] = "any agent, to its own user"

    question: Body
    options: Annotated[tuple[Words, ...], says("an answer to choose from; any other text is one too")] = ()
    risk: Annotated[Risk, says("low, medium or high")] = Risk.LOW
    flight_id: FlightOf = None
    work_item_id: WorkOf = None
    expires_in: ExpiresIn = None
    dedupe: Dedupe = None
    wait: Wait = 0


class Consult(Write[AttentionView]):
    """Ask the person and go on: without an answer, you do what you said you would."""

    operation: ClassVar[str] = "consult"
    route: ClassVar[str] = "POST /v1/attention/consult"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("question", "defaultAction")
    flags: ClassVar[dict[str, str]] = {**_RETURN, "options": "option"}
    permission: ClassVar[str] = "any agent, to its own user"

    question: Body
    default_action: Annotated[Words, says("what you do if nobody answers")]
    options: Annotated[tuple[Words, ...], says("an answer to choose from")] = ()
    risk: Annotated[Risk, says("low, medium or high")] = Risk.LOW
    flight_id: FlightOf = None
    work_item_id: WorkOf = None
    expires_in: ExpiresIn = None
    dedupe: Dedupe = None


class Notify(Write[AttentionView]):
    """Tell the person something; nobody waits for an answer."""

    operation: ClassVar[str] = "notify"
    route: ClassVar[str] = "POST /v1/attention/notify"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("message",)
    flags: ClassVar[dict[str, str]] = {**_RETURN}
    permission: ClassVar[str] = "any agent, to its own user"

    message: Body
    flight_id: FlightOf = None
    work_item_id: WorkOf = None
    expires_in: ExpiresIn = None
    dedupe: Dedupe = None


class AnswerAttention(Write[AttentionView]):
    """Answer an item; the first decision wins, wherever it was made."""

    operation: ClassVar[str] = "attention.answer"
    route: ClassVar[str] = "POST /v1/attention/{attentionId}/answer"
    words: ClassVar[tuple[str, ...]] = ("attentionId", "answer")
    permission: ClassVar[str] = "its user, never who raised it"

    attention_id: AttentionId
    answer: Annotated[str, says("the answer, or one of the options")]
    reason: Annotated[Words, says("why")] = ""
    revision: Revision = None


class _Decide(Write[AttentionView]):
    permission: ClassVar[str] = "its user, never who raised it"
    words: ClassVar[tuple[str, ...]] = ("attentionId", "reason")

    attention_id: AttentionId
    reason: Annotated[Words, says("why")] = ""
    revision: Revision = None


class ApproveAttention(_Decide, Write[AttentionView]):
    """Say yes: what was asked for may be done, or is done. --always: the same is let through from now on."""

    operation: ClassVar[str] = "attention.approve"
    route: ClassVar[str] = "POST /v1/attention/{attentionId}/approve"
    flags: ClassVar[dict[str, str]] = _STANDING

    always: Always = False
    scope: For = None
    until: Until = None
    any_use: AnyUse = False
    path: PathPattern = None


class DenyAttention(_Decide, Write[AttentionView]):
    """Say no."""

    operation: ClassVar[str] = "attention.deny"
    route: ClassVar[str] = "POST /v1/attention/{attentionId}/deny"


class DismissAttention(_Decide, Write[AttentionView]):
    """Put an item away without an answer; what you raised yourself you take back by it."""

    operation: ClassVar[str] = "attention.dismiss"
    permission: ClassVar[str] = "its user, or who raised it"
    route: ClassVar[str] = "POST /v1/attention/{attentionId}/dismiss"


class Decided(Record):
    """How one item of several fared: as it is now, or why it was not decided."""

    attention_id: str
    decided: bool
    item: AttentionView | None = None
    problem: str = ""


class DecidedItems(Record):
    """What came of deciding several items; each was decided by itself."""

    items: tuple[Decided, ...]


class DecideAttention(Write[DecidedItems]):
    """Decide several items in one act: a selection, or all that one agent or one flight waits for."""

    operation: ClassVar[str] = "attention.decide"
    route: ClassVar[str] = "POST /v1/attention/decide"
    words: ClassVar[tuple[str, ...]] = ("move",)
    flags: ClassVar[dict[str, str]] = {**_STANDING, "attentionIds": "id"}
    permission: ClassVar[str] = "the user of the items, never who raised them"

    move: Annotated[AttentionMove, says("approve, deny, answer or dismiss")]
    attention_ids: Annotated[tuple[Words, ...], says("an item; several may be given")] = ()
    agent: Annotated[Address | None, says("all open items of this agent")] = None
    flight: Annotated[Words | None, says("all open items of this flight")] = None
    answer: Annotated[str | None, says("the text of an answer")] = None
    reason: Annotated[Words, says("why")] = ""
    always: Always = False
    scope: For = None
    until: Until = None
