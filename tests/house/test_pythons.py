"""The tests of the pure rooms on the other supported versions of Python, with few draws: only the interpreter is new."""

import os
import subprocess

import pytest

from tests.stories.installing import ROOT, clean
from tests.stories.pythons import OTHERS, make_python

pytestmark = [pytest.mark.slow, pytest.mark.first, pytest.mark.timeout(900)]

_ROOMS = [f"tests/{room}" for room in ("base", "identity", "model", "policy", "protocol")]
# Records are sent and stored here as well. Each event and each diagnostic is made of them, and the cost of long
# texts does not depend on the version: these take half of the time.
_LEFT_OUT = "not event_comes_back and not comes_back_from_the_wire and not cost"


@pytest.mark.parametrize("version", OTHERS)
def test_the_pure_rooms_pass_on_another_python(version: str) -> None:
    words = [str(make_python(version)), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environ = {**clean(ours), "SCOUT_HYPOTHESIS": "glance", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [*words, "-k", _LEFT_OUT, *_ROOMS],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
