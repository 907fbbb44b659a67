"""Three keys, each for one thing: what a login key signs is worth nothing elsewhere."""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Refused
from scout.mesh.certificate import hash_certificate, make_certificate
from scout.mesh.connection import is_new_enough
from scout.mesh.identity_key import IdentityKey, is_signed
from scout.mesh.login_key import build_seed, certify_login, derive_seed, get_public, is_certified
from scout.mesh.names import MeshNames, get_inbox, get_key
from scout.model.mesh.envelope import SIGNED_AS
from scout.model.problems.mesh import ServerTooOld
from scout.ports.mesh import MeshConfig, MeshDown
from tests.mesh.stage import MESH, Node, play

KEY = IdentityKey(bytes(range(32)))


def test_the_identity_key_signs_and_others_check() -> None:
    signature = KEY.sign(b"data")
    other = IdentityKey(bytes(32))
    assert other.verify(KEY.public_key, b"data", signature)
    assert not other.verify(KEY.public_key, b"other", signature)
    assert not other.verify(other.public_key, b"data", signature)
    assert KEY.public_key == "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"


@given(st.text(max_size=80), st.text(max_size=140))
def test_what_is_no_key_or_signature_is_not_valid(key: str, signature: str) -> None:
    assert not is_signed(key, b"data", KEY.sign(b"data"))
    assert not is_signed(KEY.public_key, b"data", signature)


def test_a_login_key_is_certified_by_the_identity() -> None:
    login = get_public(build_seed(bytes(32)))
    proof = certify_login(KEY, login)
    assert login.startswith("U")
    assert is_certified(KEY, KEY.public_key, login, proof)
    assert not is_certified(KEY, KEY.public_key, get_public(build_seed(bytes([1] * 32))), proof)
    assert not is_certified(KEY, KEY.public_key, login, KEY.sign(login.encode()))


def test_the_login_of_an_invitation_follows_from_its_secret() -> None:
    assert derive_seed("secret", "inv_1") == derive_seed("secret", "inv_1")
    assert len({derive_seed(*one) for one in (("a", "inv_1"), ("b", "inv_1"), ("a", "inv_2"))}) == 3


def test_a_certificate_is_made_for_one_server() -> None:
    one, other = make_certificate("scout-mesh"), make_certificate("scout-mesh")
    assert hash_certificate(one[0]) != hash_certificate(other[0])
    assert len(bytes.fromhex(hash_certificate(one[0]))) == 32


@pytest.mark.parametrize("text", ["", "a.b", "*", ">", "a b", "x" * 65, "ä", "a\r\n"])
def test_an_id_that_would_change_a_subject_is_refused(text: str) -> None:
    builders: tuple[Callable[[str], object], ...] = (MeshNames, get_inbox, MeshNames(MESH).get_stream)
    for build in (*builders, partial(get_key, "bucket")):
        with pytest.raises(Refused, match="cannot be the id"):
            build(text)


def test_versions_are_compared_as_numbers() -> None:
    assert [is_new_enough(one) for one in ("2.11.0", "2.15.1", "3.0.0-RC.1", "v2.11")] == [True] * 4
    assert not any(map(is_new_enough, ("2.9.10", "2.10.29", "1.99.0", "unknown", "")))


# -- servers that are not what they should be ----------------------------------------------------------


class FakeServer:
    """Says who it is, and keeps what a client sends to log in."""

    def __init__(self, version: str, nonce: str) -> None:
        self._info = {"server_id": "F", "version": version, "max_payload": 1 << 20, "nonce": nonce}
        self._info |= {"auth_required": True, "headers": True}
        self.logins = list[dict[str, str]]()
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"INFO " + json.dumps(self._info).encode() + b"\r\n")
        while line := await reader.readline():
            if line.startswith(b"CONNECT "):
                self.logins.append(json.loads(line[8:]))
                writer.write(b"+OK\r\n")
            elif line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        writer.close()


@asynccontextmanager
async def faking(version: str, nonce: str = "nonce") -> AsyncGenerator[FakeServer]:
    fake = FakeServer(version, nonce)
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    fake.port = server.sockets[0].getsockname()[1]
    try:
        yield fake
    finally:
        server.close()


def _see(node: Node, fake: FakeServer, scheme: str = "nats") -> MeshConfig:
    url = f"{scheme}://127.0.0.1:{fake.port}"
    return MeshConfig(mesh_id=MESH, url=url, founder_key=node.kit.keys().public_key)


@pytest.mark.rows("R8.s-5")
def test_an_old_server_is_refused_with_its_version(tmp_path: Path) -> None:
    async def story() -> None:
        node = Node(tmp_path / "mini", "nod_mini")
        await node.kit.prepare()
        async with faking("2.9.10") as fake:
            with pytest.raises(MeshDown) as down:
                async with node.logged_in(_see(node, fake)):
                    pass
            assert down.value.refused is not None
            found = down.value.refused.diagnostic
            assert found == ServerTooOld(
                where=f"nats://127.0.0.1:{fake.port}", version="2.9.10", needed="2.11"
            )

    play(story())


def test_a_server_that_drops_tls_is_not_used(tmp_path: Path) -> None:
    async def story() -> None:
        node = Node(tmp_path / "mini", "nod_mini")
        await node.kit.prepare()
        async with faking("2.15.1") as fake:
            with pytest.raises(MeshDown, match="does not encrypt"):
                async with node.logged_in(_see(node, fake, "tls")):
                    pass

    play(story())


@pytest.mark.rows("R8.j-6")
def test_a_server_that_sends_an_envelope_as_its_nonce_gets_no_signature_of_it(tmp_path: Path) -> None:
    envelope = SIGNED_AS + b'{"v":1,"id":"env_1"}'

    async def story() -> None:
        node = Node(tmp_path / "mini", "nod_mini")
        await node.kit.prepare()
        async with faking("2.15.1", envelope.decode()) as fake:
            async with node.logged_in(_see(node, fake)):
                pass
            login = fake.logins[0]
            padded = login["sig"] + "=" * (-len(login["sig"]) % 4)
            signature = base64.urlsafe_b64decode(padded)
            public, _ = await asyncio.to_thread(node.kit.login_key)
            assert login["nkey"] == public
            raw = base64.b32decode(public)[1:33].hex()
            assert is_signed(raw, envelope, signature.hex()), "the client signs whatever it is sent"
            assert not node.kit.keys().verify(node.kit.keys().public_key, envelope, signature.hex())
            assert raw != node.kit.keys().public_key
            assert not is_certified(node.kit.keys(), raw, public, signature.hex())

    play(story())


def test_the_libraries_agree_on_the_public_key() -> None:
    raw = base64.b32decode(get_public(build_seed(bytes(32))))[1:33]
    assert raw.hex() == IdentityKey(bytes(32)).public_key
