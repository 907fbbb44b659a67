"""Sessions that people have open are woken through their own door: leased, knocked, and taken by their own word."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.echo import Echo
from scout.broker.local import LocalScout
from scout.model.access.token import TokenKind
from scout.model.ask import IfUnreachable
from scout.ports import Capabilities, Probe
from scout.protocol.access import CreateToken
from scout.protocol.asks import FlightView, GetFlight, MakeAsk
from scout.protocol.enrolment import Enrol, Enrolled, HookAnswer, HookEvent, ReportHook
from scout.protocol.inbox import GetDelivery
from scout.protocol.sessions import ListSessions
from scout.protocol.talk import Reply, Send
from tests.broker.rig import Rig, advance_clock, open_rig, run_scene, wait_until


class Doorkeeper(Echo):
    """A harness whose live sessions can be woken: it notes who knocked, and says what it was told to say."""

    name = "claude"
    capabilities = Capabilities(live_wake=True)

    def __init__(self, *answers: bool | Exception) -> None:
        super().__init__()
        self.knocks: list[tuple[str, str]] = []
        self.answers = list(answers)

    async def deliver_live(self, native_id: str, text: str) -> bool:
        self.knocks.append((native_id, text))
        answer = self.answers.pop(0) if self.answers else True
        if isinstance(answer, Exception):
            raise answer
        return answer


class OnlyDoors(Doorkeeper):
    """Nothing can be started with it."""

    async def probe(self) -> Probe:
        return Probe(ready=False, hint="it is not installed")


class Scene:
    """A broker, a door, and one session of a person in the project talkie."""

    def __init__(self, rig: Rig, door: Doorkeeper) -> None:
        self.rig = rig
        self.door = door
        self.scout: LocalScout

    async def begin(self) -> Enrolled:
        made = await self.rig.operator(CreateToken(kind=TokenKind.HOST, label="host"))
        self.scout = await self.rig.scout(made.secret)
        return await self.opened()

    async def opened(self, native: str = "n-1", pid: int = 77) -> Enrolled:
        folder = self.rig.home / "talkie"
        folder.mkdir(exist_ok=True)
        process: dict[str, Any] = {"parent_pid": pid, "parent_started": "5"}
        wish = Enrol(cwd=str(folder), harness="claude", native_session_id=native, **process)
        return await self.scout.call(wish)

    async def told(self, session: Enrolled, event: HookEvent, last_text: str = "") -> HookAnswer:
        report = ReportHook(session_id=session.session.id, event=event, last_text=last_text)
        return await self.scout.call(report)

    async def ask(self, session: Enrolled, body: str, **more: Any) -> str:
        to = {} if "target_session_id" in more else {"to": session.address}
        return (await self.rig.operator(MakeAsk(body=body, **to, **more))).flight_id

    async def flight(self, ident: str) -> FlightView:
        return await self.rig.operator(GetFlight(flight_id=ident))

    async def knocked(self, times: int) -> str:
        """What was said at this knock."""
        await wait_until(lambda: len(self.door.knocks) >= times)
        await self.quiet()
        assert len(self.door.knocks) == times
        return self.door.knocks[-1][1]

    async def quiet(self) -> None:
        await wait_until(lambda: not self.rig.broker.dispatcher.lanes)


def play_scene(scene: Any, home: Path, *answers: bool | Exception) -> None:
    async def play(rig: Rig) -> None:
        await scene(Scene(rig, door))

    door = Doorkeeper(*answers)
    run_scene(play, home, harnesses={"claude": door})


def test_an_ask_wakes_an_idle_session_and_the_prompt_hook_is_the_receipt(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        assert session.has_door
        flight = await one.ask(session, "review this\nand that")
        text = await one.knocked(1)
        assert one.door.knocks[0][0] == "n-1"
        assert "> review this\n> and that\n" in text
        assert "asks you and waits for the result" in text
        waking = await one.flight(flight)
        assert (waking.state, waking.phase) == ("queued", "waking")
        assert (await one.told(session, HookEvent.PROMPT_SUBMIT)).context == ""
        assert (await one.flight(flight)).state == "running"
        assert session.token is not None
        await (await one.rig.scout(session.token)).call(Reply(body="fine", in_reply_to=flight))
        assert (await one.flight(flight)).output == "fine"
        assert (await one.told(session, HookEvent.STOP)).context == ""
        assert [one.id for one in (await one.rig.operator(ListSessions())).items] == [session.session.id]

    play_scene(scene, tmp_path)


@pytest.mark.rows("R3.1-6")
def test_a_plain_send_reaches_a_live_session_at_its_next_natural_moment(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        sent = await one.rig.operator(Send(to=session.address, body="by the way"))
        await one.quiet()
        assert one.door.knocks == []
        handed = await one.told(session, HookEvent.STOP)
        assert "> by the way\n" in handed.context
        await one.told(session, HookEvent.PROMPT_SUBMIT)
        (receipt,) = sent.deliveries
        assert (await one.rig.operator(GetDelivery(delivery_id=receipt.delivery_id))).state == "acked"
        assert len((await one.rig.operator(ListSessions())).items) == 1

    play_scene(scene, tmp_path)


def test_a_send_that_wakes_takes_along_what_waits_besides(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        await one.rig.operator(Send(to=session.address, body="by the way"))
        await one.rig.operator(Send(to=session.address, body="now", wake=True))
        text = await one.knocked(1)
        assert "> now\n" in text
        assert "> by the way\n" in text
        await one.told(session, HookEvent.PROMPT_SUBMIT)
        assert (await one.told(session, HookEvent.STOP)).context == ""

    play_scene(scene, tmp_path)


def test_a_session_that_works_takes_it_at_its_stop(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        await one.told(session, HookEvent.PROMPT_SUBMIT)
        flight = await one.ask(session, "review this")
        await one.quiet()
        assert one.door.knocks == []
        assert "> review this\n" in (await one.told(session, HookEvent.STOP)).context
        await one.told(session, HookEvent.PROMPT_SUBMIT)
        assert (await one.flight(flight)).state == "running"

    play_scene(scene, tmp_path)


def test_nobody_knocks_twice_before_there_was_a_sign(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        await one.ask(session, "first")
        await one.knocked(1)
        await one.ask(session, "second")
        await one.quiet()
        assert len(one.door.knocks) == 1
        await one.told(session, HookEvent.PROMPT_SUBMIT)
        told = await one.told(session, HookEvent.STOP, "the first answer")
        assert "> second\n" in told.context
        assert told.notice == "Scout: sent this answer to you."

    play_scene(scene, tmp_path)


@pytest.mark.parametrize("answer", [False, OSError("no such socket")])
def test_what_is_not_let_in_is_given_back_at_once_and_tried_again(
    tmp_path: Path, answer: bool | Exception
) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        flight = await one.ask(session, "review this")
        await one.knocked(1)
        view = await one.flight(flight)
        assert (view.state, view.phase) == ("queued", "retrying")
        assert view.reason == "attempt 1 failed: its session did not accept it"
        await advance_clock(one.rig, 3)
        assert "may be a repeat" in await one.knocked(2)
        await one.told(session, HookEvent.PROMPT_SUBMIT)
        assert (await one.flight(flight)).state == "running"

    play_scene(scene, tmp_path, answer)


def test_what_was_not_let_in_is_there_for_the_sessions_own_moment_at_once(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        flight = await one.ask(session, "review this")
        await one.knocked(1)
        assert "> review this\n" in (await one.told(session, HookEvent.STOP)).context
        await one.told(session, HookEvent.PROMPT_SUBMIT)
        assert (await one.flight(flight)).state == "running"
        await advance_clock(one.rig, 3)
        await one.quiet()
        assert len(one.door.knocks) == 1

    play_scene(scene, tmp_path, False)


def test_after_a_few_refusals_it_stays_for_the_sessions_own_moment_and_says_so(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        flight = await one.ask(session, "review this")
        for number in (1, 2, 3):
            await one.knocked(number)
            await advance_clock(one.rig, 20)
        await one.quiet()
        assert len(one.door.knocks) == 3
        view = await one.flight(flight)
        assert view.state == "queued"
        stays = (
            "handed to its session 3 times without a response; the session takes it when it is next active"
        )
        assert view.reason == f"{stays} (its session did not accept it)"
        assert "> review this\n" in (await one.told(session, HookEvent.STOP)).context

    play_scene(scene, tmp_path, False, False, False)


def test_without_a_sign_the_lease_runs_out_and_it_is_tried_again_a_few_times(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        session = await one.begin()
        flight = await one.ask(session, "review this")
        for number in (1, 2, 3):
            await one.knocked(number)
            await advance_clock(one.rig, 61)
            await advance_clock(one.rig, 20)
        await one.quiet()
        assert len(one.door.knocks) == 3
        view = await one.flight(flight)
        assert view.state == "queued"
        assert view.reason.endswith("the session takes it when it is next active (the lease expired)")

    play_scene(scene, tmp_path)


def test_an_ask_for_one_session_knocks_at_no_other(tmp_path: Path) -> None:
    async def scene(one: Scene) -> None:
        first = await one.begin()
        second = await one.opened("n-2", 78)
        await one.ask(first, "you", target_session_id=first.session.id)
        assert "> you\n" in await one.knocked(1)
        await one.ask(second, "and you", target_session_id=second.session.id)
        assert "> and you\n" in await one.knocked(2)
        assert [native for native, _ in one.door.knocks] == ["n-1", "n-2"]

    play_scene(scene, tmp_path)


def test_what_waited_for_nobody_wakes_the_session_that_comes(tmp_path: Path) -> None:
    async def play(rig: Rig) -> None:
        one = Scene(rig, door)
        session = await one.begin()
        await one.told(session, HookEvent.SESSION_END)
        flight = await one.ask(session, "review this", if_unreachable=IfUnreachable.QUEUE)
        assert (await one.flight(flight)).phase == "held"
        again = await one.opened("n-2", 79)
        assert "> review this\n" in await one.knocked(1)
        await one.told(again, HookEvent.PROMPT_SUBMIT)
        assert (await one.flight(flight)).state == "running"

    door = OnlyDoors()
    run_scene(play, tmp_path, harnesses={"claude": door})


def test_a_broker_that_starts_again_knocks_for_what_waits(tmp_path: Path) -> None:
    door = Doorkeeper(False)

    async def play() -> None:
        async with open_rig(tmp_path, harnesses={"claude": door}) as rig:
            one = Scene(rig, door)
            session = await one.begin()
            flight = await one.ask(session, "review this")
            await one.knocked(1)
        async with open_rig(tmp_path, harnesses={"claude": door}) as rig:
            one = Scene(rig, door)
            await advance_clock(rig, 3)
            await rig.broker.dispatcher.recover()
            assert "> review this\n" in await one.knocked(2)
            assert (await one.flight(flight)).phase == "waking"

    asyncio.run(play())
