"""The steps of a flight with their times and parents, from its events."""

import json
from typing import Any

from msgspec.structs import replace

from scout.base.time import Time
from scout.model.delivery import Delivery
from scout.model.events.asks import (
    DeliveryAcked,
    DeliveryLeased,
    DeliveryNacked,
    DeliveryRequested,
    FlightCancelled,
    FlightCompleted,
    FlightFailed,
    FlightQueued,
    FlightResumed,
    FlightStarted,
    FlightUpdated,
    FlightWaiting,
    UsageReported,
)
from scout.model.events.envelope import Changed, Event, Metadata, WakeFact
from scout.model.events.presence import EndpointReleased
from scout.model.flight import CompletedBy, Flight, FlightError, FlightState
from scout.model.ref import Ref
from scout.model.trace import TimedStep, TraceSide
from scout.model.usage import UsageLedger
from scout.model.waiting import WaitingKind, WaitingOn
from scout.policy.tracing import TOOL_MOVE, FlightFacts, build_trace
from tests.model.samples import T0, a_delivery, a_flight, a_session, a_usage, an_ask, an_endpoint, ident

ASK = an_ask()
FLIGHT = a_flight(ask_id=ASK.id, target="agt_target")
SESSION = a_session(harness="claude", model_requested="opus", model_observed="opus-5")
ENDPOINT = an_endpoint()
DELIVERY = a_delivery(
    flight_id=FLIGHT.id,
    target=FLIGHT.target,
    endpoint_id=ENDPOINT.id,
    session_id=SESSION.id,
    wake=True,
    attempts=1,
)


class Log:
    """Events in order, a second apart."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @property
    def now(self) -> Time:
        return T0.plus(len(self.events))

    def add(self, kind: Any, record: Any, *, move: str | None = None, reason: str = "", **more: Any) -> None:
        seq, who = len(self.events) + 1, Ref.to(ident("agt"))
        payload = Changed(move=move, reason=reason, record=record)
        event = kind(id=f"evt_{seq}", seq=seq, time=self.now, source=who, target=who, payload=payload, **more)
        self.events.append(event)


def begin(log: Log, delivery: Delivery = DELIVERY) -> None:
    log.add(FlightQueued, FLIGHT)
    wake = Metadata(wake=WakeFact(rule="ask", action="wake"))
    log.add(DeliveryRequested, delivery, metadata=wake)
    log.add(DeliveryLeased, delivery, move="lease")
    log.add(DeliveryLeased, delivery, move="renew")
    log.add(DeliveryAcked, delivery)
    log.add(FlightStarted, FLIGHT)


def finish(log: Log, **changes: Any) -> Flight:
    done = {"state": FlightState.COMPLETED, "completed_by": CompletedBy.REPLY, "finished_at": log.now}
    flight = replace(FLIGHT, **{**done, **changes})
    kinds = {FlightState.COMPLETED: FlightCompleted, FlightState.FAILED: FlightFailed}
    log.add(kinds.get(flight.state, FlightCancelled), flight)
    return flight


def facts(log: Log, flight: Flight, **more: Any) -> FlightFacts:
    given: dict[str, Any] = {
        "sessions": {SESSION.id: SESSION},
        "providers": {"claude": "anthropic"},
        "events": tuple(log.events),
        **more,
    }
    return FlightFacts(
        node_id="nod_1",
        ask=given.pop("ask", ASK),
        flight=flight,
        agent_name="arc",
        agent_path="/u1/agent/arc",
        asker_path="/u1",
        **given,
    )


def by_step(steps: list[TimedStep], step: str) -> list[TimedStep]:
    return [one for one in steps if one.attributes["scout.step"] == step]


def seconds(step: TimedStep) -> tuple[float, float]:
    return step.start.since(T0), step.end.since(T0)


def test_a_flight_that_was_answered() -> None:
    log = Log()
    begin(log)
    spent = a_usage(
        flight_id=FLIGHT.id,
        category=UsageLedger.HARNESS_EXECUTION,
        prompt_tokens=10,
        completion_tokens=5,
        model="opus-5",
    )
    log.add(UsageReported, spent)
    log.add(UsageReported, replace(spent, category=UsageLedger.PROTOCOL_OVERHEAD))
    log.add(EndpointReleased, replace(ENDPOINT, id="ept_other"))
    log.add(EndpointReleased, ENDPOINT)
    steps = build_trace(facts(log, finish(log, output_message_id="msg_9")))
    assert [one.name for one in steps] == ["invoke_agent arc", "route", "wake", "chat opus-5", "reply"]
    whole, route, wake, turn, reply = steps
    assert whole.parent is None
    assert {one.parent for one in steps[1:]} == {whole.context}
    assert len({one.context.step_id for one in steps}) == 5
    assert [*map(seconds, steps)] == [(0, 10), (0, 1), (2, 4), (4, 9), (10, 10)]
    assert route.attributes["scout.wake.rule"] == "ask"
    assert wake.attributes["scout.delivery.attempt"] == 1
    assert turn.attributes["gen_ai.provider.name"] == "anthropic"
    assert turn.attributes["gen_ai.usage.input_tokens"] == 10
    assert turn.attributes["gen_ai.usage.output_tokens"] == 5
    assert reply.attributes["scout.message.id"] == "msg_9"
    assert not any(one.error for one in steps)
    assert "gen_ai.input.messages" not in whole.attributes


def test_an_attempt_that_failed_is_a_step_with_an_error() -> None:
    log = Log()
    log.add(FlightQueued, FLIGHT)
    log.add(DeliveryRequested, DELIVERY)
    log.add(DeliveryLeased, DELIVERY, move="lease")
    log.add(DeliveryNacked, DELIVERY)
    again = replace(DELIVERY, attempts=2, wake=False)
    log.add(DeliveryLeased, again, move="lease")
    log.add(DeliveryAcked, again)
    log.add(DeliveryAcked, replace(again, id="dlv_steered", carried_with=again.id))
    log.add(DeliveryAcked, replace(again, id="dlv_other", flight_id="flt_other"))
    error = FlightError(code="session_failed", message="secret words")
    failed = finish(log, state=FlightState.FAILED, completed_by=None, error=error)
    steps = build_trace(facts(log, failed, sessions={}))
    first, second = by_step(steps, "wake")
    assert (first.name, first.error, second.name, second.error) == ("wake", "attempt_failed", "deliver", "")
    (turn,) = by_step(steps, "turn")
    assert (turn.name, turn.error) == ("chat turn", "session_failed")
    assert (steps[0].error, steps[0].problem) == ("session_failed", "")
    assert by_step(steps, "reply") == []
    assert "scout.wake.rule" not in by_step(steps, "route")[0].attributes


def test_tools_and_waits_are_steps() -> None:
    log = Log()
    log.add(FlightUpdated, FLIGHT, move=TOOL_MOVE, reason="Early")
    begin(log)
    log.add(FlightUpdated, FLIGHT, move=TOOL_MOVE, reason="Bash: rm -r secret")
    log.add(FlightUpdated, FLIGHT, move=TOOL_MOVE, reason="Read the file of secrets")
    waiting = replace(FLIGHT, waiting_on=WaitingOn(kind=WaitingKind.WORK_ITEM), next_move_owner_id="agt_9")
    log.add(FlightWaiting, waiting)
    log.add(FlightUpdated, waiting)
    log.add(FlightResumed, FLIGHT)
    log.add(DeliveryAcked, replace(DELIVERY, id="dlv_second"))
    log.add(FlightUpdated, replace(FLIGHT, id="flt_other"))
    steps = build_trace(facts(log, finish(log)))
    early, bash, read = by_step(steps, "tool")
    first, second = by_step(steps, "turn")
    assert (early.name, bash.name, read.name) == ("execute_tool Early", "execute_tool Bash", "execute_tool")
    assert (early.parent, bash.parent, read.parent) == (steps[0].context, first.context, first.context)
    assert [seconds(one) for one in (bash, read)] == [(7, 8), (8, 9)]
    (wait,) = by_step(steps, "wait")
    assert (wait.name, seconds(wait)) == ("wait for work item", (9, 11))
    assert wait.attributes["scout.wait.holder"] == "agt_9"
    assert (seconds(first), seconds(second)) == ((5, 12), (12, 14))


def test_a_tool_that_is_told_last_lasts_to_the_end() -> None:
    log = Log()
    begin(log)
    log.add(FlightUpdated, FLIGHT, move=TOOL_MOVE, reason="Bash")
    flight = replace(FLIGHT, state=FlightState.COMPLETED, finished_at=T0.plus(60))
    (tool,) = by_step(build_trace(facts(log, flight)), "tool")
    assert seconds(tool) == (6, 60)


def test_a_cancelled_flight_without_events_and_a_clock_that_was_set_back() -> None:
    cancelled = replace(FLIGHT, state=FlightState.CANCELLED, finished_at=T0.plus(-60), created_at=T0)
    (whole,) = build_trace(facts(Log(), cancelled))
    assert (whole.error, seconds(whole)) == ("cancelled", (0, 0))
    (open_one,) = build_trace(facts(Log(), replace(FLIGHT, created_at=T0)))
    assert seconds(open_one) == (0, 0)


def test_the_node_that_runs_a_flight_tells_its_turns() -> None:
    log = Log()
    begin(log)
    steps = build_trace(facts(log, finish(log), side=TraceSide.CLIENT))
    assert steps[0].side is TraceSide.CLIENT
    assert by_step(steps, "turn") == []


def test_a_usage_report_names_the_harness_of_a_session_that_is_unknown() -> None:
    log = Log()
    begin(log)
    spent = a_usage(flight_id=FLIGHT.id, category=UsageLedger.HARNESS_EXECUTION, harness="codex", model=None)
    log.add(UsageReported, spent)
    (turn,) = by_step(build_trace(facts(log, finish(log), sessions={})), "turn")
    assert turn.name == "chat codex"


def test_bodies_and_the_words_of_a_problem_are_there_only_if_they_were_given() -> None:
    log = Log()
    error = FlightError(code="session_failed", message="the words")
    failed = finish(log, state=FlightState.FAILED, completed_by=None, error=error)
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    traced = replace(ASK, traceparent=parent, chain=("ask_0",))
    (whole,) = build_trace(facts(log, failed, ask=traced, asked="what?", answered="this"))
    assert whole.problem == "the words"
    said = json.loads(str(whole.attributes["gen_ai.input.messages"]))
    assert said == [{"role": "user", "parts": [{"type": "text", "content": "what?"}]}]
    assert "this" in str(whole.attributes["gen_ai.output.messages"])
    assert str(whole.parent) == parent
    assert whole.attributes["scout.ask.chain"] == ("ask_0",)
