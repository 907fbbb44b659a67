"""Identity files: facts about an agent, signed for the folder that they lie in."""

import hashlib
import hmac
import json
import os
from typing import Any, cast

import msgspec

from scout.base.codec import decode, encode
from scout.base.outside import check_each_once, check_outside
from scout.base.refusal import Refused
from scout.ports import IdentityFile

_SHOWN = 200
_CLAIMS = 24


class Untrusted(Exception):  # noqa: N818 (named like the state of the file)
    """The content of a file cannot be trusted; `claims` is what it states."""

    def __init__(self, why: str, claims: dict[str, str] | None = None) -> None:
        super().__init__(why)
        self.claims = claims or {}


def sign(identity: IdentityFile, folder: str, key: bytes) -> bytes:
    """Return the content of an identity file, signed for the real path of its folder."""
    mac = _compute_mac(identity, os.path.realpath(folder), key)
    return encode(msgspec.structs.replace(identity, mac=mac)) + b"\n"


def verify(data: bytes, folder: str, root: str, key: bytes) -> IdentityFile:
    """Return the identity that a file states, if it is signed for this folder of this project: real paths."""
    claims = read_claims(data)
    try:
        check_each_once(data)
        identity = decode(data, IdentityFile)
    except Refused as refusal:
        raise Untrusted(
            f"it is not an identity file: {refusal.diagnostic.message[:_SHOWN]}", claims
        ) from None
    if _is_signed(identity, folder, key):
        return identity
    before = _place_before(identity, folder, root)
    if before is not None and _is_signed(identity, before, key):
        raise Untrusted(f"it was signed for {before}; the folder has been moved or copied", claims)
    raise Untrusted("its signature is not valid; another Scout or somebody else has written it", claims)


def read_claims(data: bytes) -> dict[str, str]:
    """Return the texts that a file states, to be shown to a person. Anything else in it is left out."""
    try:
        value: object = msgspec.json.decode(data)
        check_outside(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError, Refused):
        return {}
    if not isinstance(value, dict):
        return {}
    texts = cast("dict[Any, Any]", value).items()
    shown = [(str(name)[:_SHOWN], text[:_SHOWN]) for name, text in texts if isinstance(text, str)]
    return dict(shown[:_CLAIMS])


def _is_signed(identity: IdentityFile, real: str, key: bytes) -> bool:
    return hmac.compare_digest(identity.mac.encode(), _compute_mac(identity, real, key).encode())


def _compute_mac(identity: IdentityFile, real: str, key: bytes) -> str:
    facts = json.loads(encode(msgspec.structs.replace(identity, mac="")))
    signed = {"folder": os.fsencode(real).hex(), "identity": facts}
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _place_before(identity: IdentityFile, real: str, root: str) -> str | None:
    """Return where the folder was if its project was elsewhere: at the project root that the file names."""
    if not identity.project_root.startswith("/") or not (real == root or real.startswith(f"{root}/")):
        return None
    return identity.project_root.rstrip("/") + real[len(root) :]
