"""The first start: whose machine this is. Later starts find it again, whatever login or host say then."""

from msgspec.structs import replace

from scout.broker.effects import delegations
from scout.broker.transaction.transaction import Turn
from scout.identity.path import AgentPath
from scout.identity.spelling import node_name, operator_user
from scout.model.agent import Agent, ToolRole, new_agent
from scout.model.events.directory import NodeCreated, NodeUpdated, TokenCreated, TokenRevoked, UserCreated
from scout.model.events.presence import AgentRegistered
from scout.model.node import Node, update_node
from scout.model.people.user import User, check_user
from scout.model.token import Token, TokenKind, TokenState, hash_of, revoke_token

__all__ = ["begin"]

_LABEL = "the operator's token file"


def begin(turn: Turn, secret: str, login: str, host: str) -> None:
    """Make or find the node, the operator, their agents and the credential in the token file."""
    world = turn.world
    node = turn.ledger.one(Node, "local_node") or _node(turn, host)
    world.node, world.paused = node.name, node.paused
    system = _agent(turn, AgentPath.parse("/system/broker"))
    world.system_agent = system.id
    if node.version != world.version:
        turn.record(NodeUpdated, update_node(node, turn.now, version=world.version), move="update")
    world.sweeper_agent = _agent(turn, AgentPath.parse("/system/sweeper")).id
    delegations.begin(turn.ledger, turn.now)
    user = turn.ledger.one(User, "operator") or _user(turn, operator_user(login))
    world.operator = user.name
    operator = _agent(turn, AgentPath.root(user.name, "direct"))
    world.operator_agent = operator.id
    world.status = replace(world.status, node=node.name)
    _token(turn, operator, secret)


def _node(turn: Turn, host: str) -> Node:
    node = Node(
        id=turn.mint("nod"), created_at=turn.now, updated_at=turn.now, name=node_name(host), local=True
    )
    turn.world.node = node.name
    # The broker's own agent is the source of every fact that nobody else is.
    system = _agent(turn, AgentPath.parse("/system/broker"))
    return turn.record(NodeCreated, node, move="create", source=system.id)


def _agent(turn: Turn, path: AgentPath) -> Agent:
    found = turn.ledger.one(Agent, "agent_at_path", path=str(path))
    if found is not None:
        return found
    ident = turn.mint("agt")
    turn.world.system_agent = turn.world.system_agent or ident
    agent = new_agent(
        ident, path, turn.now, node=turn.world.node, by=turn.world.system_agent, tool_role=ToolRole.HOST
    )
    return turn.record(AgentRegistered, agent, move="register", source=turn.world.system_agent)


def _user(turn: Turn, name: str) -> User:
    user = User(
        id=turn.mint("usr"),
        created_at=turn.now,
        updated_at=turn.now,
        name=name,
        operator=True,
        created_by=turn.sender,
    )
    return turn.record(UserCreated, check_user(user), move="create")


def _token(turn: Turn, operator: Agent, secret: str) -> None:
    """The file decides: a secret that is new there is good, and the one it replaced is over.

    One that was taken back stays so: whoever put it there again has to put another one.
    """
    found = turn.ledger.one(Token, "token_hashed", hashed=hash_of(secret))
    if found is not None and found.state is TokenState.ACTIVE:
        return
    for old in turn.ledger.many(Token, "tokens_of_agent", agent=operator.id, limit=1000):
        if old.label == _LABEL:
            gone = revoke_token(old, "the token file was changed", turn.now)
            turn.record(TokenRevoked, gone, move="revoke", reason=gone.reason)
    if found is not None:
        return
    token = Token(
        id=turn.mint("tok"),
        created_at=turn.now,
        updated_at=turn.now,
        kind=TokenKind.OPERATOR,
        hashed=hash_of(secret),
        label=_LABEL,
        user=operator.owner,
        agent_id=operator.id,
        created_by=turn.sender,
    )
    turn.record(TokenCreated, token, move="create")
