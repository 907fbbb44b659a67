"""Members, heartbeats and entries, as a node reads them."""

import asyncio
import time
from pathlib import Path

from tests.mesh.stage import founded, play, until


def test_a_heartbeat_that_is_not_renewed_expires(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            beats = stage.founder.inlet.beats
            async with mini.linked(stage.see()) as there:
                for number in range(4):
                    await there.beat(b"beat %d" % number, 2)
                    await until(lambda number=number: beats.get(mini.id) == b"beat %d" % number)
                    await asyncio.sleep(0.5)
                await until(lambda: beats[mini.id] is None)
                await there.beat(b"again", 2)
                await until(lambda: beats[mini.id] == b"again")

    play(story())


def test_a_member_whose_heartbeat_is_gone_is_told_at_the_next_connection(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            await stage.admit(here, "nod_gone")
            mini = await stage.admit(here, "nod_mini")
            async with mini.linked(stage.see()):
                await until(lambda: "nod_gone" in mini.inlet.beats)
                assert mini.inlet.beats == {"nod_gone": None}

    play(story())


def test_entries_are_listed_changed_and_removed(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            mine, seen = stage.founder.id, mini.inlet.entries
            await here.put_entries({"agt_a": b"1", "agt_b": b"1", "agt_c": b"1"})
            await here.put_entries({"agt_a": b"2", "agt_b": None})
            async with mini.linked(stage.see()):
                await until(lambda: len(seen) == 3)
                assert seen == {(mine, "agt_a"): b"2", (mine, "agt_b"): None, (mine, "agt_c"): b"1"}
                await here.put_entries({"agt_c": None})
                await until(lambda: seen[mine, "agt_c"] is None)

    play(story())


def test_a_reconnected_node_reads_only_what_changed(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            await here.put_entries({f"agt_{number}": b"1" for number in range(500)})
            async with mini.linked(stage.see()) as there:
                await until(lambda: len(mini.inlet.entries) == 500)
                mini.inlet.batches.clear()
                await stage.server.set_logins({}, {})
                await until(lambda: not there.status.connected)
                await here.put_entries({"agt_7": b"2"})
                await stage.server.set_logins(stage.logins, {})
                await until(lambda: mini.inlet.entries[stage.founder.id, "agt_7"] == b"2")
                assert mini.inlet.batches == [1]

    play(story())


def test_twenty_thousand_entries_are_read_in_batches(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            entry = b"x" * 400
            began = time.monotonic()
            await here.put_entries({f"agt_{number}": entry for number in range(20_000)})
            written = time.monotonic() - began
            async with mini.linked(stage.see()):
                read = await until(lambda: len(mini.inlet.entries) == 20_000)
            print(f"20,000 entries: written in {written:.1f} s, read in {read:.1f} s")
            assert len(mini.inlet.batches) < 2000
            assert read < 20

    play(story())


def test_a_removed_member_leaves_no_stream_entry_or_heartbeat(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            async with mini.linked(stage.see()) as there:
                await there.beat(b"beat", 60)
                await there.put_entries({"agt_a": b"1"})
            removed = await asyncio.to_thread(stage.founder.sign_member, mini, removed=True)
            await here.put_member(mini.id, removed)
            other = await stage.admit(here, "nod_other")
            async with other.linked(stage.see()):
                await here.publish(other.id, "env_1", b"after the directory")
                await until(lambda: bool(other.inlet.taken))
            assert other.inlet.members[mini.id] == removed
            assert (other.inlet.entries, other.inlet.beats) == ({}, {})
            async with stage.founder.logged_in(stage.config) as bare:
                names = (await bare.call("STREAM.NAMES"))["streams"]
                assert not [name for name in names if mini.id in name]

    play(story())
