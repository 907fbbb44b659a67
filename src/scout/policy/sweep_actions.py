"""What the sweeper looks at, and every action that it may find due."""

from enum import StrEnum

from scout.base.record import Record
from scout.base.time import Time
from scout.model.agent import Agent
from scout.model.alias import Alias
from scout.model.attention import Attention
from scout.model.card import Card
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint
from scout.model.events.asks import Nudge as StoredNudge
from scout.model.flight import Flight, FlightError
from scout.model.grant import Grant
from scout.model.question import Question
from scout.model.ref import Ref
from scout.model.token import Token
from scout.model.waiting import WaitingOn
from scout.model.work_item import WorkItem
from scout.policy.limits import Alarm, Gap, Periods, graced


class Delegation(Record):
    """A hard mention or an assignment in a message, not yet followed by a reply, an ask or a work item."""

    id: str
    target_id: str
    sender_id: str
    created_at: Time
    kind: str = "mention"


class Liveness(StrEnum):
    """What a look at a flight has found."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


class Rest(Record, omit_defaults=True):
    """What may keep an agent awake, and when it was last active.

    `live`: a session that reports by itself. `terminal`: a session of Scout's that a person has open.
    `unresumable`: a program that runs and would lose what it knows. `by_hand`: a manual agent with a
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
    """A record that may be due, with what its table does not hold.

    `nudges`, `nudged_at` and `next_at`: the reminders so far, and when the next one was said to be due.
    `seen_at`, `found`: a flight's last sign of life and what a look at it found. `address`: what the
    asker calls a flight's target. `title`: what the record is about. `session_over`: of an alias.
    `rest`: of an agent.
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
    """One round of the sweeper: when, by which periods, after which sleep, and who the operator is."""

    now: Time
    operator_id: str
    periods: Periods = Periods()
    gap: Gap | None = None

    def is_past(self, deadline: Time | None) -> bool:
        return deadline is not None and graced(deadline, self.gap, self.periods).passed(self.now)


class Level(StrEnum):
    HOLDER = "holder"
    OWNER = "owner"
    OPERATOR = "operator"


class Swept(Record, tag_field="action"):
    """What is to be done about one record, by which rule, and when it is looked at next."""

    noun: str
    id: str
    rule: str
    next_check: Time | None = None


class SweepNudge(Swept, tag="nudge"):
    """Remind one holder. `alarm` is what a person finds in the inbox: at the last level the operator."""

    holder_id: str
    level: Level
    count: int
    escalated_from: str | None = None
    alarm: Alarm

    @property
    def stored(self) -> StoredNudge:
        """The nudge as the log holds it."""
        return StoredNudge(
            holder_id=self.holder_id,
            about=Ref.to(self.id),
            rule=self.rule,
            count=self.count,
            escalated_from=self.escalated_from,
            next_at=self.next_check,
        )


class Expire(Swept, tag="expire"):
    """Its time is over: a card, grant or token, a session's alias, an attention item, a delivery."""


class Release(Swept, tag="release"):
    """The lease ran out: the delivery is pending again."""


class MarkStale(Swept, tag="mark_stale"):
    """The endpoint gave no sign of life."""


class Sleep(Swept, tag="sleep"):
    """The agent sleeps until somebody needs it."""


class StayAwake(Swept, tag="stay_awake"):
    """The agent does not sleep yet; its idle time counts from `active_at`."""

    active_at: Time


class EndTask(Swept, tag="end_task"):
    """The agent was there for one task, which is done."""


class LookLater(Swept, tag="look_later"):
    """Nothing is due yet but the next look."""


class CheckFlight(Swept, tag="check_flight"):
    """Look whether anything still works on it."""


class SweepResume(Swept, tag="resume_flight"):
    """What held it is over, or it was found alive."""


class WaitFlight(Swept, tag="wait_flight"):
    """Nobody knows: it waits for a sign of life of `holder_id`, who has the next move."""

    waiting_on: WaitingOn
    holder_id: str
    reason: str


class SweepFail(Swept, tag="fail_flight"):
    """It cannot end well any more."""

    error: FlightError
