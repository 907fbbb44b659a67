"""The trace of a flight: its steps with their times, from the events that were stored about it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from msgspec.structs import replace

from scout.base.record import Record
from scout.base.time import Time
from scout.model.ask import Ask
from scout.model.delivery import Delivery
from scout.model.events.asks import (
    DeliveryAcked,
    DeliveryCancelled,
    DeliveryDeadLettered,
    DeliveryEvent,
    DeliveryFailed,
    DeliveryLeased,
    DeliveryNacked,
    DeliveryRequested,
    FlightEvent,
    UsageReported,
)
from scout.model.events.envelope import Event
from scout.model.events.presence import (
    EndpointEvent,
    EndpointFailed,
    EndpointLost,
    EndpointReleased,
    EndpointStopped,
)
from scout.model.flight import Flight, FlightState
from scout.model.session import Session
from scout.model.trace import (
    TimedStep,
    TraceContext,
    TraceSide,
    TraceStep,
    TraceValue,
    build_context,
    parse_traceparent,
)
from scout.model.usage import Usage, UsageLedger
from scout.model.waiting import WaitingOn

TOOL_MOVE = "tool"  # the move of an event that says which tool a program uses
_RENEW = "renew"
_FREED = (EndpointReleased, EndpointFailed, EndpointLost, EndpointStopped)
_BROKEN = (DeliveryNacked, DeliveryFailed, DeliveryDeadLettered)
_TAKEN = (DeliveryAcked, DeliveryCancelled, *_BROKEN)
_TOOL_NAME = re.compile(r"[\w.\-/]{1,64}")  # a harness may give a whole sentence instead


class FlightFacts(Record):
    """A finished flight and everything that was stored about it.

    `events`: those of the flight, its deliveries, their endpoints and usage, in the order of the log.
    `providers`: the provider of each harness's models. `asked`, `answered`: the texts, only if traces may
    hold them.
    """

    node_id: str
    ask: Ask
    flight: Flight
    agent_name: str
    agent_path: str
    asker_path: str
    side: TraceSide = TraceSide.INTERNAL
    events: tuple[Event, ...] = ()
    sessions: Mapping[str, Session] = {}
    providers: Mapping[str, str] = {}
    asked: str | None = None
    answered: str | None = None


def build_trace(facts: FlightFacts) -> list[TimedStep]:
    """Return the steps of a finished flight; the flight itself is the first."""
    return _TraceBuilder(facts).build()


class _TraceBuilder:
    def __init__(self, facts: FlightFacts) -> None:
        self._facts = facts
        self._flight = facts.flight
        events = facts.events
        self._flown = [one for one in events if isinstance(one, FlightEvent) and self._is_own(one)]
        self._begin = self._flown[0].time if self._flown else facts.flight.created_at
        self._end = max(facts.flight.finished_at or self._begin, self._begin)
        self._whole = build_context(facts.ask, facts.node_id, TraceStep.ASK, facts.flight.id)
        self._turns: list[tuple[int, TimedStep]] = []  # with the number of the event that began it

    def build(self) -> list[TimedStep]:
        deliveries = self._list_deliveries()
        self._turns = [*self._build_turns(deliveries)]
        return [
            self._build_flight(),
            *self._build_route(deliveries),
            *(step for each in deliveries.values() for step in self._build_wakes(each)),
            *(turn for _, turn in self._turns),
            *self._build_tools(),
            *self._build_waits(),
            *self._build_reply(),
        ]

    def _is_own(self, event: FlightEvent) -> bool:
        return event.payload.record.id == self._flight.id

    def _list_deliveries(self) -> dict[str, list[DeliveryEvent]]:
        """Return the events of each delivery to the agent that was asked."""
        found: dict[str, list[DeliveryEvent]] = {}
        for event in self._facts.events:
            if isinstance(event, DeliveryEvent):
                delivery = event.payload.record
                if delivery.flight_id == self._flight.id and delivery.target == self._flight.target:
                    found.setdefault(delivery.id, []).append(event)
        return found

    def _make(
        self,
        step: TraceStep,
        ident: str,
        name: str,
        start: Time,
        end: Time,
        *,
        parent: TraceContext | None = None,
        error: str = "",
        attributes: Mapping[str, TraceValue | None],
    ) -> TimedStep:
        """Return a step within the flight. A clock that was set back makes it short, never negative."""
        start = Time(min(max(start, self._begin), self._end))
        given = {name: value for name, value in attributes.items() if value is not None}
        return TimedStep(
            name=name,
            context=build_context(self._facts.ask, self._facts.node_id, step, ident),
            parent=parent or self._whole,
            start=start,
            end=Time(min(max(end, start), self._end)),
            attributes={"scout.step": str(step), "scout.flight.id": self._flight.id, **given},
            error=error,
        )

    # -- the flight --------------------------------------------------------------------------------

    def _build_flight(self) -> TimedStep:
        facts, flight = self._facts, self._flight
        code = flight.error.code if flight.error else ""
        error = code or ("cancelled" if flight.state is FlightState.CANCELLED else "")
        made = self._make(
            TraceStep.ASK,
            flight.id,
            f"invoke_agent {facts.agent_name}",
            self._begin,
            self._end,
            error=error,
            attributes={
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": facts.agent_name,
                "gen_ai.agent.id": flight.target,
                "gen_ai.conversation.id": flight.conversation_id,
                "scout.agent.path": facts.agent_path,
                "scout.asker.path": facts.asker_path,
                "scout.ask.id": facts.ask.id,
                "scout.ask.chain": facts.ask.chain or None,
                "scout.flight.attempt": flight.attempt,
                "scout.flight.state": str(flight.state),
                "scout.work_item.id": flight.work_item_id,
                "gen_ai.input.messages": _format_message("user", facts.asked),
                "gen_ai.output.messages": _format_message("assistant", facts.answered),
            },
        )
        problem = flight.error.message if flight.error and facts.asked is not None else ""
        parent = parse_traceparent(facts.ask.traceparent)
        return replace(made, parent=parent, side=facts.side, problem=problem)

    def _build_route(self, deliveries: Mapping[str, Sequence[DeliveryEvent]]) -> Iterator[TimedStep]:
        """The decision who gets the ask, through which endpoint, and whether that wakes a program."""
        requests = (one for each in deliveries.values() for one in each if isinstance(one, DeliveryRequested))
        for event in list(requests)[:1]:
            delivery, wake = event.payload.record, event.metadata.wake
            yield self._make(
                TraceStep.ROUTE,
                delivery.id,
                "route",
                self._begin,
                event.time,
                attributes={
                    "scout.endpoint.id": delivery.endpoint_id,
                    "scout.wake.rule": wake.rule if wake else None,
                    "scout.wake.action": (wake.action or None) if wake else None,
                    "scout.agent.resolved": self._facts.ask.resolved,
                },
            )

    # -- deliveries --------------------------------------------------------------------------------

    def _build_wakes(self, events: Sequence[DeliveryEvent]) -> Iterator[TimedStep]:
        """Each attempt to hand the ask over: from its lease to the moment the program took it, or did not."""
        began: Time | None = None
        for event in events:
            delivery = event.payload.record
            if isinstance(event, DeliveryLeased) and event.payload.move != _RENEW:
                began = event.time
            elif isinstance(event, _TAKEN) and began is not None:
                yield self._make(
                    TraceStep.WAKE,
                    f"{delivery.id}.{delivery.attempts}",
                    "wake" if delivery.wake else "deliver",
                    began,
                    event.time,
                    error="attempt_failed" if isinstance(event, _BROKEN) else "",
                    attributes={
                        "scout.delivery.id": delivery.id,
                        "scout.delivery.attempt": delivery.attempts,
                        "scout.endpoint.id": delivery.endpoint_id,
                    },
                )
                began = None

    def _build_turns(
        self, deliveries: Mapping[str, Sequence[DeliveryEvent]]
    ) -> Iterator[tuple[int, TimedStep]]:
        if self._facts.side is TraceSide.CLIENT:
            return  # the node that runs it tells them
        acks = [one for each in deliveries.values() for one in each if isinstance(one, DeliveryAcked)]
        own = sorted((one for one in acks if one.payload.record.carried_with is None), key=_get_seq)
        for ack, following in pairwise((*own, None)):
            assert ack is not None  # only the last one is none
            yield ack.seq, self._build_turn(ack, following)

    def _build_turn(self, ack: DeliveryAcked, following: DeliveryAcked | None) -> TimedStep:
        """From the moment the program took the prompt until it was free again."""
        delivery = ack.payload.record
        freed = self._find_freed(ack, delivery)
        ends = [one.time for one in (freed, following) if one is not None]
        failed = following is None and self._flight.state is FlightState.FAILED
        session = self._facts.sessions.get(delivery.session_id or "")
        spent = self._list_usage(ack.seq, following.seq if following else None)
        models = [one.model for one in spent if one.model]
        model = session.model_observed if session and session.model_observed else next(iter(models), None)
        harness = session.harness if session else next((one.harness for one in spent if one.harness), None)
        return self._make(
            TraceStep.TURN,
            delivery.id,
            f"chat {model or harness or 'turn'}",
            ack.time,
            min([*ends, self._end]),
            error=(self._flight.error.code if self._flight.error else "") if failed else "",
            attributes={
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": self._facts.providers.get(harness or ""),
                "gen_ai.request.model": session.model_requested if session else None,
                "gen_ai.response.model": model,
                "gen_ai.usage.input_tokens": sum(one.prompt_tokens for one in spent) if spent else None,
                "gen_ai.usage.output_tokens": sum(one.completion_tokens for one in spent) if spent else None,
                "scout.usage.estimated": any(one.estimated for one in spent) if spent else None,
                "gen_ai.conversation.id": self._flight.conversation_id,
                "scout.harness": harness,
                "scout.session.id": delivery.session_id,
                "scout.delivery.id": delivery.id,
            },
        )

    def _find_freed(self, ack: DeliveryAcked, delivery: Delivery) -> Event | None:
        """Return the event that freed the endpoint of a turn."""
        freed = (
            one
            for one in self._facts.events
            if isinstance(one, _FREED) and one.seq > ack.seq and _is_at(one, delivery.endpoint_id)
        )
        return next(freed, None)

    def _list_usage(self, after: int, before: int | None) -> list[Usage]:
        """Return what the program reported as spent in one turn."""
        spent = (one for one in self._facts.events if isinstance(one, UsageReported))
        return [
            one.payload.record
            for one in spent
            if one.payload.record.category is UsageLedger.HARNESS_EXECUTION
            and one.payload.record.flight_id == self._flight.id
            and one.seq > after
            and (before is None or one.seq < before)
        ]

    # -- during a turn -----------------------------------------------------------------------------

    def _build_tools(self) -> Iterator[TimedStep]:
        """Each use of a tool that the harness tells; it lasts until the next thing that it tells."""
        for event, following in pairwise((*self._flown, None)):
            assert event is not None  # only the last one is none
            if event.payload.move != TOOL_MOVE:
                continue
            said = event.payload.reason.partition(":")[0]
            name = said if _TOOL_NAME.fullmatch(said) else None
            turn = next((one for seq, one in reversed(self._turns) if seq < event.seq), None)
            yield self._make(
                TraceStep.TOOL,
                f"{self._flight.id}.{event.seq}",
                f"execute_tool {name}" if name else "execute_tool",
                event.time,
                following.time if following else self._end,
                parent=turn.context if turn else None,
                attributes={
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": name,
                },
            )

    def _build_waits(self) -> Iterator[TimedStep]:
        """Each time that the flight waited for something, such as a person."""
        began: FlightEvent | None = None
        for event in self._flown:
            on = event.payload.record.waiting_on
            if began is not None and on != began.payload.record.waiting_on:
                yield self._build_wait(began, event.time)
                began = None
            if began is None and on is not None:
                began = event

    def _build_wait(self, began: FlightEvent, end: Time) -> TimedStep:
        record = began.payload.record
        on = record.waiting_on
        assert isinstance(on, WaitingOn)  # it is why the step began
        return self._make(
            TraceStep.WAIT,
            f"{record.id}.{began.seq}",
            f"wait for {on.kind.replace('_', ' ')}",
            began.time,
            end,
            attributes={
                "scout.wait.kind": str(on.kind),
                "scout.wait.holder": record.next_move_owner_id,
            },
        )

    def _build_reply(self) -> Iterator[TimedStep]:
        flight = self._flight
        if flight.completed_by is not None:
            yield self._make(
                TraceStep.REPLY,
                flight.id,
                "reply",
                self._end,
                self._end,
                attributes={
                    "scout.message.id": flight.output_message_id,
                    "scout.reply.by": str(flight.completed_by),
                },
            )


def _get_seq(event: Event) -> int:
    return event.seq


def _is_at(event: EndpointEvent, endpoint_id: str | None) -> bool:
    return event.payload.record.id == endpoint_id


def _format_message(role: str, text: str | None) -> str | None:
    """Return a text as the conventions for generative AI write messages."""
    if text is None:
        return None
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)
