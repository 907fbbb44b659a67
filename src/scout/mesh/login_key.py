"""Login keys: what a node or an invitation logs in with. A NATS client signs whatever the server sends.

Such a key therefore signs nothing else, and is worth nothing without the identity key that certifies it.
"""

import hmac
from typing import Any, cast

import nkeys  # pyright: ignore[reportMissingTypeStubs] (it has no types)

from scout.model.mesh.member import LOGIN_SIGNED_AS
from scout.ports.mesh import NodeKeys

_nkeys = cast("Any", nkeys)
_DERIVED_AS = b"scout-invitation-login-1\0"


def build_seed(entropy: bytes) -> str:
    """Return the seed of a login key, as NATS writes it, from 32 random bytes."""
    return bytes(_nkeys.encode_seed(entropy, _nkeys.PREFIX_BYTE_USER)).decode()


def derive_seed(secret: str, invitation_id: str) -> str:
    """Return the seed of the login of an invitation: whoever has the secret can log in with it."""
    return build_seed(hmac.digest(secret.encode(), _DERIVED_AS + invitation_id.encode(), "sha256"))


def get_public(seed: str) -> str:
    """Return the public key of a seed, as NATS writes it."""
    pair = _nkeys.from_seed(bytearray(seed.encode()))
    return bytes(pair.public_key).decode()


def certify_login(keys: NodeKeys, login_key: str) -> str:
    """Return the proof that a login key belongs to this node."""
    return keys.sign(LOGIN_SIGNED_AS + login_key.encode())


def is_certified(keys: NodeKeys, public_key: str, login_key: str, proof: str) -> bool:
    """Whether the node with this identity certified the login key."""
    return keys.verify(public_key, LOGIN_SIGNED_AS + login_key.encode(), proof)
