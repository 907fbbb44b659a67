"""What a command adds when something else happened than a person may expect."""

import json
import shlex

import pytest

from tests.cli.running import Shell, start_daemon

pytestmark = pytest.mark.slow  # each command is a process of its own

ECHO = ("--project", ".", "--harness", "echo")


def test_a_name_that_another_folder_has_is_explained_and_can_be_shortened(fresh: Shell) -> None:
    start_daemon(fresh)
    first, second = fresh.project("one"), fresh.project("two")
    assert fresh.type("agent", "register", "arc", *ECHO, cwd=first).stderr == ""
    for word in ("registered ", "already registered "):
        told = fresh.type("agent", "register", "arc", *ECHO, cwd=second)
        assert told.stdout.startswith(f"{word}@arc.arc-main-")
        assert f"@arc is the agent of {first}, so the agent of this folder is @arc.arc-main-" in told.stderr
    # What it offers works as it is.
    fresh.say(*shlex.split(told.stderr.partition("shorter name: ")[2])[1:])
    assert fresh.data("resolve", "@my-arc")["canonical"].startswith("@arc.arc-main-")
    assert fresh.data("agent", "register", "arc", *ECHO, cwd=second)["notes"]


def test_retiring_and_reviving_say_what_is_kept_and_what_is_not(fresh: Shell) -> None:
    start_daemon(fresh)
    token = fresh.data("agent", "register", "arc")["token"]
    retired = fresh.type("agent", "retire", "@arc", "--yes")
    assert retired.stdout.startswith("retired ")
    again = retired.stderr.partition("bring it back with: ")[2]
    revived = fresh.type(*shlex.split(again)[1:])
    assert revived.stdout.startswith("revived @arc")
    assert "its sessions, tokens and flights stay ended" in revived.stderr
    assert fresh.type("whoami", SCOUT_TOKEN=token).returncode == 6
    minted = json.loads(
        fresh.say(*shlex.split(revived.stderr.partition("new token: ")[2].strip(")\n"))[1:], "--json")
    )
    assert fresh.data("whoami", SCOUT_TOKEN=minted["secret"])["address"] == "@arc"


def test_the_flag_for_json_may_stand_before_the_verb(shell: Shell) -> None:
    for words in (("who",), ("flight", "list"), ("send", "@arc", "hi"), ("explain", "busy")):
        assert json.loads(shell.say("--json", *words)), words
    literal = json.loads(shell.say("--json", "send", "--", "@arc", "--as"))
    assert shell.data("message", "show", literal["messageId"])["body"] == "--as"


def test_the_demo_as_data(fresh: Shell) -> None:
    told = json.loads(fresh.say("demo", "--json", HOME=str(fresh.home)))
    assert told["succeeded"]
    assert all(step["code"] == step["expected"] for step in told["steps"])
    assert [step["command"].split()[1] for step in told["steps"]][-3:] == ["ask", "ask", "log"]
