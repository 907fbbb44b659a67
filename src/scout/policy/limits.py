"""Limits, periods and other numbers that decisions depend on, and the checks that use them."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, BadRequest, Diagnostic, Refused, Remedy
from scout.base.time import Time
from scout.identity.branch import DEPTH_CAP
from scout.model.attention import AttentionKind
from scout.model.conversation import BODY_LIMIT
from scout.model.delivery import Backoff, back_off
from scout.model.problems.request import RateLimited, TooLarge
from scout.model.problems.session import AskLoop, WakeBudget, WakeFailed
from scout.policy.directory import Party
from scout.policy.retention import YOUNGEST
from scout.policy.roles import Roles

ExitCheck = Literal["block", "nudge", "clean"]
_SOON = 60.0  # retry-after, in seconds, while a person has to decide
Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
_MIB = 1024 * 1024
_ATTACHMENTS = 32  # of one message


class Limits(Record):
    """Maximum counts, and maximum sizes in bytes.

    `running_turns`: maximum number of turns running at once; None means one per core, at least two.
    """

    running_turns: Count | None = None
    open_flights: Count = 32
    asks_per_minute: Count = 120
    attention_per_minute: Count = 20
    open_attention: Count = 50
    reservations: Count = 64
    link_attempts: Count = 5
    link_attempts_total: Count = 50
    messages_to_person_per_minute: Count = 60
    wakes_per_hour: Count = 120
    ask_chain: Count = 6
    fan_out: Count = 8
    depth_cap: Annotated[int, msgspec.Meta(ge=0)] = DEPTH_CAP
    attempts: Count = 8
    streams: Count = 16
    stream_buffer: Count = 1000
    body: Count = BODY_LIMIT
    attachment: Count = 10 * _MIB
    attachments_total: Count = 5120 * _MIB
    run_output: Count = 64 * _MIB
    program_output: Count = 512 * _MIB
    run_output_total: Count = 2048 * _MIB
    pictures: Count = 256 * _MIB
    pictures_total: Count = 2048 * _MIB
    page: Count = 50
    page_most: Count = 200
    tokens_per_day: Count | None = None
    agent_tokens_per_day: Count | None = None


class Sweeps(Record):
    """Seconds without a change after which the sweeper examines a record, by kind."""

    question_open: Seconds = 1800.0
    question_answered: Seconds = 14_400.0
    work_open: Seconds = 14_400.0
    work_working: Seconds = 7200.0
    work_waiting: Seconds = 14_400.0
    work_review: Seconds = 14_400.0
    delegation: Seconds = 1800.0
    flight_silent: Seconds = 300.0
    flight_check: Seconds = 60.0
    endpoint_silent: Seconds = 300.0


class Periods(Record):
    """Durations in seconds."""

    online_within: Seconds = 90.0
    heartbeat_event: Seconds = 600.0
    lease: Seconds = 60.0
    back_off_first: Seconds = 2.0
    back_off_most: Seconds = 300.0
    idempotency_keys: Seconds = 86_400.0
    queue_expiry: Seconds = 86_400.0
    human_answer: Seconds = 86_400.0
    session_idle: Seconds = 300.0
    agent_idle: Seconds = 300.0
    reservation: Seconds = 1800.0
    reservation_most: Seconds = 86_400.0
    link_code: Seconds = 900.0
    browser_session: Seconds = 604_800.0
    chat_expiry: Seconds = 86_400.0
    long_poll: Seconds = 60.0
    stream_comment: Seconds = 15.0
    wall_clock_gap: Seconds = 60.0
    grace: Seconds = 90.0
    sweeps: Sweeps = Sweeps()


class Routing(Record):
    """`model_assisted`: whether a model may break a tie in a channel of several agents."""

    model_assisted: bool = False


class Chats(Record):
    """`high_risk_in_groups`: whether a high-risk item of a group may be shown and decided in its chat."""

    high_risk_in_groups: bool = False


class Retention(Record):
    """`archive_after`: seconds after which the log is archived; None keeps all of it in the store."""

    archive_after: Annotated[float, msgspec.Meta(ge=YOUNGEST)] | None = None


class Rules(Record):
    """Every setting that decisions depend on: the part of the settings that pure code receives.

    `exit_check`: how an agent that stops with open work is told what it owes.
    """

    limits: Limits = Limits()
    periods: Periods = Periods()
    routing: Routing = Routing()
    chats: Chats = Chats()
    roles: Roles = Roles()
    retention: Retention = Retention()
    exit_check: ExitCheck = "block"

    @property
    def back_off(self) -> Backoff:
        """The retry schedule for failed attempts."""
        periods = self.periods
        return Backoff(
            first=periods.back_off_first, most=periods.back_off_most, attempts=self.limits.attempts
        )


class Within(Record):
    """A limit that is not exceeded: the quantity, how much is used, and the limit."""

    what: str
    used: int
    limit: int


class Alarm(Record):
    """An attention item for the operator. Alarms with the same `dedupe` are one item."""

    kind: AttentionKind
    title: str
    body: str
    dedupe: str
    remedies: tuple[Remedy, ...] = ()


class Attempt(Record):
    """The result of failed attempt `number`: a retry at `at`, or none because of `problem`."""

    number: int
    at: Time | None = None
    problem: WakeFailed | None = None


class Gap(Record):
    """A jump of the wall clock beyond the monotonic clock: the machine slept until `ended`."""

    seconds: float
    ended: Time


class Deadline(Record):
    """A due time, and the rule that set it."""

    at: Time
    rule: str

    def has_passed(self, now: Time) -> bool:
        return self.at <= now


def measure_gap(before: Time, now: Time, elapsed: float) -> Gap:
    """Return how far the wall clock ran ahead of the `elapsed` seconds of a monotonic clock."""
    return Gap(seconds=now.since(before) - elapsed, ended=now)


def add_grace(deadline: Time, gap: Gap | None, periods: Periods) -> Deadline:
    """Return the deadline after a gap, at least one grace period after the gap ends.

    The grace counts from the end of the gap, so applying it again to the same gap adds nothing.
    """
    if gap is None or gap.seconds <= periods.wall_clock_gap:
        return Deadline(at=deadline, rule="as set")
    end_of_grace = gap.ended.plus(periods.grace)
    if end_of_grace <= deadline:
        return Deadline(at=deadline, rule="later than the grace period")
    return Deadline(at=end_of_grace, rule="grace after sleep")


def check_open_flights(address: str, open_flights: int, limits: Limits) -> Within:
    """Check whether the agent may receive another ask."""
    look = Remedy(operation="flight.list", parameters={"agent": address}, why="see what it works on")
    return _check_room(f"open flights of {address}", "openFlights", open_flights, limits.open_flights, look)


def check_fan_out(address: str, children: int, limits: Limits) -> Within:
    """Check whether the agent may have another live child."""
    look = Remedy(operation="tree", parameters={"address": address}, why="see which children could finish")
    return _check_room(f"children of {address}", "fanOut", children, limits.fan_out, look)


def check_streams(client: str, streams: int, limits: Limits) -> Within:
    """Check whether the client may open another event stream."""
    return _check_room(f"streams of {client}", "streams", streams, limits.streams)


def check_ask_rate(sender: str, asks: Sequence[Time], limits: Limits, now: Time) -> Within:
    """Check whether the sender may ask again, given the times of its latest asks."""
    what, limit = f"asks per minute by {sender}", limits.asks_per_minute
    recent = _list_recent(asks, 60, now)
    if len(recent) >= max(limit, 1):
        retry_after = _find_free_time(recent, 60, limit).since(now)
        remedies = (raise_limit("asksPerMinute", limit),)
        raise Refused(RateLimited(what=what, limit=limit, retry_after=retry_after, remedies=remedies))
    return Within(what=what, used=len(recent), limit=limit)


def check_attention_rate(agent: str, earlier: Time | None, limits: Limits, now: Time) -> None:
    """Check whether an agent may raise another item. `earlier`: time of the item one full limit back."""
    what = f"attention items per minute by {agent}"
    _check_pace(what, "attentionPerMinute", limits.attention_per_minute, earlier, now)


def check_open_attention(agent: str, opened: int, limits: Limits) -> Within:
    """Check whether an agent may have another open item."""
    look = Remedy(operation="attention", parameters={"raised": True}, why="see what it waits for")
    what = f"open attention items of {agent}"
    return _check_room(what, "openAttention", opened, limits.open_attention, look, retry_after=_SOON)


def check_reservations(address: str, active: int, limits: Limits) -> Within:
    """Check whether an agent may have another active reservation."""
    look = Remedy(operation="reserve.list", parameters={"agent": address}, why="release one of these")
    return _check_room(f"reservations of {address}", "reservations", active, limits.reservations, look)


def check_person_rate(sender: str, earlier: Time | None, limits: Limits, now: Time) -> None:
    """Check whether an agent may write to a person again. `earlier`: as in `check_attention_rate`."""
    what = f"messages to a person per minute by {sender}"
    _check_pace(what, "messagesToPersonPerMinute", limits.messages_to_person_per_minute, earlier, now)


def _check_pace(what: str, setting: str, limit: int, earlier: Time | None, now: Time) -> None:
    left = 60 - now.since(earlier) if earlier is not None else 0
    if left > 0:
        remedies = (raise_limit(setting, limit),)
        raise Refused(RateLimited(what=what, limit=limit, retry_after=round(left, 3), remedies=remedies))


def check_wake_budget(
    conversation_id: str, wakes: Sequence[Time], limits: Limits, now: Time, *, name: str = ""
) -> Within:
    """Check whether an agent may wake another in the conversation, given the times of its latest wakes.

    `name`: the display name of the conversation.
    """
    limit = limits.wakes_per_hour
    recent = _list_recent(wakes, 3600, now)
    if len(recent) >= max(limit, 1):
        problem = WakeBudget(
            conversation_id=conversation_id,
            used=len(recent),
            limit=limit,
            resets_at=_find_free_time(recent, 3600, limit),
            name=name,
            remedies=(raise_limit("wakesPerHour", limit),),
        )
        raise Refused(problem)
    return Within(what=f"wakes per hour in {conversation_id}", used=len(recent), limit=limit)


def plan_attempt(failed: WakeFailed, rules: Rules, now: Time) -> Attempt:
    """Retry after a growing pause, or give up when the maximum number of attempts is reached."""
    number = failed.attempts
    if number >= rules.limits.attempts:
        return Attempt(number=number, problem=failed)
    return Attempt(number=number, at=now.plus(back_off(number, rules.back_off)))


def build_alarm(diagnostic: Diagnostic) -> Alarm | None:
    """Return the operator's alarm for a used-up wake budget, an ask loop, or a failed keep-warm."""
    match diagnostic:
        case WakeBudget(conversation_id=where, name=name):
            title = f"agents used up the wake budget of {name or where}"
            dedupe = f"wake_budget:{where}"
        case AskLoop(chain=chain):
            title = f"ask loop: {' → '.join(chain)}"
            dedupe = f"ask_loop:{' '.join(sorted(set(chain)))}"
        case WakeFailed(target=target):
            title, dedupe = f"{target} cannot be kept warm", f"wake_failed:{target}"
        case _:
            return None
    return Alarm(
        kind=AttentionKind.FAILURE,
        title=title,
        body=diagnostic.message,
        dedupe=dedupe,
        remedies=diagnostic.remedies,
    )


def check_attachments(named: Sequence[str]) -> None:
    """Check the number of attachments of one message."""
    if len(named) > _ATTACHMENTS:
        problem = f"a message has {len(named)} attachments; the maximum is {_ATTACHMENTS}"
        raise Refused(BadRequest(problem=problem, field="attachments"))


def check_attachment(name: str, size: int, limits: Limits) -> Within:
    """Check whether a file of this size may be attached."""
    if size > limits.attachment:
        remedies = (raise_limit("attachment", limits.attachment),)
        problem = TooLarge(what=f"attachment {name}", size=size, limit=limits.attachment, remedies=remedies)
        raise Refused(problem)
    return Within(what=f"bytes of {name}", used=size, limit=limits.attachment)


def check_attachments_total(used: int, size: int, limit: int) -> Within:
    """Check whether another file fits into the total size of all attachments."""
    if used + size > limit:
        remedies = (raise_limit("attachmentsTotal", limit),)
        what = "total of all attachments, with this one,"
        raise Refused(TooLarge(what=what, size=used + size, limit=limit, remedies=remedies))
    return Within(what="bytes of all attachments", used=used + size, limit=limit)


def _check_room(
    what: str, setting: str, used: int, limit: int, *remedies: Remedy, retry_after: float = 0
) -> Within:
    if used >= limit:
        more = (*remedies, raise_limit(setting, limit))
        raise Refused(RateLimited(what=what, limit=limit, retry_after=retry_after, remedies=more))
    return Within(what=what, used=used, limit=limit)


def raise_limit(setting: str, limit: int) -> Remedy:
    """Return the command with which the operator doubles a limit."""
    parameters = {"key": f"limits.{setting}", "value": 2 * limit}
    return Remedy(operation="config.set", parameters=parameters, why="the operator can raise the limit")


def _list_recent(moments: Sequence[Time], window: float, now: Time) -> list[Time]:
    return sorted(moment for moment in moments if now.since(moment) < window)


def _find_free_time(recent: Sequence[Time], window: float, limit: int) -> Time:
    """Return when enough entries have left the window to allow another."""
    return recent[len(recent) - max(limit, 1)].plus(window)


# -- chains of open asks: loops, and the maximum length -----------------------------------------------


class Link(Record):
    """One ask: while it is open, the asker waits for the target. The ids are empty before it is created."""

    asker: Party
    asker_address: str
    target: Party
    target_address: str
    ask_id: str = ""
    flight_id: str = ""
    body_hash: str = ""


class ChainDecision(Record):
    """The ask is allowed as number `length` in its chain of waiting asks, of at most `limit`."""

    rule: str
    chain: tuple[str, ...]
    length: int
    limit: int


def check_chain(
    lineage: Sequence[Link], ask: Link, limits: Limits, open_asks: Sequence[Link] = ()
) -> ChainDecision:
    """Check whether the ask may be made inside `lineage`, the asks that led to it (oldest first).

    `open_asks` are the open asks of the same asker.
    """
    above = (*lineage, ask)
    chain = (above[0].asker_address, *(link.target_address for link in above))
    limit = limits.ask_chain
    for link in open_asks:
        if link.target.is_same(ask.target) and link.body_hash == ask.body_hash:
            raise Refused(AskLoop(chain=chain, limit=limit, remedies=(_suggest_wait(link),)))
    if any(link.asker.is_same(ask.target) for link in above):
        raise Refused(AskLoop(chain=chain, limit=limit, remedies=(_find_back_link(ask, lineage),)))
    if len(above) > limit:
        remedies = (*(_suggest_question(link) for link in lineage[-1:]), raise_limit("askChain", limit))
        raise Refused(AskLoop(chain=chain, limit=limit, remedies=remedies))
    rule = "within another ask" if lineage else "first ask"
    return ChainDecision(rule=rule, chain=chain, length=len(above), limit=limit)


def find_clarification(lineage: Sequence[Link], asker: Party) -> Link | None:
    """Return the open ask in which this asker waits; a question in its flight is not a loop."""
    return next((link for link in reversed(lineage) if link.asker.is_same(asker)), None)


def _find_back_link(ask: Link, lineage: Sequence[Link]) -> Remedy:
    """Suggest a question to the waiting agent, or a new session for an agent that asks itself."""
    waiting = find_clarification(lineage, ask.target)
    return _suggest_session(ask) if waiting is None else _suggest_question(waiting)


def _suggest_question(link: Link) -> Remedy:
    return Remedy(
        operation="question.create",
        parameters={"to": link.asker_address, "flightId": link.flight_id, "body": PLACEHOLDER},
        why=f"{link.asker_address} waits in that flight: a question there is not a loop",
    )


def _suggest_session(ask: Link) -> Remedy:
    parameters = {"to": ask.target_address, "sessionPolicy": "new", "body": "TEXT"}
    return Remedy(operation="ask", parameters=parameters, why="you are the target: use a new session")


def _suggest_wait(link: Link) -> Remedy:
    parameters = {"flightId": link.flight_id}
    return Remedy(operation="flight.wait", parameters=parameters, why="the same ask is already running")
