"""The real Claude Code, by the suite that every adapter runs and by what only it does."""

import asyncio
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.adapters.claude.adapter import Claude
from scout.base.refusal import Refused
from scout.model.agent import PermissionProfile
from scout.model.delivery import InspectResult
from scout.model.problems.session import HarnessUnavailable, Layer, Missing
from scout.ports import (
    Accepted,
    Asked,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Identified,
    Limited,
    NeedsHuman,
    RequestSettled,
    ToolUse,
    TurnUsage,
)
from tests.adapters.program_stage import (
    ProgramConformance,
    ProgramStage,
    claude_stage,
    files_below,
    select_kind,
    wait_for_request,
)
from tests.adapters.turns import collect, first, list_left_over, run_on, until

# The first to come here installs the program; once it is there, a test takes a second or two.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProgramStage[Claude]]:
    with claude_stage(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def loop() -> str:
    """The daemon's own: a real program is slow enough for one of them."""
    return "uvloop"


class TestClaude(ProgramConformance):
    hang = "<<stall 30>>"


def bash(words: str) -> str:
    return f"<<tool Bash {json.dumps({'command': words})}>>"


def failure(events: list[HarnessEvent]) -> Failed:
    last = events[-1]
    assert isinstance(last, Failed), last
    return last


# -- its session ---------------------------------------------------------------------------------------


def test_a_session_goes_on_in_the_same_program_and_after_it(stage: ProgramStage[Claude], loop: str) -> None:
    claude = stage.harness()

    async def main() -> None:
        one = stage.turn('Remember blue. <<force mcp__scout_run__count {"word": "w"}>> <<say noted>>')
        started = await claude.start(one.spec)
        assert await claude.start(one.spec) == started
        events = await collect(claude, one)
        assert events[0] == Accepted(pid=started.pid, pid_started=started.pid_started)
        (who,) = select_kind(Identified, events)
        assert who.native_ids == started.native_ids
        assert select_kind(ToolUse, events) == [ToolUse(name="mcp__scout_run__count")]
        spent = TurnUsage(prompt_tokens=20, completion_tokens=20, model=who.model, estimated=False)
        assert events[-2:] == [spent, Completed(text="noted")]
        assert (stage.door.words, stage.door.tokens) == (["w"], {"a-token"})

        again = await collect(claude, stage.turn("/Go on. <<say still here>>", door=None))
        assert again[-1] == Completed(text="still here")  # a slash is no command of the program
        assert select_kind(Accepted, again) == select_kind(Accepted, events)
        assert any("Remember blue." in words for words in stage.heard)

        await claude.stop("ses_1")
        assert not await claude.is_warm("ses_1")
        (cold,) = await collect(claude, stage.turn("<<say no>>", door=None))
        assert isinstance(cold, Failed)
        assert (cold.layer, cold.again) == (Layer.PROCESS, True)
        resumed = await collect(claude, stage.turn("And now? <<say back>>", native_ids=started.native_ids))
        assert select_kind(Accepted, resumed) != select_kind(Accepted, events)
        assert select_kind(Identified, resumed) == [who]
        assert any("Remember blue." in words for words in stage.heard)

        (native,) = started.native_ids.values()
        copy = stage.turn("You too? <<say me too>>", "ses_2", fork_of=native)
        forked = await collect(claude, copy)
        assert forked[-1] == Completed(text="me too")
        assert select_kind(Identified, forked)[0].native_ids != started.native_ids
        assert any("Remember blue." in words for words in stage.heard)

        opened = await claude.open(replace(one.spec, native_ids=started.native_ids))
        assert opened.command == ("claude", "--resume", native)
        assert opened.environment == {"CLAUDE_CONFIG_DIR": str(stage.home)}

    run_on(loop, main(), 90)
    told = json.loads((stage.sessions / "ses_1" / "1" / "mcp.json").read_bytes())
    assert "a-token" not in json.dumps(told)
    assert (stage.sessions / "ses_1" / "1" / "mcp.json").stat().st_mode & 0o777 == 0o600


def test_a_session_that_is_lost_or_open_elsewhere_is_left_alone(
    stage: ProgramStage[Claude], loop: str
) -> None:
    claude = stage.harness()

    async def main() -> None:
        one = stage.turn("<<say begun>>")
        (who,) = select_kind(Identified, await collect(claude, one))
        (native,) = who.native_ids.values()
        await claude.stop("ses_1")
        spec = replace(one.spec, native_ids=who.native_ids)
        assert (await claude.attach(spec, native)).native_ids == who.native_ids

        person = await asyncio.to_thread(_open_elsewhere, stage, native)
        try:
            entry = stage.home / "sessions" / f"{person.pid}.json"
            await until(entry.exists, 60)
            with pytest.raises(Refused, match=f"process {person.pid}"):
                await claude.attach(spec, native)
            (busy,) = await collect(claude, stage.turn("<<say no>>", native_ids=who.native_ids))
            assert isinstance(busy, Failed)
            assert (busy.layer, busy.again) == (Layer.SESSION, True)
            assert str(person.pid) in busy.reason
        finally:
            person.kill()
            await asyncio.to_thread(person.communicate)
        assert (await collect(claude, stage.turn("<<say mine>>", native_ids=who.native_ids)))[
            -1
        ] == Completed(text="mine")

        await claude.stop("ses_1")
        for transcript in (stage.home / "projects").rglob("*.jsonl"):
            transcript.unlink()
        lost = failure(await collect(claude, stage.turn("<<say no>>", native_ids=who.native_ids)))
        assert (lost.layer, lost.again) == (Layer.SESSION, False)
        with pytest.raises(Refused, match="cannot be attached"):
            await claude.start(spec)

    run_on(loop, main(), 90)


def _open_elsewhere(stage: ProgramStage[Claude], native: str) -> "subprocess.Popen[bytes]":
    """Another program that has the session open."""
    words = ["claude", "-p", "--input-format=stream-json", "--output-format=stream-json", "--verbose"]
    return subprocess.Popen(
        [*words, f"--resume={native}"], cwd=stage.work, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )


# -- a broker that dies --------------------------------------------------------------------------------


def test_a_turn_goes_on_without_its_broker_and_is_collected_by_the_next(
    stage: ProgramStage[Claude], loop: str
) -> None:
    one = stage.turn(f"{bash('echo x >> ran; sleep 1')} <<say all done>>")

    async def before() -> None:
        claude = stage.harness()
        event, rest = await first(claude, one)
        assert isinstance(event, Accepted)
        await until((stage.work / "ran").exists, 60)
        assert isinstance(rest, asyncio.Task)
        rest.cancel()

    async def after() -> None:
        claude = stage.harness()
        assert await claude.inspect("ses_1", one.prompt.delivery_id) is InspectResult.TAKEN
        assert await claude.is_warm("ses_1")
        events = await collect(claude, one)
        assert events[-1] == Completed(text="all done")
        assert (await collect(stage.harness(), one))[-3:] == events[-3:]
        assert (stage.work / "ran").read_text() == "x\n"

    run_on(loop, before(), 90)
    run_on(loop, after(), 90)


def test_what_a_person_decides_reaches_the_program_also_after_a_restart(
    stage: ProgramStage[Claude], loop: str
) -> None:
    one = stage.turn(f"{bash('chmod 600 secret; curl x')} <<echo>>")

    async def before() -> str:
        need, rest = await wait_for_request(stage.harness(), one)
        assert need.kind is Asked.PERMISSION
        assert need.question == "Bash: chmod 600 secret; curl x"
        rest.cancel()
        return need.request

    async def after(request: str) -> None:
        claude = stage.harness()
        need, rest = await wait_for_request(claude, one)
        assert need.request == request
        assert not await claude.respond("ses_1", "no-such-request", HumanAnswer(allow=True))
        assert await claude.respond("ses_1", request, HumanAnswer(allow=False, text="not that file"))
        assert not await claude.respond("ses_1", request, HumanAnswer(allow=True))
        events = await rest
        assert events[0] == RequestSettled(request=request)
        assert events[-1] == Completed(text="not that file")
        assert select_kind(NeedsHuman, await collect(stage.harness(), one)) == []

        two = stage.turn(f"{bash('touch made; git init -q other')} <<say made it>>")
        need, rest = await wait_for_request(claude, two)
        assert await claude.respond("ses_1", need.request, HumanAnswer(allow=True))
        assert (await rest)[-1] == Completed(text="made it")
        assert (stage.work / "made").exists()

        question = {"question": "Which color?", "header": "Color", "multiSelect": False}
        options = [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]
        call = json.dumps({"questions": [{**question, "options": options}]})
        need, rest = await wait_for_request(claude, stage.turn(f"<<tool AskUserQuestion {call}>> <<echo>>"))
        assert (need.kind, need.question, need.options) == (Asked.QUESTION, "Which color?", ("Red", "Blue"))
        assert await claude.respond("ses_1", need.request, HumanAnswer(allow=True, text="Blue"))
        last = (await rest)[-1]
        assert isinstance(last, Completed)
        assert '"Which color?"="Blue"' in last.text

        need, rest = await wait_for_request(claude, stage.turn(f"{bash('curl y')} <<echo>>"))
        assert await claude.steer("ses_1", "And hurry.")
        assert await claude.respond("ses_1", need.request, HumanAnswer(allow=False))
        assert isinstance((await rest)[-1], Completed)
        assert "And hurry." in json.dumps(stage.model.log[-1].body)
        assert not await claude.steer("ses_1", "Too late.")

    run_on(loop, after(run_on(loop, before(), 90)), 90)


# -- how it fails --------------------------------------------------------------------------------------


def test_a_program_that_is_killed_says_so_at_once(stage: ProgramStage[Claude], loop: str) -> None:
    claude, one = stage.harness(), stage.turn("<<stall 30>> ++ <<say too late>>")

    async def main() -> None:
        _, rest = await first(claude, one)
        await until(lambda: stage.model.log)
        (entry,) = (stage.home / "sessions").glob("*.json")
        began = time.monotonic()
        os.kill(json.loads(entry.read_bytes())["pid"], signal.SIGKILL)
        lost = failure(list(await rest))
        assert time.monotonic() - began < 25
        assert (lost.layer, lost.reason) == (Layer.PROCESS, "its program ended: exit 137")
        assert lost.log == str(stage.sessions / "ses_1" / "1" / "stderr")
        assert await claude.inspect("ses_1", one.prompt.delivery_id) is InspectResult.UNKNOWN
        assert (await collect(claude, one))[-1] == lost

        slow = stage.turn("<<stall 30>> ++ <<say too late>>", "ses_2")
        late = failure(await collect(stage.harness(turn=1.5, grace=0.5), slow))
        assert (late.layer, late.reason) == (
            Layer.PROCESS,
            "its program ended: the turn took longer than 1.5 s",
        )

    run_on(loop, main(), 90)


def test_its_provider_may_refuse(
    stage: ProgramStage[Claude], loop: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    claude = stage.harness()

    async def main() -> None:
        limited = (await collect(claude, stage.turn("<<error 429 slow down>>")))[-1]
        assert limited == Limited(reason="API Error: Request rejected (429) · slow down")
        login = failure(await collect(claude, stage.turn("<<error 401 expired>>", door=None)))
        assert (login.layer, login.missing) == (Layer.PROVIDER, Missing.LOGIN)
        assert (await collect(claude, stage.turn("<<say again>>", door=None)))[-1] == Completed(text="again")

        probe = await claude.probe()
        assert (probe.ready, probe.version) == (True, "2.1.325")
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        probe = await claude.probe()
        assert (probe.ready, probe.missing) == (False, Missing.LOGIN)
        missing = failure(await collect(claude, stage.turn("<<say no>>", "ses_2")))
        assert missing.missing is Missing.LOGIN
        monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
        probe = await claude.probe()
        assert (probe.ready, probe.missing) == (False, Missing.BINARY)
        with pytest.raises(Refused) as refused:
            await claude.start(stage.turn("", "ses_3").spec)
        assert isinstance(refused.value.diagnostic, HarnessUnavailable)
        assert "npm install" in refused.value.diagnostic.message

    run_on(loop, main(), 90)


# -- what it may do ------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [PermissionProfile.OBSERVE, PermissionProfile.REVIEW])
def test_who_only_reads_cannot_write(
    stage: ProgramStage[Claude], loop: str, profile: PermissionProfile
) -> None:
    claude = stage.harness()
    (stage.work / "here").write_text("something")
    before = files_below(stage.work)
    write = f'<<force Write {{"file_path": "{stage.work}/new", "content": "x"}}>>'

    async def main() -> None:
        events = await collect(claude, stage.turn(f"{write} <<echo>>", permission=profile))
        last = events[-1]
        assert isinstance(last, Completed)
        assert "No such tool available: Write" in last.text
        one = stage.turn(
            f"<<force Bash {json.dumps({'command': 'touch new'})}>> <<echo>>", permission=profile
        )
        if profile is PermissionProfile.OBSERVE:
            last = (await collect(claude, one))[-1]
            assert isinstance(last, Completed)
            assert "No such tool available: Bash" in last.text
        else:
            need, rest = await wait_for_request(claude, one)
            assert await claude.respond("ses_1", need.request, HumanAnswer(allow=False))
            await rest

    run_on(loop, main(), 90)
    assert files_below(stage.work) == before


def test_only_the_program_itself_writes_into_its_home_and_nothing_is_left(
    stage: ProgramStage[Claude], loop: str, tmp_path: Path
) -> None:
    """The settings of a user stay as they are, byte by byte."""
    stage.home.mkdir()
    settings = stage.home / "settings.json"
    settings.write_text('{"cleanupPeriodDays": 30}')
    (stage.work / ".claude").mkdir()
    (stage.work / ".claude" / "settings.json").write_text("{}")
    before = files_below(stage.work), settings.read_bytes()
    claude = stage.harness()

    async def main() -> None:
        spec: dict[str, Any] = {"idle": 0.2}
        events = await collect(claude, stage.turn("<<say hello>>", **spec))
        assert events[-1] == Completed(text="hello")
        assert [one.live for one in await claude.observe()] == [True]
        tailed = await claude.tail(
            replace(stage.turn("").spec, native_ids=select_kind(Identified, events)[0].native_ids), 0, 100
        )
        assert tailed.lines[-1].text == "hello"
        async with asyncio.timeout(10):
            while await claude.is_warm("ses_1"):  # noqa: ASYNC110 (it rests, and nobody wants it)
                await asyncio.sleep(0.05)
        assert list_left_over(tmp_path / "sessions") == []

    run_on(loop, main(), 90)
    assert (files_below(stage.work), settings.read_bytes()) == before
