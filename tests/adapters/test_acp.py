"""The harness `acp` with an agent of our own: by the suite that every adapter runs, and what is odd about agents."""

import asyncio
import json
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.acp.adapter import Acp
from scout.adapters.persistent.harness import NO_ACCESS
from scout.adapters.persistent.pipe import PipeLimits, list_pipes
from scout.adapters.process.run import reap
from scout.base.refusal import Refused
from scout.model.agent import PermissionProfile
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Accepted,
    Completed,
    Failed,
    Harness,
    HarnessEvent,
    HumanAnswer,
    Identified,
    Limited,
    McpAccess,
    NeedsHuman,
    RequestSettled,
    Said,
    SessionSpec,
    ToolUse,
    TurnProgress,
)
from tests.adapters.conformance import Conformance
from tests.adapters.turns import Turn, collect, first, turn, until
from tests.daemon.daemons import eventually

AGENT = Path(__file__).with_name("acp_agent.py")
DOOR = McpAccess(url="http://127.0.0.1:9/mcp", token="the-token")


@pytest.fixture(autouse=True)
def _programs_are_ended(tmp_path: Path) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction] (pytest calls it)
    """What a test leaves warm would go on for a while: its keeper waits for another broker."""
    yield
    for session in (tmp_path / "sessions").glob("*"):
        asyncio.run(stop_all(session))
    reap()


async def stop_all(session: Path) -> None:
    for pipe in list_pipes(session):
        await pipe.stop("the test is over", PipeLimits())
        await until(lambda pipe=pipe: not pipe.run.is_running())


class Stage:
    """An agent's program with its folder, and turns for it."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.sessions = folder / "sessions"
        self.store = folder / "agent"
        self.store.mkdir(exist_ok=True)
        self.command = (sys.executable, "-I", "-S", str(AGENT), str(self.store), *words)

    def has_the_prompt(self) -> bool:
        """Whether the program has written down what it was told."""
        return any(file.stat().st_size for file in self.store.iterdir())

    def acp(self, **given: Any) -> Acp:
        """An adapter, as after a restart of the broker."""
        return Acp(self.sessions, **given)

    def turn(self, body: str, **spec: Any) -> Turn:
        one = turn(body, *self.command, session=spec.pop("session_id", None) or "ses_x")
        return Turn(replace_fields(one.spec, **{"door": DOOR, **spec}), one.prompt)


def replace_fields(spec: SessionSpec, **fields: Any) -> SessionSpec:
    return SessionSpec(**{name: fields.get(name, getattr(spec, name)) for name in spec.__struct_fields__})


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def run(work: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await asyncio.wait_for(work, 20)

    return asyncio.run(main())


def read_command_line(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


async def play_reply(harness: Harness, one: Turn) -> str:
    """The reply of a turn that went well."""
    last = (await collect(harness, one))[-1]
    assert isinstance(last, Completed), last
    return last.text


async def wait_for_request(stream: Any) -> NeedsHuman:
    """What the program wants of a person; the stream goes on after it."""
    async for event in stream:
        if isinstance(event, NeedsHuman):
            return event
    raise AssertionError("nothing was asked")


async def rest(stream: Any) -> list[HarnessEvent]:
    return [event async for event in stream]


class TestAcp(Conformance):
    @pytest.fixture(autouse=True)
    def _staged(self, tmp_path: Path) -> None:
        self._stage = Stage(tmp_path)
        self._numbers = iter(range(1000))

    def make(self, folder: Path) -> Harness:
        return self._stage.acp()

    def answering(self, body: str) -> Turn:
        return self._turn(body)

    def failing(self) -> Turn:
        return self._turn("!fail it broke")

    def hanging(self) -> Turn:
        return self._turn("!hang")

    def _turn(self, body: str) -> Turn:
        return self._stage.turn(body, session_id=f"ses_{next(self._numbers)}")


# -- what is told, and what comes back ------------------------------------------------------------


def test_a_session_goes_on_in_one_program_and_after_its_end_in_another(stage: Stage) -> None:
    async def main() -> None:
        acp = stage.acp()
        events = await collect(acp, stage.turn("one"))
        identified = next(one for one in events if isinstance(one, Identified))
        assert identified.model == "small"
        assert await acp.is_warm("ses_x")
        assert await play_reply(acp, stage.turn("!recall", door=None)) == "one"  # warm: it has its door
        await acp.stop("ses_x")
        assert not await acp.is_warm("ses_x")
        cold = (await collect(acp, stage.turn("x", door=None)))[-1]
        assert cold == Failed(layer=Layer.PROCESS, reason=NO_ACCESS, again=True)
        resumed = stage.turn("!recall", native_ids=identified.native_ids)
        assert await play_reply(acp, resumed) == "one | !recall"
        assert len(list_pipes(stage.sessions / "ses_x")) == 2

    run(main())


def test_after_a_restart_the_same_turn_is_read_again_and_nothing_is_told_twice(stage: Stage) -> None:
    async def main() -> None:
        hanging = stage.turn("!ask")
        stream = stage.acp().deliver(hanging.spec, hanging.prompt)
        before = await wait_for_request(stream)
        await stream.aclose()  # pyright: ignore (it is a generator)

        later = stage.acp()
        assert await later.inspect("ses_x", hanging.prompt.delivery_id) is InspectResult.TAKEN
        cold = replace_fields(hanging.spec, door=None)
        stream = later.deliver(cold, hanging.prompt)
        assert isinstance(await anext(stream), Accepted)
        assert await wait_for_request(stream) == before
        assert await later.respond("ses_x", before.request, HumanAnswer(allow=True))
        assert not await later.respond("ses_x", before.request, HumanAnswer(allow=True))
        after = await rest(stream)
        assert RequestSettled(request=before.request) in after
        assert after[-1] == Completed(text="they said yes")

        again = await collect(stage.acp(), Turn(cold, hanging.prompt))
        assert again[-1] == after[-1]
        assert not [one for one in again if isinstance(one, NeedsHuman)]
        assert await play_reply(stage.acp(), stage.turn("!recall", door=None)) == "!ask"

    run(main())


@pytest.mark.parametrize(
    ("answer", "option"),
    [
        (HumanAnswer(allow=True), "yes"),
        (HumanAnswer(allow=True, text="yes, ALWAYS"), "ever"),
        (HumanAnswer(allow=True, text="as you like"), "yes"),
        (HumanAnswer(allow=False), "no"),
        (HumanAnswer(allow=False, text="Yes, always"), "no"),
    ],
)
def test_a_persons_word_becomes_one_of_the_options(stage: Stage, answer: HumanAnswer, option: str) -> None:
    async def main() -> None:
        acp, one = stage.acp(), stage.turn("!ask")
        stream = acp.deliver(one.spec, one.prompt)
        needs = await wait_for_request(stream)
        assert needs.question == "May it use make a thing (execute)?"
        assert needs.wish is not None
        assert needs.wish.command == "make"
        assert needs.options == ("Yes", "Yes, always", "No")
        assert not await acp.respond("ses_x", "1.99", answer)
        assert not await acp.respond("ses_other", needs.request, answer)
        assert await acp.respond("ses_x", needs.request, answer)
        events = await rest(stream)
        assert Said(text="let me see") in events
        assert events[-1] == Completed(text=f"they said {option}")

    run(main())


def test_scouts_own_tools_need_no_person(stage: Stage) -> None:
    events = run(collect(stage.acp(), stage.turn("!scout")))
    assert ToolUse(name="make a thing", detail="execute") in events
    assert not [one for one in events if isinstance(one, NeedsHuman)]
    assert events[-1] == Completed(text="they said yes")


def test_an_interrupt_also_ends_what_a_person_was_asked(stage: Stage) -> None:
    async def main() -> None:
        acp, one = stage.acp(), stage.turn("!ask")
        stream = acp.deliver(one.spec, one.prompt)
        await wait_for_request(stream)
        assert await acp.interrupt("ses_x", one.prompt.delivery_id)
        assert (await rest(stream))[-1] == Failed(layer=Layer.SESSION, reason="interrupted")
        assert await play_reply(acp, stage.turn("go on")) == "go on"

    run(main())


def test_an_agent_that_does_not_heed_an_interrupt_is_ended(stage: Stage) -> None:
    async def main() -> None:
        acp, one = stage.acp(limits=PipeLimits(grace=0.2)), stage.turn("!stubborn")
        _, rest = await first(acp, one)
        assert await acp.interrupt("ses_x", one.prompt.delivery_id)
        last = (await rest)[-1]
        assert isinstance(last, Failed)
        assert (last.layer, last.reason) == (Layer.SESSION, "interrupted")
        assert not await acp.is_warm("ses_x")
        assert (await collect(stage.acp(), one))[-1] == last

    run(main())


@pytest.mark.parametrize(
    ("body", "end"),
    [
        ("!refusal", Failed(layer=Layer.PROVIDER, reason="the model refused to continue")),
        ("!fail it broke", Failed(layer=Layer.HARNESS, reason="it broke")),
        ("!fail API Error: 500 no", Failed(layer=Layer.PROVIDER, reason="API Error: 500 no")),
        ("!login", Failed(layer=Layer.PROVIDER, reason="Authentication required", missing=Missing.LOGIN)),
        ("!limit", Limited(reason="no more")),
        ("!file /etc/passwd", Completed(text="-32601")),
    ],
)
def test_how_a_turn_ends(stage: Stage, body: str, end: HarnessEvent) -> None:
    assert run(collect(stage.acp(), stage.turn(body)))[-1] == end


def test_a_plan_is_a_sign_of_life(stage: Stage) -> None:
    events = run(collect(stage.acp(), stage.turn("!plan")))
    assert TurnProgress(text="plan: 1 of 2 done, now two") in events


# -- its program ----------------------------------------------------------------------------------


def test_a_program_that_dies_is_told_with_its_last_words(stage: Stage) -> None:
    async def main() -> None:
        one = stage.turn("!die of sorrow")
        last = (await collect(stage.acp(), one))[-1]
        assert isinstance(last, Failed)
        assert (last.layer, last.missing) == (Layer.PROCESS, None)
        assert last.reason == "its program ended: exit 3: of sorrow"
        assert last.log == str(stage.sessions / "ses_x" / "1" / "stderr")
        assert (await collect(stage.acp(), one))[-1] == last

    run(main())


def test_a_program_that_was_killed_leaves_a_session_that_goes_on(stage: Stage) -> None:
    async def main() -> None:
        acp, one = stage.acp(), stage.turn("!hang")
        started = await acp.start(one.spec)
        _, rest = await first(acp, one)
        assert started.pid is not None
        (pipe,) = list_pipes(stage.sessions / "ses_x")
        await asyncio.to_thread(eventually, stage.has_the_prompt, 30)
        for member in pipe.run.members():
            os.kill(member.pid, signal.SIGKILL)
        last = (await rest)[-1]
        assert isinstance(last, Failed)
        assert last.layer is Layer.PROCESS
        assert await play_reply(acp, stage.turn("!recall", native_ids=started.native_ids)) == "!hang"

    run(main())


def test_a_turn_that_takes_too_long_or_says_too_much_is_ended(stage: Stage) -> None:
    async def main() -> None:
        quick = stage.acp(limits=PipeLimits(turn=0.3))
        last = (await collect(quick, stage.turn("!stubborn")))[-1]
        assert isinstance(last, Failed)
        assert "longer than 0.3 s" in last.reason
        brief = stage.acp(limits=PipeLimits(output=20_000))
        last = (await collect(brief, stage.turn("!flood 30000", session_id="ses_y")))[-1]
        assert isinstance(last, Failed)
        assert "more than 20000 bytes" in last.reason

    run(main())


def test_an_idle_program_ends_and_one_that_is_kept_warm_stays(stage: Stage) -> None:
    async def main() -> None:
        acp = stage.acp()
        await collect(acp, stage.turn("x", session_id="ses_kept", idle=None))
        await collect(acp, stage.turn("x", idle=0.05))
        (idle,) = list_pipes(stage.sessions / "ses_x")
        await until(lambda: not idle.is_running)
        assert idle.end_reason == "it was idle"
        assert await acp.is_warm("ses_kept")

    run(main())


def test_the_token_is_only_where_nobody_else_reads(stage: Stage) -> None:
    async def main() -> None:
        acp, one = stage.acp(), stage.turn("!session", environment={"SCOUT_X": "y"})
        session = json.loads(await play_reply(acp, one))
        header = {"name": "Authorization", "value": "Bearer the-token"}
        server = {"type": "http", "name": "scout_run", "url": DOOR.url, "headers": [header]}
        assert session["servers"] == [server]
        assert await play_reply(acp, stage.turn("!env SCOUT_X")) == "y"
        (pipe,) = list_pipes(stage.sessions / "ses_x")
        for member in pipe.run.members():
            assert b"the-token" not in read_command_line(member.pid)
        holders = [
            one for one in stage.sessions.rglob("*") if one.is_file() and b"the-token" in one.read_bytes()
        ]
        assert {one.name for one in holders} == {"in", "stdout"}  # it was asked to say it
        assert {stat.S_IMODE(one.stat().st_mode) for one in holders} == {0o600}
        assert stat.S_IMODE(pipe.run.folder.stat().st_mode) == 0o700

    run(main())


def test_only_the_variables_that_it_may_have_come_to_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET", "no")
    monkeypatch.setenv("AGENT_KEY", "yes")

    async def main() -> None:
        acp = stage.acp(environment=("AGENT_*",))
        assert await play_reply(acp, stage.turn("!env AGENT_KEY")) == "yes"
        assert await play_reply(acp, stage.turn("!env AWS_SECRET")) == "nothing"

    run(main())


# -- which session --------------------------------------------------------------------------------


async def _end_session(stage: Stage) -> str:
    """What a session with one turn was called, now that its program has ended."""
    acp = stage.acp()
    started = await acp.start(stage.turn("").spec)
    await collect(acp, stage.turn("remember"))
    await acp.stop("ses_x")
    return started.native_ids["session"]


@pytest.mark.parametrize("words", [(), ("no-load",), ("no-resume",), ("no-resume", "liar")])
def test_it_goes_on_with_exactly_the_session_or_with_none(tmp_path: Path, words: tuple[str, ...]) -> None:
    async def main() -> None:
        native = await _end_session(Stage(tmp_path))
        stage = Stage(tmp_path, *words)
        one = stage.turn("!recall", native_ids={"session": native})
        events = await collect(stage.acp(), one)
        assert events[-1] == Completed(text="remember")
        assert "user_message_chunk" not in str(events)  # what is said again while loading is not of the turn
        other = stage.turn("!recall", session_id="ses_y", native_ids={"session": "unknown"})
        last = (await collect(stage.acp(), other))[-1]
        assert isinstance(last, Failed)
        assert (last.layer, last.again) == (Layer.HARNESS, False)
        assert "unknown" in last.reason

    run(main())


def test_an_agent_that_makes_up_what_it_does_not_know_is_not_believed(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "forgetful", "no-resume")
    one = stage.turn("x", native_ids={"session": "unknown"})
    last = run(collect(stage.acp(), one))[-1]
    assert isinstance(last, Failed)
    assert last.reason == "the agent has no messages of session unknown"


def test_a_session_in_which_nothing_was_said_begins_anew(stage: Stage) -> None:
    async def main() -> None:
        acp = stage.acp()
        started = await acp.start(stage.turn("").spec)
        await acp.stop("ses_x")
        again = await acp.start(stage.turn("", native_ids=started.native_ids).spec)
        assert again.native_ids != started.native_ids

    run(main())


def test_a_session_is_attached_when_the_agent_has_it(stage: Stage) -> None:
    async def main() -> None:
        native = await _end_session(stage)
        acp, spec = stage.acp(), stage.turn("", session_id="ses_y", door=None).spec
        attached = await acp.attach(spec, native)
        assert attached.native_ids == {"session": native}
        assert attached.pid is None
        assert not await acp.is_warm("ses_y")
        one = stage.turn("!recall", session_id="ses_y", native_ids=attached.native_ids)
        assert await play_reply(acp, one) == "remember"
        with pytest.raises(Refused, match="under another name"):
            await acp.attach(spec, "another")

    run(main())


def test_a_session_begins_as_a_copy_where_the_agent_can_do_that(tmp_path: Path) -> None:
    async def main() -> None:
        native = await _end_session(Stage(tmp_path))
        stage = Stage(tmp_path)
        events = await collect(stage.acp(), stage.turn("!recall", session_id="ses_y", fork_of=native))
        assert events[-1] == Completed(text="remember")
        assert Identified(native_ids={"session": native}, model="small") not in events
        unable = Stage(tmp_path, "no-fork")
        with pytest.raises(Refused, match="cannot fork a session"):
            await unable.acp().start(unable.turn("", session_id="ses_z", fork_of=native).spec)

    run(main())


# -- how it begins --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "mode"),
    [("observe", "plan"), ("review", "default"), ("workspace_write", "acceptEdits"), ("trusted", "yolo")],
)
def test_a_profile_is_a_mode_of_the_agent(stage: Stage, profile: str, mode: str) -> None:
    one = stage.turn("!session", permission=PermissionProfile(profile))
    assert json.loads(run(play_reply(stage.acp(), one)))["mode"] == mode


def test_without_modes_it_is_never_less_careful_than_it_was_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "no-modes")
    observing = stage.turn("x", permission=PermissionProfile.OBSERVE)
    last = run(collect(stage.acp(), observing))[-1]
    assert isinstance(last, Failed)
    assert "no mode for the permission profile observe" in last.reason
    assert run(play_reply(stage.acp(), stage.turn("x", session_id="ses_y"))) == "x"


def test_a_model_is_set_by_its_name_or_refused(stage: Stage) -> None:
    one = stage.turn("!session", model="Large")
    assert json.loads(run(play_reply(stage.acp(), one)))["model"] == "large"
    last = run(collect(stage.acp(), stage.turn("x", session_id="ses_y", model="huge")))[-1]
    assert isinstance(last, Failed)
    assert last.reason == "the agent has no model huge; it has small, large"


def test_a_key_in_the_environment_lets_it_in_and_without_one_a_person_must(tmp_path: Path) -> None:
    stage = Stage(tmp_path, "locked")
    keyed = stage.turn("hello", environment={"AGENT_KEY": "k"})
    assert run(play_reply(stage.acp(), keyed)) == "hello"
    last = run(collect(stage.acp(), stage.turn("x", session_id="ses_y")))[-1]
    assert isinstance(last, Failed)
    assert (last.layer, last.missing) == (Layer.PROVIDER, Missing.LOGIN)
    with pytest.raises(Refused) as refused:
        run(stage.acp().start(stage.turn("x", session_id="ses_z").spec))
    assert refused.value.diagnostic.code == "harness_unavailable"


def test_an_agent_of_another_version_or_without_a_way_to_scout(tmp_path: Path) -> None:
    old = Stage(tmp_path, "old")
    with pytest.raises(Refused, match="version 2 of the protocol"):
        run(old.acp().start(old.turn("").spec))
    poor = Stage(tmp_path, "no-http")
    assert json.loads(run(play_reply(poor.acp(), poor.turn("!session", session_id="ses_y"))))["servers"] == []


def test_an_agent_that_ends_before_it_says_anything(stage: Stage) -> None:
    one = turn("x", sys.executable, "-c", "raise SystemExit('not today')", session="ses_x")
    last = run(collect(stage.acp(), Turn(replace_fields(one.spec, door=DOOR), one.prompt)))[-1]
    assert isinstance(last, Failed)
    assert "not today" in last.reason
    assert last.log is not None


@pytest.mark.parametrize("command", [(), ("no-such-agent",)])
def test_without_a_program_it_says_how_to_name_one(stage: Stage, command: tuple[str, ...]) -> None:
    one = turn("x", *command, session="ses_x")
    spec = replace_fields(one.spec, door=DOOR)
    with pytest.raises(Refused) as refused:
        run(stage.acp().start(spec))
    diagnostic = refused.value.diagnostic
    assert diagnostic.code == "harness_unavailable"
    assert "scout agent config @tester" in diagnostic.message
    assert [remedy.operation for remedy in diagnostic.remedies] == ["agent.config"]
    last = run(collect(stage.acp(), Turn(spec, one.prompt)))[-1]
    assert isinstance(last, Failed)
    assert last.missing is Missing.BINARY


def test_a_preset_has_its_program_and_says_when_it_lacks(stage: Stage) -> None:
    made = stage.acp(name="gemini", program=("no-such-gemini", "--acp"))
    probe = run(made.probe())
    assert (made.name, made.capabilities.needs_command) == ("gemini", False)
    assert (probe.ready, probe.missing) == (False, Missing.BINARY)
    assert "no-such-gemini" in probe.hint
    assert run(stage.acp().probe()).ready
    ours = stage.acp(name="gemini", program=stage.command)
    assert run(play_reply(ours, stage.turn("hello", command=()))) == "hello"


def test_it_may_only_begin_where_its_directory_is(stage: Stage, tmp_path: Path) -> None:
    last = run(collect(stage.acp(), stage.turn("x", cwd=str(tmp_path / "gone"))))[-1]
    assert isinstance(last, Failed)
    assert "does not exist" in last.reason
