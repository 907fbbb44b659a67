"""The numbers as documented, the checks at their edges, the grace after a sleep."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.codec import decode, to_plain
from scout.base.refusal import BadRequest, Diagnostic, Refused, Remedy
from scout.base.time import Time
from scout.model.attention import AttentionKind
from scout.model.problems.request import RateLimited, TooLarge
from scout.model.problems.session import AskLoop, Layer, WakeBudget, WakeFailed
from scout.policy.limits import (
    Alarm,
    Attempt,
    Deadline,
    Gap,
    Limits,
    Periods,
    Rules,
    Sweeps,
    Within,
    add_grace,
    build_alarm,
    check_ask_rate,
    check_attachment,
    check_attachments,
    check_attachments_total,
    check_attention_rate,
    check_fan_out,
    check_open_attention,
    check_open_flights,
    check_person_rate,
    check_streams,
    check_wake_budget,
    measure_gap,
    plan_attempt,
    raise_limit,
)

NOW = Time.parse("2026-11-15T12:00:00.000Z")
CNV = "cnv_1"


def refusal(call: object, *arguments: object) -> Diagnostic:
    assert callable(call)
    with pytest.raises(Refused) as caught:
        call(*arguments)
    return caught.value.diagnostic


def config(key: str, value: int) -> Remedy:
    why = "the operator can raise the limit"
    return Remedy(operation="config.set", parameters={"key": f"limits.{key}", "value": value}, why=why)


@pytest.mark.rows(
    "R0-6", "R0-10", "R0-23", "R0-72", "R0-74", "R0-75", "R0-76", "R0-77", "R0-78", "R0-79", "R0-81", "R3.4-13",
    "R3.1-20", "R3.7-14",
)  # fmt: skip
def test_every_number_is_a_field_of_one_record_with_its_default() -> None:
    assert to_plain(Rules()) == {
        "limits": {
            "runningTurns": None,
            "openFlights": 32,
            "asksPerMinute": 120,
            "attentionPerMinute": 20,
            "openAttention": 50,
            "reservations": 64,
            "linkAttempts": 5,
            "linkAttemptsTotal": 50,
            "messagesToPersonPerMinute": 60,
            "wakesPerHour": 120,
            "askChain": 6,
            "fanOut": 8,
            "depthCap": 2,
            "attempts": 8,
            "streams": 16,
            "streamBuffer": 1000,
            "body": 262_144,
            "attachment": 10_485_760,
            "attachmentsTotal": 5_368_709_120,
            "runOutput": 67_108_864,
            "programOutput": 536_870_912,
            "runOutputTotal": 2_147_483_648,
            "pictures": 268_435_456,
            "picturesTotal": 2_147_483_648,
            "page": 50,
            "pageMost": 200,
            "tokensPerDay": None,
            "agentTokensPerDay": None,
        },
        "periods": {
            "onlineWithin": 90.0,
            "heartbeatEvent": 600.0,
            "lease": 60.0,
            "backOffFirst": 2.0,
            "backOffMost": 300.0,
            "idempotencyKeys": 86_400.0,
            "queueExpiry": 86_400.0,
            "humanAnswer": 86_400.0,
            "sessionIdle": 300.0,
            "agentIdle": 300.0,
            "reservation": 1800.0,
            "reservationMost": 86_400.0,
            "linkCode": 900.0,
            "browserSession": 604800.0,
            "chatExpiry": 86_400.0,
            "longPoll": 60.0,
            "streamComment": 15.0,
            "wallClockGap": 60.0,
            "grace": 90.0,
            "sweeps": {
                "questionOpen": 1800.0,
                "questionAnswered": 14_400.0,
                "workOpen": 14_400.0,
                "workWorking": 7200.0,
                "workWaiting": 14_400.0,
                "workReview": 14_400.0,
                "delegation": 1800.0,
                "flightSilent": 300.0,
                "flightCheck": 60.0,
                "endpointSilent": 300.0,
            },
        },
        "routing": {"modelAssisted": False},
        "chats": {"highRiskInGroups": False},
        "retention": {"archiveAfter": None},
        "roles": {"user": None, "subagent": None, "memory": None, "memorySearch": None, "task": None},
        "exitCheck": "block",
    }


def test_a_setting_that_makes_no_sense_is_refused() -> None:
    assert isinstance(refusal(decode, {"openFlights": 0}, Limits), BadRequest)
    assert isinstance(refusal(decode, {"depthCap": -1}, Limits), BadRequest)
    assert isinstance(refusal(decode, {"lease": 0}, Periods), BadRequest)
    assert isinstance(refusal(decode, {"delegation": -5}, Sweeps), BadRequest)
    assert decode({"openFlights": 1, "depthCap": 0, "tokensPerDay": 5}, Limits) == Limits(
        open_flights=1, depth_cap=0, tokens_per_day=5
    )


def test_open_flights() -> None:
    limits = Limits(open_flights=2)
    assert check_open_flights("@arc", 1, limits) == Within(what="open flights of @arc", used=1, limit=2)
    look = Remedy(operation="flight.list", parameters={"agent": "@arc"}, why="see what it works on")
    assert refusal(check_open_flights, "@arc", 2, limits) == RateLimited(
        what="open flights of @arc", limit=2, remedies=(look, config("openFlights", 4))
    )


def test_fan_out() -> None:
    assert check_fan_out("@arc", 7, Limits()) == Within(what="children of @arc", used=7, limit=8)
    look = Remedy(operation="tree", parameters={"address": "@arc"}, why="see which children could finish")
    assert refusal(check_fan_out, "@arc", 8, Limits()) == RateLimited(
        what="children of @arc", limit=8, remedies=(look, config("fanOut", 16))
    )


def test_streams() -> None:
    assert check_streams("tok_1", 15, Limits()) == Within(what="streams of tok_1", used=15, limit=16)
    assert refusal(check_streams, "tok_1", 16, Limits()) == RateLimited(
        what="streams of tok_1", limit=16, remedies=(config("streams", 32),)
    )


def test_attachments() -> None:
    limits = Limits(attachment=100)
    assert check_attachment("a.png", 100, limits) == Within(what="bytes of a.png", used=100, limit=100)
    assert refusal(check_attachment, "a.png", 101, limits) == TooLarge(
        what="attachment a.png", size=101, limit=100, remedies=(config("attachment", 200),)
    )


def test_all_attachments_together() -> None:
    check_attachments(["a"] * 32)
    assert refusal(check_attachments, ["a"] * 33).code == "bad_request"
    assert check_attachments_total(60, 40, 100).used == 100
    told = refusal(check_attachments_total, 60, 41, 100)
    assert isinstance(told, TooLarge)
    assert (told.size, told.limit, told.remedies) == (101, 100, (config("attachmentsTotal", 200),))


def test_how_often_an_agent_turns_to_a_person() -> None:
    limits = Limits(attention_per_minute=3, messages_to_person_per_minute=4, open_attention=2)
    for check in (check_attention_rate, check_person_rate):
        check("@arc", None, limits, NOW)
        check("@arc", NOW.plus(-60), limits, NOW)
    told = refusal(check_attention_rate, "@arc", NOW.plus(-48.5), limits, NOW)
    assert told == RateLimited(
        what="attention items per minute by @arc",
        limit=3,
        retry_after=11.5,
        remedies=(config("attentionPerMinute", 6),),
    )
    told = refusal(check_person_rate, "@arc", NOW, limits, NOW)
    assert isinstance(told, RateLimited)
    assert (told.limit, told.retry_after) == (4, 60)
    assert check_open_attention("@arc", 1, limits).limit == 2
    full = refusal(check_open_attention, "@arc", 2, limits)
    assert isinstance(full, RateLimited)
    assert (full.what, full.retry_after) == ("open attention items of @arc", 60)
    assert full.remedies[-1] == config("openAttention", 4)


def test_asks_per_minute() -> None:
    limits = Limits(asks_per_minute=2)
    old, fresh, last = NOW.plus(-60), NOW.plus(-59), NOW.plus(-1)
    assert check_ask_rate("@arc", (fresh, old), limits, NOW) == Within(
        what="asks per minute by @arc", used=1, limit=2
    )
    told = refusal(check_ask_rate, "@arc", (last, old, fresh), limits, NOW)
    assert told == RateLimited(
        what="asks per minute by @arc", limit=2, retry_after=1.0, remedies=(config("asksPerMinute", 4),)
    )
    told = refusal(check_ask_rate, "@arc", (last, last, fresh), limits, NOW)
    assert isinstance(told, RateLimited)
    assert told.retry_after == 59.0


@pytest.mark.rows("R3.3-20")
def test_a_conversation_over_its_wake_budget_is_told_when_it_may_go_on() -> None:
    limits = Limits(wakes_per_hour=2)
    old, fresh, last = NOW.plus(-3600), NOW.plus(-3599), NOW.plus(-10)
    assert check_wake_budget(CNV, (old, fresh), limits, NOW) == Within(
        what="wakes per hour in cnv_1", used=1, limit=2
    )
    assert refusal(check_wake_budget, CNV, (old, fresh, last), limits, NOW) == WakeBudget(
        conversation_id=CNV,
        used=2,
        limit=2,
        resets_at=NOW.plus(1),
        remedies=(config("wakesPerHour", 4),),
    )


@pytest.mark.parametrize("moments", [(), (NOW,)])
def test_a_limit_below_one_counts_as_one(moments: tuple[Time, ...]) -> None:
    asks, wakes = Limits(asks_per_minute=0), Limits(wakes_per_hour=0)
    if moments:
        assert isinstance(refusal(check_ask_rate, "@arc", moments, asks, NOW), RateLimited)
        assert isinstance(refusal(check_wake_budget, CNV, moments, wakes, NOW), WakeBudget)
    else:
        assert check_ask_rate("@arc", moments, asks, NOW).used == 0
        assert check_wake_budget(CNV, moments, wakes, NOW).used == 0


@given(st.lists(st.integers(-70, 0), max_size=8), st.integers(1, 4))
def test_whoever_waits_as_told_may_ask_again(seconds: list[int], limit: int) -> None:
    asks, limits = [NOW.plus(second) for second in seconds], Limits(asks_per_minute=limit)
    try:
        check_ask_rate("@arc", asks, limits, NOW)
    except Refused as refused:
        assert isinstance(refused.diagnostic, RateLimited)
        later = NOW.plus(refused.diagnostic.retry_after)
        assert check_ask_rate("@arc", asks, limits, later).used < limit
        assert isinstance(refusal(check_ask_rate, "@arc", asks, limits, Time(later - 1)), RateLimited)


def test_raising_a_limit_doubles_it() -> None:
    assert raise_limit("askChain", 6) == config("askChain", 12)


@pytest.mark.rows("R3.3-16", "R3.3-17")
def test_a_failed_attempt_is_repeated_after_a_growing_pause_until_none_is_left() -> None:
    rules, pauses = Rules(), [2, 4, 8, 16, 32, 64, 128]
    for number, pause in enumerate(pauses, start=1):
        after = plan_attempt(build_failure(number), rules, NOW)
        assert after == Attempt(number=number, at=NOW.plus(pause))
    assert plan_attempt(build_failure(8), rules, NOW) == Attempt(number=8, problem=build_failure(8))
    assert plan_attempt(build_failure(9), rules, NOW) == Attempt(number=9, problem=build_failure(9))


def test_the_pause_between_attempts_has_its_settings() -> None:
    limits, periods = Limits(attempts=50), Periods(back_off_first=3, back_off_most=10)
    rules = Rules(limits=limits, periods=periods)
    assert [plan_attempt(build_failure(number), rules, NOW).at for number in (1, 2, 3, 49)] == [
        NOW.plus(pause) for pause in (3, 6, 10, 10)
    ]


def build_failure(attempts: int) -> WakeFailed:
    retry = Remedy(operation="flight.retry", parameters={"flight": "flt_1"})
    return WakeFailed(
        target="@arc", attempts=attempts, layer=Layer.PROCESS, reason="it exits", remedies=(retry,)
    )


@pytest.mark.rows("R3.3-22")
def test_runaways_raise_attention() -> None:
    remedies = (config("wakesPerHour", 60),)
    budget = WakeBudget(conversation_id=CNV, used=30, limit=30, resets_at=NOW, remedies=remedies)
    assert build_alarm(budget) == Alarm(
        kind=AttentionKind.FAILURE,
        title="agents used up the wake budget of cnv_1",
        body="agents used 30 of 30 wakes per hour in cnv_1: none left until 2026-11-15T12:00:00.000Z",
        dedupe="wake_budget:cnv_1",
        remedies=remedies,
    )
    loop = AskLoop(chain=("@b", "@a", "@b"), limit=6)
    assert build_alarm(loop) == Alarm(
        kind=AttentionKind.FAILURE,
        title="ask loop: @b → @a → @b",
        body="this ask would loop or exceed the chain @b → @a → @b (maximum 6)",
        dedupe="ask_loop:@a @b",
    )
    cold = build_failure(8)
    assert build_alarm(cold) == Alarm(
        kind=AttentionKind.FAILURE,
        title="@arc cannot be kept warm",
        body="waking @arc failed 8 times, last in the process: it exits",
        dedupe="wake_failed:@arc",
        remedies=cold.remedies,
    )
    assert build_alarm(BadRequest(problem="no")) is None


def test_a_gap_is_what_the_running_clock_did_not_see() -> None:
    assert measure_gap(NOW, NOW.plus(100), 30) == Gap(seconds=70, ended=NOW.plus(100))
    assert measure_gap(NOW, NOW.plus(-5), 30).seconds == -35


@pytest.mark.rows("R0-13")
def test_only_a_gap_over_a_minute_gives_a_deadline_its_grace() -> None:
    due, woke = NOW.plus(-600), NOW
    periods = Periods()
    assert add_grace(due, None, periods) == Deadline(at=due, rule="as set")
    assert add_grace(due, Gap(seconds=60, ended=woke), periods) == Deadline(at=due, rule="as set")
    after = add_grace(due, Gap(seconds=60.001, ended=woke), periods)
    assert after == Deadline(at=woke.plus(90), rule="grace after sleep")
    assert not after.has_passed(woke.plus(89.999))
    assert after.has_passed(woke.plus(90))
    for ahead in (90, 91):
        far = add_grace(woke.plus(ahead), Gap(seconds=61, ended=woke), periods)
        assert far == Deadline(at=woke.plus(ahead), rule="later than the grace period")


@pytest.mark.rows("R0-13")
@given(st.integers(-100_000, 100_000), st.floats(0, 100_000), st.integers(1, 1000))
def test_a_gap_grants_exactly_one_grace(due: int, seconds: float, grace: int) -> None:
    deadline, gap = NOW.plus(due), Gap(seconds=seconds, ended=NOW)
    periods = msgspec.structs.replace(Periods(), grace=float(grace))
    once = add_grace(deadline, gap, periods)
    assert add_grace(once.at, gap, periods).at == once.at
    assert once.at == (deadline if seconds <= 60 else max(deadline, NOW.plus(grace)))
