"""A program that was installed after the daemon had started: every surface says what helps, and it helps."""

import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from scout.daemon.start import start
from tests.cli.running import Shell, a_shell
from tests.daemon.daemons import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as shell:
        yield shell


def install(shell: Shell, program: str) -> str:
    """A program in a folder that only the shell has on its PATH; the PATH with that folder."""
    folder = shell.folder / "installed"
    folder.mkdir(exist_ok=True)
    file = folder / program
    file.write_text("#!/bin/sh\necho 0.1\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return f"{folder}:/usr/bin:/bin"


def start_with_smaller_path(shell: Shell, tmp_path: Path) -> None:
    start(str(shell.home), environ={**shell.environ, "PATH": str(tmp_path)}, timeout=60)


@pytest.mark.rows("R4.1-20")
@pytest.mark.parametrize("program", ["claude", "gemini"])
def test_a_program_that_the_shell_has_and_the_daemon_lacks_is_named_with_the_restart_that_helps(
    shell: Shell, tmp_path: Path, program: str
) -> None:
    start_with_smaller_path(shell, tmp_path)
    path = install(shell, program)
    sentence = f"your shell finds {shell.folder}/installed/{program}, the daemon does not: scout restart"

    listed = shell.type("runtimes", PATH=path)
    assert f"{program}: {sentence}" in " ".join(listed.stderr.split())
    asked = shell.type(
        "ask", "--project", ".", "--harness", program, "hello", cwd=shell.project("arc"), PATH=path
    )
    assert asked.returncode == 5
    assert "harness_unavailable" in asked.stderr
    assert sentence in asked.stderr
    examined = shell.type("doctor", PATH=path)
    assert examined.returncode == 9
    assert sentence in examined.stdout
    assert "try: scout restart" in examined.stderr

    shell.say("restart", PATH=path)
    (after,) = [one for one in shell.data("runtimes", PATH=path)["items"] if one["name"] == program]
    assert after.get("missing") != "binary"
    assert "the daemon does not" not in shell.type("doctor", PATH=path).stdout


def test_a_program_that_nobody_has_is_to_be_installed(shell: Shell, tmp_path: Path) -> None:
    start_with_smaller_path(shell, tmp_path)
    listed = shell.type("runtimes", PATH=str(tmp_path))
    assert "install Claude Code" in " ".join(listed.stderr.split())
    assert "your shell finds" not in listed.stderr
    assert "ready: acp, command, a2a, echo" in shell.type("doctor", PATH=str(tmp_path)).stdout


@pytest.mark.rows("R4.1-20")
def test_a_program_that_becomes_ready_is_used_by_the_next_ask(shell: Shell, tmp_path: Path) -> None:
    path = f"{shell.folder}/installed:/usr/bin:/bin"
    codex = tmp_path / "codex"
    codex.mkdir()
    environ = {**shell.environ, "PATH": path, "CODEX_HOME": str(codex)}
    environ.pop("OPENAI_API_KEY", None)
    start(str(shell.home), environ=environ, timeout=60)
    ask = ("ask", "--project", ".", "--harness", "codex", "hello", "--no-wait")
    arc = shell.project("arc")

    def refusal() -> str:
        told = shell.type(*ask, cwd=arc, PATH=path)
        assert told.returncode == 5, told
        return told.stderr

    assert "codex" in refusal()
    install(shell, "codex")
    eventually(lambda: "login is missing" in refusal())
    (codex / "auth.json").write_text("{}")
    eventually(lambda: shell.type(*ask, cwd=arc, PATH=path).returncode == 0)
