"""What an agent is for decides which program, model and effort run it: by its path and the settings."""

import json
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROLES = ("user", "subagent", "memory", "memorySearch", "task")
# Every pattern of a path, and the model of its role. Agents without a role get what the default harness chooses.
PATTERNS = [
    ("/me/telegram", "m-user"),
    ("/me/agent/arc", "m-user"),
    ("/me/subuser/kid", "m-user"),
    ("/me/agent/arc/sub/0", "m-subagent"),
    ("/me/agent/arc/sub/0/sub/0", "m-subagent"),
    ("/me/agent/arc/memory", "m-memory"),
    ("/me/agent/arc/sub/0/memory", "m-memory"),
    ("/me/agent/arc/search/0", "m-memorySearch"),
    ("/me/cron/tick", None),
    ("/system/clock", None),
]
CREATED = frozenset({"/me/telegram", "/me/agent/arc/sub/0", "/me/agent/arc/sub/0/sub/0"})


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        yield made


def daemon_of(shell: Shell) -> Daemon:
    return Daemon(shell.home, start_daemon(shell))


def set_roles(shell: Shell) -> None:
    """A model for each role, in one harness."""
    for role in ROLES:
        shell.say("config", "set", f"roles.{role}", f"echo/m-{role}/low")


def get_runtime(flight: Any) -> tuple[Any, Any, Any]:
    return flight["harnessObserved"], flight["modelResolved"], flight["effort"]


@pytest.mark.rows("R9.r-1")
def test_every_path_has_a_role_and_the_role_has_a_model(shell: Shell) -> None:
    set_roles(shell)
    shell.say("agent", "register", "arc")
    shell.say("user", "add", "kid", "--owner", "me")
    live = daemon_of(shell)
    for path, model in PATTERNS:
        if path in CREATED or model is None:
            config = {"description": "x"} if model else {"harness": "echo"}
            made = live.call("POST", "/v1/messages", {"to": path, "body": "be", "create": config})
            assert made.status == 201, made.body
        asked = live.call("POST", "/v1/asks", {"to": path, "body": "hello", "wait": 20})
        assert asked.status == 201, (path, asked.body)
        receipt = asked.json
        assert (receipt["harnessObserved"], receipt.get("modelResolved")) == ("echo", model), path
        assert receipt.get("effort") == ("low" if model else None), path
        flight = live.call("GET", f"/v1/flights/{receipt['flightId']}").json
        assert get_runtime(flight) == ("echo", model, "low" if model else None), path
    task = shell.data("task", "hello")
    assert get_runtime(task) == ("echo", "m-task", "low")


@pytest.mark.rows("R9.r-2", "R9.r-3")
def test_the_agent_comes_before_the_project_file_the_role_and_the_default(shell: Shell) -> None:
    talkie = shell.project("talkie")
    ask = ("ask", "--project", str(talkie), "hello")
    # Nothing is set, and no harness is ready: refused, with a command that works.
    none = shell.type(*ask)
    assert none.returncode == 4, none.stderr
    assert "try: scout config set harness" in none.stderr
    # The configured default,
    shell.say("config", "set", "harness", "echo")
    assert get_runtime(shell.data(*ask)) == ("echo", None, None)
    # then the role,
    shell.say("config", "set", "roles.user", "echo/of-the-role/low")
    other = shell.project("other")
    assert get_runtime(shell.data("ask", "--project", str(other), "hello")) == ("echo", "of-the-role", "low")
    # then the project's own file,
    third = shell.project("third")
    (third / ".scout" / "project.toml").write_text(
        'name = "third"\nharness = "echo"\nmodel = "of-the-file"\n'
    )
    assert shell.data("ask", "--project", str(third), "hello")["modelResolved"] == "of-the-file"
    # then the agent's own settings,
    shell.say("agent", "config", "@third", "--set", "model=its-own", "--set", "effort=high")
    shell.say("session", "stop", shell.data("session", "list", "--agent", "@third")["items"][0]["id"])
    assert get_runtime(shell.data("ask", "@third", "hello")) == ("echo", "its-own", "high")
    # and the ask itself first of all, in a session with that model.
    shell.say("session", "start", "--agent", "@third", "--model", "big")
    flight = shell.data("ask", "@third", "--model", "big", "hello")
    assert (flight["modelRequested"], flight["modelResolved"]) == ("big", "big")
    shown = shell.say("flight", "get", flight["id"])
    assert "big" in shown
    assert "echo" in shown


@pytest.mark.rows("R9.r-1", "R9.r-2")
def test_the_role_of_another_harness_does_not_name_the_model(shell: Shell) -> None:
    shell.say("config", "set", "roles.user", "claude/sonnet/high")
    shell.say("agent", "register", "arc", "--harness", "echo")
    assert get_runtime(shell.data("ask", "@arc", "hello")) == ("echo", None, None)


@pytest.mark.rows("R9.r-1")
@pytest.mark.parametrize(
    ("key", "value", "told", "works"),
    [
        (
            "roles.user",
            "clade/sonnet",
            "there is no harness 'clade'",
            "scout config set roles.user claude/sonnet",
        ),
        ("roles.usr", "echo/x", "no setting is called roles.usr", "scout config set roles.user echo/x"),
        (
            "roles.user",
            "claude sonnet",
            "expected HARNESS, HARNESS/MODEL",
            "scout config set roles.user none",
        ),
    ],
)
def test_a_wrong_role_is_refused_with_what_works(
    shell: Shell, key: str, value: str, told: str, works: str
) -> None:
    refused = shell.type("config", "set", key, value)
    assert refused.returncode == 2
    assert told in refused.stderr
    assert f"try: {works}" in refused.stderr
    shell.say(*works.split()[1:])


# -- memory and search -----------------------------------------------------------------------------------


@pytest.mark.rows("R9.m-1", "R9.m-2")
def test_the_first_ask_makes_a_memory_and_each_search_has_the_next_number(shell: Shell) -> None:
    set_roles(shell)
    shell.say("agent", "register", "arc")
    assert "unknown_target" in shell.type("show", "/me/agent/arc/memory").stderr
    assert shell.say("ask", "/me/agent/arc/memory", "What did you do?") == "What did you do?\n"
    again = shell.data("ask", "@arc", "--child", "memory", "And then?")
    assert again["targetAddress"] == "/me/agent/arc/memory"
    shown = shell.data("show", "/me/agent/arc/memory")
    assert (shown["kind"], shown["config"]["permissionProfile"]) == ("memory", "observe")

    words = ("ask", "@arc", "--child", "search", "--no-wait", "--json")
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "scout", *words, f"question {number}"],
            env=shell.environ,
            cwd=shell.folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    told = [json.loads(one.communicate(timeout=60)[0]) for one in running]
    assert sorted(one["address"] for one in told) == [f"/me/agent/arc/search/{number}" for number in range(6)]
    far = shell.type("ask", "/me/agent/arc/search/9", "Where?")
    assert "the next one is /me/agent/arc/search/6" in far.stderr
    assert "try: scout ask /me/agent/arc/search/6 'Where?'" in far.stderr
    assert shell.say("ask", "/me/agent/arc/search/6", "Where?") == "Where?\n"
    assert "clean" in shell.say("verify")
