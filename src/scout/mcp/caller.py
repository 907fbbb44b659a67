"""The caller: determined by the credential of each request, never by the caller's own claims."""

from typing import Any, NamedTuple

from scout.base.refusal import Refused
from scout.mcp.address import Named, build_path
from scout.model.access.token import TokenKind
from scout.model.agent import ToolRole
from scout.model.problems.request import Forbidden
from scout.protocol.agents import Identity, Resolve, WhoAmI
from scout.protocol.scout import Scout


class Backend(NamedTuple):
    """The MCP identity of one agent, kept between requests."""

    agent_name: str
    birth_branch: str | None
    agent_id: str
    user_id: str | None
    role: ToolRole
    project_root: str | None


class McpCaller(NamedTuple):
    """The caller of one request: its view of Scout, identity and role."""

    scout: Scout
    identity: Identity
    backend: Backend

    @property
    def role(self) -> ToolRole:
        return self.backend.role


class Backends:
    """The backend of each agent, built once: by project and birth branch, or by id without a branch."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str | None, str], Backend] = {}

    def of(self, identity: Identity) -> Backend:
        """Return the backend of an identity; it is rebuilt when its record has changed."""
        made = _build_backend(identity)
        key = (made.project_root, made.birth_branch) if made.birth_branch else (None, made.agent_id)
        if self._kept.get(key) != made:
            self._kept[key] = made
        return self._kept[key]

    def __len__(self) -> int:
        return len(self._kept)


async def identify(scout: Scout, url: Named | None, backends: Backends) -> McpCaller:
    """Return the caller; refuse a URL that belongs to another agent or role."""
    identity = await scout.call(WhoAmI())
    role = get_role(identity)
    if url is not None:
        resolved = await scout.call(Resolve(address=url.name))
        if resolved.agent_id != identity.agent_id:
            needs = (f"the token of {resolved.address}",)
            raise Refused(Forbidden(action="mcp", subject=url.name, needs=needs))
        if url.role != role:
            right = f"{identity.url}{build_path(role, url.name)}"
            raise Refused(Forbidden(action=f"the role {url.role}", subject=url.name, needs=(right,)))
    return McpCaller(scout, identity, backends.of(identity))


def get_role(identity: Identity) -> ToolRole:
    """Return the tool role: `host` for the operator, the recorded role for an agent; others are refused."""
    if identity.kind == TokenKind.OPERATOR:
        return ToolRole.HOST
    if identity.kind == TokenKind.AGENT and identity.role is not None:
        return ToolRole(identity.role)
    needs = ("an agent's token", "the operator's token")
    raise Refused(Forbidden(action="mcp", subject=f"a {identity.kind} token", needs=needs))


def _build_backend(identity: Identity) -> Backend:
    return Backend(
        agent_name=identity.address or identity.kind,
        birth_branch=identity.birth_branch,
        agent_id=identity.agent_id or identity.token_id,
        user_id=identity.user,
        role=get_role(identity),
        project_root=identity.project,
    )


def get_caller(ctx: Any) -> McpCaller:
    """Return the caller of the HTTP request that carried a message."""
    caller: McpCaller = ctx.request.scope["state"]["caller"]
    return caller
