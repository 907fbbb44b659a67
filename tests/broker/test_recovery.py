"""After kill -9: what ran is followed again and run once, what waited goes on, nothing is stuck."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from scout.adapters.process.process_table import is_alive, list_processes
from scout.model.access.token import Token, TokenState
from scout.model.flight import FlightState
from scout.protocol.agents import ShowAgent
from scout.protocol.asks import CancelFlight, GetFlight, MakeAsk
from scout.protocol.inbox import ListDeliveries
from scout.store.integrity.verify import verify
from tests.broker.rig import (
    Rig,
    advance_clock,
    inbox_bodies,
    poll_until_finished,
    read_log,
    run_scene,
    wait_for_end,
    wait_until,
)

ROOT = Path(__file__).parents[2]


def kill_broker(home: Path, what: str) -> None:
    """Let a broker get as far as that, then kill it."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.broker.child", str(home), what], cwd=ROOT, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
    finally:
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()


def restart_broker(home: Path, scene: Callable[[Rig], Awaitable[None]]) -> None:
    """The next broker on the same files; in the end nothing is left and the log explains everything."""

    async def whole(rig: Rig) -> None:
        await scene(rig)
        for name in ("@waits", "@parrot"):
            detail = await rig.operator(ShowAgent(address=name))
            assert all(one.state in ("idle", "failed", "stopped") for one in detail.endpoints), detail
        tokens = rig.broker.glance().many(Token, "tokens_all", before="~", limit=100)
        runs = [one for one in tokens if one.label.startswith("dlv_")]
        assert all(one.state is TokenState.REVOKED for one in runs)

    run_scene(whole, home)
    report = verify(home / "scout.db")
    assert report.clean, report


def end_program(home: Path) -> None:
    """Kill what the dead broker left running, and see it gone."""
    pid = int(next((home / "sessions").glob("*/*/pid")).read_text().split()[0])
    group = [one.identity for one in list_processes().values() if one.group == pid]
    assert group
    os.killpg(pid, signal.SIGKILL)
    while any(is_alive(one) for one in group):
        time.sleep(0.005)


def read_flight(home: Path, name: str = "flight") -> str:
    return (home / name).read_text()


def count_runs(home: Path) -> int:
    return len((home / "runs").read_text().split())


@pytest.mark.slow
@pytest.mark.rows("R3.4-15", "R3.4-17")
def test_a_running_program_is_followed_again_and_its_answer_is_taken_once(tmp_path: Path) -> None:
    kill_broker(tmp_path, "running")

    async def scene(rig: Rig) -> None:
        view = await rig.operator(GetFlight(flight_id=read_flight(tmp_path)))
        assert view.state is FlightState.RUNNING
        (tmp_path / "go").touch()
        view = await wait_for_end(rig, view.id)
        assert (view.state, view.output, view.attempts) == (FlightState.COMPLETED, "done", 1)
        assert count_runs(tmp_path) == 1

    restart_broker(tmp_path, scene)


@pytest.mark.slow
def test_an_answer_from_while_the_broker_was_away_is_taken_once(tmp_path: Path) -> None:
    kill_broker(tmp_path, "running")
    (tmp_path / "go").touch()

    async def scene(rig: Rig) -> None:
        view = await wait_for_end(rig, read_flight(tmp_path))
        assert (view.output, view.may_repeat, count_runs(tmp_path)) == ("done", False, 1)

    restart_broker(tmp_path, scene)
    restart_broker(tmp_path, scene)


@pytest.mark.slow
@pytest.mark.rows("R3.4-15")
def test_a_message_that_was_being_answered_is_answered(tmp_path: Path) -> None:
    kill_broker(tmp_path, "message")
    (tmp_path / "go").touch()

    async def scene(rig: Rig) -> None:
        await wait_until(lambda: inbox_bodies(rig))
        assert (await inbox_bodies(rig), count_runs(tmp_path)) == (["done"], 1)

    restart_broker(tmp_path, scene)


@pytest.mark.slow
@pytest.mark.rows("R3.4-16")
def test_what_waited_goes_on_after_what_ran(tmp_path: Path) -> None:
    kill_broker(tmp_path, "pending")

    async def scene(rig: Rig) -> None:
        second = read_flight(tmp_path, "second")
        third = await rig.operator(MakeAsk(to="@waits", body="third"))
        await wait_until(lambda: len(asyncio.all_tasks()) > 1)
        assert (await rig.operator(GetFlight(flight_id=second))).state is FlightState.QUEUED
        assert count_runs(tmp_path) == 1  # the turns of an agent still follow each other
        (tmp_path / "go").touch()
        for flight in (read_flight(tmp_path), second, third.flight_id):
            assert (await wait_for_end(rig, flight)).output == "done"
        assert count_runs(tmp_path) == 3

    restart_broker(tmp_path, scene)


@pytest.mark.slow
@pytest.mark.rows("R2.2-52")
def test_what_was_leased_and_not_taken_is_delivered(tmp_path: Path) -> None:
    kill_broker(tmp_path, "before")
    (tmp_path / "go").touch()

    async def scene(rig: Rig) -> None:
        view = await wait_for_end(rig, read_flight(tmp_path))
        assert (view.output, view.attempts, view.may_repeat) == ("done", 2, False)
        assert count_runs(tmp_path) == 1
        assert "may be a repeat" not in (tmp_path / "prompt").read_text()

    restart_broker(tmp_path, scene)


@pytest.mark.slow
@pytest.mark.rows("R2.2-52")
def test_what_was_taken_and_not_said_to_be_is_followed(tmp_path: Path) -> None:
    kill_broker(tmp_path, "after")
    (tmp_path / "go").touch()

    async def scene(rig: Rig) -> None:
        view = await wait_for_end(rig, read_flight(tmp_path))
        assert (view.output, view.attempts, count_runs(tmp_path)) == ("done", 1, 1)

    restart_broker(tmp_path, scene)


@pytest.mark.slow
@pytest.mark.rows("R2.2-52", "R2.2-55")
def test_what_nobody_can_know_is_repeated_once_and_said_to_be(tmp_path: Path) -> None:
    kill_broker(tmp_path, "unknown")

    async def scene(rig: Rig) -> None:
        flight = read_flight(tmp_path)
        await wait_until(lambda: retrying(rig, flight))
        await advance_clock(rig, 3)
        view = await wait_for_end(rig, flight)
        assert (view.output, view.attempts, view.may_repeat) == ("first", 2, True)
        delivery = (await rig.operator(ListDeliveries(target="@parrot"))).items[0]
        assert (delivery.state, delivery.attempts, delivery.may_repeat) == ("acked", 2, True)

    restart_broker(tmp_path, scene)


@pytest.mark.slow
@pytest.mark.rows("R2.2-52", "R2.2-55")
def test_a_repeat_is_said_to_be_one_in_the_prompt(tmp_path: Path) -> None:
    kill_broker(tmp_path, "after")
    end_program(tmp_path)
    (tmp_path / "go").touch()

    async def scene(rig: Rig) -> None:
        flight = read_flight(tmp_path)
        await wait_until(lambda: retrying(rig, flight))
        await advance_clock(rig, 3)
        view = await wait_for_end(rig, flight)
        assert (view.output, view.attempts, view.may_repeat) == ("done", 2, True)
        assert "This may be a repeat" in (tmp_path / "prompt").read_text()

    restart_broker(tmp_path, scene)


async def retrying(rig: Rig, flight: str) -> bool:
    return (await rig.operator(GetFlight(flight_id=flight))).phase == "retrying"


@pytest.mark.slow
def test_what_was_uncertain_twice_is_not_tried_a_third_time(tmp_path: Path) -> None:
    kill_broker(tmp_path, "unknown")

    async def first(rig: Rig) -> None:
        flight = read_flight(tmp_path)
        await wait_until(lambda: retrying(rig, flight))
        await advance_clock(rig, 3)
        await wait_until(lambda: is_leased_twice(rig, flight))

    from tests.broker.child import Deaf

    deaf = Deaf()
    deaf.reached = tmp_path / "reached"
    run_scene(first, tmp_path, harnesses={"echo": deaf})

    async def second(rig: Rig) -> None:
        view = await poll_until_finished(rig, read_flight(tmp_path))
        assert (view.state, view.error and view.error.code) == (FlightState.FAILED, "wake_failed")
        assert "uncertain twice" in view.reason
        assert read_flight(tmp_path) in (await inbox_bodies(rig))[-1]

    restart_broker(tmp_path, second)


async def is_leased_twice(rig: Rig, flight: str) -> bool:
    view = await rig.operator(GetFlight(flight_id=flight))
    return (view.attempts, view.phase) == (2, "waking")


@pytest.mark.slow
def test_a_program_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    kill_broker(tmp_path, "running")
    end_program(tmp_path)

    async def scene(rig: Rig) -> None:
        view = await wait_for_end(rig, read_flight(tmp_path))
        assert (view.state, view.error and view.error.code) == (FlightState.FAILED, "session_failed")
        assert "gone" in view.reason
        assert count_runs(tmp_path) == 1

    restart_broker(tmp_path, scene)


@pytest.mark.slow
def test_a_program_that_nobody_needs_is_stopped_after_a_restart_too(tmp_path: Path) -> None:
    kill_broker(tmp_path, "running")

    async def scene(rig: Rig) -> None:
        await rig.operator(CancelFlight(flight_id=read_flight(tmp_path)))
        await wait_until(lambda: idle(rig))
        assert (await rig.operator(GetFlight(flight_id=read_flight(tmp_path)))).state is FlightState.CANCELLED

    restart_broker(tmp_path, scene)


@pytest.mark.slow
def test_what_was_answered_before_is_not_answered_again(tmp_path: Path) -> None:
    kill_broker(tmp_path, "second")

    async def scene(rig: Rig) -> None:
        view = await wait_for_end(rig, read_flight(tmp_path))
        assert (view.output, view.attempts) == ("done", 2)
        assert await inbox_bodies(rig) == ["done"]
        assert count_runs(tmp_path) == 2

    restart_broker(tmp_path, scene)


async def idle(rig: Rig) -> bool:
    detail = await rig.operator(ShowAgent(address="@waits"))
    return [one.state for one in detail.endpoints] == ["idle"]


def test_a_clean_end_leaves_the_same_as_none(tmp_path: Path) -> None:
    async def first(rig: Rig) -> None:
        await rig.register("waits", harness="echo")
        await rig.register("parrot", harness="echo")
        asked = await rig.operator(MakeAsk(to="@parrot", body="!hang"))
        (tmp_path / "flight").write_text(asked.flight_id)
        await wait_until(lambda: running(rig, asked.flight_id))

    async def second(rig: Rig) -> None:
        view = await wait_for_end(rig, read_flight(tmp_path))
        assert (view.state, view.error and view.error.code) == (FlightState.FAILED, "session_failed")
        assert (await rig.operator(MakeAsk(to="@parrot", body="again", wait=20))).output == "again"
        assert len(await read_log(rig, "collab.flight.failed")) == 1

    run_scene(first, tmp_path)
    restart_broker(tmp_path, second)


async def running(rig: Rig, flight: str) -> bool:
    return (await rig.operator(GetFlight(flight_id=flight))).state is FlightState.RUNNING
