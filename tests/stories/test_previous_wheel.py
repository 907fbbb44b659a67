"""A person upgrades Scout while a program works: the keeper of the earlier version serves the new daemon.

The earlier version is the last one whose keeper had another text, built from the history of this checkout.
"""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.running import Shell, a_shell
from tests.daemon.daemons import eventually
from tests.live.machine import processes_in
from tests.stories.installing import (
    ROOT,
    Installed,
    fetch_wheels,
    find_wheel,
    make_environment,
    offline,
    run,
    share,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_KEEPER = "src/scout/adapters/persistent/keeper.py"
_AGENT = ROOT / "tests" / "adapters" / "acp_agent.py"


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell(ends_runs=True) as made:
        yield made


@pytest.mark.rows("R4.5p-5", "R4.5p-6")
def test_a_program_of_the_earlier_version_works_on_after_an_upgrade(shell: Shell) -> None:
    earlier = Installed(shell.folder, programs=install_earlier())
    earlier.say("up")
    command = [
        part for word in (sys.executable, str(_AGENT), str(shell.folder)) for part in ("--command", word)
    ]
    talkie = shell.project("talkie")
    earlier.say("agent", "register", "arc", "--harness", "acp", *command, cwd=talkie)
    assert "good morning" in earlier.say("ask", "@arc", "good morning")
    flight = earlier.data("ask", "@arc", "!ask", "--no-wait")["flightId"]
    (item,) = eventually(lambda: earlier.data("attention")["items"])
    kept = list_keepers(shell.folder)
    assert all(str(earlier.programs.parent) in line for line in kept.values())

    left = shell.type("upgrade", "--check")
    assert (left.returncode, "try: scout restart" in left.stderr) == (9, True), left
    shell.say("restart")
    shell.say("upgrade", "--check")
    assert list_keepers(shell.folder) == kept
    shell.say("attention", "approve", item["id"])
    assert "they said yes" in shell.say("flight", "wait", flight)
    assert "good evening" in shell.say("ask", "@arc", "good evening")
    assert list_keepers(shell.folder) == kept

    shell.say("down", "--stop")
    assert list_keepers(shell.folder) == {}


def list_keepers(folder: Path) -> dict[int, str]:
    return {pid: line for pid, line in processes_in(folder).items() if "keeper.py" in line and " -S " in line}


# -- the earlier version -----------------------------------------------------------------------------


def install_earlier() -> Path:
    """The folder of its programs, installed once for all workers."""
    commit = find_commit()
    wheels = fetch_wheels()

    def build(folder: Path) -> None:
        make_environment(folder, Path(sys.executable), (wheels,), str(find_wheel()))  # with its dependencies
        wheel = build_wheel(commit, folder)
        uv = str(Path(sys.executable).parent / "uv")
        words = [uv, "pip", "install", "--no-deps", "--reinstall", "--python", str(folder), str(wheel)]
        run(words, offline(folder))

    return share("earlier", build) / "bin"


def find_commit() -> str:
    """The newest commit before this text of the keeper."""
    changed = ask_git("log", "-1", "--first-parent", "--format=%H", "--", _KEEPER)
    found = ask_git("rev-parse", "--verify", "--quiet", f"{changed}^") if changed else ""
    if not found or not ask_git("ls-tree", found, "--", _KEEPER):
        pytest.skip("an earlier version cannot be built: this checkout has no history of the keeper")
    return found


def ask_git(*words: str) -> str:
    """What git prints; nothing where there is no repository, or not this part of it."""
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def build_wheel(commit: str, folder: Path) -> Path:
    source, made = folder / "source", folder / "made"
    source.mkdir()
    packed = folder / "source.tar"
    subprocess.run(["git", "-C", str(ROOT), "archive", "-o", str(packed), commit], check=True)
    subprocess.run(["tar", "-xf", str(packed), "-C", str(source)], check=True)
    words = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(made), str(source)]
    run(words, offline(folder))
    (wheel,) = made.glob("*.whl")
    return wheel
