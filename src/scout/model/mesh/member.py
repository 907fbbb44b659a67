"""Members of a mesh and invitations to it. Only the node that founded the mesh admits and removes."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.record import Record
from scout.base.time import Time

MEMBER_SIGNED_AS = b"scout-member-1\0"
HEARTBEAT_SIGNED_AS = b"scout-heartbeat-1\0"
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


class NodeHeartbeat(Record, omit_defaults=True):
    """What a node says about itself every few seconds; signed by its identity key.

    It also tells the founder what the node wants: another `name`, another `login_key`, or to leave. `number`
    rises with every heartbeat. `format`: which envelopes the node can read.
    """

    node_id: str
    name: str
    version: str
    agents: int = 0
    paused: bool = False
    shares_attention: bool = False
    login_key: str | None = None
    login_proof: str | None = None
    leaving: bool = False
    number: int = 0
    format: int = 1


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
    """A one-time way in. Only a hash of the secret is stored. `name`: the name that the node gets.

    `login_key`: the public login key with which the joining node reaches the founder.
    """

    hashed: str
    name: str | None = None
    relation: MemberRelation = MemberRelation.OWN
    state: InvitationState = InvitationState.OPEN
    expires_at: Time
    login_key: str | None = None
    node_id: str | None = None
    created_by: str


def move_invitation(
    invitation: Invitation, move: InvitationMove, now: Time, *, node_id: str | None = None
) -> Invitation:
    """Use up, expire or revoke an invitation; a used one names the node that joined."""
    return move_record(INVITATION, invitation, move, now, node_id=node_id or invitation.node_id)
