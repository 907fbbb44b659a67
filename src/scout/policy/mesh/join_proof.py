"""Proofs that a joining node and the founder know the secret of an invitation, without sending it.

Each proof is an HMAC over everything that both sides said so far. Its key is the stored hash of the secret,
so that the founder keeps no secret. The two labels differ, so that neither side can return the other's proof.
"""

import hashlib
import hmac

import msgspec

from scout.model.mesh.join import JoinAnswer, JoinRequest

_HASHED_AS = b"scout-invitation-1\0"
_JOINER = b"scout-join-1\0joiner\0"
_FOUNDER = b"scout-join-1\0founder\0"


def hash_secret(secret: str) -> str:
    """Return the hash of an invitation's secret, in hex; the founder stores nothing else."""
    return hashlib.sha256(_HASHED_AS + secret.encode()).hexdigest()


def prove_joiner(hashed: str, mesh_id: str, founder_key: str, request: JoinRequest) -> str:
    """Return the proof of the joining node, over its request and the mesh that it wants to join."""
    return _sign(hashed, _JOINER, _list_request(mesh_id, founder_key, request))


def prove_founder(
    hashed: str, mesh_id: str, founder_key: str, request: JoinRequest, answer: JoinAnswer
) -> str:
    """Return the proof of the founder, over the request and its own answer."""
    answered = [answer.nonce, answer.member, answer.signature, answer.mesh_id]
    return _sign(hashed, _FOUNDER, [*_list_request(mesh_id, founder_key, request), request.proof, *answered])


def is_joiner_proved(hashed: str, mesh_id: str, founder_key: str, request: JoinRequest) -> bool:
    """Whether the request proves the secret."""
    return _is_equal(prove_joiner(hashed, mesh_id, founder_key, request), request.proof)


def is_founder_proved(
    hashed: str, mesh_id: str, founder_key: str, request: JoinRequest, answer: JoinAnswer
) -> bool:
    """Whether the answer proves the secret."""
    return _is_equal(prove_founder(hashed, mesh_id, founder_key, request, answer), answer.proof or "")


def _list_request(mesh_id: str, founder_key: str, request: JoinRequest) -> list[str | None]:
    said = (request.invitation_id, request.node_id, request.name, request.version)
    keys = (request.public_key, request.login_key, request.login_proof, request.nonce)
    return [mesh_id, founder_key, *said, *keys]


def _sign(hashed: str, label: bytes, said: list[str | None]) -> str:
    return hmac.new(bytes.fromhex(hashed), label + msgspec.json.encode(said), "sha256").hexdigest()


def _is_equal(expected: str, given: str) -> bool:
    return hmac.compare_digest(expected.encode(), given.encode("utf-8", "replace"))
