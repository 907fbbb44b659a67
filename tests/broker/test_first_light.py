"""The main job, once through."""

from pathlib import Path

from scout.model.flight import FlightState
from scout.protocol.agents import Who, WhoAmI
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.inbox import AckInbox, ClaimInbox, ListInbox
from scout.protocol.talk import Reply, Send
from scout.store.integrity.verify import verify
from tests.broker.rig import Rig, run_scene


def test_send_ask_reply(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        me = await rig.operator(WhoAmI())
        assert me.path == "/ada/direct"
        await rig.register("arc")
        await rig.register("parrot", harness="echo")
        receipt = await rig.operator(Send(to="@arc", body="hello"))
        assert [one.state for one in receipt.deliveries] == ["pending"]
        arc = await rig.agent("arc")
        claimed = await arc.call(ClaimInbox())
        assert claimed.items[0].message is not None
        assert claimed.items[0].message.body == "hello"
        await arc.call(AckInbox(delivery_ids=(claimed.items[0].delivered.id,)))
        await arc.call(Reply(body="hello yourself", in_reply_to=receipt.message_id))
        inbox = await rig.operator(ListInbox())
        assert [item.message and item.message.body for item in inbox.items] == ["hello yourself"]
        asked = await rig.operator(MakeAsk(to="@parrot", body="say something"))
        view = await rig.operator(GetFlight(flight_id=asked.flight_id, wait=10))
        assert (view.state, view.output) == (FlightState.COMPLETED, "say something")
        assert [agent.minimal for agent in (await rig.operator(Who())).items] == [
            "@parrot",
            "@arc",
        ]

    run_scene(scene, tmp_path)
    report = verify(tmp_path / "scout.db")
    assert report.clean, report
