"""Sessions as operations: started, taken up, copied, stopped, handed over; and what a restart does to them."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.command import Command
from scout.adapters.echo import Echo
from scout.adapters.process.process_table import list_processes
from scout.adapters.process.run_folders import RunFolders
from scout.broker.local import LocalScout
from scout.model.access.token import TokenKind
from scout.model.agent import PermissionProfile
from scout.model.ask import SessionPolicy
from scout.model.events.presence import SessionEnded
from scout.model.flight import FlightPhase, FlightState
from scout.model.session import Session, SessionClass, SessionState
from scout.ports import Capabilities, Observed
from scout.protocol.access import CreateToken
from scout.protocol.agents import ConfigureAgent, ShowAgent
from scout.protocol.asks import CompleteFlight, GetFlight, MakeAsk
from scout.protocol.enrolment import Enrol
from scout.protocol.log import ReadLog
from scout.protocol.sessions import (
    AttachSession,
    CloseSession,
    ForkSession,
    GetSession,
    Interrupt,
    ListRuntimes,
    ListSessions,
    OpenSession,
    StartSession,
    StopSession,
    Wake,
)
from tests.broker.kept import ABLE, Kept
from tests.broker.rig import (
    Rig,
    expect_refusal,
    list_events,
    open_rig,
    read_log,
    run_scene,
    wait_for_end,
    wait_until,
    write_program,
)


class Cast:
    """The harnesses of a scene; the broker sees the same ones after a restart."""

    def __init__(self, home: Path, capabilities: Capabilities = ABLE) -> None:
        self.kept = Kept(home / "kept", capabilities)
        self.options: dict[str, Any] = {
            "harnesses": {"echo": Echo(), "command": Command(home / "sessions"), "acp": self.kept},
        }


async def answer(rig: Rig, body: str, to: str | None = "@ken", **more: Any) -> str | None:
    receipt = await rig.operator(MakeAsk(to=to, body=body, **more))
    return (await wait_for_end(rig, receipt.flight_id)).output


async def make_ask(rig: Rig, body: str, **more: Any) -> str:
    return (await rig.operator(MakeAsk(to="@ken", body=body, **more))).flight_id


async def get_session(rig: Rig, address: str = "@ken") -> Session:
    return (await rig.operator(ListSessions(agent=address))).items[0]


async def running(rig: Rig, flight_id: str) -> None:
    async def runs() -> bool:
        return (await rig.operator(GetFlight(flight_id=flight_id))).state is FlightState.RUNNING

    await wait_until(runs)


# -- start, inspect ------------------------------------------------------------------------------------


@pytest.mark.rows("R1.1-35")
def test_an_ask_to_an_agent_without_endpoints_starts_a_session_and_the_next_continues_it(
    tmp_path: Path,
) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        assert (await rig.operator(ShowAgent(address="@ken"))).endpoints == ()
        assert await answer(rig, "one") == "one"
        assert await answer(rig, "two") == "one two"
        (session,) = (await rig.operator(ListSessions(agent="@ken"))).items
        assert session.native_ids == {"session": f"native-{session.id}"}

    run_scene(scene, tmp_path, **cast.options)


def test_a_session_is_started_as_asked_and_can_be_looked_at(tmp_path: Path) -> None:
    cast = Cast(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    async def scene(rig: Rig) -> None:
        rig.broker.services.runs = RunFolders(tmp_path / "sessions")
        await rig.register("ken", harness="acp")
        wish = StartSession(
            agent="@ken",
            model="big",
            permission_=PermissionProfile.OBSERVE,
            cwd=str(elsewhere),
            idempotency_key="k",
        )
        made = await rig.operator(wish)
        again = await rig.operator(wish)
        assert (made.id, made.state, made.running, made.address) == (again.id, "live", True, "@ken")
        assert (made.cwd, made.model_requested, made.permission_profile) == (str(elsewhere), "big", "observe")
        (spec,) = cast.kept.specs
        assert (spec.cwd, spec.model, spec.permission, spec.door is not None) == (
            str(elsewhere),
            "big",
            "observe",
            True,
        )
        assert made.model_resolved == "kept-1"
        assert await answer(rig, "hello") == "hello"
        run = tmp_path / "sessions" / made.id / "1"
        run.mkdir(parents=True)
        (run / "stderr").write_text("first\n\nlast words\n")
        seen = await rig.operator(GetSession(session_id=made.id))
        assert (seen.tokens.total_tokens, seen.tokens.estimated) == (10, False)
        assert seen.log_tail == ("first", "last words")
        assert seen.last_event_at is not None
        assert [one.id for one in (await rig.operator(ListSessions(live=True))).items] == [made.id]
        other = await rig.agent("zoe")
        assert (await other.call(GetSession(session_id=made.id))).log_tail == ()

    run_scene(scene, tmp_path, **cast.options)


def test_what_cannot_be_started_is_refused_and_leaves_a_reason(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        told = await expect_refusal(rig.operator(StartSession(agent="@ken", harness="nobody")))
        assert told.code == "harness_unavailable"
        told = await expect_refusal(rig.operator(StartSession(agent="@ken", node="moon")))
        assert told.code == "peer_unreachable"
        told = await expect_refusal(rig.operator(StartSession(agent="@ken", cwd="/usr")))
        assert told.code == "directory_not_allowed"
        assert (await rig.operator(ListSessions(agent="@ken"))).items == ()
        cast.kept.broken = "no such model"
        told = await expect_refusal(rig.operator(StartSession(agent="@ken")))
        assert (told.code, "no such model" in told.message) == ("session_failed", True)
        session = await get_session(rig)
        assert (session.state, "no such model" in session.reason) == (SessionState.ENDED, True)
        zoe = await rig.agent("zoe")
        assert (await expect_refusal(zoe.call(StartSession(agent="@ken")))).code == "forbidden"
        cast.kept.broken = ""
        ken = await rig.agent("ken")
        assert (await ken.call(StartSession(agent="@ken"))).state is SessionState.LIVE

    run_scene(scene, tmp_path, **cast.options)


# -- attach, fork --------------------------------------------------------------------------------------


def test_a_session_that_exists_is_taken_up_exactly_or_refused(tmp_path: Path) -> None:
    cast = Cast(tmp_path)
    (cast.kept.native / "n-1").write_text("before\n")

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        await rig.register("zoe", harness="acp")
        attach = AttachSession(session="n-1", harness="acp", agent="@ken")
        made = await rig.operator(attach)
        assert (made.native_ids, made.origin, made.running) == ({"session": "n-1"}, "attached", False)
        assert await answer(rig, "after") == "before after"
        assert (await rig.operator(attach)).id == made.id
        told = await expect_refusal(rig.operator(replace(attach, agent="@zoe")))
        assert told.code == "no_session"
        told = await expect_refusal(rig.operator(AttachSession(session=made.id, harness="echo")))
        assert (told.code, [one.operation for one in told.remedies]) == (
            "harness_mismatch",
            ["session.attach", "session.start"],
        )
        told = await expect_refusal(rig.operator(AttachSession(session="n-2", harness="acp", agent="@ken")))
        assert (told.code, "not on this machine" in told.message) == ("session_not_attachable", True)
        # What never was is in no list; the log has what was tried.
        assert (await get_session(rig)).id == made.id
        log = (await rig.operator(ReadLog(limit=200))).items
        ended = [one.payload.record for one in log if isinstance(one, SessionEnded)]
        assert [one.session_class for one in ended] == [SessionClass.NOT_ATTACHABLE]
        for bad, code in (
            (AttachSession(session="n-3"), "bad_request"),
            (AttachSession(session="ses_none"), "not_found"),
            (AttachSession(session="n-3", harness="nobody"), "harness_unavailable"),
            (AttachSession(session="n-3", harness="acp"), "bad_request"),
        ):
            assert (await expect_refusal(rig.operator(bad))).code == code

    run_scene(scene, tmp_path, **cast.options)


def test_a_session_has_one_writer(tmp_path: Path) -> None:
    cast = Cast(tmp_path)
    (cast.kept.native / "n-1").write_text("")
    project = tmp_path / "talkie"
    project.mkdir()

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        attach = AttachSession(session="n-1", harness="acp", agent="@ken")
        cast.kept.observed = [Observed(harness="acp", native_id="n-1", live=True, pid=7, source="registry")]
        told = await expect_refusal(rig.operator(attach))
        assert (told.code, "pid 7" in told.message) == ("session_not_attachable", True)
        cast.kept.observed = []
        token = await rig.operator(CreateToken(kind=TokenKind.HOST))
        host: LocalScout = await rig.scout(token.secret)
        enrolled = await host.call(Enrol(cwd=str(project), harness="acp", native_session_id="n-1"))
        told = await expect_refusal(rig.operator(AttachSession(session="n-1", harness="acp")))
        assert (told.code, "a person has it open" in told.message) == ("session_not_attachable", True)
        told = await expect_refusal(
            rig.operator(OpenSession(session_id=enrolled.session.id, pid=1, pid_started="0"))
        )
        assert told.code == "session_not_attachable"

    run_scene(scene, tmp_path, **cast.options)


def test_a_stopped_session_is_taken_up_again_by_its_id(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        assert await answer(rig, "one") == "one"
        session = await get_session(rig)
        assert (await rig.operator(StopSession(session_id=session.id))).state is SessionState.ENDED
        told = await expect_refusal(rig.operator(MakeAsk(target_session_id=session.id, body="x")))
        assert (told.code, told.remedies[0].operation) == ("no_session", "session.attach")
        again = await rig.operator(AttachSession(**told.remedies[0].parameters))
        assert (again.id, again.state) == (session.id, SessionState.LIVE)
        assert await answer(rig, "two") == "one two"

    run_scene(scene, tmp_path, **cast.options)


def test_a_fork_begins_as_a_copy_and_leaves_the_original_alone(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        assert await answer(rig, "one") == "one"
        first = await get_session(rig)
        copy = await rig.operator(ForkSession(session_id=first.id))
        assert (copy.forked_from, copy.native_ids != first.native_ids) == (first.id, True)
        assert await answer(rig, "two", to=None, target_session_id=copy.id) == "one two"
        assert await answer(rig, "three") == "one three"
        policy = {"session_policy": SessionPolicy.FORK, "target_session_id": first.id}
        assert await answer(rig, "four", to=None, **policy) == "one three four"
        assert await answer(rig, "five") == "one three five"
        isolated = {"session_policy": SessionPolicy.NEW}
        assert await answer(rig, "alone", **isolated) == "alone"

    run_scene(scene, tmp_path, **cast.options)


def test_a_harness_that_cannot_fork_says_so_before_anything_is_stored(tmp_path: Path) -> None:
    cast = Cast(tmp_path, replace(ABLE, fork=False))

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        await answer(rig, "one")
        session = await get_session(rig)
        before = len(await read_log(rig))
        told = await expect_refusal(rig.operator(ForkSession(session_id=session.id)))
        assert (told.code, told.remedies[0].operation) == ("session_not_attachable", "session.start")
        policy = SessionPolicy.FORK
        told = await expect_refusal(
            rig.operator(MakeAsk(target_session_id=session.id, session_policy=policy, body="x"))
        )
        assert told.code == "bad_request"
        assert len(await read_log(rig)) == before
        told = await expect_refusal(
            rig.operator(MakeAsk(target_session_id=session.id, harness="echo", body="x"))
        )
        assert (told.code, told.remedies[-1].operation) == ("harness_mismatch", "session.start")

    run_scene(scene, tmp_path, **cast.options)


# -- stop, interrupt, wake -----------------------------------------------------------------------------


def test_a_stopped_session_takes_its_flight_its_way_and_its_credentials_with_it(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        flight = await make_ask(rig, "hang")
        await running(rig, flight)
        session = await get_session(rig)
        assert (await rig.operator(GetSession(session_id=session.id))).flight_id == flight
        door = cast.kept.specs[-1].door
        assert door is not None
        own = await rig.scout(door.token)
        zoe = await rig.agent("zoe")
        assert (await expect_refusal(zoe.call(StopSession(session_id=session.id)))).code == "forbidden"
        done = await rig.operator(StopSession(session_id=session.id, reason="wrong branch"))
        assert (done.state, done.running, "wrong branch" in done.reason) == (SessionState.ENDED, False, True)
        view = await wait_for_end(rig, flight)
        assert (view.state, "stopped by" in view.reason) == (FlightState.FAILED, True)
        assert [one.state for one in (await rig.operator(ShowAgent(address="@ken"))).endpoints] == ["stopped"]
        assert (await expect_refusal(rig.scout(door.token))).code == "unauthenticated"
        assert own is not None
        assert (await rig.operator(StopSession(session_id=session.id))).id == session.id
        assert await answer(rig, "again") == "again"

    run_scene(scene, tmp_path, **cast.options)


@pytest.mark.rows("R3.1-30")
def test_an_interrupt_stops_the_turn_and_cancels_its_flight(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        flight = await make_ask(rig, "hang")
        await running(rig, flight)
        waiting = await make_ask(rig, "next")
        told = await rig.operator(Interrupt(address="@ken", reason="wrong branch"))
        assert (told.interrupted, told.flights) == (True, (flight,))
        view = await wait_for_end(rig, flight)
        assert (view.state, "interrupted by" in view.reason, "wrong branch" in view.reason) == (
            FlightState.CANCELLED,
            True,
            True,
        )
        assert (await wait_for_end(rig, waiting)).output == "next"
        none = await rig.operator(Interrupt(address="@ken"))
        assert (none.interrupted, none.reason) == (False, "no turn was running")

    run_scene(scene, tmp_path, **cast.options)


def test_a_turn_whose_flight_is_answered_already_is_interrupted_too(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        flight = await make_ask(rig, "hang")
        await running(rig, flight)
        ken = await rig.agent("ken")
        await ken.call(CompleteFlight(flight_id=flight, output="early"))
        told = await rig.operator(Interrupt(address="@ken"))
        assert (told.interrupted, told.flights) == (True, ())
        assert await answer(rig, "next") == "next"

    run_scene(scene, tmp_path, **cast.options)


@pytest.mark.rows("R3.1-31")
def test_waking_says_what_it_took_and_which_session_it_is(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        first = await rig.operator(Wake(address="@ken"))
        session = await get_session(rig)
        assert (first.outcome, first.session_id) == ("started", session.id)
        assert (await rig.operator(Wake(address="@ken"))).outcome == "already live"
        await cast.kept.stop(session.id)
        again = await rig.operator(Wake(address="@ken"))
        assert (again.outcome, again.session_id) == ("attached", session.id)
        assert await cast.kept.is_warm(session.id)
        await rig.register("deaf", harness="command")
        assert (await expect_refusal(rig.operator(Wake(address="@deaf")))).code == "harness_unavailable"
        cast.kept.broken = "no login"
        await rig.register("pat", harness="acp")
        told = await expect_refusal(rig.operator(Wake(address="@pat")))
        assert (told.code, told.remedies[0].operation) == ("session_failed", "runtimes.check")
        zoe = await rig.agent("zoe")
        assert (await expect_refusal(zoe.call(Wake(address="@ken")))).code == "forbidden"

    run_scene(scene, tmp_path, **cast.options)


# -- one turn each -------------------------------------------------------------------------------------


@pytest.mark.rows("R2.2-62")
def test_each_ask_has_a_turn_of_its_own(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        flights = [await make_ask(rig, f"n{number}") for number in range(4)]
        outputs = [(await wait_for_end(rig, flight)).output for flight in flights]
        assert outputs == ["n0", "n0 n1", "n0 n1 n2", "n0 n1 n2 n3"]

    run_scene(scene, tmp_path, **cast.options)


# -- in a terminal -------------------------------------------------------------------------------------


def myself() -> dict[str, Any]:
    return {"pid": os.getpid(), "pid_started": list_processes()[os.getpid()].identity.started}


def test_a_session_in_a_terminal_is_not_resumed_behind_its_users_back(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp", wake_policy="keep_warm")
        assert await answer(rig, "one") == "one"
        session = await get_session(rig)
        opened = await rig.operator(OpenSession(session_id=session.id, **myself()))
        assert (opened.command, opened.environment) == (("true",), {"KEPT": f"native-{session.id}"})
        assert not await cast.kept.is_warm(session.id)
        flight = await make_ask(rig, "two")

        async def held() -> bool:
            return (await rig.operator(GetFlight(flight_id=flight))).phase is FlightPhase.HELD

        await wait_until(held)
        view = await rig.operator(GetFlight(flight_id=flight))
        assert view.reason == "its session is open in a terminal"
        assert (await rig.operator(Wake(address="@ken"))).outcome == "already live"
        assert not await cast.kept.is_warm(session.id)
        other = OpenSession(session_id=session.id, pid=1, pid_started="1")
        assert (await expect_refusal(rig.operator(other))).code == "session_busy"
        (cast.kept.native / f"native-{session.id}").write_text("one mine\n")
        closed = await rig.operator(CloseSession(session_id=session.id))
        assert (closed.terminal, (await wait_for_end(rig, flight)).output) == (None, "one mine two")
        assert (await rig.operator(CloseSession(session_id=session.id))).revision >= closed.revision
        assert len((await rig.operator(ListSessions(agent="@ken"))).items) == 1

    run_scene(scene, tmp_path, **cast.options)


def test_a_session_at_work_is_not_handed_over(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        flight = await make_ask(rig, "hang")
        await running(rig, flight)
        session = await get_session(rig)
        told = await expect_refusal(rig.operator(OpenSession(session_id=session.id, **myself())))
        assert (told.code, told.remedies[0].operation) == ("session_busy", "interrupt")
        await rig.operator(Interrupt(address="@ken"))
        await wait_for_end(rig, flight)
        await rig.register("parrot", harness="echo")
        await answer(rig, "hi", to="@parrot")
        plain = await get_session(rig, "@parrot")
        told = await expect_refusal(rig.operator(OpenSession(session_id=plain.id, **myself())))
        assert told.code == "session_not_attachable"

    run_scene(scene, tmp_path, **cast.options)


def test_a_terminal_that_died_gives_its_session_back_also_after_a_restart(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def play() -> None:
        async with open_rig(tmp_path, **cast.options) as rig:
            await rig.register("ken", harness="acp")
            await answer(rig, "one")
            session = await get_session(rig)
            await rig.operator(OpenSession(session_id=session.id, pid=os.getpid(), pid_started="not mine"))
            flight = await make_ask(rig, "two")
        async with open_rig(tmp_path, **cast.options) as rig:
            rig.broker.services.runs = RunFolders(tmp_path / "sessions")
            assert (await wait_for_end(rig, flight)).output == "one two"
            assert (await get_session(rig)).terminal is None

    asyncio.run(play())


# -- a restart -----------------------------------------------------------------------------------------


async def classes(rig: Rig, ident: str) -> list[str]:
    facts = [one.payload.record for one in await read_log(rig) if getattr(one.payload, "move", "") == "check"]
    return [str(one.session_class) for one in facts if one.id == ident]


@pytest.mark.rows("R2.2-22")
def test_after_a_restart_a_session_is_unknown_until_it_was_looked_at(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def play() -> None:
        async with open_rig(tmp_path, **cast.options) as rig:
            for name, harness in (("ken", "acp"), ("parrot", "echo")):
                await rig.register(name, harness=harness)
                await answer(rig, "one", to=f"@{name}")
            told = write_program(tmp_path, "upper", "tr a-z A-Z")
            await rig.register("upper", harness="command", command=told)
            await answer(rig, "one", to="@upper")
            known = {name: await get_session(rig, f"@{name}") for name in ("ken", "parrot", "upper")}
            assert {one.session_class for one in known.values()} == {SessionClass.RESUMABLE}
        async with open_rig(tmp_path, **cast.options) as rig:
            for name, session in known.items():

                async def checked(name: str = name) -> bool:
                    return (await get_session(rig, f"@{name}")).session_class is SessionClass.RESUMABLE

                await wait_until(checked)
                assert await classes(rig, session.id) == ["reachability_unknown", "resumable"]
            assert await answer(rig, "two") == "one two"
            assert (await get_session(rig)).id == known["ken"].id

    asyncio.run(play())


@pytest.mark.rows("R2.2-22")
def test_a_session_whose_program_is_gone_for_good_is_over_with_a_reason(tmp_path: Path) -> None:
    cast = Cast(tmp_path, replace(ABLE, resume=False))

    async def play() -> None:
        async with open_rig(tmp_path, **cast.options) as rig:
            await rig.register("ken", harness="acp")
            await rig.register("pat", harness="acp")
            await answer(rig, "one")
            await answer(rig, "one", to="@pat")
            gone, lives = await get_session(rig), await get_session(rig, "@pat")
            await cast.kept.stop(gone.id)
        async with open_rig(tmp_path, **cast.options) as rig:

            async def over() -> Session | None:
                session = await get_session(rig)
                return session if session.state is SessionState.ENDED else None

            session = await wait_until(over)
            assert (session.session_class, "its program is gone" in session.reason) == (
                "not_attachable",
                True,
            )
            assert [one.state for one in (await rig.operator(ShowAgent(address="@ken"))).endpoints] == [
                "stopped"
            ]
            assert (await list_events(rig, lives.id))[-1] == "session.updated"
            assert await answer(rig, "two", to="@pat") == "one two"
            assert await answer(rig, "anew") == "anew"
            told = await expect_refusal(rig.operator(AttachSession(session=gone.id)))
            assert (told.code, told.remedies[0].operation) == ("session_not_attachable", "session.start")

    asyncio.run(play())


def test_a_look_that_fails_is_no_program_and_a_harness_that_is_gone_ends_its_sessions(tmp_path: Path) -> None:
    cast = Cast(tmp_path, replace(ABLE, resume=False))

    class Blind(Kept):
        async def is_warm(self, session_id: str) -> bool:
            raise OSError("no such socket")

    async def ended_reason(rig: Rig) -> str:
        async def over() -> str:
            session = await get_session(rig)
            return session.reason if session.state is SessionState.ENDED else ""

        return await wait_until(over)

    async def play() -> None:
        async with open_rig(tmp_path, **cast.options) as rig:
            await rig.register("ken", harness="acp")
            await answer(rig, "one")
        blind = Blind(tmp_path / "kept", replace(ABLE, resume=False))
        async with open_rig(tmp_path, harnesses={"acp": blind}) as rig:
            assert "cannot resume it" in await ended_reason(rig)
        async with open_rig(tmp_path, **cast.options) as rig:
            await answer(rig, "two")
        async with open_rig(tmp_path, harnesses={"echo": Echo()}) as rig:
            assert "no harness acp any more" in await ended_reason(rig)

    asyncio.run(play())


# -- what can run them ---------------------------------------------------------------------------------


def test_every_harness_says_what_it_can_and_has_no_verdicts_before_a_check(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        page = await rig.operator(ListRuntimes())
        found = {one.name: one for one in page.items}
        assert set(found) == {"echo", "command", "acp"}
        assert (found["acp"].version, found["acp"].notes) == ("1.2", ("what it runs is not confined",))
        assert (found["acp"].capabilities["fork"], found["acp"].capabilities["usage"]) == (True, "exact")
        (one,) = (await rig.operator(ListRuntimes(check="acp"))).items
        assert (one.check, one.checks, one.turns) == (None, (), 5)
        (echo,) = (await rig.operator(ListRuntimes(check="echo"))).items
        assert (echo.check, echo.turns) == (None, 0)
        assert (
            await expect_refusal(rig.operator(ListRuntimes(check="nobody")))
        ).code == "harness_unavailable"

    run_scene(scene, tmp_path, **cast.options)


def test_an_agent_set_to_another_harness_meanwhile_gets_a_session_there(tmp_path: Path) -> None:
    cast = Cast(tmp_path)

    async def scene(rig: Rig) -> None:
        await rig.register("ken", harness="acp")
        await answer(rig, "one")
        await rig.operator(StopSession(session_id=(await get_session(rig)).id))
        await rig.operator(ConfigureAgent(address="@ken", config={"harness": "echo"}))
        made = await rig.operator(StartSession(agent="@ken"))
        assert made.harness == "echo"

    run_scene(scene, tmp_path, **cast.options)
