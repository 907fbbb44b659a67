"""The handshake by which a node joins. The founder's side answers until it is cancelled."""

import asyncio
import logging
import secrets
from collections.abc import Callable

from msgspec.structs import replace
from nats.aio.msg import Msg

from scout.base.codec import decode, encode
from scout.base.refusal import Diagnostic, Refused
from scout.mesh.connection import Connection, ServerLogin, connect
from scout.mesh.identity_key import is_signed
from scout.mesh.invitation import InvitationLine
from scout.mesh.login_key import derive_seed, is_certified
from scout.mesh.names import MeshNames, get_inbox
from scout.model.mesh.join import JoinAnswer, JoinRequest
from scout.model.mesh.member import MEMBER_SIGNED_AS, MemberEntry
from scout.model.problems.diagnostics import AnyDiagnostic
from scout.model.problems.mesh import InvitationInvalid, MeshLoginRefused, MeshUnreachable
from scout.policy.mesh.join_proof import hash_secret, is_founder_proved, prove_joiner
from scout.ports.mesh import JoinDesk, MeshDown, NodeKeys

_LOG = logging.getLogger("scout.mesh")
_PAUSE = 1.0  # seconds until the founder connects again
_LARGEST = 16_384  # bytes of a request
_AT_ONCE = 8
_UNUSABLE = "it was used, has expired or was revoked"


# -- the joining node ----------------------------------------------------------------------------------


async def join_mesh(line: InvitationLine, request: JoinRequest, credentials: str | None) -> JoinAnswer:
    """Prove the secret to the founder, and return its answer once it is proved and checked."""
    founder_key, hashed = line.founder_key.hex(), hash_secret(line.secret)
    asked = replace(request, invitation_id=line.invitation_id, nonce=secrets.token_hex(16))
    asked = replace(asked, proof=prove_joiner(hashed, line.mesh_id, founder_key, asked))
    answer = await _ask_founder(line, asked, credentials)
    if answer.refusal is not None:
        raise Refused(_read_refusal(answer.refusal))
    if not is_founder_proved(hashed, line.mesh_id, founder_key, asked, answer):
        raise Refused(InvitationInvalid(problem="the answer does not prove that its sender made it"))
    _check_member(answer, asked, founder_key)
    return answer


async def _ask_founder(line: InvitationLine, request: JoinRequest, credentials: str | None) -> JoinAnswer:
    try:
        connection = await connect(_build_login(line, credentials))
        try:
            subject = MeshNames(line.mesh_id).get_join(line.invitation_id)
            return decode((await connection.request(subject, encode(request))).data, JoinAnswer)
        finally:
            await connection.close()
    except MeshDown as down:
        raise _explain(line, down, credentials) from None


def _build_login(line: InvitationLine, credentials: str | None) -> ServerLogin:
    return ServerLogin(
        urls=line.urls,
        name="scout join",
        inbox=get_inbox(line.invitation_id),
        certificate=line.certificate.hex() or None,
        credentials=credentials,
        seeds=() if credentials else (derive_seed(line.secret, line.invitation_id),),
    )


def _explain(line: InvitationLine, down: MeshDown, credentials: str | None) -> Refused:
    """A server of Scout forgets the login of an invitation that cannot be used any more."""
    if down.refused is None:
        return Refused(MeshUnreachable(url=line.urls[0], reason=down.reason))
    if isinstance(down.refused.diagnostic, MeshLoginRefused) and credentials is None:
        return Refused(InvitationInvalid(problem=_UNUSABLE))
    return down.refused


def _check_member(answer: JoinAnswer, request: JoinRequest, founder_key: str) -> None:
    """Check that the founder admitted this very node."""
    body = answer.member or ""
    if not is_signed(founder_key, MEMBER_SIGNED_AS + body.encode(), answer.signature or ""):
        raise Refused(InvitationInvalid(problem="the member entry is not signed by the founder"))
    member = decode(body.encode(), MemberEntry)
    asked = (request.node_id, request.public_key, request.login_key)
    if (member.node_id, member.public_key, member.login_key) != asked:
        raise Refused(InvitationInvalid(problem="the founder admitted another node"))


def _read_refusal(data: bytes) -> Diagnostic:
    try:
        return decode(data, AnyDiagnostic)
    except Refused:
        return InvitationInvalid(problem="the founder refused for a reason that this version does not know")


# -- the founder ---------------------------------------------------------------------------------------


async def answer_joins(
    mesh_id: str, read_login: Callable[[], ServerLogin], keys: NodeKeys, desk: JoinDesk
) -> None:
    """Answer join requests until cancelled."""
    while True:
        try:
            connection = await connect(await asyncio.to_thread(read_login))
            try:
                await _answer(connection, MeshNames(mesh_id).get_join("*"), keys, desk)
            finally:
                await connection.close()
        except MeshDown:
            await asyncio.sleep(_PAUSE)  # the link reports it


async def _answer(connection: Connection, subject: str, keys: NodeKeys, desk: JoinDesk) -> None:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def answer(message: Msg) -> None:
        async with slots:
            answered = await _admit(message, keys, desk)
        if message.reply:
            await connection.publish(message.reply, encode(answered))

    await connection.subscribe(subject, answer)
    await connection.watch()


async def _admit(message: Msg, keys: NodeKeys, desk: JoinDesk) -> JoinAnswer:
    try:
        return await desk.admit(_read_request(message, keys))
    except Refused as refused:
        return JoinAnswer(refusal=encode(refused.diagnostic))
    except Exception:  # noqa: BLE001 (a strange request must not end the answering of others)
        _LOG.exception("a join request could not be answered")
        return JoinAnswer(refusal=encode(InvitationInvalid(problem="the founder could not answer")))


def _read_request(message: Msg, keys: NodeKeys) -> JoinRequest:
    """Return a request whose login key is certified and that arrived where its invitation allows."""
    if len(message.data) > _LARGEST:
        raise Refused(InvitationInvalid(problem="the request is too large"))
    request = decode(message.data, JoinRequest)
    if message.subject.rpartition(".")[2] != request.invitation_id:
        raise Refused(InvitationInvalid(problem="the request names another invitation"))
    if not is_certified(keys, request.public_key, request.login_key, request.login_proof):
        raise Refused(InvitationInvalid(problem="the login key is not certified by the key of the node"))
    return request
