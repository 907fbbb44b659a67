"""Parents are told when a child finishes, fails, waits or dies; nobody else is."""

import asyncio
from pathlib import Path
from typing import Any

from scout.broker.effects import session_end
from scout.broker.local import LocalScout
from scout.model.ask import ReplyMode
from scout.model.endpoint import EndpointState, Transport
from scout.model.session import Session
from scout.model.waiting import WaitingKind
from scout.protocol.access import CreateToken
from scout.protocol.agents import ConfigureAgent, RetireAgent, ShowAgent
from scout.protocol.asks import (
    BlockFlight,
    CancelFlight,
    CompleteFlight,
    FailFlight,
    GetFlight,
    MakeAsk,
    StartFlight,
)
from scout.protocol.attention import Need
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.inbox import AckInbox, ClaimInbox
from scout.protocol.questions import CreateQuestion
from scout.protocol.sessions import StartSession, StopSession
from scout.protocol.talk import Send
from scout.protocol.work import (
    AcceptWork,
    CancelWork,
    CreateWork,
    ResumeWork,
    StartWork,
    SubmitWork,
    WaitWork,
)
from tests.broker.rig import (
    Rig,
    as_test,
    inbox_bodies,
    inbox_items,
    online_agent,
    open_rig,
    poll_until_finished,
    wait_until,
    write_program,
)

CHILD = "/ada/agent/arc/sub/0"


async def family(rig: Rig, **parent: Any) -> tuple[LocalScout, LocalScout]:
    """A parent and its child, which reads its own inbox."""
    arc = await rig.agent("arc", **parent)
    await arc.call(Send(to=CHILD, body="begin", create={"name": "helper"}))
    rig.tokens["child"] = (await rig.operator(CreateToken(agent=CHILD))).secret
    child = await rig.agent("child")
    await child.call(RegisterEndpoint(transport=Transport.PULL, state=EndpointState.IDLE))
    mail = await child.call(ClaimInbox())
    await child.call(AckInbox(delivery_ids=tuple(one.delivered.id for one in mail.items)))
    return arc, child


async def asked(asker: LocalScout, child: LocalScout, body: str = "Add a test.", **more: Any) -> str:
    """An ask that the child has taken."""
    made = await asker.call(MakeAsk(to=CHILD, body=body, **more))
    await child.call(StartFlight(flight_id=made.flight_id))
    return made.flight_id


async def told(rig: Rig) -> list[str]:
    """The first line of each message that waits for the parent."""
    return [body.splitlines()[0] for body in await inbox_bodies(rig, "arc")]


@as_test
async def test_a_parent_is_told_that_its_child_finished_and_nobody_else_is(rig: Rig) -> None:
    _, child = await family(rig)
    await online_agent(rig, "beside")
    flight = await asked(await rig.scout(), child)
    await child.call(CompleteFlight(flight_id=flight, output="Done: 3 tests."))
    assert await inbox_bodies(rig, "arc") == [
        f"{CHILD} finished: Add a test.\nDone: 3 tests.\nflight {flight}"
    ]
    (item,) = await inbox_items(rig, "arc")
    assert item.message is not None
    assert (item.message.kind, item.delivery is not None and item.delivery.wake) == ("status", False)
    assert await inbox_bodies(rig, "beside") == []


@as_test
async def test_the_parent_that_asked_gets_the_answer_and_no_second_message(rig: Rig) -> None:
    arc, child = await family(rig)
    flight = await asked(arc, child, reply_mode=ReplyMode.NOTIFY)
    await child.call(CompleteFlight(flight_id=flight, output="Done."))
    assert await told(rig) == ["Done."]


@as_test
async def test_an_answer_that_the_parent_would_have_to_fetch_is_told(rig: Rig) -> None:
    arc, child = await family(rig)
    flight = await asked(arc, child)
    await child.call(CompleteFlight(flight_id=flight, output="Done."))
    assert await inbox_bodies(rig, "arc") == [f"{CHILD} finished: Add a test.\nDone.\nflight {flight}"]
    for more in ({"reply_mode": ReplyMode.NONE}, {"reply_to": "operator"}):
        flight = await asked(arc, child, **more)
        await child.call(CompleteFlight(flight_id=flight, output="Done."))
    assert len(await told(rig)) == 1


@as_test
async def test_a_parent_that_waits_for_the_answer_is_not_told_again(rig: Rig) -> None:
    arc, child = await family(rig)
    flight = await asked(arc, child)
    ident = (await rig.operator(ShowAgent(address="@arc"))).id
    waiting = asyncio.ensure_future(arc.call(GetFlight(flight_id=flight, wait=20)))
    await wait_until(lambda: rig.broker.services.is_awaited(f"{flight} {ident}"))
    await child.call(CompleteFlight(flight_id=flight, output="Done."))
    assert (await waiting).output == "Done."
    assert await told(rig) == []


@as_test
async def test_a_failure_is_told_with_its_reason(rig: Rig) -> None:
    _, child = await family(rig)
    flight = await asked(await rig.scout(), child)
    await child.call(FailFlight(flight_id=flight, reason="no compiler"))
    (body,) = await inbox_bodies(rig, "arc")
    assert body.startswith(f"{CHILD} failed: Add a test.\n")
    assert "no compiler" in body


@as_test
async def test_what_the_parent_does_itself_is_not_told_to_it(rig: Rig) -> None:
    arc, child = await family(rig)
    flight = await asked(await rig.scout(), child)
    await arc.call(CancelFlight(flight_id=flight, reason="no longer needed"))
    await arc.call(RetireAgent(address=CHILD))
    assert await told(rig) == []


@as_test
async def test_a_wait_is_told_once_while_it_is_unread(rig: Rig) -> None:
    _, child = await family(rig)
    flight = await asked(await rig.scout(), child)
    await child.call(Need(question="Which database?", flight_id=flight))
    assert await told(rig) == [f"{CHILD} waits: Add a test."]
    again = await asked(await rig.scout(), child, "Add another.")
    await child.call(Need(question="Which one?", flight_id=again))
    assert await told(rig) == [f"{CHILD} waits: Add a test.", f"{CHILD} waits: Add another."]


@as_test
async def test_a_child_that_waits_for_its_parent_is_told_by_its_own_message(rig: Rig) -> None:
    _, child = await family(rig)
    first = await asked(await rig.scout(), child)
    await child.call(BlockFlight(flight_id=first, on=WaitingKind.ACTOR, ref="parent", reason="Which one?"))
    second = await asked(await rig.scout(), child, "Add another.")
    await child.call(CreateQuestion(to="parent", body="Tabs?", flight_id=second))
    assert await told(rig) == [f"{CHILD} waits for you: Which one?", "Tabs?"]


@as_test
async def test_a_retirement_and_the_asks_that_fail_with_it_are_one_message(rig: Rig) -> None:
    _, child = await family(rig)
    await asked(await rig.scout(), child)
    await asked(await rig.scout(), child, "Add another.")
    await rig.operator(RetireAgent(address=CHILD, reason="merged"))
    (body,) = await inbox_bodies(rig, "arc")
    lines = [part.splitlines()[0] for part in body.split("\n\n")]
    assert sorted(lines) == [
        f"{CHILD} failed: Add a test.",
        f"{CHILD} failed: Add another.",
        f"{CHILD} is retired: merged",
    ]


@as_test
async def test_a_retired_parent_is_told_nothing(rig: Rig) -> None:
    _, child = await family(rig)
    flight = await asked(await rig.scout(), child)
    await rig.operator(RetireAgent(address="@arc"))
    before = len(await inbox_items(rig))
    await child.call(CompleteFlight(flight_id=flight, output="Done."))
    assert len(await inbox_items(rig)) == before


@as_test
async def test_a_session_that_dies_with_work_open_is_told_once(rig: Rig) -> None:
    arc, child = await family(rig)
    ident = (await rig.operator(ShowAgent(address=CHILD))).id
    await rig.operator(ConfigureAgent(address=CHILD, config={"harness": "echo"}))
    for title in ("", "Fix the build"):
        if title:
            item = await arc.call(CreateWork(title=title, owner_id=CHILD))
            await child.call(StartWork(work_item_id=item.id))
        session = await rig.operator(StartSession(agent=CHILD, cwd=str(rig.home)))
        await rig.broker.as_system(
            lambda tx, one=session.id: session_end.record_session_end(
                tx, tx.need(Session, "session", one), "its program is gone"
            )
        )
    bodies = [body for body in await inbox_bodies(rig, "arc") if "ended" in body]
    (body,) = bodies  # the first one had no work
    assert body.startswith(f"the session of {CHILD} ended: its program is gone\nopen work: Fix the build\n")
    stopped = await rig.operator(StartSession(agent=ident, cwd=str(rig.home)))
    await rig.operator(StopSession(session_id=stopped.id))
    assert len([one for one in await inbox_bodies(rig, "arc") if "ended" in one]) == 1  # a person stopped it


@as_test
async def test_the_work_items_of_a_child_are_told(rig: Rig) -> None:
    _, child = await family(rig)
    peer = await online_agent(rig, "peer")
    item = await peer.call(CreateWork(title="Fix the build", owner_id=CHILD))
    await child.call(StartWork(work_item_id=item.id))
    assert await told(rig) == []
    await child.call(WaitWork(work_item_id=item.id, on=WaitingKind.CONDITION, ref="the cache is warm"))
    await child.call(ResumeWork(work_item_id=item.id))
    await child.call(SubmitWork(work_item_id=item.id, summary="It is green."))
    await peer.call(AcceptWork(work_item_id=item.id))
    other = await peer.call(CreateWork(title="Fix the docs", owner_id=CHILD))
    await rig.operator(CancelWork(work_item_id=other.id, reason="not needed"))
    assert await told(rig) == [
        f"{CHILD} waits: Fix the build",
        f"{CHILD} finished: Fix the build",
        f"{CHILD} no longer has to do: Fix the docs",
    ]
    assert f"It is green.\nwork item {item.id}" in (await inbox_bodies(rig, "arc"))[1]
    assert not [
        one for one in await inbox_items(rig, "arc") if one.delivery is not None and one.delivery.wake
    ]


@as_test
async def test_the_parent_that_has_the_next_move_is_told_once(rig: Rig) -> None:
    arc, child = await family(rig)
    item = await arc.call(CreateWork(title="Fix the build", owner_id=CHILD))
    await child.call(SubmitWork(work_item_id=item.id, summary="It is green."))
    (body,) = await inbox_bodies(rig, "arc")
    assert body.startswith("for review: Fix the build")


@as_test
async def test_an_ask_with_a_work_item_is_told_once(rig: Rig) -> None:
    _, child = await family(rig)
    flight = await asked(await rig.scout(), child, work_item="Fix the build")
    await child.call(CompleteFlight(flight_id=flight, output="Done."))
    assert await told(rig) == [f"{CHILD} finished: Add a test."]


def counting(home: Path) -> tuple[str, ...]:
    """A program that counts its turns."""
    return write_program(home, "parent", 'cat > /dev/null; echo turn >> "$WORK/turns"; echo "I see."')


def turns(rig: Rig) -> int:
    file = rig.home / "turns"
    return len(file.read_text().splitlines()) if file.exists() else 0


@as_test
async def test_a_failure_wakes_the_parent_that_asked_once(rig: Rig) -> None:
    arc, child = await family(rig, harness="command", command=counting(rig.home), project_root=str(rig.home))
    flight = await asked(arc, child, reply_mode=ReplyMode.NOTIFY)
    assert turns(rig) == 0
    await child.call(FailFlight(flight_id=flight, reason="no compiler"))
    await wait_until(lambda: turns(rig) == 1)
    await poll_until_finished(rig, flight)
    flight = await asked(await rig.scout(), child)
    await child.call(FailFlight(flight_id=flight, reason="no compiler"))
    made = await rig.operator(MakeAsk(to="@arc", body="What happened?"))
    await poll_until_finished(rig, made.flight_id)
    assert turns(rig) == 2  # the operator asked for the second ask and has the next move


@as_test
async def test_a_failure_that_no_asker_is_left_for_wakes_the_parent(rig: Rig) -> None:
    _, child = await family(rig, harness="command", command=counting(rig.home), project_root=str(rig.home))
    peer = await online_agent(rig, "peer")
    flight = await asked(peer, child)
    await rig.operator(RetireAgent(address="@peer"))
    await child.call(FailFlight(flight_id=flight, reason="no compiler"))
    await wait_until(lambda: turns(rig) == 1)


def test_a_restart_tells_nothing_twice(tmp_path: Path) -> None:
    import asyncio

    async def play() -> None:
        tokens: dict[str, str] = {}
        async with open_rig(tmp_path) as rig:
            _, child = await family(rig)
            flight = await asked(await rig.scout(), child)
            await child.call(CompleteFlight(flight_id=flight, output="Done."))
            assert len(await told(rig)) == 1
            tokens = rig.tokens
        async with open_rig(tmp_path) as rig:
            rig.tokens = tokens
            assert len(await told(rig)) == 1

    asyncio.run(play())
