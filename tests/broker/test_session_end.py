"""What ends with a session: nothing is under way in one that is no more, and nothing waits for it in silence."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scout.adapters.echo import Echo
from scout.adapters.process.process_table import list_processes
from scout.adapters.process.run_folders import RunFolders
from scout.broker.local import LocalScout
from scout.model.ask import IfUnreachable
from scout.model.endpoint import EndpointState, Transport
from scout.model.session import SessionState
from scout.ports import SessionSpec, Started
from scout.protocol.agents import RetireAgent, ShowAgent
from scout.protocol.asks import GetFlight, MakeAsk, RetryFlight
from scout.protocol.endpoints import Heartbeat, RegisterEndpoint, RemoveEndpoint
from scout.protocol.enrolment import Enrolled, HookEvent
from scout.protocol.inbox import AckInbox, ClaimInbox
from scout.protocol.operations import build_command_line
from scout.protocol.overview import ShowNow
from scout.protocol.sessions import GetSession, ListSessions, StartSession, StopSession
from tests.broker.rig import Rig, advance_clock, as_test, expect_refusal, online_agent, run_scene, wait_until
from tests.broker.test_enrolment import enrol, folder, host, report_hook


async def take_ask(rig: Rig, made: Enrolled, seat: LocalScout, body: str = "review this") -> str:
    """An ask that an enrolled session has taken at the end of a turn."""
    asked = await rig.operator(MakeAsk(to=made.address, body=body))
    await report_hook(seat, made, HookEvent.STOP)
    await report_hook(seat, made, HookEvent.PROMPT_SUBMIT)
    flight = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert (flight.state, flight.session_id) == ("running", made.session.id)
    return asked.flight_id


@as_test
async def test_what_a_closed_session_had_taken_fails_at_once_and_says_how_to_retry(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    flight_id = await take_ask(rig, made, seat)
    await report_hook(seat, made, HookEvent.SESSION_END)
    flight = await rig.operator(GetFlight(flight_id=flight_id))
    assert (flight.state, flight.session_id) == ("failed", made.session.id)
    assert flight.reason.endswith("its claude session was closed")
    assert flight.error is not None
    assert flight.error.code == "session_failed"
    assert [build_command_line(one) for one in flight.error.remedies] == [f"scout flight retry {flight_id}"]
    assert (await rig.operator(ShowNow())).open == ()
    back = await enrol(rig, seat)
    again = await rig.operator(RetryFlight(flight_id=flight_id))
    assert (again.state, again.session_id) == ("queued", back.session.id)


@as_test
async def test_what_it_had_not_taken_is_carried_by_a_program_instead(rig: Rig) -> None:
    seat = await host(rig)
    await rig.register("talkie", project_root=folder(rig), harness="echo")
    made = await enrol(rig, seat)
    asked = await rig.operator(MakeAsk(to=made.address, body="review this"))
    assert (await report_hook(seat, made, HookEvent.STOP)).handed_over  # handed over, and never read
    await report_hook(seat, made, HookEvent.SESSION_END)
    flight = await rig.operator(GetFlight(flight_id=asked.flight_id, wait=20))
    assert (flight.state, flight.output) == ("completed", "review this")


@as_test
async def test_without_another_way_it_waits_and_says_for_whom_and_until_when(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    asked = await rig.operator(MakeAsk(to=made.address, body="review this"))
    await report_hook(seat, made, HookEvent.SESSION_END)
    flight = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert (flight.state, flight.phase) == ("queued", "held")
    assert flight.reason.startswith("its claude session was closed; ")
    assert flight.waiting_on is not None
    assert flight.waiting_on.until is not None
    other = await enrol(rig, seat, native_session_id="n-2", parent_pid=78)
    assert "> review this" in (await report_hook(seat, other, HookEvent.STOP)).context


@as_test
async def test_an_ask_for_exactly_that_session_fails_unless_it_may_wait(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    exactly = made.session.id
    now = await rig.operator(MakeAsk(target_session_id=exactly, body="you"))
    queued = MakeAsk(target_session_id=exactly, body="you", if_unreachable=IfUnreachable.QUEUE)
    may_wait = await rig.operator(queued)
    await report_hook(seat, made, HookEvent.SESSION_END)
    assert (await rig.operator(GetFlight(flight_id=now.flight_id))).state == "failed"
    assert (await rig.operator(GetFlight(flight_id=may_wait.flight_id))).phase == "held"


@contextmanager
def sleeping() -> Generator[tuple[subprocess.Popen[bytes], str]]:
    """A program that runs, and when it began."""
    program = subprocess.Popen(["sleep", "60"])
    try:
        yield program, list_processes()[program.pid].identity.started
    finally:
        program.kill()
        program.wait()


def test_a_host_that_is_killed_ends_its_session_without_a_word(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.broker.services.runs = RunFolders(tmp_path)
        seat = await host(rig)
        made = await enrol(rig, seat, parent_pid=program.pid, parent_started=started)
        flight_id = await take_ask(rig, made, seat)
        await advance_clock(rig, 0)
        assert (await rig.operator(GetSession(session_id=made.session.id))).state is SessionState.LIVE
        program.kill()
        program.wait()
        await advance_clock(rig, 0)
        session = await rig.operator(GetSession(session_id=made.session.id))
        assert session.state is SessionState.ENDED
        assert session.reason == f"its claude program is gone (pid {program.pid})"
        flight = await rig.operator(GetFlight(flight_id=flight_id))
        assert (flight.state, flight.reason.endswith(session.reason)) == ("failed", True)

    with sleeping() as (program, started):
        run_scene(scene, tmp_path)


class Broken(Echo):
    """A program that cannot be started."""

    async def start(self, spec: SessionSpec) -> Started:
        raise RuntimeError("no such flag")


def test_a_session_that_fails_to_start_is_ended_whoever_wanted_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        asked = await rig.operator(MakeAsk(to="@parrot", body="hi"))
        flight = await rig.operator(GetFlight(flight_id=asked.flight_id, wait=20))
        assert flight.state == "failed"
        problem = await expect_refusal(rig.operator(StartSession(agent="@parrot", harness="echo")))
        assert problem.code == "session_failed"
        sessions = (await rig.operator(ListSessions())).items
        assert [one.state for one in sessions] == ["ended", "ended"]
        assert all("no such flag" in one.reason for one in sessions)
        assert (await rig.operator(ListSessions(live=True))).items == ()

    run_scene(scene, tmp_path, harnesses={"echo": Broken()})


@pytest.mark.parametrize("state", [EndpointState.IDLE, EndpointState.WORKING])
def test_the_sessions_of_a_retired_agent_end(tmp_path: Path, state: EndpointState) -> None:
    async def scene(rig: Rig) -> None:
        await rig.register("parrot", harness="echo")
        body = "hi" if state is EndpointState.IDLE else "!hang"
        asked = await rig.operator(MakeAsk(to="@parrot", body=body))
        await wait_until(lambda: _is(rig, "@parrot", state))
        await rig.operator(RetireAgent(address="@parrot"))
        (session,) = (await rig.operator(ListSessions())).items
        assert (session.state, session.reason) == ("ended", "its agent is retired")
        assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).finished_at is not None

    run_scene(scene, tmp_path)


async def _is(rig: Rig, address: str, state: EndpointState) -> bool:
    return [one.state for one in (await rig.operator(ShowAgent(address=address))).endpoints] == [state]


@as_test
async def test_stopping_a_session_before_its_program_took_the_ask_gives_it_to_the_next(rig: Rig) -> None:
    await rig.register("parrot", harness="echo")
    first = await rig.operator(MakeAsk(to="@parrot", body="!hang"))
    await wait_until(lambda: _is(rig, "@parrot", EndpointState.WORKING))
    second = await rig.operator(MakeAsk(to="@parrot", body="hello"))
    (session,) = (await rig.operator(ListSessions())).items
    await rig.operator(StopSession(session_id=session.id))
    assert (await rig.operator(GetFlight(flight_id=first.flight_id, wait=20))).state == "failed"
    done = await rig.operator(GetFlight(flight_id=second.flight_id, wait=20))
    assert (done.state, done.output) == ("completed", "hello")


# -- agents that pull ----------------------------------------------------------------------------------


@as_test
async def test_an_ask_to_an_agent_that_falls_silent_says_so_and_goes_on_when_it_is_back(rig: Rig) -> None:
    seat = await online_agent(rig)
    (endpoint,) = (await rig.operator(ShowAgent(address="@live"))).endpoints
    asked = await rig.operator(MakeAsk(to="@live", body="x"))
    await advance_clock(rig, 301)
    flight = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert (flight.state, flight.phase) == ("queued", "held")
    assert flight.reason.startswith("its target stopped responding: no heartbeat since ")
    assert flight.next_move_owner_id is not None
    await seat.call(Heartbeat(endpoint_id=endpoint.id))
    await wait_until(lambda: _phase(rig, asked.flight_id, "accepted"))
    await advance_clock(rig, 301)
    rig.clock.ahead += 86_400
    await advance_clock(rig, 3600)
    flight = await rig.operator(GetFlight(flight_id=asked.flight_id))
    assert (flight.state, flight.error.code if flight.error else "") == ("failed", "target_offline")


async def _phase(rig: Rig, flight_id: str, phase: str) -> bool:
    return (await rig.operator(GetFlight(flight_id=flight_id))).phase == phase


@as_test
async def test_an_agent_that_removes_its_endpoint_lets_go_of_what_it_took(rig: Rig) -> None:
    seat = await online_agent(rig)
    first = await rig.operator(MakeAsk(to="@live", body="one"))
    (item,) = (await seat.call(ClaimInbox())).items
    await seat.call(AckInbox(delivery_ids=(item.delivered.id,)))
    second = await rig.operator(MakeAsk(to="@live", body="two"))
    (endpoint,) = (await rig.operator(ShowAgent(address="@live"))).endpoints
    other = await seat.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))
    await seat.call(RemoveEndpoint(endpoint_id=endpoint.id))
    assert (await rig.operator(GetFlight(flight_id=first.flight_id))).state == "running"  # it is there still
    await seat.call(RemoveEndpoint(endpoint_id=other.id))
    flight = await rig.operator(GetFlight(flight_id=second.flight_id))
    assert (flight.phase, flight.reason.startswith("its endpoint was removed; ")) == ("held", True)
