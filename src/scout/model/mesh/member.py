"""Members of a mesh and invitations to it. Only the node that founded the mesh admits and removes."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable
from scout.base.record import Record
from scout.base.time import Time

MEMBER_SIGNED_AS = b"scout-member-1\0"
LOGIN_SIGNED_AS = b"scout-login-1\0"


class MemberRelation(StrEnum):
    """Whether a member is a machine of the operator who founded the mesh, or of somebody else."""

    OWN = "own"
    GUEST = "guest"


class MemberEntry(Record, omit_defaults=True):
    """One admitted node, signed by the founder. `login_key`: the NATS user key, certified by the node.

    `operator_key`: the founder's key for an own node, the node's own key for a guest.
    """

    node_id: str
    name: str
    public_key: str
    login_key: str
    login_proof: str
    relation: MemberRelation = MemberRelation.OWN
    operator_key: str
    removed: bool = False
    revision: int = 1
    admitted_at: Time
    updated_at: Time


class Heartbeat(Record, omit_defaults=True):
    """What a node says about itself every few seconds; signed like an entry."""

    node_id: str
    name: str
    version: str
    agents: int = 0
    paused: bool = False
    shares_attention: bool = False
    number: int = 0


class InvitationState(StrEnum):
    OPEN = "open"
    USED = "used"
    EXPIRED = "expired"
    REVOKED = "revoked"


class InvitationMove(StrEnum):
    USE = "use"
    EXPIRE = "expire"
    REVOKE = "revoke"


INVITATION = Machine(
    "invitation",
    InvitationState.OPEN,
    {
        InvitationState.OPEN: {
            InvitationMove.USE: InvitationState.USED,
            InvitationMove.EXPIRE: InvitationState.EXPIRED,
            InvitationMove.REVOKE: InvitationState.REVOKED,
        },
        InvitationState.USED: {},
        InvitationState.EXPIRED: {},
        InvitationState.REVOKED: {},
    },
)


class Invitation(Mutable):
    """A one-time way in. Only a hash of the secret is stored. `name`: the name that the node gets."""

    hashed: str
    name: str | None = None
    relation: MemberRelation = MemberRelation.OWN
    state: InvitationState = InvitationState.OPEN
    expires_at: Time
    node_id: str | None = None
    created_by: str
