"""The real Codex, by the suite that every adapter runs and by what only it does."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from scout.adapters.codex.adapter import Codex
from scout.base.refusal import Refused
from scout.model.delivery import InspectResult
from scout.model.problems.session import HarnessUnavailable, Layer, Missing
from scout.ports import (
    Accepted,
    Asked,
    Completed,
    Failed,
    HumanAnswer,
    Identified,
    Limited,
    RequestSettled,
    ToolUse,
    TurnUsage,
)
from tests.adapters.program_stage import (
    ProgramConformance,
    ProgramStage,
    codex_stage,
    collect_rest,
    files_below,
    select_kind,
    wait_for_request,
)
from tests.adapters.turns import Turn, collect, list_left_over, run_on, until

# The first to come here installs the program; once it is there, a test takes a second or two.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ProgramStage[Codex]]:
    with codex_stage(tmp_path, monkeypatch) as made:
        yield made


@pytest.fixture
def loop() -> str:
    """The daemon's own: a real program is slow enough for one of them."""
    return "uvloop"


class TestCodex(ProgramConformance):
    hang = "<<sleep 30>>"


def command(words: str, **more: str) -> str:
    return f"<<tool exec_command {json.dumps({'cmd': words, **more})}>>"


def outside(words: str) -> str:
    """A command that its sandbox does not let through."""
    return command(words, sandbox_permissions="require_escalated", justification="It must be.")


# -- its session ---------------------------------------------------------------------------------------


def test_a_session_goes_on_in_the_same_program_and_after_it(stage: ProgramStage[Codex], loop: str) -> None:
    codex = stage.harness()

    async def main() -> None:
        one = stage.turn('Remember blue. <<tool count {"word": "w"}>> <<say noted>>')
        started = await codex.start(one.spec)
        assert await codex.start(one.spec) == started
        events = await collect(codex, one)
        assert events[:2] == [
            Accepted(pid=started.pid, pid_started=started.pid_started),
            Identified(native_ids=started.native_ids, model="gpt-5"),
        ]
        assert select_kind(ToolUse, events) == [ToolUse(name="scout_run/count", detail='{"word": "w"}')]
        spent = TurnUsage(prompt_tokens=20, completion_tokens=20, model="gpt-5", estimated=False)
        assert events[-2:] == [spent, Completed(text="noted")]
        assert (stage.door.words, stage.door.tokens) == (["w"], {"a-token"})

        again = await collect(codex, stage.turn("Go on. <<say still here>>", door=None))
        assert select_kind(Accepted, again) == select_kind(Accepted, events)
        assert select_kind(TurnUsage, again)[0].prompt_tokens == 10  # of this turn alone
        assert any("Remember blue." in words for words in stage.heard)

        await codex.stop("ses_1")
        assert not await codex.is_warm("ses_1")
        (cold,) = await collect(codex, stage.turn("<<say no>>", door=None))
        assert isinstance(cold, Failed)
        assert (cold.layer, cold.again) == (Layer.PROCESS, True)
        ids = started.native_ids
        resumed = await collect(codex, stage.turn("And now? <<say back>>", native_ids=ids))
        assert select_kind(Accepted, resumed) != select_kind(Accepted, events)
        assert select_kind(Identified, resumed) == select_kind(Identified, events)
        assert resumed[-1] == Completed(text="back")
        assert any("Remember blue." in words for words in stage.heard)
        opened = await codex.open(stage.turn("", native_ids=ids).spec)
        assert opened.command == ("codex", "resume", ids["thread"])
        assert opened.environment == {"CODEX_HOME": str(stage.home)}

    settings = (stage.home / "config.toml").read_bytes()
    run_on(loop, main())
    assert list(stage.work.iterdir()) == []
    written = files_below(stage.home)
    assert written[str(stage.home / "config.toml")] == settings
    assert not [name for name, data in written.items() if b"a-token" in data]
    assert not [name for name, data in files_below(stage.sessions).items() if b"a-token" in data]


def test_exactly_this_thread_or_none(stage: ProgramStage[Codex], loop: str) -> None:
    """Attached, held by one program only, forked; and one in which nothing was said is begun anew."""
    codex = stage.harness()

    async def main() -> None:
        one = stage.turn("Remember blue. <<say noted>>")
        (identified,) = select_kind(Identified, await collect(codex, one))
        thread = identified.native_ids["thread"]
        other = stage.turn("", session="ses_2").spec
        for wanted, reason in ((thread, "it is open in another program"), ("nobody", "no such session")):
            with pytest.raises(Refused, match=reason):
                await codex.attach(other, wanted)
        with pytest.raises(Refused, match="already has an active writer") as refused:
            await codex.start(replace(other, native_ids={"thread": thread}))
        assert refused.value.diagnostic.code == "session_not_attachable"

        forked = stage.turn("Go on. <<say forked>>", session="ses_3", fork_of=thread)
        events = await collect(codex, forked)
        assert events[-1] == Completed(text="forked")
        assert select_kind(Identified, events)[0].native_ids["thread"] != thread
        assert any("Remember blue." in words for words in stage.heard)

        await codex.stop("ses_1")
        assert (await codex.attach(other, thread)).native_ids == {"thread": thread}
        taken = stage.turn("Go on. <<say taken>>", session="ses_2", native_ids={"thread": thread})
        assert (await collect(codex, taken))[-1] == Completed(text="taken")

        unsaid = stage.turn("<<say first>>", session="ses_4")
        ids = (await codex.start(unsaid.spec)).native_ids
        with pytest.raises(Refused, match="it has no turns yet"):
            await codex.open(replace(unsaid.spec, native_ids=ids))
        await codex.stop("ses_4")
        begun = Turn(replace(unsaid.spec, native_ids=ids), unsaid.prompt)
        assert (await collect(codex, begun))[-1] == Completed(text="first")
        gone = stage.turn(
            "<<say no>>", session="ses_5", native_ids={"thread": "01a1e2d0-2add-76c1-8b97-000000000000"}
        )
        (failed,) = await collect(codex, gone)
        assert isinstance(failed, Failed)
        assert (failed.layer, failed.again) == (Layer.SESSION, False)
        assert "no rollout found" in failed.reason

    run_on(loop, main())


# -- people --------------------------------------------------------------------------------------------


def test_a_person_allows_or_denies_also_after_a_restart(
    stage: ProgramStage[Codex], loop: str, tmp_path: Path
) -> None:
    before, after = stage.harness(), stage.harness()
    made = tmp_path / "made"

    async def main() -> None:
        one = stage.turn(f"{outside(f'echo ran >> {made}')} <<say done>>")
        needed, rest = await wait_for_request(before, one)
        assert needed.kind is Asked.PERMISSION
        assert needed.question == "May it run this command outside its sandbox? It must be."
        assert needed.wish is not None
        assert f"echo ran >> {made}" in (needed.wish.command or "")
        again, other = await wait_for_request(after, one)
        assert again == needed
        assert not made.exists()
        assert await after.respond("ses_1", needed.request, HumanAnswer(allow=True))
        assert not await after.respond("ses_1", needed.request, HumanAnswer(allow=True))
        ended, same = await rest, await other
        assert ended[-1] == same[-1] == Completed(text="done")
        assert select_kind(RequestSettled, same) == [RequestSettled(request=needed.request)]
        assert made.read_text() == "ran\n"

        denied = stage.turn(f"{outside(f'echo ran >> {made}')} <<echo>>", door=None)
        needed, rest = await wait_for_request(after, denied)
        assert await after.respond("ses_1", needed.request, HumanAnswer(allow=False))
        (end,) = select_kind(Completed, await rest)
        assert "rejected by user" in end.text
        assert made.read_text() == "ran\n"

        options = [{"label": name, "description": name} for name in ("red", "green")]
        choice = {"id": "q", "header": "Colour", "question": "Which colour?", "options": options}
        question = f"<<tool request_user_input {json.dumps({'questions': [choice]})}>> <<echo>>"
        needed, rest = await wait_for_request(after, stage.turn(question, door=None))
        assert (needed.kind, needed.question) == (Asked.QUESTION, "Which colour?")
        assert needed.options == ("red", "green")
        assert await after.respond("ses_1", needed.request, HumanAnswer(allow=True, text="green"))
        (end,) = select_kind(Completed, await rest)
        assert '"answers":["green"]' in end.text
        assert not await after.respond("ses_1", "7/0", HumanAnswer(allow=True))
        assert not await after.respond("ses_none", needed.request, HumanAnswer(allow=True))

    run_on(loop, main())


def test_something_is_said_into_a_turn(stage: ProgramStage[Codex], loop: str) -> None:
    codex = stage.harness()

    async def main() -> None:
        assert not await codex.steer("ses_1", "hello")
        one = stage.turn(f"{command('sleep 0.6')} <<say first>> <<say no>>")
        stream = codex.deliver(one.spec, one.prompt)
        async for event in stream:
            if isinstance(event, ToolUse):
                break
        assert await codex.steer("ses_1", "Listen! <<say steered>>")
        assert (await collect_rest(stream))[-1] == Completed(text="steered")
        assert not await codex.steer("ses_1", "too late")

    run_on(loop, main())


# -- ends ----------------------------------------------------------------------------------------------


def test_a_restart_in_the_middle_collects_the_same_result(stage: ProgramStage[Codex], loop: str) -> None:
    async def main() -> None:
        one = stage.turn(f'<<tool count {{"word": "once"}}>> {command("sleep 0.5")} <<say done>>')
        before = stage.harness().deliver(one.spec, one.prompt)
        async for event in before:
            if isinstance(event, ToolUse):
                break
        after = stage.harness()
        assert await after.is_warm("ses_1")
        assert await after.inspect("ses_1", one.prompt.delivery_id) is InspectResult.TAKEN
        events = await collect(after, Turn(replace(one.spec, door=None), one.prompt))
        assert isinstance(events[0], Accepted)
        assert events[-1] == Completed(text="done")
        assert (await collect_rest(before))[-1] == events[-1]
        assert stage.door.words == ["once"]
        assert len([one for one in stage.model.log if "count" in str(one.calls)]) == 1

    run_on(loop, main())


def test_a_program_that_is_killed_is_explained_and_followed_by_another(
    stage: ProgramStage[Codex], loop: str, tmp_path: Path
) -> None:
    codex = stage.harness()

    async def main() -> None:
        told = stage.turn("Remember blue. <<say noted>>")
        ids = select_kind(Identified, await collect(codex, told))[0].native_ids
        one = stage.turn(f"{command('sleep 60')} <<say no>>")
        stream = codex.deliver(one.spec, one.prompt)
        async for event in stream:
            if isinstance(event, ToolUse):
                break
        os.kill(_find_program(tmp_path), signal.SIGKILL)
        last = (await collect_rest(stream))[-1]
        assert isinstance(last, Failed)
        assert (last.layer, last.again) == (Layer.PROCESS, False)
        assert "exit 137" in last.reason
        assert last.log == str(stage.sessions / "ses_1" / "1" / "stderr")
        assert await codex.inspect("ses_1", one.prompt.delivery_id) is InspectResult.TAKEN
        assert (await collect(codex, one))[-1] == last
        await until(lambda: not list_left_over(tmp_path), 30)

        after = stage.turn("Go on. <<say back>>", native_ids=ids)
        assert (await collect(codex, after))[-1] == Completed(text="back")
        assert any("Remember blue." in words for words in stage.heard)
        await codex.stop("ses_1")

        output = stage.sessions / "ses_1" / "2" / "stdout"  # it finished, and died before it said so
        lines = output.read_bytes().splitlines(keepends=True)
        output.write_bytes(b"".join(line for line in lines if b'"turn/completed"' not in line))
        assert (await collect(stage.harness(), after))[-1] == Completed(text="back")

    run_on(loop, main())


def _find_program(folder: Path) -> int:
    """The app server itself, not those who hold it."""
    (pid,) = (
        int(line.split()[0])
        for line in list_left_over(folder)
        if line.endswith("'app-server', '']") and "keeper" not in line and "'sh'" not in line
    )
    return pid


def test_an_interrupted_turn_takes_its_commands_along(
    stage: ProgramStage[Codex], loop: str, tmp_path: Path
) -> None:
    codex = stage.harness()

    async def main() -> None:
        one = stage.turn(f"{command('sleep 60')} <<say no>>")
        stream = codex.deliver(one.spec, one.prompt)
        async for event in stream:
            if isinstance(event, ToolUse):
                break
        assert await codex.interrupt("ses_1", one.prompt.delivery_id)
        assert list_left_over(tmp_path) == []
        last = (await collect_rest(stream))[-1]
        assert last == Failed(layer=Layer.SESSION, reason="interrupted")
        assert (await collect(stage.harness(), one))[-1] == last
        after = stage.turn("<<say back>>")
        assert (await collect(codex, after))[-1] == Completed(text="back")
        assert any("sleep 60" in words for words in stage.heard)

        slow = stage.turn("<<sleep 30>> ++ <<say no>>", session="ses_2")
        events = await collect(stage.harness(turn=0.5), slow)
        assert isinstance(events[-1], Failed)
        assert (events[-1].layer, events[-1].reason) == (
            Layer.PROCESS,
            "its program ended: the turn took longer than 0.5 s",
        )

    run_on(loop, main())


def test_what_a_provider_refuses(
    stage: ProgramStage[Codex], loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A usage limit, an expired login, no login, no program."""
    codex = stage.harness()

    async def main() -> None:
        resets = int(time.time()) + 3600
        limit = json.dumps({"type": "usage_limit_reached", "plan_type": "plus", "resets_at": resets})
        limited = (await collect(codex, stage.turn(f"<<error 429 {limit}>>")))[-1]
        assert isinstance(limited, Limited)
        assert limited.until is not None
        assert 0 <= limited.until / 1_000_000 - resets <= 60
        expired = (await collect(codex, stage.turn("<<error 401 expired>>", door=None)))[-1]
        assert isinstance(expired, Failed)
        assert (expired.layer, expired.missing) == (Layer.PROVIDER, Missing.LOGIN)
        assert (await collect(codex, stage.turn("<<say again>>", door=None)))[-1] == Completed(text="again")
        probe = await codex.probe()
        assert (probe.ready, probe.version) == (True, "0.166.0")

        monkeypatch.delenv("MODEL_KEY")
        probe = await codex.probe()
        assert (probe.ready, probe.missing) == (False, Missing.LOGIN)
        assert "codex login" in probe.hint
        absent = (await collect(codex, stage.turn("<<say no>>", session="ses_2")))[-1]
        assert isinstance(absent, Failed)
        assert absent.missing is Missing.LOGIN

        monkeypatch.setenv("PATH", "/nowhere")
        probe = await codex.probe()
        assert (probe.ready, probe.missing) == (False, Missing.BINARY)
        with pytest.raises(Refused) as refused:
            await codex.start(stage.turn("", session="ses_3").spec)
        diagnostic = refused.value.diagnostic
        assert isinstance(diagnostic, HarnessUnavailable)
        assert diagnostic.missing is Missing.BINARY
        assert "npm install" in diagnostic.message
        (failed,) = await collect(codex, stage.turn("", session="ses_3"))
        assert isinstance(failed, Failed)
        assert failed.missing is Missing.BINARY

    run_on(loop, main())
