"""Standing decisions: which actions programs may take without asking again, for whom, and until when."""

from enum import StrEnum

from scout.base.machine import Machine, Mutable, move_record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time


class AllowanceState(StrEnum):
    ACTIVE = "active"
    REVOKED = "revoked"


class AllowanceMove(StrEnum):
    REVOKE = "revoke"


ALLOWANCE = Machine(
    "allowance",
    AllowanceState.ACTIVE,
    {
        AllowanceState.ACTIVE: {AllowanceMove.REVOKE: AllowanceState.REVOKED},
        AllowanceState.REVOKED: {},
    },
)


class AllowanceScope(StrEnum):
    """What a standing decision covers: one session until it ends, an agent, a project, or everything."""

    SESSION = "session"
    AGENT = "agent"
    PROJECT = "project"
    EVERYWHERE = "everywhere"


class AllowanceKind(StrEnum):
    """The part of a request that is matched: the exact command, the tool, or the file."""

    COMMAND = "command"
    TOOL = "tool"
    PATH = "path"


class Allowance(Mutable):
    """One standing decision. `command` must match exactly; `arguments` are the tool's (None: any).

    `path` is an absolute pattern: `*` and `?` match characters within one name, `**` matches any folders.
    `attention_id` is the item that the person decided.
    """

    kind: AllowanceKind
    user: str
    scope: AllowanceScope
    agent_id: str | None = None
    session_id: str | None = None
    project_root: str | None = None
    tool: str | None = None
    command: str | None = None
    arguments: str | None = None
    path: str | None = None
    state: AllowanceState = AllowanceState.ACTIVE
    reason: str = ""
    expires_at: Time | None = None
    created_by: str
    attention_id: str | None = None

    @property
    def subject(self) -> str:
        """The lookup key: the command or the tool; empty for path patterns, which are scanned."""
        if self.kind is AllowanceKind.COMMAND:
            return self.command or ""
        return (self.tool or "") if self.kind is AllowanceKind.TOOL else ""


def check_allowance(allowance: Allowance) -> Allowance:
    """Return the allowance; refuse one with a missing scope or subject, or an invalid path pattern."""
    wanted = {
        AllowanceKind.COMMAND: allowance.command,
        AllowanceKind.TOOL: allowance.tool,
        AllowanceKind.PATH: allowance.path,
    }[allowance.kind]
    if not wanted:
        raise Refused(BadRequest(problem=f"name the {allowance.kind} to allow", field=allowance.kind))
    path = allowance.path
    if path is not None and (not path.startswith("/") or {".", "..", ""} & set(path.split("/")[1:])):
        problem = "a path pattern is absolute, such as /work/src/**, without '.' and '..'"
        raise Refused(BadRequest(problem=problem, field="path"))
    if allowance.scope is AllowanceScope.PROJECT and not allowance.project_root:
        raise Refused(BadRequest(problem="name a project", field="project"))
    if allowance.scope is AllowanceScope.SESSION and not allowance.session_id:
        raise Refused(BadRequest(problem="no session asked, so there is none to allow it for", field="scope"))
    if allowance.scope is AllowanceScope.AGENT and not allowance.agent_id:
        raise Refused(BadRequest(problem="name an agent", field="agent"))
    return allowance


def is_valid_allowance(allowance: Allowance, now: Time) -> bool:
    """Whether the allowance is active and not expired."""
    in_time = allowance.expires_at is None or allowance.expires_at > now
    return allowance.state is AllowanceState.ACTIVE and in_time


def revoke_allowance(
    allowance: Allowance, now: Time, *, reason: str = "", seen: int | None = None
) -> Allowance:
    """Revoke the allowance; later requests need a person again."""
    return move_record(ALLOWANCE, allowance, AllowanceMove.REVOKE, now, seen=seen, reason=reason)
