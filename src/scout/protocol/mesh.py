"""Requests about the mesh: several machines whose agents reach each other."""

from typing import Annotated, ClassVar

import msgspec

from scout.base.record import Record
from scout.base.time import Time
from scout.model.mesh.member import MemberRelation
from scout.model.node import NodeState
from scout.protocol.parameters import Seconds, Words, describe
from scout.protocol.request import Page, Request, Write

_OPERATOR = "the operator"


class NodeView(Record, omit_defaults=True):
    """A machine of the mesh. `here`: this one. `since`: since when it is unreachable. `agents`: how many.

    `user`: the user that a guest's agents belong to here; a grant to it is a grant to all of them.
    `queued`: envelopes to it that it has not confirmed, the oldest from `queued_since`.
    """

    id: str
    name: str
    state: NodeState
    here: bool = False
    founder: bool = False
    relation: MemberRelation = MemberRelation.OWN
    user: str | None = None
    version: str | None = None
    agents: int = 0
    last_seen: Time | None = None
    since: Time | None = None
    queued: int = 0
    queued_since: Time | None = None
    public_key: str | None = None


class MeshServerView(Record, omit_defaults=True):
    """The server that this machine runs. `connections`: those of other machines."""

    running: bool
    version: str | None = None
    pid: int | None = None
    connections: int = 0
    problem: str = ""


class MeshView(Record, omit_defaults=True):
    """The mesh as this machine sees it. Without a mesh, `member` is false.

    `connected`: to the server now; `since` when. `stopped`: by `scout mesh down`. `out_of_date`: not
    connected for five minutes, so that removed machines and moved agents may be unknown here.
    """

    member: bool
    node: str
    mesh_id: str | None = None
    url: str | None = None
    founder: bool = False
    relation: MemberRelation = MemberRelation.OWN
    stopped: bool = False
    connected: bool = False
    since: Time | None = None
    problem: str = ""
    out_of_date: bool = False
    shares_attention: bool = False
    server: MeshServerView | None = None
    nodes: int = 0
    unreachable: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Invited(Record):
    """The line to paste on the other machine. It works once."""

    line: str
    invitation_id: str
    expires_at: Time
    name: str | None = None
    guest: bool = False


class StartMesh(Write[MeshView]):
    """Start the mesh of this machine: a server for other machines to join, or the connection it had."""

    operation: ClassVar[str] = "mesh.up"
    route: ClassVar[str] = "POST /v1/mesh/up"
    permission: ClassVar[str] = _OPERATOR

    host: Annotated[
        Words, describe("the address to listen on, which others can reach; default all addresses")
    ] = ""
    port: Annotated[
        int, msgspec.Meta(ge=0, le=65_535), describe("the port to listen on; default any free one")
    ] = 0


class StopMesh(Write[MeshView]):
    """Stop the mesh on this machine, and the server that it runs. `mesh up` starts it again."""

    operation: ClassVar[str] = "mesh.down"
    route: ClassVar[str] = "POST /v1/mesh/down"
    permission: ClassVar[str] = _OPERATOR

    once: Annotated[bool, describe("only until the daemon starts again")] = False


class ShowMesh(Request[MeshView]):
    """Show the mesh: its server, the connection, and machines that do not answer."""

    operation: ClassVar[str] = "mesh.status"
    route: ClassVar[str] = "GET /v1/mesh"


class ListMeshNodes(Request[Page[NodeView]]):
    """List the machines of the mesh."""

    operation: ClassVar[str] = "mesh.nodes"
    route: ClassVar[str] = "GET /v1/mesh/nodes"

    all: Annotated[bool, describe("include machines that left or were removed")] = False


class InviteNode(Write[Invited]):
    """Invite a machine. The line works once and holds a secret: send it by a way you trust."""

    operation: ClassVar[str] = "mesh.invite"
    route: ClassVar[str] = "POST /v1/mesh/invitations"
    status: ClassVar[int] = 201
    permission: ClassVar[str] = _OPERATOR

    name: Annotated[Words | None, describe("the name that the machine gets; default its own")] = None
    expires: Annotated[Seconds | None, describe("valid for this long; default 15 minutes")] = None
    guest: Annotated[bool, describe("a machine of somebody else: it may do only what you grant")] = False


class JoinMesh(Write[MeshView]):
    """Join a mesh with the line of an invitation, or use an existing NATS server for a new mesh."""

    operation: ClassVar[str] = "mesh.join"
    route: ClassVar[str] = "POST /v1/mesh/join"
    words: ClassVar[tuple[str, ...]] = ("line",)
    flags: ClassVar[dict[str, str]] = {"credentials": "creds"}
    permission: ClassVar[str] = _OPERATOR

    line: Annotated[Words, describe("the line of the invitation, or nats://… of an existing server")]
    name: Annotated[Words | None, describe("join under this name; default the invitation's")] = None
    credentials: Annotated[Words | None, describe("the credentials file of an existing server")] = None


class RemoveNode(Write[NodeView]):
    """Remove a machine from the mesh. Its connection is cut, and nothing of it is taken any more."""

    operation: ClassVar[str] = "mesh.remove"
    route: ClassVar[str] = "POST /v1/mesh/nodes/{node}/remove"
    words: ClassVar[tuple[str, ...]] = ("node",)
    permission: ClassVar[str] = _OPERATOR

    node: Annotated[Words, describe("the name of the machine")]


class RenameNode(Write[MeshView]):
    """Give this machine another name. Its agents keep their ids; `node:` in addresses changes."""

    operation: ClassVar[str] = "mesh.rename"
    route: ClassVar[str] = "POST /v1/mesh/rename"
    words: ClassVar[tuple[str, ...]] = ("name",)
    permission: ClassVar[str] = _OPERATOR

    name: Annotated[Words, describe("the new name")]


class RotateLogin(Write[MeshView]):
    """Make another key with which this machine logs in to the server. Its identity stays."""

    operation: ClassVar[str] = "mesh.rotate"
    route: ClassVar[str] = "POST /v1/mesh/rotate"
    permission: ClassVar[str] = _OPERATOR


class LeaveMesh(Write[MeshView]):
    """Leave the mesh. The other machines list the agents of this one no longer."""

    operation: ClassVar[str] = "mesh.leave"
    route: ClassVar[str] = "POST /v1/mesh/leave"
    permission: ClassVar[str] = _OPERATOR


class ShareAttention(Write[MeshView]):
    """Share the items that need you with your other machines, so that you can answer them there."""

    operation: ClassVar[str] = "mesh.share"
    route: ClassVar[str] = "POST /v1/mesh/share"
    permission: ClassVar[str] = _OPERATOR

    off: Annotated[bool, describe("share them no longer")] = False
