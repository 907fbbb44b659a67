"""A piece of work for an agent that exists only for it: asked, answered, retired, and its result kept."""

import shlex
import signal
from collections.abc import Generator
from typing import Any

import pytest

from scout import BlockingScout
from scout.protocol.people.tasks import CreateTask, GetTask
from tests.cli.running import Shell, a_shell, start_daemon, type_in_terminal
from tests.daemon.daemons import Daemon, eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        yield made


def list_tries(text: str) -> list[list[str]]:
    """The commands of the `try:` lines."""
    lines = [one for one in text.splitlines() if one.startswith("try: ")]
    return [shlex.split(one.removeprefix("try: ").partition("  #")[0])[1:] for one in lines]


def show(shell: Shell, ident: str) -> Any:
    return shell.data("task", "show", ident)


def wait_until_retired(shell: Shell, ident: str) -> Any:
    """A task once its agent is retired."""

    def look() -> Any:
        found = show(shell, ident)
        return found if found["lifecycle"] == "retired" else None

    return eventually(look)


@pytest.mark.rows("R9.t-1", "R9.t-2")
def test_a_task_prints_only_its_answer_and_its_agent_is_retired(shell: Shell) -> None:
    done = shell.type("task", "--harness", "echo", "count", "to", "three")
    assert (done.returncode, done.stdout, done.stderr) == (0, "count to three\n", "")
    (task,) = shell.data("task", "list")["items"]
    assert task["address"].startswith("/me/task/")
    assert (task["state"], task["output"], task["body"]) == ("completed", *["count to three"] * 2)
    wait_until_retired(shell, task["id"])
    shown = shell.say("task", "show", task["id"][:12])
    assert shown.rstrip().endswith("count to three")
    assert "task" not in shell.say("who"), "a retired agent is not listed"
    for named in (task["id"], task["flightId"], task["address"]):
        assert show(shell, named)["output"] == "count to three"
    retired = shell.type("ask", task["address"], "and to four")
    assert "retired_target" in retired.stderr
    assert "clean" in shell.say("verify")


@pytest.mark.rows("R9.t-1", "R9.t-2")
def test_a_task_that_is_not_waited_for_is_found_again(shell: Shell) -> None:
    told = shell.type("task", "--harness", "echo", "--no-wait", "!hang")
    assert told.stdout.startswith("asked /me/task/")
    (task,) = shell.data("task", "list", "--open")["items"]
    assert f"scout wait {task['flightId']}" in told.stdout + told.stderr
    assert (task["lifecycle"], task["state"]) in [("active", "queued"), ("active", "running")]
    timed = shell.type("task", "--harness", "echo", "--wait", "0.2", "!hang")
    assert timed.returncode == 10, timed
    for one in shell.data("task", "list", "--open")["items"]:
        shell.say("flight", "cancel", one["flightId"])
        assert wait_until_retired(shell, one["id"])["state"] == "cancelled"
    assert shell.data("task", "list", "--open")["items"] == []
    failed = shell.type("task", "--harness", "echo", "!fail no disk")
    assert failed.returncode == 9
    assert "no disk" in failed.stderr
    assert "no disk" in shell.say("task")
    (retry,) = list_tries(failed.stderr)  # its agent stays for that
    assert "queued" in shell.say(*retry)

    shell.say("task", "--harness", "echo", "--notify", "for my inbox")
    eventually(lambda: "for my inbox" in shell.say("inbox"))


@pytest.mark.rows("R9.t-1")
def test_ctrl_c_stops_the_wait_and_never_the_task(shell: Shell) -> None:
    code, shown = type_in_terminal(shell, "task", "--harness", "echo", "!hang", until="echo")
    assert code == 128 + signal.SIGINT, shown
    (task,) = shell.data("task", "list", "--open")["items"]
    assert f"scout wait {task['flightId']}" in shown


@pytest.mark.rows("R9.t-1", "R9.t-2")
def test_a_task_over_http_and_from_python(shell: Shell) -> None:
    live = Daemon(shell.home, start_daemon(shell))
    made = live.call("POST", "/v1/tasks", {"body": "hello", "harness": "echo", "wait": 20})
    assert (made.status, made.json["output"], made.json["harnessRequested"]) == (201, "hello", "echo")
    with BlockingScout(home=str(shell.home)) as scout:
        receipt = scout.call(CreateTask(body="and again", harness="echo", wait=20))
        assert scout.call(GetTask(task_id=receipt.flight_id)).output == "and again"
    items = live.call("GET", "/v1/tasks").json["items"]
    assert [one["body"] for one in items] == ["and again", "hello"]
    assert live.call("GET", f"/v1/tasks/{items[0]['id']}").json["output"] == "and again"


@pytest.mark.rows("R9.t-3")
def test_a_task_runs_where_and_with_what_is_named(shell: Shell) -> None:
    here, there = shell.project("here"), shell.project("there")
    shell.say("config", "set", "roles.task", "echo/small/low")
    own = shell.data("task", "in my project", cwd=here)
    assert (own["modelResolved"], own["effort"]) == ("small", "low")
    named = shell.data("task", "--project", str(there), "--model", "big", "in that one", cwd=here)
    assert (named["modelRequested"], named["modelResolved"]) == ("big", "big")
    alone = shell.data("task", "in no project")
    tasks = {one["flightId"]: one for one in shell.data("task", "list")["items"]}
    folders = [tasks[one["flightId"]].get("folder") for one in (own, named, alone)]
    assert folders == [str(here), str(there), None]


@pytest.mark.rows("R9.t-4")
def test_a_refused_task_leaves_nothing_behind_and_says_what_works(shell: Shell) -> None:
    here = shell.project("here")
    wrong = shell.type("task", "--harness", "ech", "hello")
    assert wrong.stderr.startswith("harness_unavailable: there is no harness 'ech'")
    assert shell.say(*list_tries(wrong.stderr)[0]) == "hello\n"

    none = shell.type("task", "hello")
    assert none.stderr.startswith("ambiguous_endpoint: the task has no default harness")
    assert "/me/task/" not in none.stderr, "no agent of this name exists"
    for words in list_tries(none.stderr)[:1]:
        shell.say(*words)

    gone = shell.type("task", "--project", f"{here}x", "--harness", "echo", "hello")
    assert gone.returncode == 2
    assert shell.say(*list_tries(gone.stderr)[0]) == "hello\n"

    typo = shell.type("task", "lst")
    assert (typo.returncode, list_tries(typo.stderr)[0]) == (2, ["task", "list"])
    assert [one["body"] for one in shell.data("task", "list")["items"]] == ["hello", "hello"]

    several = shell.type("task", "show", "0")
    assert several.stderr.startswith("ambiguous_target: '0' matches 2 tasks")
    for words in list_tries(several.stderr):
        assert "hello" in shell.say(*words)
    missing = shell.type("task", "show", "zz")
    assert "No tasks" not in shell.say(*list_tries(missing.stderr)[0])
    assert shell.type("task", "").returncode == 2


@pytest.mark.rows("R9.t-2")
def test_tasks_are_seen_by_their_own_user(shell: Shell) -> None:
    shell.say("user", "add", "bob")
    token = shell.data("token", "create", "--user", "bob")["secret"]
    shell.say("task", "--harness", "echo", "a secret of mine")
    (mine,) = shell.data("task", "list")["items"]
    assert shell.data("task", "list", SCOUT_TOKEN=token)["items"] == []
    assert "not_found" in shell.type("task", "show", mine["id"], SCOUT_TOKEN=token).stderr
    assert shell.say("task", "--harness", "echo", "one of bob", SCOUT_TOKEN=token) == "one of bob\n"
    (bobs,) = shell.data("task", "list", SCOUT_TOKEN=token)["items"]
    assert bobs["address"].startswith("/bob/task/")
