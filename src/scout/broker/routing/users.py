"""Users: find them, and create them with the agents that each of them has."""

from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent, AgentConfig, ToolRole, create_agent
from scout.model.events.directory import UserCreated
from scout.model.events.presence import AgentRegistered
from scout.model.people.user import User, UserKind, UserState, check_user
from scout.model.problems.request import NotFound, RetiredUser
from scout.policy.nearest import rank_names
from scout.store.ledger import LAST

DIRECT = "direct"
_MANY = 1000
_NEAR = 3


def find_user(tx: Transaction, name: str | None) -> User | None:
    """Return the user of this name, active or retired."""
    return tx.ledger.one(User, "user_named", name=name) if name is not None else None


def need_user(tx: Transaction, name: str) -> User:
    """Return the user of this name or id, or refuse with the nearest names."""
    found = tx.get(User, name) if name.startswith("usr_") else find_user(tx, name.strip("/"))
    if found is None:
        raise Refused(build_unknown_user(tx, name))
    return found


def build_unknown_user(tx: Transaction, name: str) -> NotFound:
    """Return the refusal of an unknown user; only the operator is offered other names."""
    known = tx.ledger.many(User, "users_all", before=LAST, limit=_MANY) if tx.is_operator else []
    near = rank_names(name, [one.name for one in known], _NEAR)
    look = Remedy(operation="user.list", parameters={}, why="list the users")
    candidates = tuple(Candidate(address=one) for one in near)
    return NotFound(noun="user", id=name[:60], candidates=candidates, remedies=(look,))


def create_user(
    tx: Transaction,
    name: str,
    *,
    kind: UserKind = UserKind.PERSON,
    display_name: str | None = None,
    operator: bool = False,
    owner: str | None = None,
) -> User:
    """Store a new user, with its agent `/<user>/direct` and, for a sub-user, its gateway agent."""
    user = User(
        id=tx.mint("usr"),
        created_at=tx.now,
        updated_at=tx.now,
        name=name,
        kind=kind,
        display_name=display_name,
        operator=operator,
        owner=owner,
        created_by=tx.sender,
    )
    tx.record(UserCreated, check_user(user), move="create")
    role = ToolRole.HOST if operator else ToolRole.DEV
    ensure_agent(tx, AgentPath.root(name, DIRECT), role)
    if owner is not None:
        ensure_agent(tx, AgentPath.root(owner, "subuser", name), config=AgentConfig(name=display_name))
    return user


def ensure_user(tx: Transaction, name: str | None) -> None:
    """Create the user of a path that an agent is created at, if there is none yet; refuse a retired one."""
    if name is None:
        return
    user = find_user(tx, name)
    if user is None:
        create_user(tx, name)
    else:
        require_active(tx, user)


def ensure_agent(
    tx: Transaction, path: AgentPath, role: ToolRole = ToolRole.DEV, config: AgentConfig = AgentConfig()
) -> Agent:
    """Return the agent at a path, created if there is none; it has no handle."""
    found = tx.ledger.one(Agent, "agent_at_path", path=str(path))
    if found is not None:
        return found
    node, by = tx.services.node, tx.sender
    agent = create_agent(tx.mint("agt"), path, tx.now, node=node, by=by, tool_role=role, config=config)
    return tx.record(AgentRegistered, agent, move="register")


def require_active(tx: Transaction, user: User) -> User:
    """Return the user, or refuse if it is retired."""
    if not is_active(user):
        raise Refused(build_retired_user(user))
    return user


def build_retired_user(user: User) -> RetiredUser:
    """Return the refusal of a request for a retired user."""
    revive = Remedy(operation="user.revive", parameters={"user": user.name})
    return RetiredUser(user=user.name, reason=user.reason, remedies=(revive,))


def build_operator_stays(user: User) -> BadRequest:
    """Return the refusal to retire the operator, or a person's own agent."""
    look = Remedy(operation="user.show", parameters={"user": user.name})
    problem = f"{user.name} is the operator of this machine and cannot be retired"
    return BadRequest(problem=problem, field="user", remedies=(look,))


def is_active(user: User | None) -> bool:
    """Whether the user exists and is not retired."""
    return user is not None and user.state is UserState.ACTIVE
