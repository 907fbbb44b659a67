"""The programs in examples/ do what they say, as a reader would start them."""

import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.cli.running import Shell, a_shell, start_daemon

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.slow


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as found:
        start_daemon(found)
        yield found


def environment(shell: Shell, **more: str) -> dict[str, str]:
    """The reader's shell, in which `scout` and `python` are those of this installation."""
    return {**shell.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", **more}


def run(shell: Shell, *words: str) -> str:
    project = shell.project("reader")
    done = subprocess.run(
        words, cwd=project, env=environment(shell), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_programs_answer_one_after_the_other(shell: Shell) -> None:
    assert run(shell, "bash", str(EXAMPLES / "pipeline.sh")).split() == ["MAKE", "THIS", "LOUD", "3"]


def test_a_python_program_asks_an_agent(shell: Shell) -> None:
    shell.say("agent", "register", "upper", "--command", "tr a-z A-Z", cwd=shell.project("upper"))
    assert run(shell, "python", str(EXAMPLES / "ask.py"), "@upper", "hello") == "HELLO\n"


def test_an_agent_of_ones_own_takes_asks_from_its_inbox(shell: Shell) -> None:
    token = shell.data("agent", "register", "counter", cwd=shell.project("counter"))["token"]
    worker = subprocess.Popen(
        ["python", str(EXAMPLES / "worker.py"), "1"],
        env=environment(shell, SCOUT_TOKEN=token),
        cwd=shell.folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "@counter waits for asks\n"
    assert shell.say("ask", "@counter", "how many words are these") == "5 words\n"
    assert worker.wait(60) == 0
    worker.stdout.close()
