"""What is asked of sessions and needs their programs: it stands between two transactions."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from scout.base.refusal import Refused, Remedy
from scout.broker.delivery import pause, terminals, turn_record
from scout.broker.delivery.dispatcher import Dispatching
from scout.broker.delivery.opening import SessionOpening
from scout.broker.effects import session_end
from scout.broker.sessions import records, runtimes, wake_up
from scout.broker.sessions.harness_checks import CheckWish, HarnessChecks, check_key
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.idempotency import run_once
from scout.broker.transaction.streams import Waiters
from scout.broker.transaction.transaction import Transaction
from scout.model.events.presence import SessionUpdated
from scout.model.problems.session import Layer, SessionFailed
from scout.model.session import Session, SessionClass, observe_session
from scout.policy.permit import Deed, Subject
from scout.ports import Failed, Harness, Observed, Started, Surroundings
from scout.protocol.request import Page, Request, Write
from scout.protocol.sessions import (
    AttachSession,
    CheckRuntime,
    CheckState,
    ForkSession,
    GetSession,
    Interrupt,
    Interrupted,
    ListRuntimes,
    OpenSession,
    Runtime,
    SessionOpened,
    SessionView,
    StartSession,
    StopCheck,
    StopSession,
    Wake,
    Woken,
)

T = TypeVar("T")
_LINES = 20  # of what a program wrote last
_LOOK = 10.0  # seconds for a look at the sessions of a harness

CONDUCTED = (
    GetSession,
    StartSession,
    AttachSession,
    ForkSession,
    StopSession,
    OpenSession,
    Wake,
    Interrupt,
    ListRuntimes,
    CheckRuntime,
    StopCheck,
)


class SessionBroker(Dispatching, Protocol):
    """The broker with those who wait for records, and the checks of harnesses."""

    waiters: Waiters
    checks: HarnessChecks


class SessionControl:
    """One request about sessions, in somebody's name. `place`: what the disk says of a folder it names."""

    def __init__(self, broker: SessionBroker, who: Admitted, place: Surroundings | None) -> None:
        self._broker = broker
        self._who = who
        self._place = place

    async def answer(self, request: Request[Any]) -> Any:
        """Do it; what is refused has changed nothing, or says what it has changed."""
        match request:
            case GetSession():
                return await self._shown(request.session_id)
            case StartSession():
                return await self._begun(request, lambda tx: records.start(tx, request))
            case ForkSession():
                return await self._begun(request, lambda tx: records.fork(tx, request))
            case AttachSession():
                return await self._attached(request)
            case StopSession():
                return await self._stopped(request)
            case OpenSession():
                return await self._opened(request)
            case Wake():
                return await self._woken(request)
            case Interrupt():
                return await self._interrupted(request)
            case ListRuntimes():
                return await self._runtimes(request)
            case CheckRuntime():
                return await self._check(request)
            case StopCheck():
                return await self._stop_check(request)
            case _:
                raise AssertionError(request)  # another part answers it

    # -- transactions ------------------------------------------------------------------------------

    async def _write(self, work: Callable[[Transaction], T]) -> T:
        return await self._broker.write(self._who, work, self._place)

    async def _read(self, work: Callable[[Transaction], T]) -> T:
        who, services = self._who, self._broker.services
        return await self._broker.read(
            lambda ledger: work(
                Transaction(services, ledger, who.actor, who.caller, here=who.here, place=self._place)
            )
        )

    def _harness(self, name: str) -> Harness:
        return self._broker.services.harnesses[name]

    # -- looking -----------------------------------------------------------------------------------

    async def _shown(self, ident: str) -> SessionView:
        """What the records say of it, whether its program runs, and what that wrote last."""
        view, readable = await self._read(lambda tx: _seen(tx, ident))
        harness, runs = self._broker.services.harnesses.get(view.harness), self._broker.services.runs
        running = view.running or (harness is not None and await _is_warm(harness, view.id))
        tail = await asyncio.to_thread(runs.last_words, view.id, _LINES) if runs and readable else ()
        return replace(view, running=running, log_tail=tail)

    async def _runtimes(self, request: ListRuntimes) -> Page[Runtime]:
        services, checks = self._broker.services, self._broker.checks
        if request.check is None:
            return Page(items=await runtimes.list_runtimes(services, checks))
        harness = runtimes.harness_named(services, request.check)
        if request.wait:
            await self._await_verdict(request, harness.name)
        else:
            await runtimes.probe_all(services, (harness,))
        return Page(items=(runtimes.show_runtime(services, checks, harness),))

    async def _await_verdict(self, request: ListRuntimes, name: str) -> None:
        """Until there are more verdicts than were seen, the check ends, or the time is up."""
        left = min(request.wait, self._broker.services.rules.periods.long_poll)
        with self._broker.waiters.listening(check_key(name)) as listener:
            state, lines = self._broker.checks.result(name)
            if state is CheckState.RUNNING and len(lines) <= (request.seen or 0):
                await listener.wait(left)

    async def _check(self, request: CheckRuntime) -> Runtime:
        """Begin a check; it costs turns of a model only with consent, and none while Scout is paused."""
        services, checks = self._broker.services, self._broker.checks
        harness = runtimes.harness_named(services, request.harness)
        await self._read(_may_check)
        await runtimes.probe_all(services, (harness,))
        probe = services.ready[harness.name]
        checks.start(CheckWish(harness, probe, request.yes, request.command or ()))
        return runtimes.show_runtime(services, checks, harness)

    async def _stop_check(self, request: StopCheck) -> Runtime:
        services, checks = self._broker.services, self._broker.checks
        harness = runtimes.harness_named(services, request.harness)
        await self._read(_may_administer)
        await checks.stop(harness.name)
        return runtimes.show_runtime(services, checks, harness)

    # -- a new one ---------------------------------------------------------------------------------

    async def _begun(
        self, request: Write[SessionView], begin: Callable[[Transaction], SessionOpening]
    ) -> SessionView:
        """Store that it begins, start it, and say which it is; asked again, it is the same one."""
        made: list[SessionOpening] = []

        def first(tx: Transaction, _: object) -> SessionView:
            made[:] = [begin(tx)]
            return records.view(tx, tx.need(Session, "session", made[0].spec.session_id))

        view = await self._write(lambda tx: run_once(tx, request, first))
        for opening in made:
            await self._started(opening)
        return await self._shown(view.id)

    async def _started(self, opening: SessionOpening) -> None:
        harness = self._harness(opening.harness)
        problem = await self._broker.dispatcher.runner.begin(opening, harness, _ready)
        if problem is not None:
            await self._failed(opening, problem.reason)
            raise Refused(_told(opening, problem))

    async def _failed(self, opening: SessionOpening, reason: str, ending: SessionClass | None = None) -> None:
        ident = opening.spec.session_id
        await self._broker.as_system(
            lambda tx: session_end.end(tx, tx.need(Session, "session", ident), reason, ending)
        )

    # -- one that exists ---------------------------------------------------------------------------

    async def _attached(self, request: AttachSession) -> SessionView:
        """Exactly this session, in no other hands; nothing is started for it."""
        await self._check_hands(request)
        made: list[records.Taking] = []

        def first(tx: Transaction, _: object) -> SessionView:
            made[:] = [records.attach_session(tx, request)]
            return records.view(tx, made[0].session)

        view = await self._write(lambda tx: run_once(tx, request, first))
        for taking in made:
            if taking.opening is not None:
                await self._taken_up(taking.opening, taking.native)
        return await self._shown(view.id)

    async def _check_hands(self, request: AttachSession) -> None:
        """A program that a person runs is the only writer of its session, known to Scout or not."""
        session, name = await self._read(lambda tx: records.find_session(tx, request))
        if session is not None:
            return
        for one in await self._observed(self._harness(name)):
            if one.native_id == request.session and one.live:
                reason = f"it is open in a program that runs{f' (pid {one.pid})' if one.pid else ''}"
                raise Refused(records.not_attachable(request.session, reason))

    async def _observed(self, harness: Harness) -> list[Observed]:
        try:
            return await asyncio.wait_for(harness.observe(), _LOOK)
        except (TimeoutError, OSError):
            return []

    async def _taken_up(self, opening: SessionOpening, native: str) -> None:
        try:
            started = await self._harness(opening.harness).attach(opening.spec, native)
        except Refused as refusal:
            await self._failed(opening, refusal.diagnostic.message, SessionClass.NOT_ATTACHABLE)
            raise
        except Exception as error:
            await self._failed(opening, f"{type(error).__name__}: {error}")
            raise
        await self._broker.as_system(lambda tx: _ready(tx, opening, started))

    # -- an end, a hand-over -----------------------------------------------------------------------

    async def _stopped(self, request: StopSession) -> SessionView:
        """First nothing more can come to it, then its program ends; asked again, that is made sure of."""
        session = await self._write(lambda tx: records.stop(tx, request))
        await self._broker.dispatcher.runner.stop_program(session)
        return await self._shown(session.id)

    async def _opened(self, request: OpenSession) -> SessionOpened:
        """Its program ends before a person's begins: a session has one writer."""
        name, spec = await self._read(lambda tx: terminals.check_handover(tx, request))
        harness = self._harness(name)
        command = await harness.open(spec)
        session = await self._write(lambda tx: terminals.open_terminal(tx, request))
        try:
            await harness.stop(session.id)
        except BaseException:
            await self._broker.as_system(lambda tx: terminals.take_back(tx, session.id))
            raise
        return SessionOpened(
            session=session, command=command.command, cwd=command.cwd, environment=command.environment
        )

    # -- an agent's --------------------------------------------------------------------------------

    async def _woken(self, request: Wake) -> Woken:
        woken, opening = await self._write(lambda tx: wake_up.wake(tx, request))
        if opening is None:
            return woken
        if opening.fresh:
            await self._started(opening)
            return replace(woken, outcome="started")
        return await self._in_lane(opening.spec.agent_id, lambda: self._warmed(woken, opening))

    async def _warmed(self, woken: Woken, opening: SessionOpening) -> Woken:
        """A live session whose program rests: it runs again."""
        harness = self._harness(opening.harness)
        if await harness.is_warm(opening.spec.session_id):
            return woken
        problem = await self._broker.dispatcher.runner.begin(opening, harness, _ready)
        if problem is not None:
            raise Refused(_told(opening, problem))
        return replace(woken, outcome="attached")

    async def _in_lane(self, agent_id: str, work: Callable[[], Any]) -> Any:
        """After what is under way for the agent: nobody else starts its program meanwhile."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def carry(_: str) -> None:
            try:
                done.set_result(await work())
            except Exception as error:  # noqa: BLE001 (it is raised where it was asked for)
                done.set_exception(error)
            finally:
                done.cancel()

        self._broker.dispatcher.enqueue(agent_id, agent_id, carry)
        return await done

    async def _interrupted(self, request: Interrupt) -> Interrupted:
        """A flight that is cancelled is interrupted as any other; a turn without one is told here."""
        others: list[wake_up.Unnamed] = []

        def first(tx: Transaction, _: object) -> Interrupted:
            told, others[:] = wake_up.interrupt(tx, request)
            return told

        told = await self._write(lambda tx: run_once(tx, request, first))
        for name, session_id, run in others:
            stopped = await self._harness(name).interrupt(session_id, run)
            told = replace(told, interrupted=told.interrupted or stopped)
        return told


def _may_administer(tx: Transaction) -> None:
    tx.permit(Deed.ADMINISTER, Subject(name=tx.services.node))


def _may_check(tx: Transaction) -> None:
    _may_administer(tx)
    pause.check_not_paused(tx)


def _seen(tx: Transaction, ident: str) -> tuple[SessionView, bool]:
    view = records.get_session(tx, GetSession(session_id=ident))
    return view, records.may_read(tx, view)


async def _is_warm(harness: Harness, ident: str) -> bool:
    try:
        return await asyncio.wait_for(harness.is_warm(ident), _LOOK)
    except (TimeoutError, OSError):
        return False  # nothing of it can be seen


def _ready(tx: Transaction, opening: SessionOpening, started: Started) -> None:
    """It is there; its process and the model that it took are kept."""
    turn_record.record_session_ready(tx, opening, started)
    session = tx.need(Session, "session", opening.spec.session_id)
    named = started.native_ids.items() <= session.native_ids.items()
    if started.pid is not None or started.model != session.model_resolved or not named:
        seen = observe_session(
            session,
            tx.now,
            pid=started.pid,
            pid_started=started.pid_started,
            native_ids=dict(started.native_ids),
        )
        tx.record(SessionUpdated, replace(seen, model_resolved=started.model), move="observe")


def _told(opening: SessionOpening, problem: Failed) -> SessionFailed:
    look = Remedy(operation="runtimes.check", parameters={"harness": opening.harness}, why="what it lacks")
    return SessionFailed(
        session_id=opening.spec.session_id,
        layer=problem.layer or Layer.HARNESS,
        reason=problem.reason,
        log=problem.log,
        remedies=(look,),
    )
