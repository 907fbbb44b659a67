"""The identity key of this node: Ed25519. It signs what Scout made, and never what a server sent."""

import functools

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


class IdentityKey:
    """Signs with the 32 bytes of `node.key`. What is signed begins with a prefix that names its kind."""

    def __init__(self, private: bytes) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(private)
        self._public = self._key.public_key().public_bytes_raw().hex()

    @property
    def public_key(self) -> str:
        return self._public

    def sign(self, data: bytes) -> str:
        return self._key.sign(data).hex()

    def verify(self, public_key: str, data: bytes, signature: str) -> bool:
        return is_signed(public_key, data, signature)


def is_signed(public_key: str, data: bytes, signature: str) -> bool:
    """Whether the signature is valid. False for anything that is not a key or a signature."""
    try:
        _load_key(public_key).verify(bytes.fromhex(signature), data)
    except (ValueError, InvalidSignature):
        return False
    return True


@functools.lru_cache(maxsize=4096)
def _load_key(public_key: str) -> Ed25519PublicKey:
    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))
