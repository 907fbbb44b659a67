"""Envelopes between two nodes, over a real server: in order, once, and not lost by whatever is killed."""

import asyncio
import logging
from pathlib import Path

import pytest

from scout.base.refusal import Refused
from scout.model.mesh.envelope import ENVELOPE_LIMIT
from scout.ports.mesh import MeshDown, MeshLink
from tests.mesh.stage import founded, play, until


def test_two_nodes_exchange_envelopes_in_order(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            async with mini.linked(stage.see()) as there:
                sent = [b"%d" % number for number in range(200)]
                for number, data in enumerate(sent):
                    await here.publish(mini.id, f"env_{number}", data)
                await there.publish(stage.founder.id, "env_back", b"back")
                await until(lambda: len(mini.inlet.taken) == 200)
                await until(lambda: stage.founder.inlet.taken == [b"back"])
                assert mini.inlet.offered == sent
                await until(lambda: there.status.round_trip is not None)
                assert there.status.server_version

    play(story())


def test_the_directory_is_read_before_the_envelopes(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            await here.beat(b"beat", 30)
            await here.put_entries({"agt_a": b"entry"})
            await here.publish(mini.id, "env_1", b"hello")
            async with mini.linked(stage.see()):
                await until(lambda: bool(mini.inlet.taken))
                assert mini.inlet.order == ["connected", "member", "heartbeat", "entries", "envelope"]
                assert mini.inlet.beats == {stage.founder.id: b"beat"}
                assert mini.inlet.entries == {(stage.founder.id, "agt_a"): b"entry"}

    play(story())


def test_an_envelope_that_is_published_again_is_offered_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            for _ in range(3):
                await here.publish(mini.id, "env_1", b"once")
            await here.publish(mini.id, "env_2", b"last")
            async with mini.linked(stage.see()):
                await until(lambda: b"last" in mini.inlet.taken)
                assert mini.inlet.offered == [b"once", b"last"]

    play(story())


@pytest.mark.rows("R8.e-2")
def test_an_envelope_that_is_early_is_offered_again_and_holds_up_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            mini.inlet.wait_for = lambda data: data != b"second" or b"first" in mini.inlet.taken
            mini.inlet.fails = 1  # the first one, as if the disk were full
            async with mini.linked(stage.see()):
                await here.publish(mini.id, "env_0", b"disk")
                await here.publish(mini.id, "env_2", b"second")
                await here.publish(mini.id, "env_3", b"other")
                await until(lambda: mini.inlet.offered.count(b"second") >= 2)
                await here.publish(mini.id, "env_1", b"first")
                await until(lambda: len(mini.inlet.taken) == 4)
                assert mini.inlet.taken.index(b"first") < mini.inlet.taken.index(b"second")

    with caplog.at_level(logging.CRITICAL, "scout.mesh"):
        play(story())


def test_what_a_receiver_did_not_acknowledge_before_its_crash_is_offered_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            mini.inlet.hang = True
            await here.publish(mini.id, "env_1", b"precious")
            async with mini.linked(stage.see()):
                await until(lambda: bool(mini.inlet.offered))
            mini.inlet.hang = False
            async with mini.linked(stage.see()):
                await until(lambda: mini.inlet.taken == [b"precious"])
            assert mini.inlet.offered == [b"precious", b"precious"]

    play(story())


@pytest.mark.rows("R8.s-2")
def test_a_killed_server_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            async with mini.linked(stage.see()) as there:
                sender = asyncio.create_task(send_all(here, mini.id, 300))
                await until(lambda: len(mini.inlet.taken) > 50)
                await stage.kill()
                await until(lambda: not here.status.connected and not there.status.connected)
                assert here.status.problem
                await stage.server.start()
                await sender
                await until(lambda: len(mini.inlet.taken) == 300)
                assert mini.inlet.taken == [b"%d" % number for number in range(300)]
                assert [one.connected for one in mini.inlet.states][:2] == [True, False]
                assert mini.inlet.connected

    play(story())


async def send_all(link: MeshLink, node_id: str, count: int) -> None:
    """Send as an outbox does: in order, again until the server has it."""
    for number in range(count):
        while True:
            try:
                await link.publish(node_id, f"env_{number}", b"%d" % number)
            except MeshDown:
                await asyncio.sleep(0.05)
            else:
                break


def test_a_node_without_a_stream_and_a_link_without_a_server_say_so(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage:
            link = stage.founder.kit.build_link(stage.config, stage.founder.id)
            with pytest.raises(MeshDown, match="not connected"):
                await link.publish("nod_mini", "env_1", b"")
            async with stage.founder.linked(stage.config) as here:
                with pytest.raises(MeshDown, match="nothing on the server answers"):
                    await here.publish("nod_nobody", "env_1", b"")
                with pytest.raises(Refused, match="cannot be the id"):
                    await here.publish("nod.*", "env_1", b"")

    play(story())


def test_an_oversized_envelope_is_not_sent(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            with pytest.raises(Refused, match="too_large"):
                await here.publish(mini.id, "env_1", b"x" * (ENVELOPE_LIMIT + 1))
            async with mini.linked(stage.see()):
                await here.publish(mini.id, "env_2", b"x" * ENVELOPE_LIMIT)
                await until(lambda: bool(mini.inlet.offered))
                assert [len(data) for data in mini.inlet.offered] == [ENVELOPE_LIMIT]

    play(story())
