"""First start: create the node and its operator. Later starts reuse them, even if login or host changes."""

import shlex

from msgspec.structs import replace

from scout.base.refusal import Refused, Remedy
from scout.broker.effects import reminders
from scout.broker.routing import users
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.identity.spelling import name_node, name_operator
from scout.model.access.token import Token, TokenKind, TokenState, hash_secret, revoke_token
from scout.model.agent import Agent, ToolRole, create_agent
from scout.model.events.directory import NodeCreated, NodeResumed, NodeUpdated, TokenCreated, TokenRevoked
from scout.model.events.presence import AgentRegistered
from scout.model.node import Node, resume_node, update_node
from scout.model.people.user import User
from scout.model.problems.request import Unauthenticated

_LABEL = "the operator's token file"


def create_first_records(tx: Transaction, secret: str, login: str, host: str) -> None:
    """Create or find the node, the operator, their agents and the token of the token file."""
    services = tx.services
    node = tx.ledger.one(Node, "local_node") or _create_node(tx, host)
    services.node, services.node_id = node.name, node.id
    services.meshed = tx.ledger.has_remote_agents()
    services.leaving = {ident for (ident,) in tx.ledger.rows("agents_leaving")}
    system = _ensure_agent(tx, AgentPath.parse("/system/broker"))
    services.system_agent = system.id
    if node.paused is not None and node.paused.until_restart:
        node = tx.record(NodeResumed, resume_node(node, tx.now), move="resume")
    services.paused = node.paused
    if node.version != services.version:
        tx.record(NodeUpdated, update_node(node, tx.now, version=services.version), move="update")
    services.sweeper_agent = _ensure_agent(tx, AgentPath.parse("/system/sweeper")).id
    services.own_agents = (services.system_agent, services.sweeper_agent)
    reminders.start_watching(tx.ledger, tx.now)
    user = tx.ledger.one(User, "operator") or users.create_user(tx, name_operator(login), operator=True)
    services.operator = user.name
    operator = _ensure_agent(tx, AgentPath.root(user.name, users.DIRECT))
    services.operator_agent = operator.id
    for (owner,) in tx.ledger.rows("owners_unknown"):  # made by an older Scout, which kept no users
        users.create_user(tx, owner)
    services.status = replace(services.status, node=node.name)
    _accept_token(tx, operator, secret)


def _create_node(tx: Transaction, host: str) -> Node:
    node = Node(id=tx.mint("nod"), created_at=tx.now, updated_at=tx.now, name=name_node(host), local=True)
    tx.services.node = node.name
    # The broker's own agent is the source of events that no other agent causes.
    system = _ensure_agent(tx, AgentPath.parse("/system/broker"))
    return tx.record(NodeCreated, node, move="create", source=system.id)


def _ensure_agent(tx: Transaction, path: AgentPath) -> Agent:
    found = tx.ledger.one(Agent, "agent_at_path", path=str(path))
    if found is not None:
        return found
    ident = tx.mint("agt")
    tx.services.system_agent = tx.services.system_agent or ident
    agent = create_agent(
        ident, path, tx.now, node=tx.services.node, by=tx.services.system_agent, tool_role=ToolRole.HOST
    )
    return tx.record(AgentRegistered, agent, move="register", source=tx.services.system_agent)


def _accept_token(tx: Transaction, operator: Agent, secret: str) -> None:
    """Accept the secret in the token file: a new secret becomes valid and revokes the previous one.

    A revoked secret stays revoked; the file then needs another one.
    """
    found = tx.ledger.one(Token, "token_hashed", hashed=hash_secret(secret))
    if found is not None:
        tx.services.file_token = found.id
    if found is not None and found.state is TokenState.ACTIVE:
        return
    for old in tx.ledger.many(Token, "tokens_of_agent", agent=operator.id, limit=1000):
        if old.label == _LABEL:
            gone = revoke_token(old, "the token file was changed", tx.now)
            tx.record(TokenRevoked, gone, move="revoke", reason=gone.reason)
    if found is not None:
        raise Refused(_build_revoked_refusal(tx))
    token = Token(
        id=tx.mint("tok"),
        created_at=tx.now,
        updated_at=tx.now,
        kind=TokenKind.OPERATOR,
        hashed=hash_secret(secret),
        label=_LABEL,
        user=operator.owner,
        agent_id=operator.id,
        created_by=tx.sender,
    )
    tx.record(TokenCreated, token, move="create")
    tx.services.file_token = token.id


def _build_revoked_refusal(tx: Transaction) -> Unauthenticated:
    file = f"{tx.services.status.home}/token"
    remedy = Remedy(operation="up", parameters={}, why=f"after `rm {shlex.quote(file)}`: a new token is made")
    reason = f"the token in {file} was revoked"
    return Unauthenticated(reason=reason, needs=("another token in that file",), remedies=(remedy,))
