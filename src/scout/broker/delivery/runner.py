"""Carrying one turn to its program: the session, its credential, what it tells, and what people answer it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.delivery import human_answers, prompts, turn_record
from scout.broker.delivery.prompts import build_mail
from scout.broker.delivery.session_records import PreparedTurn, SessionOpening
from scout.broker.delivery.turn_record import HOLDER
from scout.broker.effects import flight_state
from scout.broker.effects.final_text import keep_text
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import Message
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, ack, is_due, lease, nack
from scout.model.flight import Flight
from scout.model.problems.session import Layer, SessionFailed
from scout.model.session import Session, SessionOrigin
from scout.policy.host_text import mail_text
from scout.ports import (
    Accepted,
    Completed,
    Failed,
    Harness,
    HarnessEvent,
    Identified,
    Limited,
    NeedsHuman,
    RequestSettled,
    Said,
    Started,
    ToolUse,
    TurnProgress,
    TurnUsage,
)

_LOG = logging.getLogger("scout.dispatch")
_Pair = tuple[HarnessEvent, HarnessEvent | None]
S = TypeVar("S", bound=SessionOpening)
_NOTED = 1.0  # a sign of life is stored at most this often


class TurnRunner:
    """`write` runs a function of a Transaction as the broker itself. What is under way is in `running`.

    `schedule` queues a delivery that could not be steered into a running turn.
    """

    def __init__(
        self,
        services: Services,
        write: Callable[[Callable[[Transaction], Any]], Awaitable[Any]],
        schedule: Callable[[Delivery], None],
    ) -> None:
        self._services = services
        self._write = write
        self._schedule = schedule
        self.running: dict[str, PreparedTurn] = {}
        self._background = set[asyncio.Task[None]]()
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self.turns = 0

    async def run(self, prepared: PreparedTurn) -> None:
        """One turn from its session's start to its end, however it ends."""
        self.turns += 1
        harness = self._services.harnesses[prepared.harness]
        renewing = asyncio.get_running_loop().create_task(self._renew(prepared))
        try:
            problem = await self._start(prepared, harness)
            if problem is None and prepared.unwanted and not prepared.accepted:
                problem = Failed(layer=Layer.SESSION, reason="nobody needs it any more")
            if problem is not None:
                await self._write(lambda tx: turn_record.record_end(tx, prepared, problem))
            else:
                await take_before(self._services, prepared)
                await self._follow(prepared, harness)
                await take_after(self._services, prepared)
        finally:
            renewing.cancel()
            prepared.done = True
            del self.running[prepared.delivery_id]

    async def close(self) -> None:
        """Hand over what is on its way, and no more."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # -- its session -----------------------------------------------------------------------------

    async def _start(self, prepared: PreparedTurn, harness: Harness) -> Failed | None:
        """A session for the turn, where it has none yet; or why there is none."""
        if prepared.fresh:
            return await self.begin(prepared, harness, turn_record.record_session_started)
        try:
            if not prepared.accepted:
                await self._give_door(prepared, harness)
        except Exception as error:  # noqa: BLE001 (whatever an adapter does, its delivery is settled)
            return failure_of(error)
        return None

    async def begin(
        self, opening: S, harness: Harness, then: Callable[[Transaction, S, Started], object]
    ) -> Failed | None:
        """Start a session, and store that it was; or say why it was not."""
        try:
            await self._give_door(opening, harness)
            started = await harness.start(opening.spec)
        except Exception as error:  # noqa: BLE001 (whatever an adapter does, its delivery is settled)
            return failure_of(error)
        opening.spec = replace(opening.spec, native_ids={**opening.spec.native_ids, **started.native_ids})
        await self._write(lambda tx: then(tx, opening, started))
        return None

    async def _give_door(self, opening: SessionOpening, harness: Harness) -> None:
        """A program that is about to be started gets a credential of its session; one that runs has it."""
        kept = harness.capabilities.keeps_process
        if kept and not await harness.is_warm(opening.spec.session_id):
            door, facts, rules = await self._write(lambda tx: prompts.issue_mcp_access(tx, opening.spec))
            opening.spec = replace(opening.spec, door=door, environment=facts, instructions=rules)

    async def _renew(self, prepared: PreparedTurn) -> None:
        """Until the program has taken it, say that we are still at it."""
        pause = self._services.rules.periods.lease / 3
        while not prepared.accepted:
            await asyncio.sleep(pause)
            if not prepared.accepted:
                await self._write(lambda tx: turn_record.renew_lease(tx, prepared))

    # -- what it tells ---------------------------------------------------------------------------

    async def _follow(self, prepared: PreparedTurn, harness: Harness) -> None:
        events = _told(harness.deliver(prepared.spec, prepared.prompt))
        async with aclosing(_with_next(events)) as pairs:
            if not await self._heed(prepared, pairs):
                lost = Failed(layer=Layer.ADAPTER, reason="the harness fell silent in the middle of the turn")
                await self._write(lambda tx: turn_record.record_end(tx, prepared, lost))

    async def _heed(self, prepared: PreparedTurn, pairs: AsyncIterator[_Pair]) -> bool:
        """Store what the harness tells; whether it told an end."""
        noted = self._services.clock.monotonic()
        async for event, following in pairs:
            match event:
                case Accepted():
                    prepared.accepted = True
                    if prepared.unwanted:
                        self._stop(prepared)
                    if not isinstance(following, Completed):  # else both are stored at once
                        await self._write(
                            lambda tx, took=event: turn_record.record_acceptance(tx, prepared, took)
                        )
                case TurnProgress(text=text) | Said(text=text):
                    now = self._services.clock.monotonic()
                    if now - noted >= _NOTED:
                        noted = now
                        await self._write(
                            lambda tx, sign=text: turn_record.record_sign_of_life(tx, prepared, sign)
                        )
                case Completed() | Limited() | Failed():
                    prepared.done = True
                    await self._end(prepared, event)
                    return True
                case _:
                    await self._note(prepared, event)
        return False

    async def _end(self, prepared: PreparedTurn, end: Completed | Limited | Failed) -> None:
        """Store how a turn ended."""
        if isinstance(end, Completed):
            end = await keep_text(self._services, self._write, end)
        await self._write(lambda tx: turn_record.record_end(tx, prepared, end))

    async def _note(self, prepared: PreparedTurn, event: HarnessEvent) -> None:
        """What happens in the middle of a turn."""
        match event:
            case ToolUse(name=name, detail=detail):
                sign = f"{name}: {detail}" if detail else name
                await self._write(lambda tx: turn_record.record_sign_of_life(tx, prepared, sign))
            case TurnUsage():
                await self._write(lambda tx: turn_record.record_usage(tx, prepared, event))
            case Identified():
                await self._write(lambda tx: turn_record.record_native_id(tx, prepared, event))
            case NeedsHuman():
                item = await self._write(lambda tx: human_answers.ask_person(tx, prepared, event))
                if human_answers.is_decided(item):  # before the broker was restarted
                    self.respond(item)
            case RequestSettled():
                await self._write(lambda tx: human_answers.withdraw_request(tx, prepared, event))
            case _:
                pass

    # -- what it is told meanwhile ---------------------------------------------------------------

    def stop(self, flight: Flight) -> None:
        """A flight that ended while its program runs: nobody needs the rest of the turn."""
        for prepared in self.running.values():
            if prepared.flight_id == flight.id:
                prepared.unwanted = True
                if prepared.accepted and not prepared.done:  # else as soon as it is
                    self._stop(prepared)

    def stop_all(self) -> None:
        """Interrupt every turn that runs; one that is being started ends as soon as it has."""
        for prepared in self.running.values():
            prepared.unwanted = True
            if prepared.accepted and not prepared.done:
                self._stop(prepared)

    def _stop(self, prepared: PreparedTurn) -> None:
        harness = self._services.harnesses[prepared.harness]
        what = harness.interrupt(prepared.spec.session_id, prepared.prompt.delivery_id)
        self._beside(what, f"interrupting {prepared.delivery_id}")

    def end_session(self, session: Session) -> None:
        """A session ended: nothing more is said in it, and the program that Scout runs for it is stopped."""
        for prepared in self.running.values():
            if prepared.spec.session_id == session.id and not prepared.accepted:
                prepared.unwanted = True
        if session.origin is not SessionOrigin.ENROLLED and session.harness in self._services.harnesses:
            self._stopping_of(session)

    async def stop_program(self, session: Session) -> None:
        """Stop the program of a session; whoever stopped it already is waited for."""
        if session.harness in self._services.harnesses:
            await asyncio.shield(self._stopping_of(session))

    def _stopping_of(self, session: Session) -> asyncio.Task[None]:
        if session.id not in self._stopping:
            work = self._services.harnesses[session.harness].stop(session.id)
            task = self._beside(work, f"stopping {session.id}")
            self._stopping[session.id] = task
            task.add_done_callback(lambda _: self._stopping.pop(session.id, None))
        return self._stopping[session.id]

    def respond(self, item: Attention) -> None:
        """A person decided what a program waits for: it is told, wherever it waits."""
        session_id, request = item.return_path.session_id, item.return_path.request
        if session_id is None or request is None:
            return
        for prepared in self.running.values():
            if prepared.spec.session_id == session_id:
                harness = self._services.harnesses[prepared.harness]
                what = harness.respond(session_id, request, human_answers.find_answer(item))
                self._beside(what, f"answering {item.id}")

    def steer(self, delivery: Delivery) -> bool:
        """Whether something new is on its way into the turn that its target is at."""
        if not self.running:
            return False
        for prepared in self.running.values():
            can = self._services.harnesses[prepared.harness].capabilities.steer
            mine = prepared.spec.agent_id == delivery.target
            if can and mine and may_be_steered(delivery, prepared):
                self._beside(self._steer(delivery, prepared), f"steering {prepared.delivery_id}")
                return True
        return False

    async def _steer(self, delivery: Delivery, prepared: PreparedTurn) -> None:
        given = await self._write(lambda tx: lease_for_turn(tx, delivery.id, prepared))
        if given is None:
            self._schedule(delivery)
            return
        harness = self._services.harnesses[prepared.harness]
        took = False
        try:
            took = not prepared.done and await harness.steer(prepared.spec.session_id, given.text)
        finally:
            await self._write(lambda tx: settle_steering(tx, delivery.id, was_taken=took))

    def _beside(self, work: Coroutine[Any, Any, object], what: str) -> asyncio.Task[None]:
        async def done() -> None:
            try:
                await work
            except Exception:  # noqa: BLE001 (the turn goes on; it is logged)
                _LOG.exception(what)

        task = asyncio.get_running_loop().create_task(done())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


def failure_of(error: Exception, layer: Layer = Layer.ADAPTER) -> Failed:
    """What was raised, as the end of a turn."""
    if isinstance(error, Refused):
        told = error.diagnostic
        if isinstance(told, SessionFailed):  # its words are said around its reason once more
            return Failed(layer=told.layer, reason=told.reason, log=told.log, remedies=told.remedies)
        layer, missing = getattr(told, "layer", Layer.HARNESS), getattr(told, "missing", None)
        return Failed(layer=layer, reason=told.message, missing=missing, remedies=told.remedies)
    _LOG.error("a fault in the %s", layer, exc_info=error)
    return Failed(layer=layer, reason=f"{type(error).__name__}: {error}")


async def _told(events: AsyncIterator[HarnessEvent]) -> AsyncIterator[HarnessEvent]:
    """The events of a turn; a fault of the adapter is its last one."""
    try:
        async for event in events:
            yield event
    except Exception as error:  # noqa: BLE001 (whatever an adapter does, its delivery is settled)
        yield failure_of(error)


async def _with_next(events: AsyncIterator[HarnessEvent]) -> AsyncGenerator[_Pair]:
    """Each event with the one after it, where that is there at once; nobody waits for it.

    A commit costs a sync, and many short turns are accepted and completed in the same moment. Seeing both
    events together, the runner stores them in one transaction instead of two. For a turn that takes time
    nothing may be held back: the acceptance has to be on disk while the program works, or a restart would
    not know that the prompt was taken. So the next event is only looked at, never awaited: a task asks for
    it, the loop gets one step, and if the event is not there by then, the first one is yielded alone and
    the task is awaited in the next round.

    A harness that fails counts as "not there yet"; its error is raised when its event is awaited. The task
    must not outlive this generator, because a second `anext` on a running one is an error: it is cancelled
    at the end.
    """
    upcoming: asyncio.Task[HarnessEvent] | None = None
    try:
        while True:
            try:
                event = await (upcoming or anext(events))
            except StopAsyncIteration:
                return
            upcoming = asyncio.ensure_future(_next(events))
            await asyncio.sleep(0)
            ready = upcoming.done() and upcoming.exception() is None
            yield event, upcoming.result() if ready else None
    finally:
        if upcoming is not None:
            upcoming.cancel()
            await asyncio.gather(upcoming, return_exceptions=True)


async def _next(events: AsyncIterator[HarnessEvent]) -> HarnessEvent:
    return await anext(events)


async def take_before(services: Services, prepared: PreparedTurn) -> None:
    """Of a turn whose program has not heard of it yet. It never keeps the turn from going on."""
    kept, spec = services.snapshots, prepared.spec
    if kept is None or prepared.accepted or not _is_pictured(services, prepared):
        return
    try:
        await asyncio.to_thread(kept.before, spec.session_id, prepared.flight_id or "", spec.cwd or "")
    except (OSError, ValueError):
        _LOG.exception("a picture of %s", spec.cwd)


async def take_after(services: Services, prepared: PreparedTurn) -> None:
    """Of a turn that is over: its answer is not held up by this, the next turn is."""
    kept, spec = services.snapshots, prepared.spec
    if kept is None or not _is_pictured(services, prepared):
        return
    try:
        await asyncio.to_thread(kept.after, spec.session_id, prepared.flight_id or "")
    except (OSError, ValueError):
        _LOG.exception("a picture of %s", spec.cwd)


def _is_pictured(services: Services, prepared: PreparedTurn) -> bool:
    can = services.harnesses[prepared.harness].capabilities
    return can.starts_programs and prepared.flight_id is not None and prepared.spec.cwd is not None


class Steered(NamedTuple):
    """What is said into a turn for one delivery."""

    delivery_id: str
    text: str


def may_be_steered(delivery: Delivery, prepared: PreparedTurn) -> bool:
    """Whether something for an agent can be said into the turn that it is at: once, and in that session."""
    fits = delivery.session_id in (None, prepared.spec.session_id)
    new = delivery.attempts == 0 and delivery.state is DeliveryState.PENDING
    return fits and new and prepared.accepted and not prepared.done and delivery.id != prepared.delivery_id


def lease_for_turn(tx: Transaction, ident: str, prepared: PreparedTurn) -> Steered | None:
    """Lease it for the turn; nothing if it begins an ask, or somebody else has it by now."""
    delivery = tx.need(Delivery, "delivery", ident)
    message = tx.get(Message, delivery.message_id)
    ask = tx.get(Ask, delivery.ask_id)
    if message is None or not is_due(delivery, tx.now) or (ask and ask.message_id == message.id):
        return None
    leased = lease(delivery, HOLDER, tx.now, seconds=tx.rules.periods.lease)
    flight_state.record_delivery(tx, delivery, leased, DeliveryMove.LEASE)
    agent = tx.need(Agent, "agent", delivery.target)
    return Steered(delivery.id, mail_text([build_mail(tx, agent, message)], prepared.harness))


def settle_steering(tx: Transaction, ident: str, *, was_taken: bool) -> None:
    """The program has it, or it goes the usual way."""
    delivery = tx.need(Delivery, "delivery", ident)
    if delivery.state is not DeliveryState.LEASED:
        return
    if was_taken:
        flight_state.record_delivery(tx, delivery, ack(delivery, HOLDER, tx.now), DeliveryMove.ACK)
        return
    back = nack(delivery, HOLDER, tx.now, problem="the turn was over", retry_after=0, rule=tx.rules.back_off)
    flight_state.record_delivery(tx, delivery, back, DeliveryMove.NACK)
