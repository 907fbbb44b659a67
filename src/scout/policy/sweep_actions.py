"""The records that the sweeper examines, and every action it may return."""

from enum import StrEnum

from scout.base.record import Record
from scout.base.time import Time
from scout.model.access.grant import Grant
from scout.model.access.token import Token
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.attention import Attention
from scout.model.card import Card
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint
from scout.model.events.asks import Nudge as StoredNudge
from scout.model.flight import Flight, FlightError
from scout.model.question import Question
from scout.model.ref import Ref
from scout.model.reservation import Reservation
from scout.model.waiting import WaitingOn
from scout.model.work_item import WorkItem
from scout.policy.limits import Alarm, Gap, Periods, add_grace


class Delegation(Record):
    """A hard mention or an assignment in a message, with no reply, ask or work item yet."""

    id: str
    target_id: str
    sender_id: str
    created_at: Time
    kind: str = "mention"


class Liveness(StrEnum):
    """The result of checking whether a flight is still being worked on."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class Rest(Record, omit_defaults=True):
    """The facts that may keep an agent awake, and when it was last active.

    `live`: a session that reports by itself. `terminal`: a Scout session that a person has open.
    `unresumable`: a running program that would lose its context. `by_hand`: a manual agent with a
    session. `done`: its newest flight is completed.
    """

    active_at: Time
    flights: bool = False
    leased: bool = False
    attention: bool = False
    working: bool = False
    live: bool = False
    terminal: bool = False
    unresumable: bool = False
    kept_warm: bool = False
    by_hand: bool = False
    elsewhere: bool = False
    done: bool = False


class SweepSubject(Record):
    """A record that may be due, with facts from other tables.

    `nudges`, `nudged_at` and `next_at`: the reminders so far, and when the next one is due.
    `seen_at`, `found`: a flight's last sign of life and the result of the last check. `address`: the
    asker's address for a flight's target. `title`: the subject of the record. `session_over`: for an
    alias. `rest`: for an agent.
    """

    record: (
        Question
        | WorkItem
        | Delegation
        | Flight
        | Delivery
        | Card
        | Alias
        | Attention
        | Grant
        | Token
        | Reservation
        | Endpoint
        | Agent
    )
    nudges: int = 0
    nudged_at: Time | None = None
    next_at: Time | None = None
    seen_at: Time | None = None
    found: Liveness | None = None
    address: str = ""
    title: str = ""
    session_over: bool = False
    rest: Rest | None = None


class Round(Record):
    """One round of the sweeper: time, periods, preceding clock gap, and the operator."""

    now: Time
    operator_id: str
    periods: Periods = Periods()
    gap: Gap | None = None

    def is_past(self, deadline: Time | None) -> bool:
        return deadline is not None and add_grace(deadline, self.gap, self.periods).has_passed(self.now)


class Level(StrEnum):
    HOLDER = "holder"
    OWNER = "owner"
    OPERATOR = "operator"


class Swept(Record, tag_field="action"):
    """The action for one record, the rule that decided, and the time of the next check."""

    noun: str
    id: str
    rule: str
    next_check: Time | None = None


class SweepNudge(Swept, tag="nudge"):
    """Remind one holder. `alarm` is the inbox item for a person: at the last level, the operator."""

    holder_id: str
    level: Level
    count: int
    escalated_from: str | None = None
    alarm: Alarm

    @property
    def stored(self) -> StoredNudge:
        """The nudge as stored in the log."""
        return StoredNudge(
            holder_id=self.holder_id,
            about=Ref.to(self.id),
            rule=self.rule,
            count=self.count,
            escalated_from=self.escalated_from,
            next_at=self.next_check,
        )


class Expire(Swept, tag="expire"):
    """Expire a card, grant, token, reservation, session alias, attention item or delivery."""


class Release(Swept, tag="release"):
    """Return a delivery with an expired lease to pending."""


class MarkStale(Swept, tag="mark_stale"):
    """Mark an endpoint without heartbeats as stale."""


class Sleep(Swept, tag="sleep"):
    """Put the agent to sleep until it is needed."""


class StayAwake(Swept, tag="stay_awake"):
    """Keep the agent awake; its idle time counts from `active_at`."""

    active_at: Time


class EndTask(Swept, tag="end_task"):
    """End an agent whose only task is done."""


class LookLater(Swept, tag="look_later"):
    """Do nothing but schedule the next check."""


class CheckFlight(Swept, tag="check_flight"):
    """Check whether the flight is still being worked on."""


class SweepResume(Swept, tag="resume_flight"):
    """Resume a flight whose wait has ended, or that was found alive."""


class EndWait(Swept, tag="end_wait"):
    """Resume a work item whose wait ends at a time that has come."""


class WaitFlight(Swept, tag="wait_flight"):
    """Let a flight of unknown state wait for a sign of life from `holder_id`, which owns the next move."""

    waiting_on: WaitingOn
    holder_id: str
    reason: str


class SweepFail(Swept, tag="fail_flight"):
    """Fail a flight that can no longer succeed."""

    error: FlightError
