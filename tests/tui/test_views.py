"""Each view, as it is stored at 80×24 and 120×40; `python -m tests.tui.screens` takes the screens again."""

import asyncio
from collections.abc import Generator

import pytest
from textual.css.query import NoMatches

from scout.tui.bars import TABS
from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.tui.screens import SIZES, VIEWS, read_screen, set_up, take_screen
from tests.tui.stage import Fleet, Stage, play


@pytest.fixture(scope="module")
def small() -> Generator[Fleet]:
    """A fleet of its own, so that the screens are the same in every run."""
    with a_shell(ends_runs=True) as shell:
        found = Fleet(shell, Daemon(shell.home, start_daemon(shell)))
        set_up(found)
        yield found


@pytest.mark.rows("R4.4t-1", "R4.4t-9")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shows_what_is_stored(small: Fleet, view: str, size: tuple[int, int]) -> None:
    assert take_screen(small, view, size) == read_screen(view, size)


@pytest.mark.rows("R4.4t-5")
def test_a_flight_is_cancelled_and_retried(fleet: Fleet) -> None:
    fleet.register("slow", harness="command", command=["sleep", "600"])
    flight = fleet.ask("@slow", "Sleep a while.", wait=0)["flightId"]

    async def scene(stage: Stage) -> None:
        stage.app.show_record(flight)
        await stage.shows("● running", "the target works on it")
        await stage.press("x")
        await stage.shows("Cancel this flight", "│ Sleep a while.")
        await stage.press("x")
        await stage.shows("– cancelled", "cancelled")
        await stage.press("t")
        await stage.shows("attempt 2", "● running")
        await stage.press("x")
        await stage.shows("Cancel this flight")
        await stage.press("x")
        await stage.shows("– cancelled")

    play(fleet.shell, scene)


def test_a_list_stays_put_while_rows_come_and_change(fleet: Fleet) -> None:
    fleet.register("many-asked", harness="echo")
    for number in range(30):
        fleet.ask("@many-asked", f"ask number {number}")

    async def scene(stage: Stage) -> None:
        await stage.press("4", "slash")
        await stage.type("many-asked")
        await stage.press("enter")
        await stage.shows("filter: many-asked", "ask number 29")
        await stage.press(*["down"] * 22)
        screen = await stage.shows("▌✓ @many-asked")
        line = next(line for line in screen.splitlines() if line.startswith("▌"))
        place = screen.splitlines().index(line)
        fleet.ask("@many-asked", "a newer one")
        after = await stage.shows("↑ 1 new")
        now = next(line for line in after.splitlines() if line.startswith("▌"))
        assert (after.splitlines().index(now), now.split("→")[0]) == (place, line.split("→")[0])
        await stage.press("home")
        await stage.shows("a newer one")

    play(fleet.shell, scene)


def test_a_resize_keeps_the_row_and_the_screen_whole(fleet: Fleet) -> None:
    fleet.register("resized", harness="echo")
    for number in range(15):
        fleet.ask("@resized", f"resize {number}")

    async def scene(stage: Stage) -> None:
        await stage.press("4", "slash")
        await stage.type("resize")
        await stage.press("enter")
        await stage.shows("resize 14", "resize 0 ")
        await stage.press("end")
        await stage.shows("▌✓ @resized             resize 0 ")
        for width, height in ((40, 10), (200, 60), (20, 5), (80, 24)):
            await stage.pilot.resize_terminal(width, height)
            await stage.shows("▌✓ @resized")
            lines = stage.screen.splitlines()
            assert len(lines) <= height
            assert max(map(len, lines)) <= width
        await stage.shows("▌✓ @resized             resize 0 ")

    play(fleet.shell, scene)


def test_a_key_without_a_meaning_is_answered(fleet: Fleet) -> None:
    async def scene(stage: Stage) -> None:
        await stage.press("x")
        await stage.shows("x does nothing here. ? lists the keys.")
        await stage.press("8")
        await stage.shows("on the page: scout web")
        await stage.press("w")
        await stage.until(lambda: "does nothing" not in stage.screen)

    play(fleet.shell, scene)


@pytest.mark.rows("R4.4t-6")
def test_the_log_is_filtered_and_explained(fleet: Fleet) -> None:
    fleet.register("noted", harness="echo")
    fleet.ask("@noted", "Say something.")

    async def scene(stage: Stage) -> None:
        await stage.press("7", "slash")
        await stage.type("@noted")
        await stage.press("enter")
        screen = await stage.shows("filter: @noted", "@noted: flight completed")
        assert "@many-asked" not in screen
        await stage.press("slash")
        await stage.type("@noted completed")
        await stage.press("enter")
        await stage.until(lambda: "flight started" not in stage.screen)
        await stage.press("w")
        await stage.shows("Why", "@noted was woken", "explicit target")
        await stage.press("escape", "enter")
        await stage.shows("Timeline", "│ Say something.")

    play(fleet.shell, scene)


def test_the_keys_of_the_table_go_to_every_view(fleet: Fleet) -> None:
    async def scene(stage: Stage) -> None:
        for key, name in (("f", "4 Flights"), ("l", "7 Log"), ("i", "2 Inbox"), ("n", "1 Now")):
            await stage.press("g")
            await stage.shows("Go to")
            await stage.press(key)
            await stage.until(lambda name=name: stage.app.view.key == name.split()[1].lower())
        await stage.press("q")
        await stage.until(lambda: not stage.app.is_running)

    play(fleet.shell, scene)


def test_why_explains_the_chosen_message(fleet: Fleet) -> None:
    fleet.register("chosen", harness="echo")
    asked = fleet.ask("@chosen", "The first of several.")
    fleet.ask("@chosen", "The second one.")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(asked["conversationId"])
        await stage.shows("│ The second one.", "Enter sends an ask")
        await stage.press("tab", "w")
        await stage.shows("Why", "message.posted by @chosen")
        await stage.press("escape", "k", "w")
        await stage.shows("Why", "message.posted by you")
        await stage.press("escape", "k", "k", "k", "k", "j", "w")
        await stage.shows("Why", "message.posted by @chosen")

    play(fleet.shell, scene)


def test_views_are_drawn_at_every_step_of_being_opened_and_closed(fleet: Fleet) -> None:
    """The clock that draws every second may strike at any moment, also while the application ends."""
    fleet.register("drawn", harness="echo")
    asked = fleet.ask("@drawn", "Once.")
    work = fleet.call("POST", "/v1/work", {"title": "Drawn"})["id"]
    failures: list[BaseException] = []

    async def scene(stage: Stage) -> None:
        async def draw_at_every_step() -> None:
            try:
                while True:
                    stage.app._tick()
                    await asyncio.sleep(0)
            except NoMatches as error:
                failures.append(error)

        drawing = asyncio.create_task(draw_at_every_step())
        for name, _ in TABS:
            await stage.app.show_view(name)
        for ident in (asked["flightId"], asked["conversationId"], work, "@drawn"):
            await stage.app._show_record(ident)
            assert stage.app._stack
            await stage.app._go_back()
        await stage.app._show_record(asked["flightId"])
        await stage.app.show_view("inbox")
        assert not drawing.done()

    play(fleet.shell, scene)
    assert not failures, failures


def test_a_machine_without_a_mesh_is_told_how_to_begin(fleet: Fleet) -> None:
    async def scene(stage: Stage) -> None:
        assert "Mesh" not in stage.screen
        await stage.press("g", "m")
        await stage.shows("0 Mesh", "belongs to no mesh", "scout mesh up", "scout mesh join LINE")
        await stage.press("plus")
        await stage.shows("Invite a machine")
        await stage.press("enter")
        await stage.shows("belongs to no mesh", "scout mesh up")

    play(fleet.shell, scene)
