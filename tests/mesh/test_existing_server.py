"""A mesh on a server that somebody else runs, with credentials files."""

import asyncio
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.model.problems.mesh import MeshLoginRefused, MeshUnreachable
from tests.mesh.existing import existing
from tests.mesh.stage import MESH, Node, play, until


@pytest.mark.rows("R8.s-4")
def test_two_nodes_talk_over_an_existing_server(tmp_path: Path) -> None:
    async def story() -> None:
        async with existing(tmp_path / "server") as server:
            founder, mini = Node(tmp_path / "founder", "nod_founder"), Node(tmp_path / "mini", "nod_mini")
            await mini.kit.prepare()
            credentials = [server.make_credentials(name) for name in ("founder", "mini")]
            config = await founder.kit.found_at(MESH, server.url, credentials=credentials[0])
            assert (config.founder, config.serves, config.certificate) == (True, False, None)
            line, _ = founder.kit.build_invitation(config, "inv_1", "secret")
            _, joined = mini.kit.read_invitation(line, credentials=credentials[1])
            async with founder.linked(config) as here:
                await here.put_member(mini.id, await asyncio.to_thread(founder.sign_member, mini))
                async with mini.linked(joined) as there:
                    await here.publish(mini.id, "env_1", b"there")
                    await there.publish(founder.id, "env_2", b"and back")
                    await there.beat(b"beat", 5)
                    await there.put_entries({"agt_a": b"entry"})
                    await until(lambda: mini.inlet.taken == [b"there"])
                    await until(lambda: founder.inlet.taken == [b"and back"])
                    await until(lambda: founder.inlet.entries == {(mini.id, "agt_a"): b"entry"})

    play(story())


def test_what_an_existing_server_lacks_is_refused_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        founder = Node(tmp_path / "founder", "nod_founder")
        async with existing(tmp_path / "server") as server, existing(tmp_path / "other") as other:
            foreign = other.make_credentials("foreign")
            for credentials in (foreign, str(tmp_path / "missing.creds"), None):
                with pytest.raises(Refused) as refused:
                    await founder.kit.found_at(MESH, server.url, credentials=credentials)
                assert isinstance(refused.value.diagnostic, MeshLoginRefused)
            narrow = server.make_credentials("narrow", {"pub": {"allow": ["scout.>"]}})
            with pytest.raises(Refused, match=r"(?i)permissions violation") as refused:
                await founder.kit.found_at(MESH, server.url, credentials=narrow)
            assert isinstance(refused.value.diagnostic, MeshUnreachable)
        async with existing(tmp_path / "plain", jetstream=False) as server:
            credentials = server.make_credentials("founder")
            with pytest.raises(Refused, match=r"(?i)jetstream|nothing on the server answers") as refused:
                await founder.kit.found_at(MESH, server.url, credentials=credentials)
        with pytest.raises(Refused, match="cannot be reached"):
            await founder.kit.found_at(MESH, server.url, credentials=credentials)

    play(story())


def test_a_link_uses_the_next_server_of_a_list(tmp_path: Path) -> None:
    async def story() -> None:
        async with existing(tmp_path / "server") as server:
            founder = Node(tmp_path / "founder", "nod_founder")
            credentials = server.make_credentials("founder")
            config = await founder.kit.found_at(MESH, server.url, credentials=credentials)
            several = replace(config, url=f"nats://127.0.0.1:1,{server.url}")
            async with founder.linked(several) as here:
                assert here.status.connected

    play(story())


@pytest.mark.rows("R8.s-4")
def test_the_rights_and_the_tls_of_the_docs_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "mesh.md").read_text()
    rights = json.loads(page.partition("```json\n")[2].partition("```")[0])

    async def story() -> None:
        async with existing(tmp_path / "server", tls=True) as server:
            founder, mini = Node(tmp_path / "founder", "nod_founder"), Node(tmp_path / "mini", "nod_mini")
            await mini.kit.prepare()
            credentials = [server.make_credentials(name, rights) for name in ("founder", "mini")]
            with pytest.raises(Refused, match=r"cannot be reached|certificate"):
                await founder.kit.found_at(MESH, server.url, credentials=credentials[0])
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "server" / "server.pem"))
            config = await founder.kit.found_at(MESH, server.url, credentials=credentials[0])
            line, _ = founder.kit.build_invitation(config, "inv_1", "secret")
            _, joined = mini.kit.read_invitation(line, credentials=credentials[1])
            async with founder.linked(config) as here:
                await here.put_member(mini.id, await asyncio.to_thread(founder.sign_member, mini))
                async with mini.linked(joined) as there:
                    await here.publish(mini.id, "env_1", b"there")
                    await there.publish(founder.id, "env_2", b"and back")
                    await there.beat(b"beat", 5)
                    await there.put_entries({"agt_a": b"entry"})
                    await until(lambda: mini.inlet.taken == [b"there"])
                    await until(lambda: founder.inlet.taken == [b"and back"])
                    await until(lambda: founder.inlet.entries == {(mini.id, "agt_a"): b"entry"})

    play(story())
