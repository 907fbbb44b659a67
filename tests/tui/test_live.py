"""The stream: resumed after a restart without a gap, and memory that stays bounded."""

import asyncio

import pytest

from scout.daemon.start import stop
from scout.tui.live import StreamState
from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.tui.stage import Fleet, Stage, play


@pytest.mark.rows("R4.4t-11")
def test_a_restart_of_the_daemon_leaves_no_gap_and_is_mentioned() -> None:
    with a_shell() as shell:
        fleet = Fleet(shell, Daemon(shell.home, start_daemon(shell)))
        fleet.register("before", harness="echo")
        fleet.ask("@before", "one")

        async def scene(stage: Stage) -> None:
            await stage.press("7")
            await stage.shows("@before: flight completed")
            await asyncio.to_thread(stop, str(shell.home), timeout=60)
            await stage.shows("reconnecting…", "The daemon does not answer.")
            again = Fleet(shell, Daemon(shell.home, await asyncio.to_thread(start_daemon, shell)))
            await asyncio.to_thread(again.register, "after", harness="echo")
            await asyncio.to_thread(again.ask, "@after", "two")
            await stage.shows("● live", "Connected again. No event was missed.")
            await stage.shows("@after: flight completed")
            told = [int(event["seq"]) for event in stage.app.recent]
            assert told == sorted(set(told))
            log = again.call("GET", f"/v1/log?after={told[0]}&limit=200")["items"]
            assert {int(event["seq"]) for event in log} <= set(told)

        play(shell, scene)


def test_a_token_that_ends_is_mentioned(fleet: Fleet) -> None:
    async def scene(stage: Stage) -> None:
        stage.app._take_link(StreamState.REFUSED)
        await stage.shows("signed out")

    play(fleet.shell, scene)


def test_memory_is_bounded(fleet: Fleet) -> None:
    """Ten thousand names and events: only the newest are kept."""

    async def scene(stage: Stage) -> None:
        await stage.press("7")
        await stage.settle()
        app = stage.app
        first = dict(app.recent[-1])
        for number in range(10_000):
            app._live.events.append({**first, "id": f"evt_{number}", "seq": app._live.last})
            app.names.learn(f"agt_{number}", f"@agent-{number}")
        app.view.is_stale = True
        await stage.settle()
        assert len(app.recent) == 2000
        assert len(app.names._known) == 5000
        rows = app.view.query_one("RowList")
        assert len(getattr(rows, "rows")) <= 1000  # noqa: B009 (found by its name)

    play(fleet.shell, scene)
