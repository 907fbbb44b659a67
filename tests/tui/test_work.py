"""Work items by key: every move of the table, with the keys of the page."""

from typing import Any

import pytest

from tests.tui.stage import Fleet, Stage, play


def _create(fleet: Fleet, title: str, owner: str) -> str:
    return str(fleet.call("POST", "/v1/work", {"title": title, "ownerId": owner})["id"])


def _get(fleet: Fleet, ident: str) -> Any:
    return fleet.call("GET", f"/v1/work/{ident}")


@pytest.mark.rows("R4.4t-16")
def test_an_item_goes_from_open_to_done_by_keys(fleet: Fleet) -> None:
    fleet.register("worker-one", harness="echo")
    fleet.register("worker-two", harness="echo")
    ident = _create(fleet, "Sharpen the saw", "@worker-one")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(ident)
        await stage.shows("│ Sharpen the saw", "s start · e wait · u submit · h hand over · x cancel")
        await stage.press("s")
        await stage.shows("Started: Sharpen the saw is working.")
        await stage.press("p")
        await stage.shows("Progress in one sentence")
        await stage.type("half of the teeth")
        await stage.press("enter")
        await stage.shows("Noted:", "│ half of the teeth")
        await stage.press("e")
        await stage.shows("It waits for:")
        await stage.press("c")
        await stage.shows("For which one?")
        await stage.type("a new file")
        await stage.press("enter")
        await stage.shows("waits for   condition a new file", "s resume")
        await stage.press("s")
        await stage.shows("Resumed:")
        await stage.press("h")
        await stage.shows("Hand it over to")
        await stage.type("@worker-two")
        await stage.press("enter")
        await stage.shows("owner       @worker-two")
        await stage.press("u")
        await stage.shows("is review.", "y accept · n reopen")
        await stage.press("n")
        await stage.shows("What is missing?")
        await stage.type("the handle")
        await stage.press("enter")
        await stage.shows("Reopened:", "│ the handle")
        await stage.press("u")
        await stage.shows("is review.")
        await stage.press("y")
        await stage.shows("Accepted: Sharpen the saw is done.")

    play(fleet.shell, scene)
    item = _get(fleet, ident)
    assert (item["state"], item["ownerAddress"]) == ("done", "@worker-two")
    moves = [
        "create",
        "start",
        "progress",
        "wait",
        "resume",
        "hand_over",
        "submit",
        "reopen",
        "submit",
        "accept",
    ]
    assert [step["move"] for step in item["steps"]] == moves


@pytest.mark.rows("R4.4t-16")
def test_items_are_created_moved_and_cancelled_in_the_list(fleet: Fleet) -> None:
    fleet.register("worker-three", harness="echo")

    async def scene(stage: Stage) -> None:
        await stage.press("6", "plus")
        await stage.shows("New work item")
        await stage.type("Paint the fence")
        await stage.press("enter")
        await stage.shows("Owner")
        await stage.type("@worker-three")
        await stage.press("enter")
        await stage.shows("Created: Paint the fence", "▌● @worker-three")
        await stage.press("s")
        await stage.shows("Started: Paint the fence is working.", "▌● @worker-three")
        await stage.press("y")
        await stage.shows("It is working. Possible: u submit")
        await stage.press("enter")
        await stage.shows("History")
        await stage.press("x")
        await stage.shows("Cancel this work item? This cannot be undone.")
        await stage.press("escape")
        await stage.shows("History")
        await stage.press("x", "x")
        await stage.shows("Cancelled: Paint the fence is cancelled.", "It is settled.")

    play(fleet.shell, scene)


def test_a_move_on_an_item_that_changed_meanwhile_is_refused_and_read_again(fleet: Fleet) -> None:
    fleet.register("worker-four", harness="echo")
    ident = _create(fleet, "Wash the car", "@worker-four")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(ident)
        await stage.shows("s start")
        fleet.shell.say("work", "start", ident)
        await stage.shows("state       working")
        await stage.press("s")
        await stage.shows("It is working. Possible: p progress")

    play(fleet.shell, scene)
