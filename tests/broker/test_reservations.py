"""Reservations in the broker: whose they are, when they end, and which flights are told about each other."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.command import Command
from scout.model.access.token import TokenKind
from scout.protocol.access import CreateToken
from scout.protocol.agents import RegisterAgent, ShowAgent, Who
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.inbox import ListInbox
from scout.protocol.log import ReadLog
from scout.protocol.reservations import (
    AddReservation,
    CheckEdits,
    ListReservations,
    ReleaseReservation,
)
from scout.tree.snapshots import GitSnapshots
from tests.broker.rig import Rig, advance_clock, as_test, expect_refusal, run_scene, wait_until
from tests.broker.test_enrolment import enrol, host


def a_repository(rig: Rig, name: str = "desk") -> str:
    folder = rig.home / name
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "shared.txt").write_text("0\n")
    return str(folder)


@as_test
async def test_two_sessions_of_one_agent_are_two_editors(rig: Rig) -> None:
    seat = await host(rig)
    first = await enrol(rig, seat, native_session_id="n-1")
    second = await enrol(rig, seat, native_session_id="n-2", parent_pid=2)
    assert first.agent_id == second.agent_id
    assert first.token is not None
    assert second.token is not None
    one, two = await rig.scout(first.token), await rig.scout(second.token)
    made = await one.call(AddReservation(globs=("a.py",)))
    assert (made.session_id, made.flight_id) == (first.session.id, None)
    assert (await one.call(CheckEdits(paths=("a.py",)))).allowed
    checked = await two.call(CheckEdits(paths=("a.py", "b.py")))
    assert [path.allowed for path in checked.paths] == [False, True]
    assert [held.id for held in checked.paths[0].held] == [made.id]
    over = await two.call(AddReservation(globs=("a.py",), shared=True))
    assert [one.reservation.id for one in over.overlaps] == [made.id]
    assert "has reserved a.py too" in over.notes[0]
    back = await one.call(AddReservation(globs=("a.py",)))
    assert "works on a.py too" in back.notes[0]


@as_test
async def test_it_expires_and_each_end_is_in_the_log(rig: Rig) -> None:
    desk = a_repository(rig)
    arc = await rig.agent("arc")
    made = await arc.call(AddReservation(globs=("a",), folder=desk, why="mine"))
    again = AddReservation(globs=("b",), folder=desk, idempotency_key="k")
    assert (await arc.call(again)).id == (await arc.call(again)).id
    detail = await rig.operator(ShowAgent(address="@arc"))
    assert [one.globs for one in detail.reservations] == [("b",), ("a",)]
    await advance_clock(rig, 1799)
    assert len((await arc.call(ListReservations())).items) == 2
    await advance_clock(rig, 2)
    assert (await arc.call(ListReservations())).items == ()
    assert (await rig.operator(ShowAgent(address="@arc"))).reservations == ()
    log = await rig.operator(ReadLog(family="collab.reservation"))
    assert [one.payload.move for one in log.items] == ["create", "create", "expire", "expire"]  # type: ignore[attr-defined] (each holds a change)
    ended = (await arc.call(ListReservations(all=True, limit=1))).items[0]
    assert (ended.state, ended.reason) == ("expired", "it expired")
    problem = await expect_refusal(arc.call(ReleaseReservation(reservation_id="only")))
    assert (problem.code, [one.operation for one in problem.remedies]) == ("not_found", ["reserve.list"])
    assert (await arc.call(ReleaseReservation(reservation_id=made.id))).state == "expired"


@as_test
async def test_a_guest_reserves_nothing_and_sees_only_what_it_may(rig: Rig) -> None:
    desk = a_repository(rig)
    arc = await rig.agent("arc")
    held = await arc.call(AddReservation(globs=("a",), folder=desk))
    secret = (await rig.operator(CreateToken(kind=TokenKind.GUEST, label="g"))).secret
    guest = await rig.scout(secret)
    assert (await expect_refusal(guest.call(AddReservation(globs=("b",), folder=desk)))).code == "forbidden"
    seen = {one.agent_id for one in (await guest.call(ListReservations())).items}
    assert seen <= {one.id for one in (await guest.call(Who())).items}
    assert (await expect_refusal(guest.call(ReleaseReservation(reservation_id=held.id)))).code in {
        "forbidden",
        "not_owner",
    }
    assert (await expect_refusal(guest.call(CheckEdits(paths=("a",), folder=desk)))).code == "forbidden"


@as_test
async def test_a_session_that_is_let_go_lets_its_files_go(rig: Rig) -> None:
    desk = a_repository(rig)
    await rig.operator(RegisterAgent(definition_id="arc", project_root=desk, command=("cat",)))
    asked = await rig.operator(MakeAsk(to="@arc", body="go"))
    await wait_until(lambda: is_over(rig, asked.flight_id))
    session_id = (await rig.operator(GetFlight(flight_id=asked.flight_id))).session_id
    secret = (await rig.operator(CreateToken(agent="@arc", session_id=session_id))).secret
    await (await rig.scout(secret)).call(AddReservation(globs=("a",), folder=desk))
    await advance_clock(rig, 400)
    (ended,) = (await rig.operator(ListReservations(all=True))).items
    assert (ended.state, ended.reason) == ("released", "its session ended: its agent sleeps")


@as_test
async def test_too_many_paths_and_no_folder_are_refused(rig: Rig) -> None:
    arc = await rig.agent("arc")
    many = await expect_refusal(arc.call(CheckEdits(paths=("x",) * 1001, folder=str(rig.home))))
    assert (many.code, many.field) == ("bad_request", "paths")
    long = await arc.call(CheckEdits(paths=(f"/{'x' * 300}/{'y' * 3000}",)))
    assert long.allowed
    nowhere = await expect_refusal((await rig.scout()).call(AddReservation(globs=("x",))))
    assert (nowhere.code, nowhere.field) == ("bad_request", "folder")


# -- the same files --------------------------------------------------------------------------------------


class Announcing(Command):
    """A program that announces its edits, as Claude Code does."""

    def __init__(self, sessions: Path) -> None:
        super().__init__(sessions)
        self.capabilities = replace(self.capabilities, announces_edits=True)


async def fly(
    rig: Rig, desk: str, edits: dict[str, tuple[str, ...]], announced: dict[str, tuple[str, ...]]
) -> None:
    """Flights that overlap: each agent changes its files, and says before which."""
    for name, files in edits.items():
        steps = [
            f"echo $SCOUT_TOKEN > {rig.home}/{name}.token",
            f"while [ ! -e {rig.home}/go ]; do sleep 0.02; done",
            *(f"echo {name} >> {file}" for file in files),
            f"touch {rig.home}/{name}.wrote",
            f"while [ ! -e {rig.home}/end ]; do sleep 0.02; done",
        ]
        command = ("sh", "-c", "; ".join(steps))
        await rig.operator(RegisterAgent(definition_id=name, project_root=desk, command=command))
    flights = [await rig.operator(MakeAsk(to=f"@{name}", body="go")) for name in edits]
    for name in edits:
        token = rig.home / f"{name}.token"
        await wait_until(lambda path=token: path.exists() and path.read_text().strip())
        program = await rig.scout(token.read_text().strip())
        for file in announced.get(name, ()):
            assert (await program.call(CheckEdits(paths=(file,), folder=desk, editing=True))).allowed
    (rig.home / "go").touch()
    for name in edits:
        await wait_until((rig.home / f"{name}.wrote").exists)
    (rig.home / "end").touch()
    for one in flights:
        await wait_until(lambda ident=one.flight_id: is_over(rig, ident))
    await wait_until(lambda: not rig.broker.dispatcher.runner._background)


async def is_over(rig: Rig, flight_id: str) -> bool:
    flight = await rig.operator(GetFlight(flight_id=flight_id))
    return flight.finished_at is not None and not rig.broker.dispatcher.runner.running


async def told(rig: Rig, name: str) -> list[str]:
    agent = await rig.scout(act_as=f"@{name}")
    items = (await agent.call(ListInbox(all=True))).items
    bodies = [one.message.body for one in items if one.message is not None]
    return [body for body in bodies if "while you did" in body]


@pytest.mark.parametrize(
    ("announced", "files"),
    [
        ({"arc": ("a.txt",), "bow": ("b.txt",)}, []),  # each one its own
        ({"arc": ("a.txt", "c.txt"), "bow": ("b.txt", "c.txt")}, ["- c.txt"]),
        ({"arc": ("a.txt",)}, ["- b.txt", "- c.txt"]),  # nobody announced these
    ],
)
def test_an_announced_edit_is_the_announcers_own(
    tmp_path: Path, announced: dict[str, tuple[str, ...]], files: list[str]
) -> None:
    async def scene(rig: Rig) -> None:
        desk = a_repository(rig)
        edits = {"arc": ("a.txt",), "bow": ("b.txt",)}
        if any("- c.txt" in one for one in files):
            edits = {name: (*mine, "c.txt") for name, mine in edits.items()}
        await fly(rig, desk, edits, announced)
        for name in edits:
            texts = await told(rig, name)
            assert [line for text in texts for line in text.splitlines() if line.startswith("- ")] == files

    options: dict[str, Any] = {
        "harnesses": {"command": Announcing(tmp_path / "sessions")},
        "snapshots": GitSnapshots(tmp_path / "sessions"),
    }
    run_scene(scene, tmp_path, **options)


def test_what_an_earlier_broker_did_not_compare_is_compared_once(tmp_path: Path) -> None:
    snapshots = GitSnapshots(tmp_path / "sessions")
    options: dict[str, Any] = {"snapshots": snapshots}

    async def first(rig: Rig) -> None:
        desk = a_repository(rig)
        await fly(rig, desk, {"arc": ("shared.txt",), "bow": ("shared.txt",)}, {})
        assert [len(await told(rig, name)) for name in ("arc", "bow")] == [1, 1]

    async def again(rig: Rig) -> None:
        await wait_until(lambda: not rig.broker.dispatcher.runner._background)
        assert [len(await told(rig, name)) for name in ("arc", "bow")] == [1, 1]

    run_scene(first, tmp_path, **options)
    run_scene(again, tmp_path, **options)
