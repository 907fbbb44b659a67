"""The moment it becomes real: Claude Code and Codex, asked from the command line, with a scripted model behind."""

import json
import os
import signal
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.process.process_table import ProcessId, is_alive, list_processes
from scout.daemon import lock
from tests.daemon.daemons import eventually
from tests.live.machine import DIALECTS, Machine, a_machine

# The first to come here installs the programs; once they are there, a test takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

BOTH = ("claude", "codex")


def build_shell(harness: str, line: str) -> str:
    """How a program's model runs something in a shell that it may not run unasked."""
    if harness == "claude":
        return f"<<tool Bash {json.dumps({'command': line, 'description': 'try'})}>>"
    wish = {"cmd": line, "sandbox_permissions": "require_escalated", "justification": "try"}
    return f"<<tool exec_command {json.dumps(wish)}>>"


@pytest.fixture
def machine() -> Generator[Machine]:
    with a_machine(*BOTH) as made:
        yield made


def get_pid(machine: Machine, session: str) -> int:
    return int(machine.data("session", "inspect", session)["pid"])


@pytest.mark.rows("R3.1-12")
@pytest.mark.parametrize("harness", BOTH)
def test_a_project_is_asked_and_asked_again(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    first = machine.say("ask", "--project", str(talkie), "Remember the word zebra. <<say noted>>")
    assert first.strip().endswith("noted")
    flight = machine.ended(machine.ask(talkie, "Which word? <<say it was zebra>>"))
    assert flight["output"] == "it was zebra"
    assert any("Remember the word zebra" in text for text in machine.heard(harness))  # the context is there
    (session,) = machine.data("session", "list")["items"]
    assert (session["harness"], session["state"], session["cwd"]) == (harness, "live", str(talkie))
    assert session["modelObserved"]
    again = machine.data("ask", "--session-id", session["id"], "Still here? <<say yes>>")
    assert (again["output"], again["sessionId"]) == ("yes", session["id"])
    other = "codex" if harness == "claude" else "claude"
    wrong = machine.type("ask", "--session-id", session["id"], "--harness", other, "x")
    assert wrong.returncode != 0
    assert "try: scout " in wrong.stderr
    usage = machine.data("usage")
    assert any(one.get("harness") == harness for one in usage["rows"]) if "rows" in usage else usage
    assert sorted(path.name for path in talkie.iterdir()) == [
        ".git",
        ".scout",
    ]  # nothing of ours was left there


@pytest.mark.rows("R5.3-3")
@pytest.mark.parametrize("harness", BOTH)
def test_the_token_of_a_long_program_is_in_no_arguments_and_ends_with_its_session(
    machine: Machine, harness: str
) -> None:
    talkie = machine.repository("talkie", harness)
    machine.say("ask", "--project", str(talkie), "<<say hello>>")
    (session,) = machine.data("session", "list")["items"]
    pid = get_pid(machine, session["id"])
    tokens = {one for one in read_environment(pid) if one.startswith("sct_")}
    assert tokens
    arguments = [one.read_bytes() for one in Path("/proc").glob("[0-9]*/cmdline") if one.exists()]
    logs = [one.read_bytes() for one in (machine.home / "logs").iterdir()]
    worktree = [one.read_bytes() for one in talkie.rglob("*") if one.is_file()]
    for token in tokens:
        assert not any(token.encode() in text for text in (*arguments, *logs, *worktree))
        assert machine.type("who", SCOUT_TOKEN=token).returncode == 0
    machine.say("session", "stop", session["id"])
    for token in tokens:
        assert "unauthenticated" in machine.type("who", SCOUT_TOKEN=token).stderr


@pytest.mark.rows("R5.3-4")
@pytest.mark.parametrize("harness", BOTH)
def test_an_agents_own_prompt_and_folder_are_used(machine: Machine, harness: str) -> None:
    talkie, other = machine.repository("talkie"), machine.repository("other")
    words = ("--config", "systemPrompt=Answer as a sailor.", "--config", f"workspaceDir={other}")
    machine.say("config", "roots", "--add", str(other))
    machine.say("agent", "register", "salt", "--project", str(talkie), "--harness", harness, *words)
    assert machine.data("ask", "@salt", "<<say aye>>")["output"] == "aye"
    assert "Answer as a sailor." in json.dumps(machine.model.of(DIALECTS[harness])[-1].body)
    (session,) = machine.data("session", "list")["items"]
    assert session["cwd"] == str(other)


@pytest.mark.rows("R5.1-5")
@pytest.mark.parametrize("harness", BOTH)
def test_tokens_are_exact_where_the_program_tells_them_and_else_estimated(
    machine: Machine, harness: str
) -> None:
    talkie = machine.repository("talkie", harness)
    machine.say("ask", "--project", str(talkie), "<<say hello>>")
    told = machine.data("usage")["totals"]["harness_execution"]
    assert told["exactTokens"] == told["totals"]["totalTokens"] >= 20  # as the model's answer says
    machine.say("agent", "register", "upper", "--command", "tr a-z A-Z", cwd=talkie)
    machine.say("ask", "@upper", "hello")
    both = machine.data("usage")["totals"]["harness_execution"]
    assert both["exactTokens"] == told["exactTokens"]
    guessed = both["totals"]["totalTokens"] - told["exactTokens"]
    assert both["totals"]["estimatedTokens"] == guessed > 0
    assert f"{guessed} of them estimated" in machine.say("usage")


def read_environment(pid: int) -> list[str]:
    """The values of the variables of a process."""
    told = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", "replace").split("\0")
    return [one.partition("=")[2] for one in told]


@pytest.mark.rows("R5.1-3", "R2.2-79")
@pytest.mark.parametrize("harness", BOTH)
def test_a_permission_is_asked_of_the_person_and_decides(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    yes = machine.ask(talkie, f"{build_shell(harness, 'dd if=/dev/null of=one')} <<say done>>")
    item = machine.waits(yes)
    assert item["kind"] == "permission"
    assert "dd if=/dev/null of=one" in item["title"] + item["body"]
    assert machine.flight(yes)["waitingOn"]["ref"] == item["id"]
    machine.say("attention", "approve", item["id"])
    assert machine.ended(yes)["output"] == "done"
    assert (talkie / "one").exists()
    no = machine.ask(talkie, f"{build_shell(harness, 'dd if=/dev/null of=two')} <<say as you wish>>")
    machine.say("attention", "deny", machine.waits(no)["id"], "not today")
    flight = machine.ended(no)
    assert flight["state"] == "completed", flight
    assert not (talkie / "two").exists()
    assert [one["kind"] for one in machine.attention()] == []


def test_a_question_of_the_program_is_answered(machine: Machine) -> None:
    talkie = machine.repository("talkie", "claude")
    asked = {
        "questions": [
            {
                "question": "Which colour?",
                "header": "Colour",
                "multiSelect": False,
                "options": [
                    {"label": "red", "description": "warm"},
                    {"label": "blue", "description": "cold"},
                ],
            }
        ]
    }
    flight = machine.ask(talkie, f"<<tool AskUserQuestion {json.dumps(asked)}>> <<echo>>")
    item = machine.waits(flight)
    assert (item["kind"], item["title"]) == ("question", "Which colour?")
    assert {"red", "blue"} <= {one["label"] for one in item["actions"]}
    machine.say("attention", "answer", item["id"], "blue")
    assert "blue" in machine.ended(flight)["output"]


@pytest.mark.rows("R5.2-4")
@pytest.mark.parametrize("harness", BOTH)
def test_a_turn_can_be_cancelled_and_a_killed_program_is_said_to_be_dead(
    machine: Machine, harness: str
) -> None:
    talkie = machine.repository("talkie", harness)
    flight = machine.ask(talkie, "<<stall 600>> <<say never>>")
    eventually(lambda: machine.flight(flight)["state"] == "running")
    machine.say("flight", "cancel", flight)
    assert machine.ended(flight)["state"] == "cancelled"
    second = machine.ask(talkie, "<<stall 600>> <<say never>>")
    session = eventually(lambda: machine.flight(second)["state"] == "running" and machine.flight(second))[
        "sessionId"
    ]
    os.kill(_program(machine, harness), signal.SIGKILL)
    dead = machine.ended(second)
    assert dead["state"] == "failed"
    assert dead["error"]["log"]
    assert [one["operation"] for one in dead["error"]["remedies"]] == ["flight.retry"]
    third = machine.ended(machine.ask(talkie, "<<say back again>>"))
    assert (third["output"], third["sessionId"]) == ("back again", session)


@pytest.mark.parametrize("harness", BOTH)
def test_nothing_is_left_of_a_program_whose_shown_process_was_killed(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    flight = machine.ask(talkie, "<<stall 600>> <<say never>>")
    eventually(lambda: machine.flight(flight)["state"] == "running")
    session = machine.flight(flight)["sessionId"]
    during = _kill_session(machine, session)
    assert machine.ended(flight)["state"] == "failed"
    eventually(lambda: not _list_left(during))

    again = machine.ended(machine.ask(talkie, "<<say back again>>"))
    assert again["output"] == "back again"
    idle = _kill_session(machine, again["sessionId"])  # between two turns
    eventually(lambda: not _list_left(idle))

    assert machine.ended(machine.ask(talkie, "<<say once more>>"))["output"] == "once more"
    last = _kill_session(machine, again["sessionId"])
    machine.say("session", "stop", again["sessionId"])
    assert not _list_left(last)
    assert machine.data("session", "inspect", again["sessionId"])["state"] == "ended"
    fresh = machine.ended(machine.ask(talkie, "<<say hello>>"))
    assert (fresh["output"], fresh["sessionId"] == again["sessionId"]) == ("hello", False)


def _kill_session(machine: Machine, session: str) -> set[ProcessId]:
    """Kill the process that Scout shows for a session; all that ran with it."""
    pid = get_pid(machine, session)
    run = {
        entry.identity for entry in list_processes().values() if pid in {entry.identity.pid, entry.session}
    }
    assert len(run) >= 3  # the shell, its keeper and the program
    os.kill(pid, signal.SIGKILL)
    return run


def _list_left(run: set[ProcessId]) -> set[ProcessId]:
    return {one for one in run if is_alive(one)}


def _program(machine: Machine, harness: str) -> int:
    """The process of the program itself."""
    real = (machine.folder / "bin" / harness).resolve()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                same = (entry / "exe").resolve() == real
                mine = os.fsencode(machine.folder) in (entry / "environ").read_bytes()
            except OSError:
                continue
            if same and mine:
                return int(entry.name)
    raise AssertionError(f"no {harness} runs")


@pytest.mark.rows("R5.2-3", "R3.4-17")
@pytest.mark.parametrize("harness", BOTH)
def test_a_broker_that_was_killed_collects_what_was_done_meanwhile(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    line = "dd if=/dev/null of=ran; echo x >> ran; sleep 1"
    flight = machine.ask(talkie, f"{build_shell(harness, line)} <<say collected>>")
    item = machine.waits(flight)
    machine.say("attention", "approve", item["id"])
    eventually((talkie / "ran").exists)
    os.kill(machine.daemon.running.pid, signal.SIGKILL)
    eventually(lambda: not lock.is_held(str(machine.home)))
    machine.up()
    ended = machine.ended(flight)
    assert (ended["state"], ended["output"]) == ("completed", "collected")
    assert (talkie / "ran").read_text() == "x\n"  # once


@pytest.mark.rows("R2.2-63", "R2.2-65")
@pytest.mark.parametrize("harness", BOTH)
def test_limits_and_logins_of_the_provider(machine: Machine, harness: str) -> None:
    talkie = machine.repository("talkie", harness)
    limited = {
        "claude": "<<error 429 This request would exceed your account's rate limit. Please try again later.>>",
        "codex": "<<error 429 You've hit your usage limit. Try again later.>>",
    }[harness]
    flight = machine.ask(talkie, limited)
    eventually(lambda: machine.flight(flight)["state"] == "waiting")
    assert machine.flight(flight)["waitingOn"]["kind"] == "quota"
    machine.say("flight", "cancel", flight)
    for _ in range(2):
        failed = machine.ended(machine.ask(talkie, "<<error 401 invalid api key>>"))
        assert failed["state"] == "failed"
    (item,) = machine.attention()
    assert (item["kind"], item["title"]) == ("setup", f"{harness}: its login is missing")
    assert machine.ended(machine.ask(talkie, "<<say logged in again>>"))["output"] == "logged in again"
    assert machine.attention() == []


@pytest.mark.rows("R3.5-17")
def test_what_is_not_installed_says_so(tmp_path: Path) -> None:
    with a_machine() as machine:
        talkie = machine.repository("talkie", "claude")
        refused = machine.type("ask", "--project", str(talkie), "Review this.")
        assert refused.returncode != 0
        assert "claude" in refused.stderr
        assert "try: scout " in refused.stderr
        assert "npm install" in refused.stderr or "install" in refused.stderr


def test_one_asks_the_other_and_a_circle_is_broken(machine: Machine) -> None:
    arc, bow = machine.repository("arc", "claude"), machine.repository("bow", "codex")
    machine.say("ask", "--project", str(bow), "<<say hello>>")
    inner = "What is six times seven? <<say forty-two>>"
    call = json.dumps({"to": "@bow", "body": inner, "replyMode": "inline"})
    script = f"Ask bow. <<tool ask {call}>> <<follow mcp__scout_run__>> <<echo>>"
    flight = machine.ended(machine.ask(arc, script))
    assert "forty-two" in flight["output"]
    back = json.dumps({"to": "@arc", "body": "And you? <<say never>>"})
    inner = f"Ask back. <<tool ask {back}>> <<echo>>"
    call = json.dumps({"to": "@bow", "body": inner, "replyMode": "inline"})
    flight = machine.ended(
        machine.ask(arc, f"Ask bow. <<tool ask {call}>> <<follow mcp__scout_run__>> <<echo>>")
    )
    assert "loop" in flight["output"] or "chain" in flight["output"]


def test_twenty_asks_to_five_agents_do_not_mix(machine: Machine) -> None:
    projects = [machine.repository(f"p{n}", BOTH[n % 2]) for n in range(5)]

    def asked(number: int) -> Any:
        body = f"Number {number}. <<say answer {number}>>"
        return machine.ended(machine.ask(projects[number % 5], body), 120)

    with ThreadPoolExecutor(4) as pool:
        flights = list(pool.map(asked, range(20)))
    assert [one for one in flights if one["state"] != "completed"] == []
    assert [one["output"] for one in flights] == [f"answer {number}" for number in range(20)]
    assert len({one["sessionId"] for one in flights}) == 5
