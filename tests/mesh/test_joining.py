"""Joining by one line: both sides prove the secret, and everything else is refused."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from scout.base.codec import decode
from scout.base.refusal import Diagnostic, Refused
from scout.mesh.connection import connect
from scout.mesh.invitation import read_line, write_line
from scout.mesh.joining import _build_login
from scout.mesh.names import MeshNames, get_key
from scout.model.mesh.entry import SignedEntry
from scout.model.mesh.join import JoinAnswer, JoinRequest
from scout.model.problems.mesh import CertificateMismatch, InvitationInvalid, MeshUnreachable
from scout.model.problems.target import NameTaken
from scout.policy.mesh.join_proof import hash_secret, is_joiner_proved, prove_founder
from scout.ports.mesh import MeshDown
from tests.mesh.stage import MESH, Node, Stage, founded, play, until

INVITATION, SECRET = "inv_1", "a secret that nobody can guess"


class Desk:
    """A founder's desk with one invitation, as the broker has it: only the hash of the secret."""

    def __init__(self, stage: Stage, joining: Node) -> None:
        self.stage = stage
        self.joining = joining
        self.hashed = hash_secret(SECRET)
        self.asked = list[JoinRequest]()
        self.change: Callable[[JoinAnswer], JoinAnswer] = lambda answer: answer

    async def admit(self, request: JoinRequest) -> JoinAnswer:
        self.asked.append(request)
        founder = self.stage.config.founder_key
        if not is_joiner_proved(self.hashed, MESH, founder, request):
            raise Refused(InvitationInvalid(problem="the secret is wrong"))
        if request.name == "taken":
            raise Refused(NameTaken(noun="node", name="taken"))
        signed = await asyncio.to_thread(self.stage.founder.sign_member, self.joining)
        entry = decode(signed, SignedEntry)
        answer = JoinAnswer(member=entry.body, signature=entry.signature, mesh_id=MESH, nonce="founder")
        proof = prove_founder(self.hashed, MESH, founder, request, answer)
        return self.change(replace(answer, proof=proof))


class Inviting:
    def __init__(self, stage: Stage, mini: Node, line: str, desk: Desk) -> None:
        self.stage = stage
        self.mini = mini
        self.line = line
        self.desk = desk

    async def build_request(self, name: str = "mini") -> JoinRequest:
        login, proof = await asyncio.to_thread(self.mini.kit.login_key)
        return JoinRequest(
            invitation_id="",
            node_id=self.mini.id,
            name=name,
            version="1",
            public_key=self.mini.kit.keys().public_key,
            login_key=login,
            login_proof=proof,
        )

    async def fail(self, line: str, request: JoinRequest | None = None) -> Diagnostic:
        with pytest.raises(Refused) as refused:
            await self.mini.kit.join(line, request or await self.build_request(), credentials=None)
        return refused.value.diagnostic


@asynccontextmanager
async def inviting(folder: Path) -> AsyncGenerator[Inviting]:
    """A founder that answers one invitation."""
    async with founded(folder) as stage:
        mini = Node(folder / "mini", "nod_mini")
        await mini.kit.prepare()
        line, login = stage.founder.kit.build_invitation(stage.config, INVITATION, SECRET)
        await stage.server.set_logins({}, {INVITATION: login})
        desk = Desk(stage, mini)
        answering = asyncio.create_task(stage.founder.kit.answer_joins(stage.config, desk))
        try:
            yield Inviting(stage, mini, line, desk)
        finally:
            answering.cancel()
            await asyncio.wait({answering})


async def _wait_for_founder(case: Inviting) -> None:
    """A request that arrives before the founder listens gets no answer; a person would try again."""
    for _ in range(100):
        try:
            await case.mini.kit.join(case.line, await case.build_request("taken"), credentials=None)
        except Refused as refused:
            if not isinstance(refused.diagnostic, MeshUnreachable):
                return
    raise AssertionError("the founder did not answer")


def test_a_node_joins_with_one_line_and_is_linked(tmp_path: Path) -> None:
    async def story() -> None:
        async with inviting(tmp_path) as case:
            await _wait_for_founder(case)
            assert len(case.line) < 400
            assert " " not in case.line
            invitation, config = case.mini.kit.read_invitation(case.line, credentials=None)
            assert invitation == INVITATION
            assert config == case.stage.see()
            answer = await case.mini.kit.join(case.line, await case.build_request(), credentials=None)
            assert answer.mesh_id == MESH
            request = case.desk.asked[-1]
            assert (request.invitation_id, request.name) == (INVITATION, "mini")
            assert len(request.nonce) == 32
            async with case.stage.founder.linked(case.stage.config) as here:
                member = await asyncio.to_thread(case.stage.founder.sign_member, case.mini)
                await here.put_member(case.mini.id, member)
                await case.stage.server.set_logins({case.mini.id: request.login_key}, {})
                async with case.mini.linked(config):
                    await until(lambda: case.mini.inlet.members == {case.mini.id: member})

    play(story())


@pytest.mark.rows("R8.j-4")
def test_a_line_that_was_used_altered_or_guessed_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with inviting(tmp_path) as case:
            await _wait_for_founder(case)
            for wrong in (case.line[:-3], case.line.replace("scout-mesh1:", "other:"), "", "scout-mesh1:%%"):
                assert isinstance(await case.fail(wrong), InvitationInvalid)
            inside = read_line(case.line)
            guessed = write_line(replace(inside, secret="a guess"))
            assert "used, has expired or was revoked" in (await case.fail(guessed)).message
            other = write_line(replace(inside, certificate=bytes(32)))
            assert isinstance(await case.fail(other), CertificateMismatch)
            founder = write_line(replace(inside, founder_key=bytes(32)))
            assert "the secret is wrong" in (await case.fail(founder)).message
            assert await case.fail(case.line, await case.build_request("taken")) == NameTaken(
                noun="node", name="taken"
            )
            await case.stage.server.set_logins({}, {})
            assert "used, has expired or was revoked" in (await case.fail(case.line)).message
            gone = write_line(replace(inside, urls=("tls://127.0.0.1:1",)))
            assert isinstance(await case.fail(gone), MeshUnreachable)

    play(story())


@pytest.mark.rows("R8.j-4")
def test_an_answer_that_is_not_proved_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with inviting(tmp_path) as case:
            await _wait_for_founder(case)
            case.desk.change = lambda answer: replace(answer, proof="00")
            assert "does not prove" in (await case.fail(case.line)).message
            case.desk.change = lambda answer: replace(answer, member="{}")
            assert "does not prove" in (await case.fail(case.line)).message
            case.desk.change = lambda answer: answer
            case.desk.joining = case.stage.founder  # a member entry of another node, well signed
            assert "admitted another node" in (await case.fail(case.line)).message

    play(story())


def test_a_login_key_that_the_node_did_not_certify_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with inviting(tmp_path) as case:
            await _wait_for_founder(case)
            asked = len(case.desk.asked)
            stolen = replace(await case.build_request(), login_key="U" + "A" * 55)
            assert "not certified" in (await case.fail(case.line, stolen)).message
            assert len(case.desk.asked) == asked

    play(story())


def test_an_invitation_may_do_nothing_but_ask_to_join(tmp_path: Path) -> None:
    async def story() -> None:
        async with inviting(tmp_path) as case:
            names = MeshNames(MESH)
            login = _build_login(read_line(case.line), None)

            async def is_denied(subject: str) -> bool:
                connection = await connect(login)
                try:
                    with pytest.raises(MeshDown) as down:
                        await connection.request(subject, b"{}")
                finally:
                    await connection.close()
                return "permissions violation" in down.value.reason.lower()

            subjects = (
                names.get_join("inv_2"),
                names.get_envelopes("nod_founder", "nod_mini"),
                get_key(names.members, "nod_mini"),
                "$JS.API.STREAM.NAMES",
            )
            assert await asyncio.gather(*map(is_denied, subjects)) == [True] * len(subjects)

    play(story())
