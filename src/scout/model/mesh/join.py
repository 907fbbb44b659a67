"""Joining a mesh: what the new node sends, and what the founder answers."""

from scout.base.record import Record


class JoinRequest(Record):
    """What a joining node proves to the founder: its keys, and that it knows the secret of an invitation."""

    invitation_id: str
    node_id: str
    name: str
    version: str
    public_key: str
    login_key: str
    login_proof: str
    nonce: str = ""
    proof: str = ""


class JoinAnswer(Record, omit_defaults=True):
    """The founder's answer: the member entry and the proof that it knows the secret too; or a refusal.

    `member` is the exact text that `signature` signs. `refusal`: the encoded diagnostic.
    """

    member: str | None = None
    signature: str | None = None
    mesh_id: str | None = None
    nonce: str | None = None
    proof: str | None = None
    refusal: bytes | None = None
