"""The clock of the machine is a day ahead for a while, and is put right: nothing waits for that day."""

from pathlib import Path

import pytest

from scout.daemon.start import start
from tests.cli.running import Shell, a_shell
from tests.daemon.daemons import Daemon, eventually

DAY = 86_400


@pytest.mark.rows("R7-17")
@pytest.mark.slow
def test_a_clock_a_day_ahead_and_back_parks_nothing() -> None:
    with a_shell() as shell:
        clock = shell.folder / "clock"
        daemon = start_with(shell, clock)
        shell.say("agent", "register", "upper", "--command", "tr a-z A-Z", cwd=shell.project("letters"))
        reader = daemon.register("reader")["token"]
        shell.say("send", "@reader", "before")
        assert claim(daemon, reader) == ["before"]

        move(clock, DAY)
        assert shell.data("ask", "@upper", "ahead")["output"] == "AHEAD"
        shell.say("send", "@reader", "ahead")
        eventually(lambda: "ahead" in claim(daemon, reader))

        move(clock, 0)
        assert shell.data("ask", "@upper", "right again")["output"] == "RIGHT AGAIN"
        seen = set[str]()
        eventually(lambda: seen.update(claim(daemon, reader)) or "ahead" in seen)
        shell.say("send", "@reader", "after")
        eventually(lambda: seen.update(claim(daemon, reader)) or "after" in seen)

        assert shell.data("flight", "list", "--open")["items"] == []
        assert shell.data("attention")["items"] == []
        assert "clean" in shell.say("verify")


def start_with(shell: Shell, clock: Path) -> Daemon:
    """Leases are short, so that what was claimed comes again soon."""
    more = {"SCOUT_TEST_CLOCK_FILE": str(clock), "SCOUT_PERIODS_LEASE": "1"}
    running, _ = start(str(shell.home), environ={**shell.environ, **more}, timeout=60)
    return Daemon(shell.home, running)


def move(clock: Path, seconds: int) -> None:
    fresh = clock.with_suffix(".new")
    fresh.write_text(str(seconds))
    fresh.replace(clock)


def claim(daemon: Daemon, token: str) -> list[str]:
    """The mail that an agent takes: it is the agent's for the time of the lease."""
    answer = daemon.call("POST", "/v1/inbox/claim", {}, token=token)
    assert answer.status == 200, answer.body
    return [one["message"]["body"] for one in answer.json["items"]]
