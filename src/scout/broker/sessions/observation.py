"""Read-only observation: the sessions that harnesses show, transcripts, and the diff of a flight.

The store is only read, in short transactions between disk reads; nothing observed is stored.
"""

import asyncio
from collections.abc import Mapping, Sequence

from msgspec.structs import asdict, replace

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.broker.operations import flights
from scout.broker.routing.routes import build_unknown_harness_refusal
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.model.agent import Agent
from scout.model.flight import FLIGHT, Flight
from scout.model.problems.request import Forbidden
from scout.model.problems.session import Layer, SessionNotAttachable
from scout.model.session import ProcessLoad, Session
from scout.policy.permit import Deed
from scout.policy.prompt import fold_contract
from scout.ports import Harness, KeptRuns, Observed, SessionSpec, Tailed
from scout.protocol.asks import GetFlight
from scout.protocol.observation import (
    Diff,
    HarnessObservation,
    ShowDiff,
    ShowTopology,
    Sighting,
    Tail,
    TailEntry,
    TailSession,
    Topology,
)

_PAUSE = 0.3  # seconds between two reads of a transcript


# ---------------------------------------------------------------------------------------- topology


async def show_topology(call: CallContext[CallBroker], request: ShowTopology) -> Topology:
    """Return the sessions that harnesses show, matched with Scout's records."""
    await call.read(_may_look)
    chosen = [one for one in call.services.harnesses.values() if request.harness in (None, one.name)]
    if not chosen:
        look = Remedy(operation="runtimes", parameters={}, why="which harnesses are ready")
        raise Refused(build_unknown_harness_refusal(call.services, request.harness or "", look))
    found = [await _observe_harness(harness, request) for harness in chosen]
    seen = [one for _, some in found for one in some]
    items: tuple[Sighting, ...] = await call.read(lambda tx: tuple(_build_sighting(tx, one) for one in seen))
    loads = await measure_loads(call, [(one.pid, None) for one in seen if one.live])
    items = tuple(replace(one, load=loads.get(one.pid)) for one in items)
    return Topology(items=items, harnesses=tuple(looked for looked, _ in found))


async def measure_loads(
    call: CallContext[CallBroker], processes: Sequence[tuple[int | None, str | None]]
) -> Mapping[int | None, ProcessLoad]:
    """Return what these programs use now, by pid; nothing if processes are not inspected.

    A process that started at another time than given is not the program: the system reuses pids.
    """
    runs = call.services.runs
    if runs is None:
        return {}
    return await asyncio.to_thread(_measure_running, runs, [(pid, at) for pid, at in processes if pid])


def _measure_running(
    runs: KeptRuns, processes: Sequence[tuple[int, str | None]]
) -> Mapping[int | None, ProcessLoad]:
    running = [pid for pid, started in processes if started is None or runs.is_alive(pid, started)]
    return {**runs.measure_load(running)}


def _may_look(tx: Transaction) -> None:
    if not tx.is_operator and tx.actor.user != tx.services.operator:
        needs = ("the operator's token", "the token of an agent of the same user")
        raise Refused(Forbidden(action="look", subject="the sessions of this machine", needs=needs))


async def _observe_harness(
    harness: Harness, request: ShowTopology
) -> tuple[HarnessObservation, list[Observed]]:
    """Return the newest sessions of one harness; a harness that fails reports its problem."""
    try:
        every = await harness.observe()
    except Exception as error:  # noqa: BLE001 (any adapter error; it is reported)
        return HarnessObservation(harness=harness.name, found=0, shown=0, problem=str(error)), []
    wanted = [one for one in every if one.live or not request.live]
    shown = wanted[: request.limit]
    return HarnessObservation(harness=harness.name, found=len(wanted), shown=len(shown)), shown


def _build_sighting(tx: Transaction, seen: Observed) -> Sighting:
    session = tx.everybody.native_session(seen.harness, seen.native_id)
    if session is not None:
        return Sighting(**asdict(seen), session_id=session.id, agent=tx.address(session.agent_id))
    return Sighting(**asdict(seen), attach=_suggest_attach(seen) if seen.kind == "session" else None)


def _suggest_attach(seen: Observed) -> Remedy:
    """Return the command that attaches the session; its directory determines its agent."""
    given = {"session": seen.native_id, "harness": seen.harness}
    if seen.cwd is not None:
        given["cwd"] = seen.cwd
    return Remedy(operation="session.attach", parameters=given, why="make it a session of an agent")


# ------------------------------------------------------------------------------------ a transcript


async def tail_session(call: CallContext[CallBroker], request: TailSession) -> Tail:
    """Return part of a session's transcript, waiting for new lines if there are none."""
    spec, harness = await call.read(lambda tx: _find_observable(tx, request.session_id))
    clock, periods = call.services.clock, call.services.rules.periods
    end = clock.monotonic() + min(request.wait, periods.long_poll)
    after = -1 if request.after is None else request.after
    while True:
        told: Tailed = await harness.tail(spec, after, request.limit)
        left = end - clock.monotonic()
        if told.lines or left <= 0:
            lines = tuple(
                TailEntry(who=one.who, text=fold_contract(one.text), at=one.at) for one in told.lines
            )
            return _build_tail(spec, told, lines)
        after = told.next
        await asyncio.sleep(min(left, _PAUSE))


def _build_tail(spec: SessionSpec, told: Tailed, lines: tuple[TailEntry, ...]) -> Tail:
    context = told.context
    return Tail(
        session_id=spec.session_id,
        lines=lines,
        next=told.next,
        source=told.source,
        context_tokens=context.tokens if context else None,
        context_window=context.window if context else None,
    )


def _find_observable(tx: Transaction, session_id: str) -> tuple[SessionSpec, Harness]:
    """Return a session's spec and harness, if the caller may read its agent."""
    session = tx.need(Session, "session", session_id)
    agent = tx.need(Agent, "agent", session.agent_id)
    if tx.directory.agent(agent.id) is None:
        raise tx.missing("session", session_id)
    tx.permit(Deed.READ, build_subject(agent))
    harness = tx.services.harnesses.get(session.harness)
    if harness is None or session.node != tx.services.node:
        where = f"on {session.node}" if harness else f"of {session.harness}, whose files Scout cannot read"
        raise Refused(_build_refusal(session, f"it is a session {where}"))
    return _build_spec(tx, session), harness


def _build_spec(tx: Transaction, session: Session) -> SessionSpec:
    return SessionSpec(
        session_id=session.id,
        agent_id=session.agent_id,
        address=tx.address(session.agent_id),
        cwd=session.cwd,
        native_ids=session.native_ids,
    )


def _build_refusal(session: Session, reason: str) -> SessionNotAttachable:
    remedy = Remedy(
        operation="session.inspect",
        parameters={"sessionId": session.id},
        why="show what Scout knows about it",
    )
    return SessionNotAttachable(session_id=session.id, layer=Layer.HARNESS, reason=reason, remedies=(remedy,))


# ------------------------------------------------------------------------------------- a work tree


async def show_diff(call: CallContext[CallBroker], request: ShowDiff) -> Diff:
    """Return the changes of a flight, from the two snapshots of its work tree."""
    flight: Flight = await call.read(lambda tx: _get_readable_flight(tx, request.flight_id))
    kept = call.services.snapshots
    if kept is None or flight.session_id is None:
        raise Refused(_build_no_diff(flight, "no program has worked on it yet"))
    change = await asyncio.to_thread(kept.change, flight.session_id, flight.id, patch=not request.stat)
    if change.problem:
        raise Refused(_build_no_diff(flight, change.problem))
    return Diff(
        flight_id=flight.id,
        directory=change.directory,
        base=change.base,
        head=change.head,
        running=change.running and flight.state not in FLIGHT.terminal,
        stat=change.stat,
        patch=change.patch,
        cut=change.cut,
    )


def _get_readable_flight(tx: Transaction, ident: str) -> Flight:
    view = flights.get(tx, GetFlight(flight_id=ident))
    return tx.need(Flight, "flight", view.id)


def _build_no_diff(flight: Flight, reason: str) -> BadRequest:
    """Return the refusal with the reason, and commands that show what was done."""
    remedies = [Remedy(operation="flight.get", parameters={"flightId": flight.id}, why="show its state")]
    if flight.session_id:
        told = {"sessionId": flight.session_id}
        remedies.append(Remedy(operation="session.tail", parameters=told, why="show what its program did"))
    problem = f"what {flight.id} changed cannot be shown: {reason}"
    return BadRequest(problem=problem, field="flightId", remedies=tuple(remedies))
