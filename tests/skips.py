"""Skipped tests: named with their reasons at the end of a run, and not accepted where a package would have helped.

`./dev` installs what the tests need and names in SCOUT_NOT_INSTALLED what it could not install. A skip that
begins with NOT PROVED HERE and names none of those is a hole in the run. Without that variable (pytest
started by hand) skips are only listed.
"""

import os
from collections import Counter

import pytest

__all__ = ["avoidable", "describe"]

_HOLE = "NOT PROVED HERE"
_RIGHTS = "needs root"
_TRIED = "is not installed: "  # an installation was tried, and this is how it failed


def _reasons(reporter: pytest.TerminalReporter) -> Counter[str]:
    reports = reporter.stats.get("skipped", [])
    return Counter(_reason(report) for report in reports)


def _reason(report: pytest.TestReport) -> str:
    found = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return found.removeprefix("Skipped: ")


def avoidable(reporter: pytest.TerminalReporter) -> list[str]:
    """The reasons of skips that an installation would have prevented."""
    missing = os.environ.get("SCOUT_NOT_INSTALLED")
    if missing is None:
        return []
    return [one for one in _reasons(reporter) if _HOLE in one and not _is_excused(one, missing.split())]


def _is_excused(reason: str, missing: list[str]) -> bool:
    """Rights cannot be installed; a package that could not be had is named by whoever tried."""
    return _RIGHTS in reason or _TRIED in reason or any(word in reason for word in missing)


def describe(reporter: pytest.TerminalReporter) -> list[str]:
    """One line for each reason, with the number of tests."""
    reasons, holes = _reasons(reporter), avoidable(reporter)
    if not reasons:
        return ["no test was skipped"]
    lines = [f"skipped {count}: {reason}" for reason, count in sorted(reasons.items())]
    return [*lines, *(f"FAILED: a package would have prevented this skip: {one}" for one in holes)]
