"""What the third node sees of a move, and what happens when a node is renamed, gone or out of date."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from scout.broker.upkeep.sweeper import sweep
from scout.model.events.directory import NodeEvent
from scout.model.flight import FlightState
from scout.protocol.agents import MoveAgent, RegisterAgent, Resolve, ShowAgent, Who
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.mesh import RemoveNode, RenameNode, ShowMesh
from scout.protocol.questions import CreateQuestion, GetQuestion
from scout.protocol.sessions import ListSessions
from scout.protocol.talk import GetMessage, Send
from scout.store.table import TABLES
from tests.broker.mesh_pair import Pair, run_pair
from tests.broker.mesh_rig import MeshRig, wait_for
from tests.broker.rig import Rig, expect_refusal, online_agent, read_log, wait_until
from tests.broker.test_mesh import has_event, play, sees

MANY = 200


def test_a_rename_costs_the_same_with_many_agents(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await asyncio.gather(*(mini.register(f"arc{number}") for number in range(MANY)))
        await mini.register("hudson", harness="echo")
        await mini.operator(MakeAsk(to="@hudson", body="hello", wait=20))  # a session, and its endpoint
        await wait_for(lambda: sees(book, "@hudson"))
        before = {name: len(await read_log(mesh[name])) for name in ("book", "mini")}
        written: list[str] = []
        mini.broker._database.trace(written.append)
        assert (await mini.operator(RenameNode(name="studio"))).node == "studio"
        mini.broker._database.trace(None)
        assert not mini.broker._admissions._kept  # a kept viewpoint would have the earlier name
        await wait_for(lambda: has_event(book, "collab.node.renamed"))
        new = {name: (await read_log(mesh[name]))[count:] for name, count in before.items()}
        about = [one for events in new.values() for one in events if "Agent" in type(one).__name__]
        assert not about
        assert [len([one for one in new[name] if isinstance(one, NodeEvent)]) for name in new] == [1, 2]
        rows = Counter(one.split()[2] for one in written if one.startswith("INSERT INTO"))
        changed = {name: rows[name] for name in ("events", *TABLES) if rows[name]}
        assert changed == {"events": 2, "nodes": 2}  # its name, and what the founder signed
        for rig in (book, mini):
            shown = await rig.operator(ShowAgent(address="@hudson"))
            assert (shown.node, await find_node(rig, "@hudson")) == ("studio", "studio")
            assert (await rig.operator(Resolve(address="@arc7.node:studio"))).address == "@arc7"
            told = await expect_refusal(rig.operator(Resolve(address="@arc7.node:mini")))
            assert told.code == "unknown_target"
        assert {one.node for one in (await mini.operator(ListSessions())).items} == {"studio"}
        again = await mini.operator(RegisterAgent(definition_id="arc7"))
        assert not again.created
        asked = await book.operator(MakeAsk(to="@hudson.node:studio", body="there?", wait=20))
        assert asked.state is FlightState.COMPLETED

    play(scene, tmp_path, "book", "mini")


async def find_node(rig: Rig, address: str) -> str | None:
    found = (await rig.operator(Who(all_nodes=True))).items
    return next((one.node for one in found if one.address == address), None)


async def read_end(rig: Rig, flight_id: str) -> Any:
    view = await rig.operator(GetFlight(flight_id=flight_id))
    return view if view.state in (FlightState.COMPLETED, FlightState.FAILED) else None


def test_a_third_node_follows_an_agent_that_moved(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini, air = mesh["book"], mesh["mini"], mesh["air"]
        arc = (await mini.register("arc", harness="echo")).agent.id
        await wait_for(lambda: sees(book, "@arc"))
        await wait_for(lambda: sees(air, "@arc"))
        mail = await book.operator(Send(to="@arc", body="from a third node"))
        await wait_for(lambda: _is_stored(mini, mail.message_id))
        moved = await mini.operator(MoveAgent(address="@arc", to="air"))
        assert moved.arrived

        async def follows() -> bool:
            return await find_node(book, "@arc") == await find_node(mini, "@arc") == "air"

        asked = await book.operator(MakeAsk(to="@arc", body="where are you?"))  # its directory may be old
        done = await wait_for(lambda: read_end(book, asked.flight_id))
        assert (done.state, "where are you?" in done.output) == (FlightState.COMPLETED, True)
        await wait_for(follows)
        assert (await book.operator(Resolve(address="@arc.node:air"))).agent_id == arc
        await wait_for(lambda: _is_stored(air, mail.message_id))
        for rig in (book, mini, air):
            assert not await has_event(rig, "collab.node.refused")

    play(scene, tmp_path, "book", "mini", "air")


async def _is_stored(rig: Rig, message_id: str) -> bool:
    try:
        await rig.operator(GetMessage(message_id=message_id))
    except Exception:  # noqa: BLE001 (it is not there yet)
        return False
    return True


def test_a_removed_node_ends_what_waits_for_it(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await online_agent(mini, "arc")
        await wait_for(lambda: sees(book, "@arc"))
        asked = await book.operator(MakeAsk(to="@arc", body="never answered"))
        await wait_for(lambda: _is_stored(mini, asked.message_id))
        await book.operator(RemoveNode(node="mini"))
        ended = await wait_for(lambda: read_end(book, asked.flight_id))
        assert (ended.state, ended.error.code) == (FlightState.FAILED, "peer_unreachable")
        assert "node mini was removed from the mesh" in ended.reason
        assert not await sees(book, "@arc")
        assert (await expect_refusal(book.operator(Send(to="@arc", body="x")))).code == "unknown_target"

    play(scene, tmp_path, "book", "mini")


def test_a_node_that_has_not_synced_for_five_minutes_says_so(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        mini = mesh["mini"]
        assert not (await mini.operator(ShowMesh())).out_of_date
        assert (await mini.operator(ShowMesh())).nodes == 2
        link = mesh.kits["mini"].link
        assert link is not None
        link.cut()

        async def is_old() -> bool:
            return (await mini.operator(ShowMesh())).out_of_date

        await wait_for(is_old)

    play(scene, tmp_path, "book", "mini")


def test_only_the_node_of_the_responder_reminds_about_an_open_question(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        arc = await online_agent(pair.one.rig, "arc")
        hudson = await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")
        asked = await arc.call(CreateQuestion(to="@hudson", body="which port?"))

        async def arrived() -> bool:
            try:
                return (await hudson.call(GetQuestion(question_id=asked.id))).id == asked.id
            except Exception:  # noqa: BLE001 (it is not there yet)
                return False

        await wait_until(arrived)
        nudged: list[int] = []
        for side in pair.sides:
            side.clock.ahead += 3600
            await sweep(side.rig.broker)
            log = await read_log(side.rig)
            about = [one for one in log if getattr(one.target, "id", "") == asked.id]
            nudged.append(sum(type(one).__name__ == "SweepNudged" for one in about))
        assert nudged == [0, 1]

    run_pair(scene, tmp_path)


def test_ids_of_envelopes_are_forgotten_when_no_node_can_repeat_them(tmp_path: Path) -> None:
    async def scene(pair: Pair) -> None:
        await online_agent(pair.two.rig, "hudson")
        await pair.two.show(pair.one, "hudson")

        def count() -> int:
            return len(pair.two.rig.broker.glance().rows("envelopes_oldest", limit=100))

        for body in ("one", "two"):
            await pair.one.rig.operator(Send(to="@hudson", body=body))
        await wait_until(lambda: count() == 2)
        pair.two.clock.ahead += 7 * 86_400  # a row of the outbox lives for a day, and there is a margin
        pair.two.exchange.wake_all()
        await pair.one.rig.operator(Send(to="@hudson", body="three"))
        await wait_until(lambda: count() == 3)
        pair.two.clock.ahead += 86_400 + 3600
        pair.two.exchange.wake_all()
        await wait_until(lambda: count() == 1)

    run_pair(scene, tmp_path)
