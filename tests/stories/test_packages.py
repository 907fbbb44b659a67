"""A person installs Scout in one of the documented ways, uses it, and removes it again."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from scout import __version__
from tests.cli.running import Shell, a_shell, start_daemon
from tests.stories.installing import (
    ROOT,
    WAYS,
    Installed,
    fetch_wheels,
    find_wheel,
    make_environment,
    offline,
    run,
    share,
)

# The first to come here fetches the wheels; once they are there, a story takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


_EXTRAS = {
    *("a2a_sdk", "textual", "rich", "nats_py", "opentelemetry_sdk"),
    *("pyyaml", "watchfiles", "python_dotenv", "websockets"),  # they came with uvicorn's extra `standard`
}


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        yield made


@pytest.mark.first
@pytest.mark.rows("R4.5p-1", "R4.5p-4", "R4.5p-7")
@pytest.mark.parametrize("name", WAYS)
def test_a_person_installs_uses_replaces_and_removes_it(shell: Shell, name: str) -> None:
    way = WAYS[name](shell.folder)
    installed = Installed(shell.folder, programs=way.programs)
    run([*way.install, str(find_wheel())], offline(shell.folder))
    assert installed.say("--version") == f"scout, version {__version__}\n"
    installed.say("up")
    check_daemon(installed)
    installed.say("agent", "register", "arc", "--harness", "echo")
    assert installed.say("ask", "@arc", "hello").strip() == "hello"

    run([*way.install, str(ROOT)], offline(shell.folder))  # while the daemon runs, as docs/upgrade.md has it
    installed.say("restart")
    check_daemon(installed)
    installed.say("upgrade", "--check")
    assert installed.say("ask", "@arc", "still there?").strip() == "still there?"
    assert list_manuals(installed)

    installed.say("down")
    assert f"your data stays in {shell.home}" in installed.say("up", "--uninstall")
    run(way.remove, offline(shell.folder))
    assert not (way.programs / "scout").exists()
    assert not list_manuals(installed)
    start_daemon(shell)  # another Scout finds the data where it was
    assert "still there?" in shell.say("log")


@pytest.mark.rows("R4.5p-2", "R4.5p-4")
def test_the_base_is_small_and_has_the_manual_and_completions() -> None:
    def build(folder: Path) -> None:
        make_environment(folder, Path(sys.executable), (fetch_wheels(),), str(find_wheel()))

    base = share("base", build)
    (packages,) = base.glob("lib/python3.*/site-packages")
    names = {one.name.partition("-")[0].lower() for one in packages.glob("*.dist-info")}
    assert {"scout_broker", "mcp", "uvloop", "httptools"} <= names
    assert names.isdisjoint(_EXTRAS)
    assert len(names) <= 40
    shared = {str(one.relative_to(base / "share")) for one in (base / "share").rglob("*scout*")}
    assert shared == {str(one.relative_to(ROOT / "share")) for one in (ROOT / "share").rglob("*scout*")}
    assert len(shared) == 4


def check_daemon(installed: Installed) -> None:
    """The daemon is the installed one."""
    words = Path(f"/proc/{installed.data('status')['pid']}/cmdline").read_bytes()
    assert str(installed.folder).encode() in words


def list_manuals(installed: Installed) -> list[Path]:
    return [*installed.folder.rglob("man1/scout.1")]
