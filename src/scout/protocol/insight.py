"""Requests that explain: why a decision was made, an agent's brief, token usage."""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import UNSET

from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.events.envelope import PassedOver
from scout.model.node import Pause
from scout.model.usage import Counters, Usage, UsageLedger, UsageSource, ValueClass
from scout.policy.usage import Account
from scout.protocol.agents import Identity
from scout.protocol.asks import FlightView
from scout.protocol.attention import AttentionView
from scout.protocol.parameters import At, Words, describe
from scout.protocol.questions import QuestionView
from scout.protocol.request import PastMoment, Request, Write
from scout.protocol.reservations import ReservationView
from scout.protocol.work import WorkView


class Step(Record):
    """One event about the record, from the log."""

    seq: int
    at: Time
    type: str
    move: str | None = None
    by: str = ""
    reason: str = ""


class ExplainedDecision(Record):
    """One stored wake decision. `differs`: what the current policy would decide from the same facts.

    `outcome` is its result: woken, told, queued, failed, not needed, held or nobody.
    """

    seq: int
    at: Time
    event_id: str
    action: str
    rule: str
    holder: str | None = None
    reason: str = ""
    passed_over: tuple[PassedOver, ...] = ()
    instead_of: str | None = None
    facts: dict[str, Any]
    differs: str = ""
    outcome: str = ""


class Explanation(Record):
    """Why a record is in its state, from the log alone: a sentence, the decisions, the steps."""

    noun: str
    id: str
    says: str
    decisions: tuple[ExplainedDecision, ...] = ()
    steps: tuple[Step, ...] = ()


class Why(Request[Explanation]):
    """Explain why something was or was not woken, from the log."""

    operation: ClassVar[str] = "why"
    route: ClassVar[str] = "GET /v1/why/{id}"
    words: ClassVar[tuple[str, ...]] = ("id",)
    permission: ClassVar[str] = "callers who may read the record"

    id: Annotated[
        Words,
        describe("the id of an event, message, ask, flight, delivery, question, work or attention item"),
    ]


class Brief(Record):
    """Your identity, open work and who waits for you: enough to continue after losing context.

    `reservations`: your own active ones, and those of others in your folder.
    """

    me: Identity
    flights: tuple[FlightView, ...]
    questions: tuple[QuestionView, ...]
    work: tuple[WorkView, ...]
    answered: tuple[QuestionView, ...]
    asked: tuple[FlightView, ...]
    needs: tuple[AttentionView, ...]
    awaited: tuple[FlightView, ...]
    waiting_for_me: tuple[str, ...]
    unread: int
    next: tuple[Remedy, ...]
    paused: Pause | None = None
    reservations: tuple[ReservationView, ...] = ()


class ShowBrief(Request[Brief]):
    """Show who you are, what you owe and who waits for you."""

    operation: ClassVar[str] = "brief"
    route: ClassVar[str] = "GET /v1/brief"


class GroupBy(StrEnum):
    DAY = "day"
    AGENT = "agent"
    HARNESS = "harness"
    MODEL = "model"


class Spent(Record):
    """The two ledgers of one day, agent, harness or model. They are never added up."""

    key: str
    protocol_overhead: Account
    harness_execution: Account


class UsageCaps(Record):
    """The daily caps on execution tokens, and what counts against them today.

    `spent_today`: of all agents you may read. `highest`: the agent that used most today, and how much.
    """

    tokens_per_day: int | None = None
    agent_tokens_per_day: int | None = None
    spent_today: int = 0
    highest: str | None = None
    highest_today: int = 0


class UsageReport(Record):
    """Token usage by ledger over a period, with its trend and the daily caps."""

    since: Time
    until: Time
    by: GroupBy
    agent: str | None = None
    totals: dict[str, Account]
    trend: tuple[Spent, ...]
    caps: UsageCaps = UsageCaps()
    moment: PastMoment = UNSET


class ShowUsage(Request[UsageReport]):
    """Show token usage by ledger."""

    operation: ClassVar[str] = "usage"
    route: ClassVar[str] = "GET /v1/usage"
    permission: ClassVar[str] = "your own, and what you may read"

    agent: Annotated[Words | None, describe("only this agent")] = None
    days: Annotated[int, describe("number of days, including today")] = 14
    by: Annotated[GroupBy, describe("day, agent, harness or model")] = GroupBy.DAY
    at: At = None


class ReportUsage(Write[Usage]):
    """Report token usage."""

    operation: ClassVar[str] = "usage.report"
    route: ClassVar[str] = "POST /v1/usage"
    status: ClassVar[int] = 201
    flags: ClassVar[dict[str, str]] = {"sessionId": "session", "flightId": "flight", "workItemId": "work"}
    permission: ClassVar[str] = "the agent that used them"

    category: Annotated[UsageLedger, describe("protocol_overhead or harness_execution")] = (
        UsageLedger.HARNESS_EXECUTION
    )
    value_class: Annotated[ValueClass, describe("what the tokens were for")] = ValueClass.WORK_CONTEXT
    prompt_tokens: Annotated[int, describe("input tokens")] = 0
    completion_tokens: Annotated[int, describe("output tokens")] = 0
    total_tokens: Annotated[int, describe("total tokens, if more than input plus output")] = 0
    usage_source: Annotated[UsageSource, describe("how they were counted")] = UsageSource.MANUAL_ESTIMATE
    model: Annotated[Words | None, describe("the model")] = None
    harness: Annotated[Words | None, describe("the harness")] = None
    session_id: Annotated[Words | None, describe("the session")] = None
    message_id: Annotated[Words | None, describe("the message")] = None
    ask_id: Annotated[Words | None, describe("the ask")] = None
    flight_id: Annotated[Words | None, describe("the flight")] = None
    work_item_id: Annotated[Words | None, describe("the work item")] = None
    counters: Annotated[Counters, describe("additional counters")] = Counters()
