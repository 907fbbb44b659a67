"""The real Claude Code on one machine and the real Codex on another: each asks the other through MCP."""

from collections.abc import Generator
from pathlib import Path

import pytest

from scout.daemon.start import start
from tests.daemon.daemons import Daemon, eventually
from tests.live.model.server import Model, scripted_model
from tests.live.programs import HOSTS, Host, require_program
from tests.live.test_mcp_hosts import Stage, facts
from tests.stories.mesh_machines import Machine, two_machines

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_PATIENCE = 120.0  # seconds: a busy machine is no failure


@pytest.fixture
def stages(tmp_path: Path) -> Generator[tuple[Stage, Stage]]:
    """Two machines in one mesh: the agent `arc` is on the first one, `hudson` on the second."""
    for host in HOSTS.values():
        require_program(host.program)
    with scripted_model() as model, two_machines(tmp_path) as (one, two):
        here, there = _build_stage(one, model), _build_stage(two, model)
        here.present("arc")
        there.present("hudson")
        one.knows("@hudson")
        two.knows("@arc")
        yield here, there
        for machine in (one, two):
            assert "clean" in machine.say("verify")


def _build_stage(machine: Machine, model: Model) -> Stage:
    running = start(str(machine.home), environ=machine.environ, timeout=60)[0]
    return Stage(machine.folder, Daemon(machine.home, running), model)


def test_claude_code_and_codex_ask_each_other_across_machines(stages: tuple[Stage, Stage]) -> None:
    here, there = stages
    claude, codex = HOSTS["claude"], HOSTS["codex"]
    _check_ask((here, "arc", claude), (there, "hudson", codex), "What is 2+2?", "It is 4.")
    _check_ask((there, "hudson", codex), (here, "arc", claude), "And 3+3?", "It is 6.")


_Side = tuple[Stage, str, Host]


def _check_ask(asks: _Side, answers: _Side, question: str, answer: str) -> None:
    """One program asks, the other one reads its inbox and replies, and both machines can explain it."""
    stage, name, program = asks
    other, target, responder = answers
    script = f"""<<tool ask {{"to": "{target}", "body": "{question}"}}>> <<follow {program.prefix}>> <<say done>>"""
    folder = stage.folder / "asks"
    with program.running(folder, stage.door(name), script) as run:
        eventually(lambda: other.call(target, "GET", "/v1/inbox")["items"], within=_PATIENCE)
        inbox = _reply(other, target, responder, answer)
        assert run.ended(_PATIENCE).code == 0, run.printed + run.complaints
    assert question in inbox
    result = facts(stage.told(program)[-1])
    assert (result["state"], result["output"]) == ("completed", answer)
    assert "was accepted by node" in stage.shell.say("why", result["flightId"])
    assert "was accepted" in other.shell.say("why", result["flightId"])


def _reply(stage: Stage, name: str, program: Host, answer: str) -> str:
    """Run a program that replies to what is in its inbox; return the inbox as its model saw it."""
    script = f"""<<tool messages_inbox {{"claim": true}}>>
    <<tool messages_reply {{"inReplyTo": "$messageId", "body": "{answer}"}}>> <<say done>>"""
    with program.running(stage.folder / "answers", stage.door(name), script) as run:
        assert run.ended(_PATIENCE).code == 0, run.printed + run.complaints
    return stage.told(program)[0]
