"""Requests about attention items: raised by agents, decided by a person. The first decision wins."""

from typing import Annotated, ClassVar

from msgspec import UNSET

from scout.base.record import Record
from scout.base.time import Time
from scout.model.access.allowance import AllowanceScope
from scout.model.attention import Attention, AttentionKind, AttentionMove, Risk
from scout.protocol.parameters import (
    Address,
    At,
    Body,
    Cursor,
    Key,
    Limit,
    Revision,
    Seconds,
    Words,
    describe,
)
from scout.protocol.request import PastMoment, Request, Write

AttentionId = Annotated[Words, describe("the item's id")]
_RETURN: dict[str, str] = {"flightId": "flight", "workItemId": "work", "expiresIn": "expires-in"}
Wait = Annotated[Seconds, describe("wait up to this many seconds for the decision, maximum 60")]
ExpiresIn = Annotated[Seconds | None, describe("expires after this many seconds")]
Dedupe = Annotated[Key | None, describe("deduplication key: raising it again updates the open item")]
FlightOf = Annotated[Words | None, describe("the flight it blocks; default: the one you work on")]
WorkOf = Annotated[Words | None, describe("the work item it blocks")]


_STANDING: dict[str, str] = {"scope": "for", "anyUse": "any-use"}
Always = Annotated[bool, describe("allow the same from now on without asking")]
For = Annotated[
    AllowanceScope | None, describe("scope: session, agent, project or everywhere; default agent")
]
Until = Annotated[Time | None, describe("expiry time; default: until revoked")]
AnyUse = Annotated[bool, describe("allow any use of the tool, not only this one")]
PathPattern = Annotated[Words | None, describe("allow the tool on files that match this absolute pattern")]


class AttentionView(Attention):
    """An attention item with addresses, and whether you may decide it. `agentNode`: if it is another one.

    `raised_by_you`: you or your credential raised it, so you may not decide it. `may_dismiss`: you may
    dismiss it, even if you may not decide it.
    """

    agent_address: str = ""
    agent_node: str | None = None
    decided_by_address: str | None = None
    may_decide: bool = False
    may_dismiss: bool = False
    raised_by_you: bool = False
    moment: PastMoment = UNSET


class AgentNeeds(Record):
    """An agent's open and high-risk items. Items of Scout itself have no agent."""

    agent_id: str | None
    address: str
    open: int
    high: int


class AttentionPage(Record):
    """Items, and a count per agent."""

    items: tuple[AttentionView, ...]
    next: str | None = None
    agents: tuple[AgentNeeds, ...] = ()
    moment: PastMoment = UNSET


class ListAttention(Request[AttentionPage]):
    """List what needs you: highest risk first, agents in turn, oldest first; with --all, newest first."""

    operation: ClassVar[str] = "attention"
    route: ClassVar[str] = "GET /v1/attention"
    permission: ClassVar[str] = "people: their own items and their sub-users'; agents: items they raised"

    all: Annotated[bool, describe("include closed items")] = False
    user: Annotated[Words | None, describe("the items of this sub-user, or of any user for the operator")] = (
        None
    )
    kind: Annotated[AttentionKind | None, describe("only this kind")] = None
    agent: Annotated[Address | None, describe("only this agent")] = None
    flight: Annotated[Words | None, describe("only this flight")] = None
    raised: Annotated[bool, describe("items you raised, instead of items for you")] = False
    cursor: Cursor = None
    limit: Limit = None
    at: At = None


class GetAttention(Request[AttentionView]):
    """Show an item, optionally waiting until it is decided."""

    operation: ClassVar[str] = "attention.show"
    route: ClassVar[str] = "GET /v1/attention/{attentionId}"
    words: ClassVar[tuple[str, ...]] = ("attentionId",)
    permission: ClassVar[str] = "the person it is for, or the agent that raised it"

    attention_id: AttentionId
    wait: Annotated[Seconds, describe("wait up to this many seconds for a decision, maximum 60")] = 0
    at: At = None


class RaiseAttention(Write[AttentionView]):
    """Raise an item for a person: an approval, permission, review, failure or setup."""

    operation: ClassVar[str] = "attention.raise"
    route: ClassVar[str] = "POST /v1/attention"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("title",)
    flags: ClassVar[dict[str, str]] = {**_RETURN, "options": "option", "defaultAction": "default"}
    permission: ClassVar[str] = "any agent, for its own user"

    title: Annotated[Words, describe("a one-line summary")]
    kind: Annotated[AttentionKind, describe("the kind of item")] = AttentionKind.APPROVAL
    body: Annotated[str, describe("details")] = ""
    risk: Annotated[Risk, describe("low, medium or high")] = Risk.LOW
    options: Annotated[tuple[Words, ...], describe("an answer to choose from")] = ()
    default_action: Annotated[Words | None, describe("what you do without an answer")] = None
    flight_id: FlightOf = None
    work_item_id: WorkOf = None
    expires_in: ExpiresIn = None
    dedupe: Dedupe = None
    wait: Wait = 0


class Need(Write[AttentionView]):
    """Ask the person and wait for the answer."""

    operation: ClassVar[str] = "need"
    route: ClassVar[str] = "POST /v1/attention/need"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("question",)
    flags: ClassVar[dict[str, str]] = {**_RETURN, "options": "option"}
    permission: ClassVar[str] = "any agent, for its own user"

    question: Body
    options: Annotated[tuple[Words, ...], describe("a suggested answer; other answers are allowed")] = ()
    risk: Annotated[Risk, describe("low, medium or high")] = Risk.LOW
    flight_id: FlightOf = None
    work_item_id: WorkOf = None
    expires_in: ExpiresIn = None
    dedupe: Dedupe = None
    wait: Wait = 0


class Consult(Write[AttentionView]):
    """Ask the person and continue; if there is no answer, the default applies."""

    operation: ClassVar[str] = "consult"
    route: ClassVar[str] = "POST /v1/attention/consult"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("question", "defaultAction")
    flags: ClassVar[dict[str, str]] = {**_RETURN, "options": "option"}
    permission: ClassVar[str] = "any agent, for its own user"

    question: Body
    default_action: Annotated[Words, describe("what you do without an answer")]
    options: Annotated[tuple[Words, ...], describe("an answer to choose from")] = ()
    risk: Annotated[Risk, describe("low, medium or high")] = Risk.LOW
    flight_id: FlightOf = None
    work_item_id: WorkOf = None
    expires_in: ExpiresIn = None
    dedupe: Dedupe = None


class Notify(Write[AttentionView]):
    """Notify the person. No answer is expected."""

    operation: ClassVar[str] = "notify"
    route: ClassVar[str] = "POST /v1/attention/notify"
    status: ClassVar[int] = 201
    words: ClassVar[tuple[str, ...]] = ("message",)
    flags: ClassVar[dict[str, str]] = {**_RETURN}
    permission: ClassVar[str] = "any agent, for its own user"

    message: Body
    flight_id: FlightOf = None
    work_item_id: WorkOf = None
    expires_in: ExpiresIn = None
    dedupe: Dedupe = None


class AnswerAttention(Write[AttentionView]):
    """Answer an item. The first decision wins, on any surface."""

    operation: ClassVar[str] = "attention.answer"
    route: ClassVar[str] = "POST /v1/attention/{attentionId}/answer"
    words: ClassVar[tuple[str, ...]] = ("attentionId", "answer")
    permission: ClassVar[str] = "its user, never the agent that raised it"

    attention_id: AttentionId
    answer: Annotated[str, describe("the answer, or one of the options")]
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class _Decide(Write[AttentionView]):
    permission: ClassVar[str] = "its user, never the agent that raised it"
    words: ClassVar[tuple[str, ...]] = ("attentionId", "reason")

    attention_id: AttentionId
    reason: Annotated[Words, describe("why")] = ""
    revision: Revision = None


class ApproveAttention(_Decide, Write[AttentionView]):
    """Approve the request. With --always, the same is allowed from now on."""

    operation: ClassVar[str] = "attention.approve"
    route: ClassVar[str] = "POST /v1/attention/{attentionId}/approve"
    flags: ClassVar[dict[str, str]] = _STANDING

    always: Always = False
    scope: For = None
    until: Until = None
    any_use: AnyUse = False
    path: PathPattern = None


class DenyAttention(_Decide, Write[AttentionView]):
    """Deny the request."""

    operation: ClassVar[str] = "attention.deny"
    route: ClassVar[str] = "POST /v1/attention/{attentionId}/deny"


class DismissAttention(_Decide, Write[AttentionView]):
    """Dismiss an item without answering; also withdraws one you raised."""

    operation: ClassVar[str] = "attention.dismiss"
    permission: ClassVar[str] = "its user, or the agent that raised it"
    route: ClassVar[str] = "POST /v1/attention/{attentionId}/dismiss"


class Decided(Record):
    """The result for one of several items: the item, or why it was not decided."""

    attention_id: str
    decided: bool
    item: AttentionView | None = None
    problem: str = ""


class DecidedItems(Record):
    """One result per item; each was decided separately."""

    items: tuple[Decided, ...]


class DecideAttention(Write[DecidedItems]):
    """Decide several items at once: a selection, or all items of one agent or flight."""

    operation: ClassVar[str] = "attention.decide"
    route: ClassVar[str] = "POST /v1/attention/decide"
    words: ClassVar[tuple[str, ...]] = ("move",)
    flags: ClassVar[dict[str, str]] = {**_STANDING, "attentionIds": "id"}
    permission: ClassVar[str] = "their user, never the agent that raised them"

    move: Annotated[AttentionMove, describe("approve, deny, answer or dismiss")]
    attention_ids: Annotated[tuple[Words, ...], describe("an item's id; repeatable")] = ()
    agent: Annotated[Address | None, describe("all open items of this agent")] = None
    flight: Annotated[Words | None, describe("all open items of this flight")] = None
    answer: Annotated[str | None, describe("the text of an answer")] = None
    reason: Annotated[Words, describe("why")] = ""
    always: Always = False
    scope: For = None
    until: Until = None
