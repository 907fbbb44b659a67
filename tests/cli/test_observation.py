"""Looking from a terminal: what changed, what a session does, what this machine shows, and the line that changes."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scout.cli.output.observation import PRINTERS
from tests.cli.running import Shell, type_in_terminal

pytestmark = pytest.mark.slow  # each command is a process of its own


def worker(shell: Shell, name: str, script: str, *, git: bool = False) -> Path:
    """An agent in a project of its own, whose program is a script."""
    project = shell.project(name)
    path = shell.folder / f"{name}.sh"
    path.write_text(f"#!/bin/sh\nGO='{shell.folder}/{name}.go'\n{script}\n")
    path.chmod(0o755)
    if git:
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    words = ("--project", ".", "--harness", "command", "--command", str(path))
    shell.say("agent", "register", name, *words, cwd=project)
    return project


_UNTIL_GO = 'while [ ! -e "$GO" ]; do sleep 0.02; done'


def test_the_line_says_who_was_woken_where_and_what_it_does(shell: Shell) -> None:
    worker(
        shell, "busy", f"echo 'Bash: pytest -q' >&2\nsleep 1.2\necho 'Bash: ruff' >&2\n{_UNTIL_GO}\necho fine"
    )
    code, shown = type_in_terminal(
        shell, "ask", "@busy", "x", until="Bash: ruff", then=lambda _: (shell.folder / "busy.go").touch()
    )
    assert code == 0
    assert re.search(r"\r\x1b\[K. command in work/busy · Bash: ruff · 0:0\d", shown)
    assert shown.endswith("\r\x1b[Kfine\r\n")
    assert "·" not in shell.type("ask", "@busy", "again").stderr


def test_the_line_says_which_item_a_person_must_decide(shell: Shell) -> None:
    worker(shell, "asker", f"exec '{sys.executable}' -m scout need 'May I deploy?'")

    def answer(shown: str) -> None:
        found = re.search(r"scout (?:attention )?answer (att_\w+) TEXT", shown)
        assert found is not None
        shell.say("attention", "answer", found[1], "yes, do")

    code, shown = type_in_terminal(shell, "ask", "@asker", "x", until="TEXT\r\n", then=answer)
    assert (code, "May I deploy?" in shown) == (0, True)
    assert shown.endswith("yes, do\r\n")
    assert shown.count("it waits for a person") == 1


def test_what_a_flight_changed_is_one_command_away(shell: Shell) -> None:
    project = worker(shell, "writer", "printf 'one\\033[2Jtwo\\n' > made.txt\necho fine", git=True)
    flight = shell.data("ask", "@writer", "x")["id"]
    told = shell.say("diff", flight)
    assert "diff --git a/made.txt b/made.txt" in told
    assert r"+one\x1b[2Jtwo" in told
    assert "made.txt | 1 +" in shell.say("diff", flight, "--stat")
    assert shell.data("flight", "diff", flight)["directory"] == str(project)
    assert "\x1b[32m+one\\x1b[2Jtwo\x1b[0m" in type_in_terminal(shell, "diff", flight)[1]
    worker(shell, "idler", "echo fine", git=True)
    flight = shell.data("ask", "@idler", "x")["id"]
    assert shell.say("diff", flight).startswith("nothing was changed in ")
    worker(shell, "nowhere", "echo fine")
    flight = shell.data("ask", "@nowhere", "x")
    refused = shell.type("diff", flight["id"])
    assert refused.returncode == 2
    assert "is not a git work tree" in refused.stderr
    assert f"scout session tail {flight['sessionId']}" in refused.stderr


@pytest.mark.rows("R5.2-1")
def test_a_session_is_followed_until_ctrl_c(shell: Shell) -> None:
    worker(shell, "told", 'echo looking >&2\n[ -e "$GO" ] && echo again >&2\necho fine')
    session = shell.data("ask", "@told", "x")["sessionId"]
    told = shell.say("session", "tail", session, "--limit", "2")
    assert [line.split() for line in told.splitlines()] == [["system", "looking"], ["assistant", "fine"]]
    assert shell.data("session", "tail", session)["lines"][-1] == {"who": "assistant", "text": "fine"}

    def more(_: str) -> None:
        (shell.folder / "told.go").touch()
        shell.say("ask", "@told", "y")

    process = subprocess.Popen(
        [sys.executable, "-m", "scout", "session", "tail", session, "--follow", "--json"],
        env=shell.environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        seen = [process.stdout.readline() for _ in range(3)]
        more("")
        while '"again"' not in seen[-1]:
            seen.append(process.stdout.readline())
            assert seen[-1], seen
        process.send_signal(2)
        assert process.wait(60) == 130
    code, shown = type_in_terminal(shell, "session", "tail", session, "--follow", until="Ctrl-C ends this")
    assert (code, "\x1b[32massistant\x1b[0m fine" in shown) == (130, True)


@pytest.mark.rows("R5.4-1")
def test_this_machine_is_shown_with_what_could_be_attached(capsys: pytest.CaptureFixture[str]) -> None:
    attach = {"operation": "session.attach", "parameters": {"session": "abc", "harness": "codex"}, "why": ""}
    seen: dict[str, Any] = {
        "items": [
            {
                "harness": "codex", "nativeId": "abc", "kind": "session", "cwd": "/w", "title": "Do\x1b[2J it",
                "live": True, "source": "/f", "updatedAt": "2026-01-01T00:00:00Z", "attach": attach,
            },
            {
                "harness": "codex", "nativeId": "def", "kind": "sub-agent", "source": "/g", "limits": "no more",
                "sessionId": "ses_1", "agent": "arc.main",
            },
        ],
        "harnesses": [
            {"harness": "codex", "found": 9, "shown": 2},
            {"harness": "claude", "found": 0, "shown": 0, "problem": "no"},
        ],
    }  # fmt: skip
    PRINTERS["topology"](seen)
    told = capsys.readouterr()
    assert "codex  session abc  live" in told.out
    assert "  /w: Do\\x1b[2J it" in told.out
    assert "attach? scout session attach --harness codex abc" in told.out
    assert "  ses_1 of arc.main\n  seen in /g; no more" in told.out
    assert told.err.splitlines() == ["codex: 2 of 9; more with --limit", "claude: no"]
    PRINTERS["topology"]({"items": [], "harnesses": [{"harness": "codex", "found": 0, "shown": 0}]})
    assert capsys.readouterr().out == "no sessions were found: codex\n"


def test_topology_is_a_command(shell: Shell) -> None:
    told = shell.data("topology", "--harness", "echo")
    assert told["items"] == []
    assert told["harnesses"][0].items() >= {"harness": "echo", "found": 0, "shown": 0}.items()
