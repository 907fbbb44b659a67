"""A token comes with the registration of an agent that connects by itself, and with no other."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.stories.test_ended_tokens import HELLO, converse, relay

pytestmark = pytest.mark.slow

Register = Callable[[str, dict[str, Any]], dict[str, Any]]


def over_http(daemon: Daemon) -> Register:
    return lambda name, wish: daemon.register(name, **wish)


def on_the_command_line(shell: Shell) -> Register:
    def register(name: str, wish: dict[str, Any]) -> dict[str, Any]:
        flags = [word for key, value in wish.items() for word in (f"--{key}", value)]
        return shell.data("agent", "register", name, *flags)

    return register


def over_mcp(shell: Shell, secret: str) -> Register:
    def register(name: str, wish: dict[str, Any]) -> dict[str, Any]:
        call = {"name": "agents_register", "arguments": {"definitionId": name, **wish}}
        with relay(shell, secret) as host:
            converse(host, HELLO)
            said = converse(host, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
            assert host.stdin is not None
            host.stdin.close()
        assert not said["result"].get("isError"), said
        return said["result"]["structuredContent"]

    return register


def test_only_an_agent_that_connects_by_itself_gets_a_token_when_it_is_registered() -> None:
    with a_shell() as shell:
        daemon = Daemon(shell.home, start_daemon(shell))
        surfaces = {
            "http": over_http(daemon),
            "cli": on_the_command_line(shell),
            "mcp": over_mcp(shell, daemon.token),
        }
        for name, register in surfaces.items():
            alone = register(f"{name}-alone", {})
            me = daemon.call("GET", "/v1/whoami", token=alone["token"]).json
            assert me["address"] == f"@{name}-alone"
            assert register(f"{name}-alone", {}).get("token") is None, "it is given once"
            assert register(f"{name}-started", {"harness": "echo"}).get("token") is None
        assert over_http(daemon)("runs", {"command": ["cat"]})["token"] is None
        assert on_the_command_line(shell)("typed", {"command": "cat"})["token"] is None
        assert over_http(daemon)("set", {"config": {"harness": "echo"}})["token"] is None
        kept = daemon.call("GET", "/v1/tokens?limit=100").json["items"]
        owners = {token["address"] for token in kept if token["kind"] == "agent"}
        assert owners == {f"@{name}-alone" for name in surfaces}


def test_a_token_for_an_agent_that_scout_starts_is_made_on_request() -> None:
    with a_shell() as shell:
        daemon = Daemon(shell.home, start_daemon(shell))
        assert "token" not in shell.say("agent", "register", "arc", "--harness", "echo")
        assert "sct_" not in json.dumps(shell.data("show", "@arc"))
        made = shell.data("token", "create", "--agent", "@arc")
        assert daemon.call("GET", "/v1/whoami", token=made["secret"]).json["address"] == "@arc"
