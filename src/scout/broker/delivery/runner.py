"""Running one turn: start its session, deliver the prompt, store the program's events, pass on answers."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.broker.delivery import human_answers, prompts, turn_record
from scout.broker.delivery.prompts import build_mail
from scout.broker.delivery.same_files import SameFiles
from scout.broker.delivery.session_records import PreparedTurn, SessionOpening
from scout.broker.delivery.turn_record import HOLDER
from scout.broker.effects import flight_state
from scout.broker.effects.exit_check import NO_FILES, find_uncommitted
from scout.broker.transaction.call import retry_until_stored
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import ReadLedger, Transaction, WriteAsBroker
from scout.model.access.token import find_secrets
from scout.model.agent import Agent
from scout.model.ask import Ask
from scout.model.attention import Attention
from scout.model.conversation import BODY_LIMIT, Attachment, Message, make_storable, shorten
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, ack, is_due, lease, nack
from scout.model.flight import Flight
from scout.model.problems.session import Layer, SessionFailed
from scout.model.session import Session, SessionOrigin
from scout.policy.host_text import build_mail_text
from scout.policy.tracing import TOOL_MOVE
from scout.ports import (
    Accepted,
    Blobs,
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
_NOTED = 1.0  # seconds between two stored signs of life
_ANSWER_FILE, _ANSWER_TYPE = "answer.txt", "text/plain; charset=utf-8"
_NOTE_ROOM = 1024
_SHORT = 16_384


class TurnRunner:
    """Runs turns. `write` runs a function of a Transaction as the broker, `read` one of a Ledger.

    `running` holds current turns.

    `schedule` queues a delivery that could not be steered into a running turn.
    """

    def __init__(
        self,
        services: Services,
        write: WriteAsBroker,
        schedule: Callable[[Delivery], None],
        read: ReadLedger,
    ) -> None:
        self._services = services
        self._write = write
        self._schedule = schedule
        self.running: dict[str, PreparedTurn] = {}
        self._background = set[asyncio.Task[None]]()
        self._stopping: dict[str, asyncio.Task[None]] = {}
        self._same_files = SameFiles(services, write, read)
        self.turns = 0

    async def run(self, prepared: PreparedTurn) -> None:
        """Run one turn from the start of its session to its end, however it ends."""
        self.turns += 1
        harness = self._services.harnesses[prepared.harness]
        # A timer and not a task: most turns are taken long before their lease has to be renewed.
        pause = self._services.rules.periods.lease / 3
        renewing = asyncio.get_running_loop().call_later(pause, self._begin_renewing, prepared)
        try:
            problem = await self._start(prepared, harness)
            if problem is None and prepared.unwanted and not prepared.accepted:
                problem = Failed(layer=Layer.SESSION, reason="it is no longer needed")
            if problem is not None:
                await self._write(lambda tx: turn_record.record_end(tx, prepared, problem))
            else:
                await take_snapshot_before(self._services, prepared)
                await self._follow(prepared, harness)
                await take_snapshot_after(self._services, prepared)
                self._compare_files(prepared)
        finally:
            renewing.cancel()
            prepared.done = True
            del self.running[prepared.delivery_id]

    async def close(self) -> None:
        """Cancel the background tasks."""
        tasks = list(self._background)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def compare_recent_files(self) -> None:
        """Tell agents that changed the same files shortly before this broker started."""
        self._run_in_background(self._same_files.compare_recent(), "comparing recent flights")

    def _compare_files(self, prepared: PreparedTurn) -> None:
        if prepared.flight_id is not None and _needs_snapshot(self._services, prepared):
            work = self._same_files.compare(prepared.spec.session_id, prepared.flight_id)
            self._run_in_background(work, f"comparing {prepared.flight_id} with others")

    # -- session ---------------------------------------------------------------------------------

    async def _start(self, prepared: PreparedTurn, harness: Harness) -> Failed | None:
        """Start the session of a turn if it has none; return why that failed, if it did."""
        if prepared.fresh:
            return await self.begin(prepared, harness, turn_record.record_session_started)
        try:
            if not prepared.accepted:
                await self._give_mcp_access(prepared, harness)
        except Exception as error:  # noqa: BLE001 (whatever an adapter does, its delivery is settled)
            return build_failure(error)
        return None

    async def begin(
        self, opening: S, harness: Harness, then: Callable[[Transaction, S, Started], object]
    ) -> Failed | None:
        """Start a session and record that; return why that failed, if it did."""
        try:
            await self._give_mcp_access(opening, harness)
            started = await harness.start(opening.spec)
        except Exception as error:  # noqa: BLE001 (whatever an adapter does, its delivery is settled)
            return build_failure(error)
        opening.spec = replace(opening.spec, native_ids={**opening.spec.native_ids, **started.native_ids})
        await self._write(lambda tx: then(tx, opening, started))
        return None

    async def _give_mcp_access(self, opening: SessionOpening, harness: Harness) -> None:
        """Issue MCP access for a program that is about to be started; a running one has it."""
        kept = harness.capabilities.keeps_process
        if kept and not await harness.is_warm(opening.spec.session_id):
            door, facts, rules = await self._write(lambda tx: prompts.issue_mcp_access(tx, opening.spec))
            given = {**facts, **_get_trace(opening)}
            opening.spec = replace(opening.spec, door=door, environment=given, instructions=rules)

    def _begin_renewing(self, prepared: PreparedTurn) -> None:
        self._run_in_background(self._renew(prepared), f"renewing the lease of {prepared.delivery_id}")

    async def _renew(self, prepared: PreparedTurn) -> None:
        """Renew the lease until the program has taken the prompt, or the turn has ended."""
        pause = self._services.rules.periods.lease / 3
        while not (prepared.accepted or prepared.done):
            await self._write(lambda tx: turn_record.renew_lease(tx, prepared))
            await asyncio.sleep(pause)

    # -- events ---------------------------------------------------------------------------------

    async def _follow(self, prepared: PreparedTurn, harness: Harness) -> None:
        events = _catch_fault(harness.deliver(prepared.spec, prepared.prompt))
        async with aclosing(_pair_with_next(events)) as pairs:
            if not await self._store_events(prepared, pairs):
                lost = Failed(layer=Layer.ADAPTER, reason="the harness stopped responding during the turn")
                await self._write(lambda tx: turn_record.record_end(tx, prepared, lost))

    async def _store_events(self, prepared: PreparedTurn, pairs: AsyncIterator[_Pair]) -> bool:
        """Store the events of a turn; whether there was an end."""
        noted, spent = self._services.clock.monotonic(), None
        async for event, following in pairs:
            match event:
                case Accepted():
                    prepared.accepted = True
                    if prepared.unwanted:
                        self._interrupt(prepared)
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
                case TurnUsage() if isinstance(following, Completed | Limited | Failed):
                    spent = event  # stored with the end
                case Completed() | Limited() | Failed():
                    prepared.done = True
                    await self._end(prepared, event, spent)
                    return True
                case _:
                    await self._handle_event(prepared, event)
        return False

    async def _end(
        self, prepared: PreparedTurn, end: Completed | Limited | Failed, spent: TurnUsage | None
    ) -> None:
        """Record how a turn ended, and what it cost if the program reported that last."""
        files = NO_FILES
        if isinstance(end, Completed):
            end = await self._keep_text(end)
            if not self._services.harnesses[prepared.harness].capabilities.plain_body:
                files = await find_uncommitted(self._services, prepared.spec.cwd)
        await self._write(lambda tx: turn_record.record_end(tx, prepared, end, spent, files))

    async def _keep_text(self, done: Completed) -> Completed:
        """Return the end with a text that can be stored; a long one is attached and begins in the body."""
        text, services = done.text, self._services
        if len(text) <= _SHORT and text.isascii() and "\0" not in text and "sct_" not in text:
            return done  # as most answers
        text = await asyncio.to_thread(make_storable, text)
        if find_secrets(text):
            text = await self._write(lambda tx: flight_state.hide_tokens(tx, text))
        limit = services.rules.limits.attachment
        short, attachments = await retry_until_stored(
            lambda: asyncio.to_thread(_attach_long_text, services.blobs, text, limit), services.rules.back_off
        )
        return replace(done, text=short, attachments=(*done.attachments, *attachments))

    async def _handle_event(self, prepared: PreparedTurn, event: HarnessEvent) -> None:
        """Handle an event in the middle of a turn."""
        match event:
            case ToolUse(name=name, detail=detail):
                sign = f"{name}: {detail}" if detail else name
                await self._write(
                    lambda tx: turn_record.record_sign_of_life(tx, prepared, sign, move=TOOL_MOVE)
                )
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

    # -- input during the turn -------------------------------------------------------------------

    def stop(self, flight: Flight) -> None:
        """Interrupt the turn of a flight that ended while its program runs."""
        for prepared in self.running.values():
            if prepared.flight_id == flight.id:
                prepared.unwanted = True
                if prepared.accepted and not prepared.done:  # otherwise once it is accepted
                    self._interrupt(prepared)

    def stop_all(self) -> None:
        """Interrupt every running turn; one that is starting is interrupted once it has started."""
        for prepared in self.running.values():
            prepared.unwanted = True
            if prepared.accepted and not prepared.done:
                self._interrupt(prepared)

    def _interrupt(self, prepared: PreparedTurn) -> None:
        harness = self._services.harnesses[prepared.harness]
        what = harness.interrupt(prepared.spec.session_id, prepared.prompt.delivery_id)
        self._run_in_background(what, f"interrupting {prepared.delivery_id}")

    def end_session(self, session: Session) -> None:
        """Stop the program that Scout runs for an ended session; prompts on their way to it are dropped."""
        for prepared in self.running.values():
            if prepared.spec.session_id == session.id and not prepared.accepted:
                prepared.unwanted = True
        if session.origin is not SessionOrigin.ENROLLED and session.harness in self._services.harnesses:
            self._start_stopping(session)

    async def stop_program(self, session: Session) -> None:
        """Stop the program of a session, or wait for a stop already under way."""
        if session.harness in self._services.harnesses:
            await asyncio.shield(self._start_stopping(session))

    def _start_stopping(self, session: Session) -> asyncio.Task[None]:
        if session.id not in self._stopping:
            work = self._services.harnesses[session.harness].stop(session.id)
            task = self._run_in_background(work, f"stopping {session.id}")
            self._stopping[session.id] = task
            task.add_done_callback(lambda _: self._stopping.pop(session.id, None))
        return self._stopping[session.id]

    def respond(self, item: Attention) -> None:
        """Pass a person's decision to the program that waits for it."""
        session_id, request = item.return_path.session_id, item.return_path.request
        if session_id is None or request is None:
            return
        for prepared in self.running.values():
            if prepared.spec.session_id == session_id:
                harness = self._services.harnesses[prepared.harness]
                what = harness.respond(session_id, request, human_answers.build_answer(item))
                self._run_in_background(what, f"answering {item.id}")

    def steer(self, delivery: Delivery) -> bool:
        """Whether a new delivery is being put into its target's running turn."""
        if not self.running:
            return False
        for prepared in self.running.values():
            can = self._services.harnesses[prepared.harness].capabilities.steer
            mine = prepared.spec.agent_id == delivery.target
            if can and mine and may_be_steered(delivery, prepared):
                self._run_in_background(self._steer(delivery, prepared), f"steering {prepared.delivery_id}")
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
            await self._write(lambda tx: settle_steering(tx, delivery.id, prepared, was_taken=took))

    def _run_in_background(self, work: Coroutine[Any, Any, object], what: str) -> asyncio.Task[None]:
        async def done() -> None:
            try:
                await work
            except Exception:  # noqa: BLE001 (it is logged and the turn continues)
                _LOG.exception(what)

        task = asyncio.get_running_loop().create_task(done())
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        task.add_done_callback(lambda _: work.close())  # it never began if the task was cancelled before that
        return task


def build_failure(error: Exception, layer: Layer = Layer.ADAPTER) -> Failed:
    """Return an exception as the end of a turn."""
    if isinstance(error, Refused):
        told = error.diagnostic
        if isinstance(told, SessionFailed):  # its message would repeat the reason
            return Failed(layer=told.layer, reason=told.reason, log=told.log, remedies=told.remedies)
        layer, missing = getattr(told, "layer", Layer.HARNESS), getattr(told, "missing", None)
        return Failed(layer=layer, reason=told.message, missing=missing, remedies=told.remedies)
    _LOG.error("a fault in the %s", layer, exc_info=error)
    return Failed(layer=layer, reason=f"{type(error).__name__}: {error}")


def _get_trace(opening: SessionOpening) -> dict[str, str]:
    """Return the trace context of the turn that a program is started for."""
    if not isinstance(opening, PreparedTurn):
        return {}
    return {name: one for name, one in opening.prompt.environment.items() if name == prompts.TRACEPARENT}


def _attach_long_text(blobs: Blobs, text: str, limit: int) -> tuple[str, tuple[Attachment, ...]]:
    """Store a long text as an attachment, off the loop: it is encoded, hashed and written."""
    data = text.encode()
    if len(data) <= BODY_LIMIT:
        return text, ()
    whole = data if len(data) <= limit else shorten(text, limit).encode()
    sha256 = blobs.put(whole)
    attachment = Attachment(sha256=sha256, name=_ANSWER_FILE, size=len(whole), media_type=_ANSWER_TYPE)
    kept = "All of it" if whole is data else f"The first {len(whole)} bytes of it"
    note = f"\n\n[This answer has {len(data)} bytes. {kept}: scout attachment get {sha256}]"
    return shorten(text, BODY_LIMIT - _NOTE_ROOM) + note, (attachment,)


async def _catch_fault(events: AsyncIterator[HarnessEvent]) -> AsyncIterator[HarnessEvent]:
    """Yield the events of a turn; a fault of the adapter becomes the last one."""
    try:
        async for event in events:
            yield event
    except Exception as error:  # noqa: BLE001 (whatever an adapter does, its delivery is settled)
        yield build_failure(error)


async def _pair_with_next(events: AsyncIterator[HarnessEvent]) -> AsyncGenerator[_Pair]:
    """Yield each event with the next one if that is there at once; never wait for it.

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
            upcoming = asyncio.get_running_loop().create_task(_await_next(events))
            await asyncio.sleep(0)
            ready = upcoming.done() and upcoming.exception() is None
            yield event, upcoming.result() if ready else None
    finally:
        if upcoming is not None:
            await _end_task(upcoming)


async def _end_task(task: asyncio.Task[Any]) -> None:
    """Cancel a task that is still running; the error of one that has ended is of no interest."""
    if not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    elif not task.cancelled():
        task.exception()


async def _await_next(events: AsyncIterator[HarnessEvent]) -> HarnessEvent:
    return await anext(events)


async def take_snapshot_before(services: Services, prepared: PreparedTurn) -> None:
    """Take a snapshot before the program gets the prompt. A failure does not stop the turn."""
    kept, spec = services.snapshots, prepared.spec
    if kept is None or prepared.accepted or not _needs_snapshot(services, prepared):
        return
    try:
        await asyncio.to_thread(kept.before, spec.session_id, prepared.flight_id or "", spec.cwd or "")
    except (OSError, ValueError):
        _LOG.exception("a snapshot of %s", spec.cwd)


async def take_snapshot_after(services: Services, prepared: PreparedTurn) -> None:
    """Take a snapshot after a turn. The answer does not wait for it; the next turn does."""
    kept, spec = services.snapshots, prepared.spec
    if kept is None or not _needs_snapshot(services, prepared):
        return
    try:
        await asyncio.to_thread(kept.after, spec.session_id, prepared.flight_id or "")
    except (OSError, ValueError):
        _LOG.exception("a snapshot of %s", spec.cwd)


def _needs_snapshot(services: Services, prepared: PreparedTurn) -> bool:
    can = services.harnesses[prepared.harness].capabilities
    return can.starts_programs and prepared.flight_id is not None and prepared.spec.cwd is not None


class Steered(NamedTuple):
    """The text put into a running turn for one delivery."""

    delivery_id: str
    text: str


def may_be_steered(delivery: Delivery, prepared: PreparedTurn) -> bool:
    """Whether a delivery can go into its agent's running turn: a first attempt, for this session."""
    anywhere = delivery.session_id is None and not prepared.isolated
    fits = anywhere or delivery.session_id == prepared.spec.session_id
    new = delivery.attempts == 0 and delivery.state is DeliveryState.PENDING
    return fits and new and prepared.accepted and not prepared.done and delivery.id != prepared.delivery_id


def lease_for_turn(tx: Transaction, ident: str, prepared: PreparedTurn) -> Steered | None:
    """Lease a delivery for the running turn; None if it begins an ask or is no longer due."""
    delivery = tx.need(Delivery, "delivery", ident)
    message = tx.get(Message, delivery.message_id)
    ask = tx.get(Ask, delivery.ask_id)
    if message is None or not is_due(delivery, tx.now) or (ask and ask.message_id == message.id):
        return None
    leased = lease(delivery, HOLDER, tx.now, seconds=tx.rules.periods.lease)
    flight_state.record_delivery(tx, delivery, leased, DeliveryMove.LEASE)
    agent = tx.need(Agent, "agent", delivery.target)
    return Steered(delivery.id, build_mail_text([build_mail(tx, agent, message)], prepared.harness))


def settle_steering(tx: Transaction, ident: str, prepared: PreparedTurn, *, was_taken: bool) -> None:
    """Record that the program took the delivery, or return it to the queue.

    If the turn ended meanwhile, its result does not follow from the delivery, so a flight that resumes with
    it needs another turn.
    """
    delivery = tx.need(Delivery, "delivery", ident)
    if delivery.state is not DeliveryState.LEASED:
        return
    if was_taken and not (prepared.done and delivery.flight_id is not None):
        flight_state.record_delivery(tx, delivery, ack(delivery, HOLDER, tx.now), DeliveryMove.ACK)
        return
    back = nack(delivery, HOLDER, tx.now, problem="the turn had ended", retry_after=0, rule=tx.rules.back_off)
    flight_state.record_delivery(tx, delivery, back, DeliveryMove.NACK)
