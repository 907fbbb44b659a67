"""The diff of a flight's work tree, in place: what `scout diff` shows, and text of others as text."""

import subprocess

import pytest

from tests.tui.stage import Fleet, Stage, play


@pytest.mark.rows("R4.4t-18")
def test_d_shows_what_a_flight_changed(fleet: Fleet) -> None:
    folder = fleet.shell.project("differ")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "kept.txt").write_text("old\n")
    fleet.register("differ", harness="command", command=["sh", "-c", "cat > kept.txt; echo done"])
    body = "new [b]words[/b] \x1b[31m\n"
    flight = fleet.ask("@differ", body)["flightId"]

    async def scene(stage: Stage) -> None:
        stage.app.show_record(flight)
        await stage.shows("Answer")
        await stage.press("d")
        screen = await stage.shows("Diff · flt_", "│ -old", "│ +new [b]words[/b] \\x1b[31m")
        assert "1 file changed" in screen
        await stage.press("escape")
        await stage.shows("Timeline")

    play(fleet.shell, scene)
    assert "-old" in fleet.shell.say("diff", flight)


def test_a_flight_outside_of_a_repository_has_no_diff_and_says_so(fleet: Fleet) -> None:
    fleet.register("undiffed", harness="echo")
    flight = fleet.ask("@undiffed", "hello")["flightId"]

    async def scene(stage: Stage) -> None:
        await stage.press("4")
        await stage.shows("@undiffed")
        stage.app.show_diff(flight)
        await stage.shows("Diff · flt_")
        await stage.settle()
        told = fleet.shell.type("diff", flight).stderr.partition(": ")[2].splitlines()[0]
        await stage.shows(told[:40])

    play(fleet.shell, scene)
