"""A session that a person has open is woken without a key being pressed, and answers through Scout."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Shell
from tests.daemon.daemons import Daemon, daemon, eventually
from tests.live.model.server import Model, scripted_model
from tests.live.programs import HOSTS
from tests.live.terminals import TERMINALS, Terminal, tmux_here

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.mark.rows("R4.3-11", "R5.1-4")
@pytest.mark.parametrize("name", TERMINALS)
def test_an_ask_wakes_the_session_that_a_person_has_open(tmp_path: Path, name: str) -> None:
    tmux_here()
    with scripted_model() as model:
        terminal = TERMINALS[name](tmp_path / "t", model.url)
        path = f"{tmp_path / 't' / 'bin'}:/usr/bin:/bin"
        with daemon(tmp_path / "home", PATH=path, **terminal.environ) as one:
            shell = Shell(tmp_path)
            terminal.seed()
            shell.say("setup", name, "--yes", **terminal.environ)
            with terminal.open():
                session = _wait_until_found(one, terminal)
                eventually(lambda: terminal.ready in terminal.screen)
                tool = f"{HOSTS[name].prefix}messages_reply"
                _wait_for_tool(model, terminal, tool)
                agent = f"/v1/agents/{session['agentId']}"
                eventually(lambda: _is_idle(one.call("GET", agent).json))
                assert (session["origin"], session["harness"]) == ("enrolled", name)
                body = f'What is 2+2? <<sleep 1>> ++ <<force {tool} {{"body": "It is 4."}}>> <<say I answered it>>'
                asked = shell.data("ask", "--project", str(terminal.work), body, "--wait", "20")
                assert (asked["state"], asked["output"]) == ("completed", "It is 4."), (
                    asked,
                    terminal.screen,
                )
                eventually(lambda: f"{terminal.mark} I answered it" in terminal.screen)
                assert "What is 2+2?" in terminal.screen
                sessions = one.call("GET", "/v1/sessions").json["items"]
                assert [found["id"] for found in sessions] == [session["id"]]  # nothing else was started


def _wait_for_tool(model: Model, terminal: Terminal, tool: str) -> None:
    """Wait for a turn that has a tool: Codex begins turns without servers that start slowly."""
    for turn in range(30):
        if not model.log or tool in model.log[-1].heard.offered:
            return
        terminal.type(f"and now? <<say turn {turn}>>")
        eventually(lambda shown=f"{terminal.mark} turn {turn}": shown in terminal.screen)
    raise AssertionError(terminal.screen)


def _find_enrolled(listed: Any) -> Any:
    return next((one for one in listed["items"] if one["nativeIds"]), None)


def _is_idle(agent: Any) -> bool:
    return [one["state"] for one in agent["endpoints"]] == ["idle"]


def _wait_until_found(one: Daemon, terminal: Terminal) -> Any:
    try:
        return eventually(lambda: _find_enrolled(one.call("GET", "/v1/sessions").json))
    except AssertionError:
        raise AssertionError(terminal.screen) from None
