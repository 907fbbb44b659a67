"""Messages, asks and flights between two nodes, through two real brokers and a wire in this process."""

from collections.abc import Awaitable
from pathlib import Path

from scout.model.ask import Ask, IfUnreachable
from scout.model.conversation import MessageKind
from scout.model.flight import Flight, FlightState
from scout.model.mesh_receipt import OutboxState
from scout.model.node import NodeMove
from scout.model.trace import TraceStep, build_context
from scout.protocol.asks import CancelFlight, FlightView, GetFlight, MakeAsk
from scout.protocol.inbox import AckInbox
from scout.protocol.talk import GetMessage, Reply, Send
from tests.broker.mesh_pair import Pair, run_pair
from tests.broker.rig import (
    expect_refusal,
    inbox_bodies,
    inbox_items,
    online_agent,
    wait_until,
)


async def wait_for_flight(pair: Pair, flight_id: str, *states: FlightState) -> FlightView:
    """The flight of the operator of node one, once it is in one of these states."""

    async def look() -> FlightView | None:
        view = await pair.one.rig.operator(GetFlight(flight_id=flight_id))
        return view if view.state in states else None

    return await wait_until(look)


def test_a_message_reaches_an_agent_of_another_node(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        hudson = await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        receipt = await pair.one.rig.operator(Send(to="@hudson", body="hello from one"))
        sent = receipt.deliveries[0]
        assert sent.mesh is not None
        assert (sent.mesh.node, sent.mesh.state) == ("two", OutboxState.QUEUED)

        async def arrived() -> bool:
            return "hello from one" in await inbox_bodies(pair.two.rig, "hudson")

        await wait_until(arrived)
        item = (await inbox_items(pair.two.rig, "hudson"))[0]
        assert item.message is not None
        assert item.message.id == receipt.message_id
        assert item.message.conversation_id == receipt.conversation_id

        async def state() -> OutboxState | None:
            view = await pair.one.rig.operator(GetMessage(message_id=receipt.message_id))
            return view.deliveries[0].mesh.state if view.deliveries[0].mesh else None

        await wait_until(lambda: _is(state(), OutboxState.ACCEPTED))
        await hudson.call(AckInbox(delivery_ids=(item.delivery_id or "",)))
        await wait_until(lambda: _is(state(), OutboxState.DELIVERED))
        view = await pair.one.rig.operator(GetMessage(message_id=receipt.message_id))
        assert view.deliveries[0].state == "acked"

        said = await hudson.call(Reply(body="hello back"))
        assert said.conversation_id == receipt.conversation_id

        async def answered() -> bool:
            return "hello back" in await inbox_bodies(pair.one.rig)

        await wait_until(answered)
        back = next(one.message for one in await inbox_items(pair.one.rig) if one.message)
        assert (back.kind, back.in_reply_to) == (MessageKind.ANSWER, receipt.message_id)

    run_pair(scene, tmp_path)


async def _is(found: Awaitable[object], wanted: object) -> bool:
    return await found == wanted


def test_an_ask_runs_on_the_other_node_and_its_answer_comes_back(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await pair.two.rig.register("hudson", harness="echo")
        await pair.two.show(pair.one, "hudson")
        receipt = await pair.one.rig.operator(MakeAsk(to="@hudson", body="say it"))
        assert receipt.state == "queued"
        done = await wait_for_flight(pair, receipt.flight_id, FlightState.COMPLETED, FlightState.FAILED)
        assert (done.state, done.output) == (FlightState.COMPLETED, "say it")
        assert done.mesh is not None
        assert done.mesh.state in (OutboxState.ACCEPTED, OutboxState.DELIVERED)
        there = await pair.two.rig.operator(GetFlight(flight_id=receipt.flight_id))
        assert (there.state, there.ask_id) == (FlightState.COMPLETED, receipt.ask_id)
        assert there.output_message_id == done.output_message_id

    run_pair(scene, tmp_path)


def test_a_node_that_is_away_refuses_asks_and_keeps_messages(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        pair.wire.cut = True
        await pair.one.move(pair.two, NodeMove.LOSE)
        refused = await expect_refusal(pair.one.rig.operator(MakeAsk(to="@hudson", body="now")))
        assert refused.code == "peer_unreachable"
        assert refused.since is not None
        receipt = await pair.one.rig.operator(Send(to="@hudson", body="later"))
        assert any("sent when the node is back" in note for note in receipt.notes)
        asked = await pair.one.rig.operator(
            MakeAsk(to="@hudson", body="wait", if_unreachable=IfUnreachable.QUEUE)
        )
        assert "when the node is back" in (asked.reason or "")
        pair.wire.cut = False
        await pair.one.move(pair.two, NodeMove.RECOVER)
        pair.one.exchange.wake_all()

        async def arrived() -> bool:
            return {"later", "wait"} <= set(await inbox_bodies(pair.two.rig, "hudson"))

        await wait_until(arrived)

    run_pair(scene, tmp_path)


def test_what_no_node_takes_expires_with_an_honest_failure(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        pair.wire.cut = True
        asked = await pair.one.rig.operator(MakeAsk(to="@hudson", body="never"))
        sent = await pair.one.rig.operator(Send(to="@hudson", body="neither"))
        pair.one.clock.ahead += 90_000
        pair.one.exchange.wake_all()
        failed = await wait_for_flight(pair, asked.flight_id, FlightState.FAILED)
        assert failed.error is not None
        assert failed.error.code == "peer_unreachable"
        assert [one.operation for one in failed.error.remedies] == ["flight.retry"]

        async def bounced() -> bool:
            return any("unreachable" in one for one in await inbox_bodies(pair.one.rig))

        await wait_until(bounced)
        view = await pair.one.rig.operator(GetMessage(message_id=sent.message_id))
        assert view.deliveries[0].state == "dead_lettered"
        assert view.deliveries[0].mesh is not None
        assert view.deliveries[0].mesh.state is OutboxState.EXPIRED

    run_pair(scene, tmp_path)


def test_a_cancel_is_a_request_to_the_node_that_runs_the_flight(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        asked = await pair.one.rig.operator(MakeAsk(to="@hudson", body="take your time"))

        async def arrived() -> bool:
            return "take your time" in await inbox_bodies(pair.two.rig, "hudson")

        await wait_until(arrived)
        view = await pair.one.rig.operator(CancelFlight(flight_id=asked.flight_id, reason="not needed"))
        assert "cancel requested" in view.reason
        await wait_for_flight(pair, asked.flight_id, FlightState.CANCELLED)
        there = await pair.two.rig.operator(GetFlight(flight_id=asked.flight_id))
        assert there.state is FlightState.CANCELLED

    run_pair(scene, tmp_path)


def test_an_ask_that_was_not_sent_yet_is_cancelled_at_once(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        pair.wire.cut = True
        asked = await pair.one.rig.operator(MakeAsk(to="@hudson", body="never mind"))
        view = await pair.one.rig.operator(CancelFlight(flight_id=asked.flight_id))
        assert view.state is FlightState.CANCELLED
        view = await pair.one.rig.operator(GetFlight(flight_id=asked.flight_id))
        assert view.mesh is not None
        assert view.mesh.state is OutboxState.EXPIRED

    run_pair(scene, tmp_path)


async def _settle(pair: Pair) -> None:
    """Wait until neither node has an open envelope."""
    pair.wire.cut = False
    for side in pair.sides:
        side.exchange.wake_all()
    opened = [side.rig.broker.glance for side in pair.sides]
    await wait_until(lambda: not any(look().rows("outbox_nodes", after="") for look in opened))


def test_an_ask_that_arrives_after_its_cancel_is_cancelled_there(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        pair.wire.passing.clear()  # the ask is being published
        asked = await pair.one.rig.operator(MakeAsk(to="@hudson", body="too late"))
        await wait_until(lambda: pair.wire.begun > 0)
        view = await pair.one.rig.operator(CancelFlight(flight_id=asked.flight_id))
        assert view.state is FlightState.CANCELLED
        pair.wire.passing.set()

        async def cancelled() -> bool:
            found = pair.two.rig.broker.glance().get(Flight, asked.flight_id)
            return found is not None and found.state is FlightState.CANCELLED

        await wait_until(cancelled)
        await _settle(pair)
        assert await inbox_bodies(pair.two.rig, "hudson") == []

    run_pair(scene, tmp_path)


def test_an_ask_to_another_node_stays_in_its_trace(tmp_path: Path) -> None:
    """Without telemetry the context is passed on; with it, the other node continues the flight of this one."""
    given = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

    async def scene(pair: Pair) -> None:
        one, two = pair.one.rig, pair.two.rig
        await two.register("hudson", harness="echo")
        await pair.two.show(pair.one, "hudson")
        for traced in (False, True):
            one.broker.services.traced = traced
            receipt = await one.operator(MakeAsk(to="@hudson", body="go", traceparent=given))
            await wait_for_flight(pair, receipt.flight_id, FlightState.COMPLETED)
            ask = one.broker.glance().get(Ask, receipt.ask_id)
            came = two.broker.glance().get(Ask, receipt.ask_id)
            assert ask is not None
            assert came is not None
            here = build_context(ask, one.broker.services.node_id, TraceStep.ASK, receipt.flight_id)
            assert ask.traceparent == given
            assert came.traceparent == (str(here) if traced else given)
            assert build_context(came, "nod_2", TraceStep.ASK, receipt.flight_id).trace_id == here.trace_id

    run_pair(scene, tmp_path)
