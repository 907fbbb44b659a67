"""Requests about sessions that need their programs: a transaction before, and one after."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from msgspec.structs import replace

from scout.base.refusal import Refused, Remedy
from scout.broker.delivery import terminals, turn_record
from scout.broker.delivery.dispatcher import Dispatching
from scout.broker.delivery.session_records import SessionOpening
from scout.broker.effects import session_end
from scout.broker.sessions import records, wake_up
from scout.broker.sessions.harness_checks import HarnessChecks
from scout.broker.sessions.observation import measure_loads
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction
from scout.model.events.presence import SessionUpdated
from scout.model.problems.session import Layer, SessionFailed
from scout.model.session import Session, SessionClass, observe_session
from scout.ports import Failed, Harness, Observed, Started
from scout.protocol.request import Page, Write
from scout.protocol.sessions import (
    AttachSession,
    ForkSession,
    GetSession,
    Interrupt,
    Interrupted,
    ListedSession,
    ListSessions,
    OpenSession,
    SessionOpened,
    SessionView,
    StartSession,
    StopSession,
    Wake,
    Woken,
)

_LINES = 20  # of a program's last output
_LOOK = 10.0  # seconds for a query to a harness


class SessionBroker(Dispatching, CallBroker, Protocol):
    """The broker with the dispatcher and the harness checks."""

    checks: HarnessChecks


SessionCall = CallContext[SessionBroker]


# -- show --------------------------------------------------------------------------------------------


async def show_session(call: SessionCall, request: GetSession) -> SessionView:
    """Return a session with whether its program runs, and the program's last output."""
    view, readable = await call.read(lambda tx: _read_session(tx, request))
    harness, runs = call.services.harnesses.get(view.harness), call.services.runs
    running = view.running or (harness is not None and await _is_warm(harness, view.id))
    tail = await asyncio.to_thread(runs.last_words, view.id, _LINES) if runs and readable else ()
    loads = await measure_loads(call, [(view.pid, view.pid_started)])
    return replace(view, running=running, log_tail=tail, load=loads.get(view.pid))


async def list_sessions(call: SessionCall, request: ListSessions) -> Page[ListedSession]:
    """List sessions; those that have not ended with what their processes use."""
    found: Page[ListedSession] = await call.read(lambda tx: records.list_sessions(tx, request))
    if not request.live:
        return found
    loads = await measure_loads(call, [(one.pid, one.pid_started) for one in found.items])
    return replace(found, items=tuple(replace(one, load=loads.get(one.pid)) for one in found.items))


def _read_session(tx: Transaction, request: GetSession) -> tuple[SessionView, bool]:
    view = records.get_session(tx, request)
    return view, records.may_read(tx, view)


async def _is_warm(harness: Harness, ident: str) -> bool:
    try:
        return await asyncio.wait_for(harness.is_warm(ident), _LOOK)
    except (TimeoutError, OSError):
        return False


# -- start and fork ----------------------------------------------------------------------------------


async def start_session(call: SessionCall, request: StartSession) -> SessionView:
    """Start a new session of an agent."""
    return await _create(call, request, lambda tx: records.start(tx, request))


async def fork_session(call: SessionCall, request: ForkSession) -> SessionView:
    """Start a copy of a session."""
    return await _create(call, request, lambda tx: records.fork(tx, request))


async def _create(
    call: SessionCall, request: Write[SessionView], create: Callable[[Transaction], SessionOpening]
) -> SessionView:
    """Record a session, then start its program. A repeated request shows the session of the first one."""
    made: list[SessionOpening] = []

    def first(tx: Transaction, _: object) -> SessionView:
        made[:] = [create(tx)]
        return records.show_session(tx, tx.need(Session, "session", made[0].spec.session_id))

    view = await call.write_once(request, first)
    for opening in made:
        await _start_program(call, opening)
    return await show_session(call, GetSession(session_id=view.id))


async def _start_program(call: SessionCall, opening: SessionOpening) -> None:
    harness = call.services.harnesses[opening.harness]
    problem = await call.broker.dispatcher.runner.begin(opening, harness, _record_ready)
    if problem is not None:
        await _end_failed(call, opening, problem.reason)
        raise Refused(_build_start_failure(opening, problem))


async def _end_failed(
    call: SessionCall, opening: SessionOpening, reason: str, ending: SessionClass | None = None
) -> None:
    ident = opening.spec.session_id
    await call.broker.as_system(
        lambda tx: session_end.record_session_end(tx, tx.need(Session, "session", ident), reason, ending)
    )


def _record_ready(tx: Transaction, opening: SessionOpening, started: Started) -> None:
    """Record that a session is live, with its process and the model that it chose."""
    turn_record.record_session_ready(tx, opening, started)
    session = tx.need(Session, "session", opening.spec.session_id)
    named = started.native_ids.items() <= session.native_ids.items()
    if started.pid is not None or started.model != session.model_resolved or not named:
        observed = observe_session(
            session,
            tx.now,
            pid=started.pid,
            pid_started=started.pid_started,
            native_ids=dict(started.native_ids),
        )
        tx.record(SessionUpdated, replace(observed, model_resolved=started.model), move="observe")


def _build_start_failure(opening: SessionOpening, problem: Failed) -> SessionFailed:
    look = Remedy(
        operation="runtimes.check", parameters={"harness": opening.harness}, why="see what it lacks"
    )
    return SessionFailed(
        session_id=opening.spec.session_id,
        layer=problem.layer or Layer.HARNESS,
        reason=problem.reason,
        log=problem.log,
        remedies=(look,),
    )


# -- attach ------------------------------------------------------------------------------------------


async def attach_session(call: SessionCall, request: AttachSession) -> SessionView:
    """Attach exactly this session, if no other program has it open; start nothing else for it."""
    await _require_no_writer(call, request)
    made: list[records.Taking] = []

    def first(tx: Transaction, _: object) -> SessionView:
        made[:] = [records.attach_session(tx, request)]
        return records.show_session(tx, made[0].session)

    view = await call.write_once(request, first)
    for taking in made:
        if taking.opening is not None:
            await _attach_program(call, taking.opening, taking.native)
    return await show_session(call, GetSession(session_id=view.id))


async def _require_no_writer(call: SessionCall, request: AttachSession) -> None:
    """Refuse a session that a person has open in a program: a session has one writer."""
    session, name = await call.read(lambda tx: records.find_session(tx, request))
    if session is not None:
        return
    for one in await _observe(call.services.harnesses[name]):
        if one.native_id == request.session and one.live:
            reason = f"it is open in a running program{f' (pid {one.pid})' if one.pid else ''}"
            raise Refused(records.build_not_attachable(request.session, reason))


async def _observe(harness: Harness) -> list[Observed]:
    try:
        return await asyncio.wait_for(harness.observe(), _LOOK)
    except (TimeoutError, OSError):
        return []


async def _attach_program(call: SessionCall, opening: SessionOpening, native: str) -> None:
    try:
        started = await call.services.harnesses[opening.harness].attach(opening.spec, native)
    except Refused as refusal:
        await _end_failed(call, opening, refusal.diagnostic.message, SessionClass.NOT_ATTACHABLE)
        raise
    except Exception as error:
        await _end_failed(call, opening, f"{type(error).__name__}: {error}")
        raise
    await call.broker.as_system(lambda tx: _record_ready(tx, opening, started))


# -- stop and open -----------------------------------------------------------------------------------


async def stop_session(call: SessionCall, request: StopSession) -> SessionView:
    """Record the end first, so that nothing more is delivered, then end the program. Safe to repeat."""
    session = await call.write(lambda tx: records.stop(tx, request))
    await call.broker.dispatcher.runner.stop_program(session)
    return await show_session(call, GetSession(session_id=session.id))


async def open_in_terminal(call: SessionCall, request: OpenSession) -> SessionOpened:
    """Hand a session to a person's terminal and stop its own program, because a session has one writer.

    A terminal that joins the running program, such as a pane of tmux, needs it.
    """
    name, spec = await call.read(lambda tx: terminals.check_handover(tx, request))
    harness = call.services.harnesses[name]
    command = await harness.open(spec)
    session = await call.write(lambda tx: terminals.open_terminal(tx, request))
    try:
        if not command.joins:
            await harness.stop(session.id)
    except BaseException:
        await call.broker.as_system(lambda tx: terminals.take_back(tx, session.id))
        raise
    return SessionOpened(
        session=session, command=command.command, cwd=command.cwd, environment=command.environment
    )


# -- wake and interrupt ------------------------------------------------------------------------------


async def wake_agent(call: SessionCall, request: Wake) -> Woken:
    """Make sure that an agent has a live session, and return it."""
    woken, opening = await call.write(lambda tx: wake_up.wake(tx, request))
    if opening is None:
        return woken
    if opening.fresh:
        await _start_program(call, opening)
        return replace(woken, outcome="started")
    return await _run_in_lane(call, opening.spec.agent_id, lambda: _restart_program(call, woken, opening))


async def _restart_program(call: SessionCall, woken: Woken, opening: SessionOpening) -> Woken:
    """Restart the program of a live session, unless it is running."""
    harness = call.services.harnesses[opening.harness]
    if await harness.is_warm(opening.spec.session_id):
        return woken
    problem = await call.broker.dispatcher.runner.begin(opening, harness, _record_ready)
    if problem is not None:
        raise Refused(_build_start_failure(opening, problem))
    return replace(woken, outcome="attached")


async def _run_in_lane(call: SessionCall, agent_id: str, work: Callable[[], Any]) -> Any:
    """Run `work` after the agent's current turns, so that nothing else starts its program meanwhile."""
    done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def carry(_: str) -> None:
        try:
            done.set_result(await work())
        except Exception as error:  # noqa: BLE001 (raised in the caller that awaits the work)
            done.set_exception(error)
        finally:
            done.cancel()

    call.broker.dispatcher.enqueue(agent_id, agent_id, carry)
    return await done


async def interrupt_agent(call: SessionCall, request: Interrupt) -> Interrupted:
    """Cancel the flights of an agent's turns, and interrupt the turns that have no flight."""
    others: list[wake_up.Unnamed] = []

    def first(tx: Transaction, _: object) -> Interrupted:
        result, others[:] = wake_up.interrupt(tx, request)
        return result

    result = await call.write_once(request, first)
    for name, session_id, run in others:
        stopped = await call.services.harnesses[name].interrupt(session_id, run)
        result = replace(result, interrupted=result.interrupted or stopped)
    return result
