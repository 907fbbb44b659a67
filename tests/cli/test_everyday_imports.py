"""An everyday command loads little: which modules, and how many, on any machine."""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from scout.cli import fast
from tests.cli.running import Shell, a_shell, start_daemon

pytestmark = pytest.mark.slow  # each command is a process of its own

HEAVY = {
    "argparse", "asyncio", "bz2", "click", "concurrent", "ctypes", "dataclasses", "email", "hashlib", "http",
    "httpx", "httpx2", "inspect", "logging", "lzma", "msgspec", "multiprocessing", "pathlib", "platformdirs",
    "psutil", "pydantic", "random", "rich", "shutil", "sqlite3", "ssl", "subprocess", "tempfile", "textwrap",
    "threading", "tomllib", "typeid", "typing", "urllib", "uuid", "zipfile",
}  # fmt: skip
MOST = 70  # modules beyond those of a bare interpreter
_HOOK = '{"session_id": "0", "cwd": "/", "hook_event_name": "Notification"}'

EVERYDAY = [
    (), ("now",), ("who",), ("whoami",), ("brief",), ("status",), ("show", "@arc"), ("feed", "@arc"),
    ("attention",), ("approve", "last"), ("deny", "last"), ("answer", "last", "blue"), ("dismiss", "last"),
    ("inbox",), ("latest",), ("send", "@arc", "hello"), ("ask", "@arc", "hello"), ("@arc", "hello"),
    ("ask", "@arc", "hello", "--no-wait"), ("wait", "last"), ("reply", "--to", "MESSAGE", "Yes."),
    ("flight",), ("flight", "get", "last"), ("session",), ("session", "inspect", "@arc"),
    ("work",), ("work", "show", "last"), ("question",), ("question", "show", "last"),
    ("log", "--newest"), ("watch", "--after", "0", "--count", "9"),
    ("hook", "notification"), ("statusline",), ("tell", "@arc", "hello"), ("ps",), ("jobs",), ("mail",), ("ls",),
]  # fmt: skip


@pytest.fixture(scope="module")
def home() -> Generator[Shell]:
    """An agent, what it did, and something of each kind to look at."""
    with a_shell() as shell:
        start_daemon(shell)
        shell.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=shell.project("arc"))
        shell.say("ask", "@arc", "hello")
        shell.say("work", "create", "Fix it", "--owner", "@arc")
        shell.say("question", "create", "@arc", "Which port?")
        yield shell


def list_loaded(
    shell: Shell, words: tuple[str, ...], code: str = "from scout.__main__ import main; main()"
) -> set[str]:
    """The modules that a command loads. Without site-packages: an installed package is not even found."""
    done = subprocess.run(
        [sys.executable, "-S", "-X", "importtime", "-c", code, *words],
        env={**shell.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
        cwd=shell.folder,
        input=_HOOK,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert done.returncode == 0, (
        words,
        done.stdout,
        [one for one in done.stderr.splitlines() if one not in lines],
    )
    return {line.rpartition("|")[2].strip() for line in lines}


def prepare(shell: Shell, words: tuple[str, ...]) -> tuple[str, ...]:
    """Something to decide, or a message to reply to, where the command needs one."""
    if words[:1] in (("approve",), ("deny",), ("answer",), ("dismiss",)):
        elm = shell.data("agent", "register", f"of-{words[0]}")["token"]
        kind = "question" if words[0] == "answer" else "permission"
        shell.say("attention", "raise", "May I?", "--kind", kind, SCOUT_TOKEN=elm)
    if "MESSAGE" in words:
        ident = shell.data("send", "@arc", "hello")["messageId"]
        return tuple(ident if one == "MESSAGE" else one for one in words)
    return words


@pytest.mark.rows("R4.1-23")
@pytest.mark.parametrize("words", EVERYDAY, ids=lambda words: " ".join(words) or "scout")
def test_an_everyday_command_loads_nothing_heavy(home: Shell, words: tuple[str, ...]) -> None:
    found = list_loaded(home, prepare(home, words)) - list_loaded(home, (), "pass")
    assert {one.partition(".")[0] for one in found} & HEAVY == set()
    assert len(found) <= MOST, sorted(found)


def test_every_verb_of_the_warm_path_is_tried() -> None:
    tried = {read[0] for words in EVERYDAY if (read := fast.read(list(words)))}
    assert tried == {*fast.FLAGS}
