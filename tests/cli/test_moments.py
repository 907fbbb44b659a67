"""Local times become times with offset; everything else is left to the daemon."""

import os
import time
from collections.abc import Generator

import pytest

from scout.cli.operations.moments import format_moment

NOON = 1_795_003_200.0  # 2026-11-18T12:00:00Z


@pytest.fixture(autouse=True)
def berlin(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    assert os.environ.get("TZ") == before
    time.tzset()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("12:30", "2026-11-18T11:30:00Z"),
        ("13:00:00", "2026-11-18T12:00:00Z"),
        ("14:05", "2026-11-17T13:05:00Z"),  # it has not come yet today
        ("today 14:05", "2026-11-18T13:05:00Z"),
        ("yesterday 9:15", "2026-11-17T08:15:00Z"),
        ("2026-11-17", "2026-11-16T23:00:00Z"),
        ("2026-11-17T14:05", "2026-11-17T13:05:00Z"),
        ("2026-07-17 14:05:30", "2026-07-17T12:05:30Z"),  # summer
    ],
)
def test_a_local_time(typed: str, meant: str) -> None:
    assert format_moment(typed, NOON) == meant


@pytest.mark.parametrize(
    "typed",
    ["1234", "now", "10 minutes ago", "2026-11-17T14:05:00Z", "25:00", "12:61", "2026-11-17T24:00", "soon"],
)
def test_what_the_daemon_reads(typed: str) -> None:
    assert format_moment(typed, NOON) == typed
