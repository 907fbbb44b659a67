"""How hard the properties are tried: SCOUT_HYPOTHESIS names the profile."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import leftovers

_CI = bool(os.environ.get("CI"))
_FOLDER = leftovers.own_folder()

# A busy machine must not turn a slow example into a failure; pytest-timeout bounds a test as a whole.
settings.register_profile("base", deadline=None, suppress_health_check=[HealthCheck.too_slow])
_BASE = settings.get_profile("base")

# Chance finds new examples on a person's machine; a verdict that others rely on must be repeatable.
settings.register_profile("full", _BASE, max_examples=100, derandomize=_CI)
settings.register_profile("quick", _BASE, max_examples=25, derandomize=True)
# A mutant only has to be noticed: shrinking the example that noticed it is time lost.
settings.register_profile(
    "mutants", _BASE, max_examples=50, derandomize=True, phases=[Phase.explicit, Phase.generate]
)

settings.load_profile(os.environ.get("SCOUT_HYPOTHESIS", "full"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest ones begin first; the others stay in their order."""
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that leaves something behind has failed, whatever its tests say."""
    if hasattr(session.config, "workerinput"):
        return
    if left := leftovers.left(_FOLDER):
        print("", "LEFT BEHIND:", *left, sep="\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    elif session.exitstatus == pytest.ExitCode.OK:
        leftovers.clear(_FOLDER)
