"""The inbox: the exact request whole, decided by one key, and never the wrong item."""

import asyncio

import pytest

from tests.cli.running import Shell
from tests.tui.stage import Fleet, Stage, play


@pytest.mark.rows("R4.4t-2", "R4.4t-3")
def test_y_approves_exactly_what_is_shown(fleet: Fleet, shell: Shell) -> None:
    command = "npm publish --access public && echo " + "long " * 40 + "&& git push --tags"
    ident = fleet.want("exact", command)

    async def scene(stage: Stage) -> None:
        stage.app.show_record(ident)
        screen = await stage.shows("Bash wants to run:", "│ npm publish", "y approve · Y always")
        shown = "".join(line.partition("│")[2].strip() for line in screen.splitlines() if "│" in line)
        assert "".join(command.split()) in "".join(shown.split())
        assert screen.index("git push") < screen.index("medium risk")  # the command comes first
        await stage.press("y")
        await stage.shows("Approved: Bash", "approved by you")

    play(shell, scene)
    assert fleet.item(ident)["state"] == "resolved"


def test_n_denies_a_answers_and_d_dismisses(fleet: Fleet, shell: Shell) -> None:
    token = fleet.register("decider")
    denied = fleet.raise_item(token, "Delete the branch old?", kind="approval")
    answered = fleet.raise_item(token, "Which colour?", kind="question", options=["red", "blue"])
    dismissed = fleet.raise_item(token, "The build is slow.", kind="waiting")

    async def scene(stage: Stage) -> None:
        await stage.press("2")
        for ident, keys, told in (
            (denied, ["n"], "Denied: Delete the branch old?"),
            (answered, ["a", "2", "enter"], "Answered: Which colour?"),
            (dismissed, ["d"], "Dismissed: The build is slow."),
        ):
            stage.app.show_record(ident)
            await stage.shows(f"│ {told.partition(': ')[2]}")
            for key in keys:
                await stage.press(key)
                await stage.pilot.pause()
            await stage.shows(told)

    play(shell, scene)
    assert fleet.item(denied)["state"] == "denied"
    assert (fleet.item(answered)["state"], fleet.item(answered)["answer"]) == ("answered", "blue")
    assert fleet.item(dismissed)["state"] == "dismissed"


@pytest.mark.rows("R4.4t-3")
def test_a_long_request_is_read_to_its_end_before_it_is_approved(fleet: Fleet, shell: Shell) -> None:
    ident = fleet.want("long", "\n".join(f"echo line {number}" for number in range(60)) + "\nrm -rf /")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(ident)
        screen = await stage.shows("│ echo line 3")
        assert "rm -rf" not in screen
        await stage.press("y")
        await stage.shows("There is more below.")
        assert fleet.item(ident)["state"] in ("open", "notified")
        await stage.press("end")
        await stage.shows("│ rm -rf /")
        await stage.press("y")
        await stage.shows("Approved:")

    play(shell, scene)
    assert fleet.item(ident)["state"] == "resolved"


def test_shift_y_makes_a_standing_decision(fleet: Fleet, shell: Shell) -> None:
    ident = fleet.want("standing", "make test")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(ident)
        await stage.shows("│ make test")
        await stage.press("Y")
        await stage.shows("allow the same from now on", "this project")
        await stage.press("p")
        await stage.shows("undo: scout allow revoke alw_")

    play(shell, scene, size=(140, 40))
    assert fleet.item(ident)["allowanceId"]


@pytest.mark.rows("R4.4t-4")
def test_two_surfaces_decide_and_the_second_shows_who_was_first(fleet: Fleet, shell: Shell) -> None:
    ident = fleet.raise_item(fleet.register("twice"), "Merge it now?", kind="approval", risk="high")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(ident)
        await stage.shows("│ Merge it now?")
        shell.say("deny", ident)
        # It stays where it is, with its outcome, so that no other item moves under the key.
        await stage.shows("denied by you")
        await stage.press("y")
        await stage.shows("Already denied by you.")

    play(shell, scene)
    assert fleet.item(ident)["state"] == "denied"


@pytest.mark.rows("R4.4t-4")
def test_two_surfaces_decide_at_once_and_one_wins(fleet: Fleet, shell: Shell) -> None:
    ident = fleet.raise_item(fleet.register("race"), "Race it now?", kind="approval", risk="high")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(ident)
        await stage.shows("│ Race it now?")
        other = asyncio.create_task(asyncio.to_thread(shell.type, "deny", ident))
        await stage.press("y")
        await other
        outcome = {"resolved": "approved by you", "denied": "denied by you"}[fleet.item(ident)["state"]]
        await stage.until(lambda: outcome in stage.screen.lower(), outcome)
        assert (other.result().returncode == 0) is (outcome == "denied by you")

    play(shell, scene)


def test_several_items_are_shown_whole_before_they_are_decided(fleet: Fleet, shell: Shell) -> None:
    token = fleet.register("many")
    idents = [fleet.raise_item(token, f"Step {number}?", kind="approval") for number in range(3)]

    async def scene(stage: Stage) -> None:
        stage.app.show_record(idents[0])
        await stage.shows("│ Step 0?")
        await stage.press("space", "space")
        await stage.press("y")
        screen = await stage.shows("Approve 2 items", "│ Step 0?", "│ Step 1?")
        assert "Step 2?" not in screen
        await stage.press("y")
        await stage.shows("Approved 2 of 2.")

    play(shell, scene)
    assert [fleet.item(ident)["state"] in ("open", "notified") for ident in idents] == [False, False, True]


def test_high_risk_comes_first_and_items_are_grouped_by_agent(fleet: Fleet, shell: Shell) -> None:
    calm, risky = fleet.register("calm"), fleet.register("risky")
    for number in range(3):
        fleet.raise_item(calm, f"calm {number}", kind="approval")
    fleet.raise_item(risky, "risky low", kind="approval")
    fleet.raise_item(risky, "risky high", kind="approval", risk="high")

    async def scene(stage: Stage) -> None:
        await stage.press("2")
        screen = await stage.shows("risky high", "calm 2", "risky low")
        order = [screen.index(text) for text in ("@risky", "risky high", "risky low", "@calm", "calm 0")]
        assert order == sorted(order)

    play(shell, scene, size=(80, 180))  # other tests leave items open
