"""The mesh as the broker needs it: a connection, the server that this node may run, and the node's keys.

Nothing here knows NATS. The daemon builds the real parts from `scout.mesh`, whose libraries are an extra.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from scout.base.record import Record
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.mesh.join import JoinAnswer, JoinRequest
from scout.model.mesh.member import MemberRelation


class MeshDown(Exception):  # noqa: N818 (no error of ours: the server is out of reach, which passes)
    """The server cannot be reached now, or refused the node. `refused`: another attempt does not help."""

    def __init__(self, reason: str, *, refused: Refused | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.refused = refused


class MeshConfig(Record, omit_defaults=True):
    """How this node belongs to a mesh. Kept in a file of mode 0600 beside the database.

    `certificate`: the SHA-256 of the server's certificate, if it is pinned. `credentials`: the file with the
    credentials of an existing server. `founder`: this node founded the mesh. `serves`: it runs the server.
    `stopped`: the operator stopped it with `mesh down`; it does not start with the daemon.
    """

    mesh_id: str
    url: str
    founder_key: str
    founder: bool = False
    serves: bool = False
    relation: MemberRelation = MemberRelation.OWN
    certificate: str | None = None
    credentials: str | None = None
    shares_attention: bool = False
    stopped: bool = False


class ServerStatus(Record, omit_defaults=True):
    """The NATS server: whether it runs, its version, and who is connected to it, where that is known.

    `connections` counts those of other nodes.
    """

    running: bool
    url: str
    version: str | None = None
    pid: int | None = None
    connections: int | None = None
    stored_bytes: int | None = None
    problem: str = ""


class LinkStatus(Record, omit_defaults=True):
    """The connection of this node: connected or not, since when, and why not.

    `refused`: the server is there and does not let this node in.
    """

    connected: bool
    since: Time
    server_version: str | None = None
    round_trip: float | None = None
    problem: str = ""
    refused: bool = False


class NodeKeys(Protocol):
    """The identity key of this node (Ed25519), and checks of others' signatures. The key never leaves."""

    @property
    def public_key(self) -> str:
        """The public key, in hex."""
        ...

    def sign(self, data: bytes) -> str:
        """Return the signature of these bytes, in hex."""
        ...

    def verify(self, public_key: str, data: bytes, signature: str) -> bool:
        """Whether the signature is valid. False for anything that is not a key or a signature."""
        ...


class MeshInlet(Protocol):
    """What the connection hands over. A call returns once the broker has stored it, and may be repeated."""

    async def take_envelope(self, data: bytes) -> bool:
        """Take a signed envelope. False: not yet, because an earlier one is missing; it is offered again.

        Calls begin in the order of the stream. Several run at once, so that they share a commit.
        """
        ...

    async def take_member(self, node_id: str, data: bytes | None) -> None:
        """Take a signed member entry; None: it was deleted, which changes nothing."""
        ...

    async def take_heartbeat(self, node_id: str, data: bytes | None) -> None:
        """Take a signed heartbeat; None: the last one has expired, or a member has none."""
        ...

    async def take_entries(self, entries: Sequence[tuple[str, str, bytes | None]]) -> None:
        """Take signed directory entries as (node id, agent id, data); None: the agent is no longer listed."""
        ...

    async def take_state(self, status: LinkStatus) -> None:
        """The connection was made or lost."""
        ...


class MeshLink(Protocol):
    """The connection of this node to its mesh. It reconnects by itself. Methods raise `MeshDown`."""

    @property
    def status(self) -> LinkStatus: ...

    async def run(self, inlet: MeshInlet) -> None:
        """Connect and receive until cancelled; members and the directory first, then envelopes.

        An envelope is acknowledged on the server after the inlet has taken it.
        """
        ...

    async def publish(self, node_id: str, envelope_id: str, data: bytes) -> None:
        """Store an envelope in the stream of a node. Returns once the server has acknowledged it.

        The server stores an id once within two minutes: an envelope that is sent again needs another one.
        """
        ...

    async def beat(self, data: bytes, lives: float) -> None:
        """Publish the heartbeat of this node; it expires after `lives` seconds."""
        ...

    async def put_entries(self, entries: Mapping[str, bytes | None]) -> None:
        """Publish entries of own agents by their ids; None removes one."""
        ...

    async def put_member(self, node_id: str, data: bytes) -> None:
        """Publish a member entry, and prepare the stream of the node, or remove it. Only the founder may."""
        ...

    async def tell_member(self, node_id: str, data: bytes) -> None:
        """Publish a member entry and leave the streams alone: a node is told before it is cut off."""
        ...

    async def close(self) -> None: ...


class JoinDesk(Protocol):
    """What answers join requests: the broker of the founder.

    It checks the proof of the request and proves its answer (`policy/mesh/join_proof.py`).
    """

    async def admit(self, request: JoinRequest) -> JoinAnswer: ...


class MeshServer(Protocol):
    """The server that this node runs. It survives restarts of the daemon."""

    async def start(self) -> ServerStatus:
        """Start it, or find the one that runs. Refused if the program is missing or too old."""
        ...

    async def stop(self) -> None: ...
    async def check(self) -> ServerStatus: ...

    async def set_logins(self, logins: Mapping[str, str], invitations: Mapping[str, str]) -> None:
        """Set who may connect: node id → login key, and invitation id → login key of the invitation.

        A live connection of a login that is no longer listed is cut.
        """
        ...


class MeshKit(Protocol):
    """The mesh of this daemon: what is stored about it, and what builds its parts.

    Each method that needs the extra is refused with the command that installs it if it is missing.
    """

    @property
    def installed(self) -> bool:
        """Whether the libraries of the extra are there; looked at without importing them."""
        ...

    async def prepare(self) -> None:
        """Load the libraries and the identity key, in a thread. Call it before the methods below `forget`."""
        ...

    def read(self) -> MeshConfig | None: ...
    def store(self, config: MeshConfig) -> None: ...
    def forget(self) -> None:
        """Remove the configuration and the login key; the identity key stays."""
        ...

    def keys(self) -> NodeKeys: ...

    def login_key(self, *, renew: bool = False) -> tuple[str, str]:
        """Return the public login key and its proof by the identity key; `renew` makes another key."""
        ...

    def begin_numbers(self) -> int:
        """Return a number far above those of earlier runs, whatever happened to the clock meanwhile.

        Heartbeats and entries of this run count up from it: others believe only what is newer.
        """
        ...

    def build_link(self, config: MeshConfig, node_id: str) -> MeshLink: ...
    def build_server(self, config: MeshConfig) -> MeshServer: ...

    async def found(self, mesh_id: str, *, host: str, port: int) -> MeshConfig:
        """Prepare a server of this node (certificate, folders) and return the configuration, not stored yet.

        `host`: the address to listen on and to invite to; empty: all addresses of this machine. Port 0: any.
        """
        ...

    async def found_at(self, mesh_id: str, url: str, *, credentials: str | None) -> MeshConfig:
        """Check an existing server (version, rights) and return the configuration, not stored yet."""
        ...

    def build_invitation(self, config: MeshConfig, invitation_id: str, secret: str) -> tuple[str, str]:
        """Return the line that invites, and the public login key that the invitation uses."""
        ...

    def read_invitation(self, line: str, *, credentials: str | None) -> tuple[str, MeshConfig]:
        """Return the id of the invitation in a line, and the configuration that a node has after joining."""
        ...

    async def join(self, line: str, request: JoinRequest, *, credentials: str | None) -> JoinAnswer:
        """Connect as an invited node, prove the secret, and return the founder's answer, proved and checked.

        Sets `invitation_id`, `nonce` and `proof` of the request. A refusal by the founder is raised.
        """
        ...

    async def answer_joins(self, config: MeshConfig, desk: JoinDesk) -> None:
        """Answer join requests until cancelled; only on the founder."""
        ...
