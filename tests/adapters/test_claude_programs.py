"""How Claude Code is started, left and looked for, with a stand-in for the program: a script named `claude`."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.claude.adapter import Claude
from scout.adapters.claude.turn import make_uuid
from scout.adapters.persistent.pipe import PipeLimits
from scout.base.refusal import Refused
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer
from scout.ports import Accepted, Completed, Failed, HumanAnswer, McpAccess, Other
from tests.adapters.turns import Turn, collect, run_on, turn, until

LIMITS = PipeLimits(grace=0.5)


class Stage:
    """A folder for Claude Code, and what its stand-in does."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.work = folder / "work"
        self.work.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        self.program = programs / "claude"
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(self.home))

    def does(self, script: str) -> None:
        self.program.write_text(f"#!/bin/sh\n{script}\n")
        self.program.chmod(0o700)

    def claude(self, limits: PipeLimits = LIMITS) -> Claude:
        return Claude(self.folder / "sessions", ("ALSO_THIS",), limits)

    def turn(self, text: str = "hello", **spec: Any) -> Turn:
        one = turn("", session="ses_1", text=text, cwd=self.work)
        door = McpAccess(url="http://127.0.0.1:9/mcp", token="the-token")
        return Turn(replace(one.spec, **{"door": door, **spec}), one.prompt)

    def writes_down(self, session: str, *entries: dict[str, Any]) -> None:
        file = self.home / "projects" / "-work" / f"{session}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(tmp_path, monkeypatch)


def test_what_the_program_is_given(stage: Stage, loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ALSO_THIS", "ANTHROPIC_MODEL", "CLAUDE_CODE_SESSION_ID", "CLAUDECODE", "SECRET"):
        monkeypatch.setenv(name, "of the broker")
    stage.does('env >"$PWD/env"; for word; do echo "$word"; done >"$PWD/words"; exit 1')
    one = stage.turn(environment={"SCOUT_AGENT": "@tester"}, model="opus")

    async def main() -> None:
        claude = stage.claude()
        await collect(claude, one)

    run_on(loop, main())
    given = dict(line.split("=", 1) for line in (stage.work / "env").read_text().splitlines())
    assert {"ALSO_THIS", "ANTHROPIC_MODEL", "CLAUDE_CONFIG_DIR", "HOME"} <= given.keys()
    assert not {"CLAUDE_CODE_SESSION_ID", "CLAUDECODE", "SECRET"} & given.keys()
    assert (given["SCOUT_TOKEN"], given["SCOUT_AGENT"]) == ("the-token", "@tester")
    words = (stage.work / "words").read_text().splitlines()
    assert not any("the-token" in word for word in words)
    assert {f"--session-id={make_uuid('ses_1')}", "--model=opus", "--allowedTools=mcp__scout_run"} <= set(
        words
    )
    (servers,) = (word.partition("=")[2] for word in words if word.startswith("--mcp-config="))
    assert Path(servers).parent == stage.folder / "sessions" / "ses_1" / "1"
    assert Path(servers).stat().st_mode & 0o777 == 0o600


def _answer(text: str, why: str = "end_turn") -> dict[str, Any]:
    message = {"role": "assistant", "stop_reason": why, "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "isSidechain": False, "message": message}


def _prompt(delivery: str) -> dict[str, Any]:
    return {"type": "user", "uuid": make_uuid(delivery), "message": {"role": "user", "content": "hello"}}


def test_an_answer_that_only_the_transcript_has_is_collected(stage: Stage, loop: str) -> None:
    native = make_uuid("ses_1")
    said = json.dumps({"type": "command_lifecycle", "session_id": native, "state": "started"})
    stage.does(f"read -r line; echo '{said}'; kill -9 $$")
    one, other = stage.turn(), stage.turn()
    helper = {**_answer("of a helper"), "isSidechain": True}
    result = {"type": "user", "message": {"role": "user", "content": [{"type": "tool_result"}]}}

    async def main() -> None:
        claude = stage.claude()
        assert await claude.inspect("ses_1", one.prompt.delivery_id) is InspectResult.NOT_TAKEN
        events = await collect(claude, one)
        assert isinstance(events[0], Accepted)
        assert isinstance(events[-1], Failed)
        assert await claude.inspect("ses_1", one.prompt.delivery_id) is InspectResult.UNKNOWN
        entries = (_prompt(one.prompt.delivery_id), _answer("I look", "tool_use"), result, helper)
        stage.writes_down(native, *entries)
        assert isinstance((await collect(claude, one))[-1], Failed)  # it was not at its end
        stage.writes_down(
            native, *entries, _answer("the end"), _prompt(other.prompt.delivery_id), _answer("else")
        )
        assert (await collect(claude, one))[-1] == Completed(text="the end")
        assert await claude.inspect("ses_1", one.prompt.delivery_id) is InspectResult.TAKEN

    run_on(loop, main())


def test_a_program_that_cannot_go_on_is_a_refusal_with_its_words(stage: Stage, loop: str) -> None:
    stage.does("echo 'No conversation found with session ID: x' >&2; exit 1")
    one = stage.turn()

    async def main() -> None:
        claude = stage.claude()
        with pytest.raises(Refused, match="No conversation found"):
            await claude.start(one.spec)
        stage.does("echo out of order >&2; exit 7")
        with pytest.raises(Refused, match="exit 7: out of order"):
            await claude.start(one.spec)
        with pytest.raises(Refused, match="does not exist"):
            await claude.start(replace(one.spec, cwd=str(stage.folder / "nowhere")))
        with pytest.raises(Refused, match="to fork"):
            await claude.start(replace(one.spec, fork_of=make_uuid("another")))
        with pytest.raises(Refused, match="no turns yet"):
            await claude.open(one.spec)

    run_on(loop, main())


def test_what_nobody_can_answer_is_refused_at_once(stage: Stage, loop: str) -> None:
    request = {"type": "control_request", "request_id": "r1", "request": {"subtype": "hook_callback"}}
    delivered = stage.turn()
    ident = make_uuid(delivered.prompt.delivery_id)
    end = {"type": "result", "is_error": False, "result": "done", "user_message_uuids": [ident]}
    stage.does(f"read -r line; echo '{json.dumps(request)}'; read -r answer; echo '{json.dumps(end)}'; cat")

    async def main() -> None:
        claude = stage.claude()
        events = await collect(claude, delivered)
        assert events[1:] == [Other(kind="control_request/hook_callback"), Completed(text="done")]
        assert not await claude.respond("ses_1", "r1", HumanAnswer(allow=True))
        assert not await claude.steer("ses_1", "too late")
        await claude.stop("ses_1")

    run_on(loop, main())


ANSWERS = """
import json, sys
for line, text in zip(sys.stdin, ("first", "second", "third")):
    ident = json.loads(line)["uuid"]
    end = {"type": "result", "is_error": False, "result": text, "user_message_uuids": [ident]}
    print(json.dumps(end), flush=True)
"""


def test_a_prompt_that_is_steered_as_the_turn_ends_is_answered_in_it(stage: Stage, loop: str) -> None:
    """The program has reported the end already, and nobody has read that yet."""
    delivered = stage.turn()
    script = stage.folder / "answers.py"
    script.write_text(ANSWERS)
    stage.does(f"exec '{sys.executable}' '{script}'")
    output = stage.folder / "sessions" / "ses_1" / "1" / "stdout"

    async def main() -> None:
        claude = stage.claude()
        stream = claude.deliver(delivered.spec, delivered.prompt)
        assert isinstance(await anext(stream), Accepted)
        await until(lambda: b"first" in output.read_bytes())
        (pipe,) = claude._list_pipes("ses_1")
        # Private: between the check whether the turn is over and the prompt, as it may happen to another process.
        assert await claude._steer(pipe, delivered.prompt.delivery_id, "And now?")
        assert [one async for one in stream][-1] == Completed(text="first\n\nsecond")
        assert not await claude._steer(pipe, delivered.prompt.delivery_id, "Too late.")
        assert claude._is_over(pipe, delivered.prompt.delivery_id)
        await claude.stop("ses_1")

    run_on(loop, main())


def test_a_turn_that_says_too_much_or_does_not_listen_is_ended(stage: Stage, loop: str) -> None:
    stage.does("read -r line; head -c 3000000 /dev/zero | tr '\\0' x; echo; cat")

    async def main() -> None:
        loud = (await collect(stage.claude(LIMITS._replace(output=1 << 20)), stage.turn()))[-1]
        assert loud == Failed(
            layer=Layer.PROCESS,
            reason="its program ended: it wrote more than 1048576 bytes",
            log=str(stage.folder / "sessions" / "ses_1" / "1" / "stderr"),
        )
        stage.does("trap '' TERM; while :; do read -r line; sleep 0.05; done")
        claude, one = stage.claude(), stage.turn()
        stream = claude.deliver(one.spec, one.prompt)
        assert isinstance(await anext(stream), Accepted)
        began = time.monotonic()
        assert await claude.interrupt("ses_1", one.prompt.delivery_id)
        assert time.monotonic() - began < 10
        assert [event async for event in stream] == [Failed(layer=Layer.SESSION, reason="interrupted")]
        assert not await claude.interrupt("ses_1", one.prompt.delivery_id)
        assert not await claude.is_warm("ses_1")
        assert not list((stage.folder / "sessions").rglob("s"))  # no socket either

    run_on(loop, main(), 40)
