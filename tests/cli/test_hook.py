"""Hooks as hosts call them: silent without a daemon, exact where there is one, light to start."""

import json
import os
import stat
import subprocess
import sys
import time
from threading import Thread
from typing import Any

import pytest

from scout.cli.hosts.hook import EVENTS
from scout.client.session_files import find_host_process
from tests.cli.hosting import Hosted, hosted
from tests.cli.running import Shell

__all__ = ["hosted"]

FACTS = json.dumps({"session_id": "n-1", "cwd": "/"})
HEAVY = ("msgspec", "asyncio", "httpx2", "typeid", "rich", "click", "mcp", "subprocess", "pathlib", "email")


@pytest.mark.rows("R0-36")
@pytest.mark.parametrize("event", EVENTS)
def test_a_hook_never_starts_the_daemon_and_says_nothing_without_one(fresh: Shell, event: str) -> None:
    (fresh.home / "host.token").write_text("sct_x")
    done = fresh.type("hook", event, stdin=FACTS, SCOUT_AUTOSTART="1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (fresh.home / "lock").exists()
    assert not (fresh.home / "scout.sock").exists()


@pytest.mark.parametrize("stdin", ["", "no json", "[]", "{}", '{"session_id": 7}'])
@pytest.mark.parametrize("words", [("stop",), ("other_event",), (), ("stop", "--wait", "long")])
def test_no_fault_breaks_the_host(fresh: Shell, stdin: str, words: tuple[str, ...]) -> None:
    done = fresh.type("hook", *words, stdin=stdin)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_where_one_looks_for_it_the_reason_is_said(fresh: Shell) -> None:
    done = fresh.type("hook", "stop", stdin=FACTS, SCOUT_HOOK_DEBUG="1")
    assert done.returncode == 0
    assert "scout setup" in done.stderr


@pytest.mark.parametrize("words", [("hook", "stop"), ("statusline",), ("mcp",)])
def test_what_hosts_call_loads_nothing_heavy(fresh: Shell, words: tuple[str, ...]) -> None:
    """The time a hook takes is what it imports: this list, not a clock, keeps it short."""
    probe = (
        "import sys; from scout.cli.fast import run; code = run(sys.argv[1:]);"
        "print(*sys.modules, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            f"sys_path = {sys.path!r}; import sys; sys.path[:] = sys_path; {probe}",
            *words,
        ],
        env=fresh.environ,
        input=FACTS if words != ("mcp",) else "",
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [name for name in HEAVY if name in done.stderr.split()] == []


def test_a_session_from_start_to_end(hosted: Hosted) -> None:
    start = hosted.told("session_start", "SessionStart", model={"id": "opus"})
    output = start["hookSpecificOutput"]
    assert output["hookEventName"] == "SessionStart"
    who, owes, how = output["additionalContext"].splitlines()
    assert who == f"Scout: to other agents you are @talkie in {hosted.project('talkie')}."
    assert owes == "You owe nothing."
    assert "messages_reply" in how
    kept = hosted.home / "hosts" / "claude-n-1.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    token = hosted.kept()["token"]
    me = hosted.data("whoami", SCOUT_TOKEN=token)
    assert (me["minimal"], me["sessionId"]) == ("@talkie", hosted.kept()["sessionId"])
    session = hosted.data("session", "inspect", me["sessionId"])
    assert (session["harness"], session["modelObserved"]) == ("claude", "opus")
    assert session["nativeIds"] == {"session": "n-1"}
    assert hosted.told("prompt_submit", "UserPromptSubmit") is None
    assert hosted.kept()["working"] is True
    assert hosted.told("stop", "Stop") is None
    assert hosted.kept()["working"] is False
    assert hosted.told("session_end", "SessionEnd") is None
    assert not kept.exists()
    assert hosted.data("session", "inspect", me["sessionId"])["state"] == "ended"
    assert "revoked" in hosted.type("whoami", SCOUT_TOKEN=token).stderr
    assert hosted.told("session_end", "SessionEnd") is None


def test_mail_keeps_the_session_going_and_is_taken_by_that(hosted: Hosted) -> None:
    hosted.hook("session_start")
    receipt = hosted.ask("Review this.")
    assert hosted.told("prompt_submit", "UserPromptSubmit")["hookSpecificOutput"]["additionalContext"] == (
        "Scout: you have 1 unread message; `whoami {}` with `messages_inbox {}` shows them."
    )
    blocked = hosted.told("stop", "Stop")
    assert blocked["decision"] == "block"
    assert "> Review this." in blocked["reason"]
    assert hosted.data("flight", "get", receipt["flightId"])["state"] == "running"
    hosted.say("reply", "Looks good.", SCOUT_TOKEN=hosted.kept()["token"])
    assert hosted.data("flight", "get", receipt["flightId"])["output"] == "Looks good."
    assert hosted.told("stop", "Stop", stop_hook_active=True, last_assistant_message="I answered.") is None


def test_the_last_text_of_a_turn_that_an_ask_began_is_its_answer(hosted: Hosted) -> None:
    hosted.hook("session_start")
    receipt = hosted.ask("Review this.")
    assert hosted.told("stop", "Stop")["decision"] == "block"
    shown = hosted.told("stop", "Stop", stop_hook_active=True, last_assistant_message="Looks good.")
    assert shown == {"systemMessage": "Scout: sent this answer to you."}
    flight = hosted.data("flight", "get", receipt["flightId"])
    assert (flight["output"], flight["completedBy"]) == ("Looks good.", "final_text")


def test_a_host_that_does_not_say_the_last_text_has_it_in_its_transcript(hosted: Hosted) -> None:
    transcript = hosted.folder / "transcript.jsonl"
    said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Looks good."}]}}
    transcript.write_text(f"{json.dumps(said)}\nhalf a line")
    hosted.hook("session_start")
    receipt = hosted.ask("Review this.")
    hosted.hook("stop")
    hosted.hook("stop", transcript_path=str(transcript))
    assert hosted.data("flight", "get", receipt["flightId"])["output"] == "Looks good."


def test_what_a_person_typed_into_is_handed_to_nobody_and_then_waits_for_them(hosted: Hosted) -> None:
    hosted.hook("session_start")
    receipt = hosted.ask("Review this.")
    hosted.hook("stop")
    hosted.hook("prompt_submit", prompt="Wait, first do something else.")
    reminded = hosted.told("stop", "Stop", last_assistant_message="A secret of mine.")
    assert reminded["decision"] == "block"
    assert "This still needs your answer:" in reminded["reason"]
    assert "> Review this." in reminded["reason"]
    assert hosted.told("stop", "Stop", last_assistant_message="Another.") is None
    flight = hosted.data("flight", "get", receipt["flightId"])
    assert (flight["state"], flight["waitingOn"]["kind"]) == ("waiting", "operator")
    assert flight["reason"] == "its claude session ended a turn without an answer"
    (item,) = hosted.data("attention")["items"]
    assert item["title"].startswith("You wait for an answer of the claude session in ")
    hosted.say("reply", "Looks good.", SCOUT_TOKEN=hosted.kept()["token"])
    assert hosted.data("flight", "get", receipt["flightId"])["output"] == "Looks good."
    assert hosted.data("attention")["items"] == []


def test_plain_mail_comes_between_two_tools_and_an_ask_at_the_end_of_the_turn(hosted: Hosted) -> None:
    assert hosted.told("tool_use", "PostToolUse") is None  # a session that nobody knows is left alone
    hosted.hook("session_start")
    assert hosted.told("tool_use", "PostToolUse") is None
    hosted.say("send", "@talkie", "Look at line 7.")
    hosted.ask("Review this.")
    told = hosted.told("tool_use", "PostToolUse")["hookSpecificOutput"]
    assert told["hookEventName"] == "PostToolUse"
    assert "> Look at line 7." in told["additionalContext"]
    assert "Review this." not in told["additionalContext"]
    assert hosted.told("tool_use", "PostToolUse") is None
    assert "> Review this." in hosted.told("stop", "Stop")["reason"]


def test_a_hook_that_finds_its_session_gone_enrols_it_again(hosted: Hosted) -> None:
    hosted.hook("session_start")
    first = hosted.kept()
    for file in (hosted.home / "hosts").iterdir():
        file.unlink()
    hosted.hook("prompt_submit")
    assert hosted.kept()["sessionId"] == first["sessionId"]
    kept = hosted.kept()
    hosted.hook("session_end")
    (hosted.home / "hosts" / "claude-n-1.json").write_text(json.dumps(kept))
    hosted.hook("stop")
    assert hosted.data("session", "inspect", first["sessionId"])["state"] == "live"


def _decide(hosted: Hosted, *words: str) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        items = hosted.data("attention")["items"]
        if items:
            hosted.say("attention", words[0], items[0]["id"], *words[1:])
            return


@pytest.mark.parametrize(
    ("words", "decision"),
    [
        (("approve",), {"behavior": "allow"}),
        (("deny", "not today"), {"behavior": "deny", "message": "not today"}),
        (("dismiss",), None),
    ],
)
def test_a_permission_is_decided_elsewhere(hosted: Hosted, words: tuple[str, ...], decision: Any) -> None:
    hosted.hook("session_start")
    person = Thread(target=_decide, args=(hosted, *words))
    person.start()
    told = hosted.told(
        "permission_request", "PermissionRequest", tool_name="Bash", tool_input={"command": "rm -rf  x"}
    )
    person.join()
    wanted = {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}
    assert told == (wanted if decision else None)
    item = hosted.data("attention", "--all")["items"][0]
    assert (item["kind"], item["title"]) == ("permission", "Bash: rm -rf  x")


def test_a_permission_that_nobody_decides_is_asked_in_the_session(hosted: Hosted) -> None:
    facts = json.dumps({"session_id": "n-1", "cwd": str(hosted.project("talkie")), "tool_name": "Edit"})
    done = hosted.type("hook", "permission_request", "--wait", "0.2", stdin=facts)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (item,) = hosted.data("attention", "--all")["items"]
    assert item["state"] == "dismissed"
    assert hosted.data("inbox", SCOUT_TOKEN=hosted.kept()["token"])["items"] == []


def test_a_session_whose_process_is_gone_ends_with_the_next_start(hosted: Hosted) -> None:
    hosted.hook("session_start")
    lost = hosted.kept()
    gone = subprocess.Popen(["true"])
    gone.wait()
    file = hosted.home / "hosts" / "claude-n-1.json"
    file.write_text(json.dumps({**lost, "pid": gone.pid, "started": "1"}))
    hosted.hook("session_start", session="n-2")
    assert hosted.data("session", "inspect", lost["sessionId"])["state"] == "ended"
    assert not file.exists()
    assert hosted.kept("n-2")


def test_in_a_session_that_scout_started_hooks_keep_quiet(hosted: Hosted) -> None:
    facts = json.dumps({"session_id": "n-1", "cwd": str(hosted.project("talkie"))})
    done = hosted.type("hook", "session_start", stdin=facts, SCOUT_SESSION="ses_1")
    assert (done.returncode, done.stdout) == (0, "")
    assert hosted.data("session", "list")["items"] == []


def test_the_status_line(hosted: Hosted) -> None:
    facts = json.dumps({"session_id": "n-1", "cwd": "/"})
    assert hosted.type("statusline", stdin=facts).stdout == ""
    hosted.hook("session_start")
    assert hosted.say("statusline", stdin=facts) == "@talkie\n"
    hosted.say("send", "@talkie", "hi")
    hosted.say("need", "Deploy?", "--no-wait", SCOUT_TOKEN=hosted.kept()["token"])
    assert hosted.say("statusline", "--host", "claude", stdin=facts) == "@talkie · 1 unread · 1 needs you\n"


def test_shells_between_the_host_and_its_hook_are_passed_over() -> None:
    ask = "from scout.client.session_files import find_host_process as p; print(p()[0])"
    done = subprocess.run(
        ["sh", "-c", f'sh -c \'"{sys.executable}" -c "{ask}"; true\'; true'],
        capture_output=True,
        text=True,
        check=True,
    )
    mine = int(subprocess.run(["sh", "-c", "echo $PPID"], capture_output=True, text=True, check=True).stdout)
    assert int(done.stdout) == mine
    assert find_host_process({"CLAUDE_PID": "1"})[0] == 1


@pytest.mark.rows("R4.1-3")
def test_the_command_line_inside_the_session_speaks_as_the_session(hosted: Hosted) -> None:
    facts = json.dumps({"session_id": "n-1", "cwd": str(hosted.project("talkie"))})
    refused = hosted.type("whoami", CLAUDECODE="1")
    assert "SCOUT_TOKEN is not set" in refused.stderr
    hosted.type("hook", "session_start", stdin=facts, CLAUDE_PID=str(os.getpid()))
    me = hosted.data("whoami", CLAUDECODE="1")
    assert (me["minimal"], me["kind"]) == ("@talkie", "agent")
    hosted.type("hook", "session_start", stdin=facts.replace("n-1", "n-2"), CLAUDE_PID=str(os.getpid()))
    named = hosted.data("whoami", CLAUDECODE="1", CLAUDE_CODE_SESSION_ID="n-1")
    assert named["sessionId"] == me["sessionId"]
    assert hosted.data("whoami")["kind"] == "operator"


def test_help_is_given_by_the_full_command_line(fresh: Shell) -> None:
    for verb in ("hook", "mcp", "statusline"):
        assert "--host" in fresh.say(verb, "--help")
