"""What Scout adds to a task is counted, and by its worth."""

import re
from pathlib import Path

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon, daemon, eventually
from tests.surface.site import Site
from tests.web.visitor import Visitor

pytestmark = pytest.mark.slow


def ask(scout: Daemon, body: str) -> None:
    ident = scout.call("POST", "/v1/asks", {"to": "@worker", "body": body}).json["flightId"]
    eventually(lambda: scout.call("GET", f"/v1/flights/{ident}").json["state"] == "completed")


def overhead(scout: Daemon) -> list[str]:
    """The worth of Scout's own words, report by report, as the log has it."""
    events = scout.call("GET", "/v1/log?limit=200").json["items"]
    records = [one["payload"]["record"] for one in events if one["type"] == "collab.usage.reported"]
    own = [one for one in records if one["category"] == "protocol_overhead"]
    assert all(one["flightId"] and one["promptTokens"] > 0 for one in own)
    return [one["valueClass"] for one in own]


def test_the_first_contract_is_onboarding_and_later_ones_are_boilerplate(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as scout:
        scout.register("worker", command=["cat"])
        ask(scout, "one")
        assert overhead(scout) == ["onboarding"]
        ask(scout, "two")
        assert overhead(scout) == ["onboarding", "boilerplate"]


@pytest.mark.rows("R3.7-11")
def test_only_usage_and_sessions_show_numbers_of_tokens() -> None:
    """A person who does not look for them sees none, on the command line and on the page."""
    with a_shell() as shell:
        running = Daemon(shell.home, start_daemon(shell))
        shell.say("agent", "register", "upper", "--command", "tr a-z A-Z", cwd=shell.project("letters"))
        asked = shell.data("ask", "@upper", "hello")
        assert "tokens" in shell.say("usage")
        flight = asked["flightId"]
        lines = "now|who|show @upper|flight|flight get ID|inbox --all|latest|brief|why ID|status|ask @upper hi|export ID"
        for line in lines.replace("ID", flight).split("|"):
            assert not re.search(r"\d\S* tokens", shell.say(*line.split())), line
        visitor = Visitor(Site(shell, running))
        visitor.enter()
        for path in ("/", "/inbox", "/agents", "/flights", f"/flights/{flight}", "/work", "/log"):
            text = re.sub(r"<[^>]+>", " ", visitor.get(path).body.decode())
            assert not re.search(r"\d\S* tokens", text), path
