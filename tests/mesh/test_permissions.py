"""What a node may do at a server of Scout: write what is its own, read its own stream and the directory."""

import asyncio
from pathlib import Path

import pytest

from scout.mesh.names import API, CONSUMER, MeshNames, get_bucket_stream, get_key
from scout.ports.mesh import MeshDown
from tests.mesh.stage import MESH, founded, play, until

NAMES = MeshNames(MESH)
_STREAM = NAMES.get_stream("nod_other")
_ENTRIES = get_bucket_stream(NAMES.entries)


@pytest.mark.rows("R8.j-7")
def test_a_node_writes_only_what_is_its_own(tmp_path: Path) -> None:
    forbidden = {
        "an envelope of another": NAMES.get_envelopes("nod_founder", "nod_other"),
        "a heartbeat of another": get_key(NAMES.heartbeats, "nod_other"),
        "an entry of another": get_key(NAMES.entries, "nod_other", "agt_a"),
        "a member": get_key(NAMES.members, "nod_mini"),
        "a join request": NAMES.get_join("inv_1"),
        "the server's own account": "$SYS.REQ.SERVER.PING.VARZ",
    }
    allowed = {
        "an envelope": NAMES.get_envelopes("nod_other", "nod_mini"),
        "a heartbeat": get_key(NAMES.heartbeats, "nod_mini"),
        "an entry": get_key(NAMES.entries, "nod_mini", "agt_a"),
    }

    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            await stage.admit(here, "nod_other")

            async def is_denied(subject: str) -> bool:
                async with mini.logged_in(stage.see()) as bare:
                    with pytest.raises(MeshDown) as down:
                        await bare.store(subject, b"forged", {})
                    return "permissions violation" in down.value.reason.lower()

            results = await asyncio.gather(*map(is_denied, forbidden.values()))
            assert dict(zip(forbidden, results, strict=True)) == dict.fromkeys(forbidden, True)
            async with mini.logged_in(stage.see()) as bare:
                for subject in allowed.values():
                    await bare.store(subject, b"own", {})

    play(story())


def test_a_node_reads_neither_a_stream_nor_a_reply_of_another(tmp_path: Path) -> None:
    calls = (
        f"CONSUMER.MSG.NEXT.{_STREAM}.{CONSUMER}",
        f"CONSUMER.CREATE.{_STREAM}.thief",
        f"STREAM.MSG.GET.{_STREAM}",
        f"DIRECT.GET.{_STREAM}",
        f"STREAM.DELETE.{_STREAM}",
        f"STREAM.PURGE.{_STREAM}",
        f"STREAM.PURGE.{_ENTRIES}",
        f"STREAM.DELETE.{_ENTRIES}",
        f"CONSUMER.DELETE.{_ENTRIES}.nod_other",
        "STREAM.CREATE.mine",
        "STREAM.NAMES",
    )

    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            await stage.admit(here, "nod_other")
            await here.publish("nod_other", "env_1", b"private")

            async def is_denied(call: str) -> bool:
                async with mini.logged_in(stage.see()) as bare:
                    with pytest.raises(MeshDown) as down:
                        await bare.request(f"{API}.{call}", b"{}")
                    return "permissions violation" in down.value.reason.lower()

            results = await asyncio.gather(*map(is_denied, calls))
            assert dict(zip(calls, results, strict=True)) == dict.fromkeys(calls, True)
            heard = list[bytes]()

            async def hear(message: object) -> None:
                heard.append(b"")

            async with mini.logged_in(stage.see()) as bare:
                for subject in (">", "_INBOX_nod_other.>", f"scout.{MESH}.to.nod_other.*", "$KV.>"):
                    await bare.subscribe(subject, hear)
                await here.publish("nod_other", "env_2", b"private")
                await here.put_entries({"agt_a": b"entry"})
                await bare.client.flush()
            assert not heard

    play(story())


def test_one_header_does_not_clear_the_directory(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            await here.put_entries({"agt_a": b"entry"})
            async with mini.logged_in(stage.see()) as bare:
                own = get_key(NAMES.entries, mini.id, "agt_b")
                with pytest.raises(MeshDown, match="rollup"):
                    await bare.store(own, b"", {"Nats-Rollup": "all"})
            async with mini.linked(stage.see()):
                await until(lambda: mini.inlet.entries == {(stage.founder.id, "agt_a"): b"entry"})

    play(story())
