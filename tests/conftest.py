"""What every run of the tests has in common: the same draws, default signals, an environment of its own.

SCOUT_HYPOTHESIS names how hard properties are tried; see `tests/seeds.py` for the seed.
"""

import gc
import os
import signal
import threading
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests import leftovers, skips
from tests.guard import loop_guard
from tests.soak import Soaked, is_soak, store_counts

_FOLDER = leftovers.own_folder()

# A busy machine must not turn a slow example into a failure; pytest-timeout bounds a test as a whole.
settings.register_profile("base", deadline=None, suppress_health_check=[HealthCheck.too_slow])
_BASE = settings.get_profile("base")

# A verdict depends on the commit and not on the draw; `./dev explore` looks for new examples.
settings.register_profile("full", _BASE, max_examples=100, derandomize=True, database=None)
settings.register_profile("quick", _BASE, max_examples=25, derandomize=True, database=None)
# On another interpreter nothing but the interpreter is new.
settings.register_profile("glance", _BASE, max_examples=5, derandomize=True, database=None)
settings.register_profile("explore", _BASE, max_examples=500)
# A mutant only has to be noticed: shrinking the example that noticed it is time lost.
settings.register_profile(
    "mutants", _BASE, max_examples=50, derandomize=True, phases=[Phase.explicit, Phase.generate]
)

settings.load_profile(os.environ.get("SCOUT_HYPOTHESIS", "full"))


# -- where a run was started must not matter -------------------------------------------------------


def _restore_signals() -> None:
    """A background job of a shell ignores Ctrl-C, and its children inherit that."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for one in (signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(one) is signal.SIG_IGN:
                signal.signal(one, signal.SIG_DFL)


def _restore_environment() -> None:
    """Variables that change what a program prints or who it takes itself for."""
    for name in [*os.environ]:
        own = name in ("SCOUT_HYPOTHESIS", "SCOUT_SEED", "SCOUT_SOAK", "SCOUT_NOT_INSTALLED")
        if not own and name.startswith(("SCOUT_", "ANTHROPIC_", "OPENAI_", "CLAUDE", "CODEX_")):
            del os.environ[name]
    for name in (
        "COLUMNS",
        "LINES",
        "NO_COLOR",
        "FORCE_COLOR",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "TMUX",
        "LS_COLORS",
    ):
        os.environ.pop(name, None)
    os.environ.update(LC_ALL="C.UTF-8", TZ="UTC", TERM="dumb")


_restore_signals()
_restore_environment()


# -- the event loop is never held up ---------------------------------------------------------------

_GUARD = loop_guard.folder_for_children(_FOLDER / f"guard-{os.getpid()}")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_GUARD), os.environ.get("PYTHONPATH"))))
loop_guard.install()


@pytest.fixture(autouse=True)
def event_loop_guard() -> Generator[None]:
    """A long step, a file read or a large hash on the thread of an event loop fails the test."""
    yield
    if found := loop_guard.collect(_GUARD):
        pytest.fail("\n".join(["the event loop was held up:", *found]), pytrace=False)


# -- which tests run, and how a run ends -----------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """The tests stay to the end of the run: the garbage collector looks neither at them nor through them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Soak tests run only in a soak. The longest tests begin first; the others stay in their order."""
    wanted = [item for item in items if bool(item.get_closest_marker("soak")) == is_soak()]
    kept = {*wanted}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = sorted(wanted, key=lambda item: item.get_closest_marker("first") is None)


@pytest.fixture
def soaked(request: pytest.FixtureRequest) -> Soaked:
    """Keeps what a soak test counted."""
    return lambda **counts: store_counts(request.node.nodeid, counts)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The skipped tests and why, at the end of every run."""
    for line in skips.describe(terminalreporter):
        terminalreporter.write_line(line)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that leaves something behind, or skipped what could have run, has failed."""
    if hasattr(session.config, "workerinput"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter) and skips.avoidable(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if late := [file.read_text() for file in sorted(_FOLDER.glob("guard-*/*.report"))]:
        print("", "THE EVENT LOOP WAS HELD UP, as daemons ended:", *late, sep="\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if left := leftovers.list_left(_FOLDER):
        print("", "LEFT BEHIND:", *left, sep="\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    elif session.exitstatus == pytest.ExitCode.OK:
        leftovers.clear(_FOLDER)
