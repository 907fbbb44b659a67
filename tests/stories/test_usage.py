"""What Scout adds to a task is counted, and by its worth."""

from pathlib import Path

import pytest

from tests.daemon.daemons import Daemon, daemon, eventually

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
