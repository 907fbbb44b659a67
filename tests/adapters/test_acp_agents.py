"""The harness `acp` with real agents; only the model behind them is scripted."""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from scout.adapters.acp.adapter import Acp
from scout.adapters.persistent.pipe import list_pipes
from scout.adapters.process.run import reap
from scout.base.refusal import Refused
from scout.model.problems.session import Layer
from scout.ports import (
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Identified,
    NeedsHuman,
    ToolUse,
    TurnUsage,
)
from tests.adapters.mcp_door import McpDoor, mcp_door
from tests.adapters.turns import Turn, turn, until
from tests.live.model.server import Model, scripted_model
from tests.live.programs import (
    CLAUDE_CODE,
    CLAUDE_CODE_ALONE,
    CODEX,
    Program,
    codex_settings,
    require_program,
)
from tests.mcp.conformance import node_words

# The first to come here installs the programs; once they are there, a test takes a few seconds.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

_TOKEN = "tok-for-this-run"


class Agent(NamedTuple):
    """A package, its variables, and how its model calls a tool of Scout's and one that a person must allow."""

    program: Program
    words: tuple[str, ...]
    variables: Callable[[Path, str], dict[str, str]]
    call: str
    command: str
    asks_for_scout: bool = False
    ends_when_denied: bool = False
    silent_when_denied: bool = False
    resumes: bool = True
    counts_tokens: bool = True
    by_node: bool = True


def _claude(folder: Path, model: str) -> dict[str, str]:
    return {
        "CLAUDE_CODE_EXECUTABLE": str(require_program(CLAUDE_CODE)),
        "CLAUDE_CONFIG_DIR": str(folder / "claude"),
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "sk-ant-scripted-000",
        **CLAUDE_CODE_ALONE,
    }


def _codex(folder: Path, model: str) -> dict[str, str]:
    home = folder / "codex"
    home.mkdir()
    (home / "config.toml").write_text(codex_settings(model, key="CODEX_MODEL_KEY"))
    return {"CODEX_PATH": str(require_program(CODEX)), "CODEX_HOME": str(home), "CODEX_MODEL_KEY": "scripted"}


def _qwen(folder: Path, model: str) -> dict[str, str]:
    return {"OPENAI_API_KEY": "scripted", "OPENAI_BASE_URL": f"{model}/v1", "OPENAI_MODEL": "scripted"}


def _gemini(folder: Path, model: str) -> dict[str, str]:
    (folder / ".gemini").mkdir()
    trusts = {"security": {"folderTrust": {"enabled": False}}}
    (folder / ".gemini" / "settings.json").write_text(json.dumps(trusts))
    return {
        "GEMINI_API_KEY": "scripted",
        "GOOGLE_GEMINI_BASE_URL": model,
        "GEMINI_MODEL": "gemini-2.5-flash",
        "GEMINI_CLI_NO_RELAUNCH": "true",
    }


def _opencode(folder: Path, model: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{model}/v1", "apiKey": "scripted"},
        "models": {"scripted": {"name": "scripted", "tool_call": True}},
    }
    settings = {
        "provider": {"scripted": provider},
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "autoupdate": False,
        "share": "disabled",
        "permission": {"bash": "ask"},
    }
    (folder / "opencode.json").write_text(json.dumps(settings))
    return {"OPENCODE_CONFIG": str(folder / "opencode.json"), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def _call(name: str, **arguments: Any) -> str:
    return f"<<tool {name} {json.dumps(arguments)}>>"


AGENTS = {
    "claude": Agent(
        Program(
            "@agentclientprotocol/claude-agent-acp",
            "0.49.0",
            "@agentclientprotocol/claude-agent-acp/dist/index.js",
            lean=True,
        ),
        (),
        _claude,
        '<<force mcp__scout_run__count {"word": "one"}>>',
        _call("Bash", command="sh -c 'id > FILE'", description="make it"),
    ),
    "codex": Agent(
        Program(
            "@agentclientprotocol/codex-acp",
            "2.6.0",
            "@agentclientprotocol/codex-acp/dist/index.js",
            lean=True,
        ),
        (),
        _codex,
        '<<tool count {"word": "one"}>>',
        _call("exec_command", cmd="id > FILE", sandbox_permissions="require_escalated", justification="x"),
        ends_when_denied=True,
    ),
    "qwen": Agent(
        Program("@qwen-code/qwen-code", "0.15.10", "@qwen-code/qwen-code/cli.js", lean=True),
        ("--acp",),
        _qwen,
        '<<force mcp__scout_run__count {"word": "one"}>>',
        _call("run_shell_command", command="id > FILE", is_background=False),
        asks_for_scout=True,
    ),
    "gemini": Agent(
        Program("@google/gemini-cli", "0.61.0", "@google/gemini-cli/bundle/gemini.js", lean=True),
        ("--acp",),
        _gemini,
        '<<force mcp_scout_run_count {"word": "one"}>>',
        _call("run_shell_command", command="id > FILE"),
        asks_for_scout=True,
        counts_tokens=False,
        resumes=False,
    ),
    "opencode": Agent(
        Program("opencode-ai", "1.18.33", "opencode-linux-*/bin/opencode"),
        ("acp",),
        _opencode,
        '<<force scout_run_count {"word": "one"}>>',
        _call("bash", command="id > FILE", description="make it"),
        silent_when_denied=True,
        by_node=False,
    ),
}


class Stage:
    """An agent at work: its model, Scout's door, the folder it works in."""

    def __init__(self, agent: Agent, folder: Path, model: Model, door: McpDoor) -> None:
        self.agent = agent
        self.model = model
        self.door = door
        self.sessions = folder / "sessions"
        self.work = folder / "work"
        self.work.mkdir()
        program = node_words(agent.program) if agent.by_node else [str(require_program(agent.program))]
        self.command = (*program, *agent.words)

    def acp(self) -> Acp:
        return Acp(self.sessions, environment=("DISABLE_*",))

    def turn(self, script: str, **spec: Any) -> Turn:
        one = turn("", *self.command, cwd=self.work, text=script, session="ses_1")
        door = self.door.door(_TOKEN)
        given = {"door": door, "environment": {"SCOUT_TOKEN": door.token}, **spec}
        return Turn(replace(one.spec, **given), one.prompt)

    def making(self, file: Path) -> str:
        """The call of a tool that makes this file."""
        return self.agent.command.replace("FILE", str(file))

    @property
    def heard(self) -> str:
        """All that people and tools had said by the last request."""
        return "\n".join(one.text for one in self.model.log[-1].heard.turns)


@contextlib.contextmanager
def open_stage(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Stage]:
    agent = AGENTS[name]
    with scripted_model() as model, mcp_door() as door:
        stage = Stage(agent, folder, model, door)
        variables = {**agent.variables(folder, model.url), "HOME": str(folder)}
        for variable, value in variables.items():
            monkeypatch.setenv(variable, value)
        try:
            yield stage
        finally:
            asyncio.run(stage.acp().stop("ses_1"))
            reap()


async def play_turn(acp: Acp, one: Turn, *answers: HumanAnswer) -> list[HarnessEvent]:
    """A turn with a person who answers what is asked, in this order."""
    left, events = list(answers), list[HarnessEvent]()
    async for event in acp.deliver(one.spec, one.prompt):
        events.append(event)
        if isinstance(event, NeedsHuman):
            assert await acp.respond(one.spec.session_id, event.request, left.pop(0))
    assert left == []
    return events


async def run_bounded(work: Awaitable[None]) -> None:
    await asyncio.wait_for(work, 150)


@pytest.mark.parametrize("name", AGENTS)
def test_a_real_agent(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_stage(name, tmp_path, monkeypatch) as stage:
        asyncio.run(run_bounded(_life(stage)))
    files = [file for file in tmp_path.rglob("*") if file.is_file() and stage.sessions not in file.parents]
    assert [str(file) for file in files if _TOKEN.encode() in file.read_bytes()] == []


async def _life(stage: Stage) -> None:
    acp = stage.acp()
    native = await _first_turn(stage, acp)
    await _check_second_turn(stage, acp)
    await _permissions(stage, acp)
    await _check_cancel(stage, acp)
    await _check_kill(stage, acp, native)
    await _never_another(stage, acp)


async def _first_turn(stage: Stage, acp: Acp) -> str:
    """A new session; Scout's tool works, with its token; the reply and its tokens are there."""
    script = f"remember the blue door {stage.agent.call} <<echo>>"
    allow = [HumanAnswer(allow=True)] if stage.agent.asks_for_scout else []
    events = await play_turn(acp, stage.turn(script), *allow)
    last = events[-1]
    assert isinstance(last, Completed), events
    assert "counted 1" in last.text
    assert stage.door.words == ["one"]
    assert stage.door.tokens == {_TOKEN}
    usage = [one.estimated for one in events if isinstance(one, TurnUsage)]
    assert usage == [not stage.agent.counts_tokens]
    assert [one for one in events if isinstance(one, ToolUse)]
    identified = next(one for one in events if isinstance(one, Identified))
    return identified.native_ids["session"]


async def _check_second_turn(stage: Stage, acp: Acp) -> None:
    events = await play_turn(acp, stage.turn("and now <<say second>>", door=None))
    assert events[-1] == Completed(text="second")
    assert "blue door" in stage.heard
    assert len(list_pipes(stage.sessions / "ses_1")) == 1


async def _permissions(stage: Stage, acp: Acp) -> None:
    allowed, denied = stage.work / "allowed", stage.work / "denied"
    script = f"do {stage.making(allowed)} <<say done>>"
    assert (await play_turn(acp, stage.turn(script), HumanAnswer(allow=True)))[-1] == Completed(text="done")
    assert allowed.exists()
    script = f"do {stage.making(denied)} <<say so be it>>"
    last = (await play_turn(acp, stage.turn(script), HumanAnswer(allow=False)))[-1]
    if stage.agent.ends_when_denied:
        reason = "the agent stopped its turn after a permission was denied"
        assert last == Failed(layer=Layer.HARNESS, reason=reason)
    else:
        assert last == Completed(text="" if stage.agent.silent_when_denied else "so be it")
    assert not denied.exists()


async def _check_cancel(stage: Stage, acp: Acp) -> None:
    one = stage.turn("wait <<stall 60>>")
    stream = acp.deliver(one.spec, one.prompt)
    rest = asyncio.create_task(_rest(stream))
    await until(lambda: "<<stall 60>>" in stage.heard, 20)
    assert await acp.interrupt("ses_1", one.prompt.delivery_id)
    assert (await rest)[-1] == Failed(layer=Layer.SESSION, reason="interrupted")


async def _rest(stream: AsyncIterator[HarnessEvent]) -> list[HarnessEvent]:
    return [event async for event in stream]


async def _check_kill(stage: Stage, acp: Acp, native: str) -> None:
    """After its program was killed the same session goes on in another."""
    (pipe,) = list_pipes(stage.sessions / "ses_1")
    for member in pipe.run.members():
        with contextlib.suppress(ProcessLookupError):
            os.kill(member.pid, signal.SIGKILL)
    await until(lambda: not pipe.is_running)
    events = await play_turn(acp, stage.turn("back <<say third>>", native_ids={"session": native}))
    if not stage.agent.resumes:  # it says so; another session never takes its place
        assert isinstance(events[-1], Failed), events
        assert "No previous sessions found" in events[-1].reason
        return
    assert events[-1] == Completed(text="third")
    assert next(one for one in events if isinstance(one, Identified)).native_ids == {"session": native}
    assert "blue door" in stage.heard


async def _never_another(stage: Stage, acp: Acp) -> None:
    unknown = "11111111-1111-4111-8111-111111111111"
    spec = replace(stage.turn("").spec, session_id="ses_2")
    with pytest.raises(Refused) as refused:
        await acp.attach(spec, unknown)
    assert refused.value.diagnostic.code == "session_not_attachable"
    assert not await acp.is_warm("ses_2")
