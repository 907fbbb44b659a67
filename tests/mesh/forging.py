"""Envelopes that a member of a mesh could write by hand, true and false ones."""

from itertools import count
from typing import Any

from scout.base.codec import decode, encode
from scout.base.time import Time
from scout.model.agent import Agent
from scout.model.conversation import Message, derive_dm_id
from scout.model.mesh.entry import AgentEntry
from scout.model.mesh.envelope import Envelope, MessagePayload, SignedEnvelope
from scout.model.status import AgentStatus
from scout.ports.mesh import NodeKeys

_NUMBERS = count(1)


class EnvelopeWriter:
    """Writes messages from an agent of one node to an agent of another."""

    def __init__(self, mesh_id: str, sender: Agent, from_node: str, to: tuple[str, str]) -> None:
        self._mesh_id = mesh_id
        self._from_node = from_node
        self._to_node, self._to = to
        self.sender = AgentEntry(
            id=sender.id,
            node_id=from_node,
            path=sender.path,
            definition_id=sender.definition_id,
            status=AgentStatus.ONLINE,
            updated_at=sender.created_at,
        )

    def write(self, body: str = "trust me", **changes: Any) -> Envelope:
        """A message; `changes` are other values of the envelope's fields."""
        number, now = next(_NUMBERS), Time(1_790_000_000_000_000)
        sender = changes.get("sender", self.sender)
        message = Message(
            id=f"msg_{number:026d}",
            conversation_id=derive_dm_id(sender.id if sender else "", self._to),
            sender=sender.id if sender else "",
            body=body,
            created_at=now,
        )
        fields: dict[str, Any] = {
            "id": f"env_{number:026d}",
            "mesh": self._mesh_id,
            "from_node": self._from_node,
            "to_node": self._to_node,
            "sent_at": now,
            "lives": 60.0,
            "sender": self.sender,
            "payload": MessagePayload(message=message, to=self._to),
            **changes,
        }
        return Envelope(**fields)


def change_body(data: bytes, old: str, new: str, keys: NodeKeys | None = None) -> bytes:
    """Change the text of a signed envelope; with `keys` it is signed again."""
    signed = decode(data, SignedEnvelope)
    assert old in signed.body
    changed = SignedEnvelope(body=signed.body.replace(old, new), signature=signed.signature)
    if keys is None:
        return encode(changed)
    return encode(SignedEnvelope(body=changed.body, signature=keys.sign(changed.signed_bytes)))
