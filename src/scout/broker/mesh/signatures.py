"""Signed records of the mesh: the exact text that was signed, and the signature."""

from typing import TypeVar

from scout.base.codec import decode, encode
from scout.base.record import Record
from scout.base.refusal import Refused
from scout.model.mesh.entry import SignedEntry
from scout.ports.mesh import NodeKeys

T = TypeVar("T", bound=Record)


def sign_record(keys: NodeKeys, label: bytes, record: Record) -> bytes:
    """Return a record as it is published; `label` says what was signed: it passes for nothing else."""
    body = encode(record)
    return encode(SignedEntry(body=body.decode(), signature=keys.sign(label + body)))


def read_signed(keys: NodeKeys, public_key: str, label: bytes, data: bytes, kind: type[T]) -> T | None:
    """Return a published record; None if it is unreadable or not signed by the key."""
    try:
        signed = decode(data, SignedEntry)
        body = signed.body.encode()
        if not keys.verify(public_key, label + body, signed.signature):
            return None
        return decode(body, kind)
    except (Refused, UnicodeEncodeError):
        return None
