"""Requests about the mesh."""

import asyncio
from typing import Protocol

from msgspec.structs import replace

from scout.base.codec import decode
from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.broker.mesh import members
from scout.broker.mesh.founder import Founder
from scout.broker.mesh.gone_nodes import release_node
from scout.broker.mesh.supervisor import Mesh
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction
from scout.identity.spelling import name_node
from scout.model.mesh.join import JoinRequest
from scout.model.mesh.member import MEMBER_SIGNED_AS, Invitation, MemberEntry, MemberRelation
from scout.model.mesh.outbox import OutboxEntry
from scout.model.node import NODE, Node, NodeState
from scout.model.problems.mesh import InvitationInvalid, MeshUnreachable, NoMesh, NotFounder
from scout.model.problems.request import Forbidden, NotFound
from scout.model.problems.target import NameTaken
from scout.model.remote_agent import find_node_owner
from scout.policy.mesh.membership import find_free_name, is_out_of_date
from scout.policy.nearest import rank_names
from scout.policy.permit import Deed, Subject
from scout.ports.mesh import MeshConfig, MeshDown, MeshKit
from scout.protocol.mesh import (
    Invited,
    InviteNode,
    JoinMesh,
    LeaveMesh,
    ListMeshNodes,
    MeshServerView,
    MeshView,
    NodeView,
    RemoveNode,
    RenameNode,
    RotateLogin,
    ShareAttention,
    ShowMesh,
    StartMesh,
    StopMesh,
)
from scout.protocol.request import Page

_EXPIRES = 15 * 60.0
_PATIENCE = 10.0  # seconds to wait for the founder, or for the first connection
_COUNTED = 1000  # open envelopes to a node; more are not counted
_URLS = ("nats://", "tls://")


class MeshCallBroker(CallBroker, Protocol):
    """The broker with its mesh."""

    mesh: Mesh


MeshCall = CallContext[MeshCallBroker]


# -- start and stop ----------------------------------------------------------------------------------


async def start_mesh(call: MeshCall, request: StartMesh) -> MeshView:
    """Found a mesh with a server of this node, or start the one that it belongs to."""
    kit = _require_kit(call, "start")
    config = await asyncio.to_thread(kit.read)
    if config is None:
        config = await kit.found(_make_mesh_id(call), host=request.host, port=request.port)
    elif request.host or request.port:
        raise Refused(_build_member_refusal("this node belongs to a mesh already", "mesh.up"))
    await _store_and_start(call, kit, replace(config, stopped=False))
    return await _show(call)


def _make_mesh_id(call: MeshCall) -> str:
    return f"msh_{next(call.services.ids.series())}"


async def _store_and_start(call: MeshCall, kit: MeshKit, config: MeshConfig) -> None:
    """Start first: a mesh whose server does not start is not stored."""
    await call.broker.mesh.start(config)
    await asyncio.to_thread(kit.store, config)
    await call.broker.mesh.wait_for_connection(_PATIENCE)


async def stop_mesh(call: MeshCall, request: StopMesh) -> MeshView:
    """Stop the connection and a server of this node; the membership stays."""
    kit, config = await _require_config(call, "stop")
    await asyncio.to_thread(kit.store, replace(config, stopped=not request.once))
    await call.broker.mesh.stop_all(config)
    return await _show(call)


async def leave_mesh(call: MeshCall, request: LeaveMesh) -> MeshView:
    """Tell the others, then forget the mesh. The founder ends it with its server."""
    kit, config = await _require_config(call, "leave")
    mesh = call.broker.mesh
    if not config.founder:
        await mesh.say_goodbye()
    await mesh.stop_all(config)
    await asyncio.to_thread(kit.forget)
    await call.broker.as_system(_leave)
    return await _show(call)


def _leave(tx: Transaction) -> None:
    """Record that this node left, and end what waits for other nodes."""
    others = members.list_nodes(tx)
    tx.services.meshed = tx.ledger.has_remote_agents()
    for node in others:
        gone = replace(node, state=NodeState.LEFT) if node.state not in NODE.settled else node
        release_node(tx, gone)
    members.leave_mesh(tx)


# -- inviting and joining ----------------------------------------------------------------------------


async def invite_node(call: MeshCall, request: InviteNode) -> Invited:
    """Make an invitation; its secret is in the line and nowhere else."""
    kit, config = await _require_config(call, "invite")
    founder = await _require_founder(call, "mesh.invite", {})
    name = name_node(request.name) if request.name else None
    secret = call.services.ids.secret()

    def record(tx: Transaction) -> Invitation:
        _check_free(tx, name)
        ident = tx.mint("inv")
        invitation = Invitation(
            id=ident,
            created_at=tx.now,
            updated_at=tx.now,
            hashed="",
            name=name,
            relation=MemberRelation.GUEST if request.guest else MemberRelation.OWN,
            expires_at=tx.now.plus(request.expires or _EXPIRES),
            login_key=kit.build_invitation(config, ident, secret)[1],
            created_by=tx.sender,
        )
        return founder.record_invitation(tx, invitation, secret)

    made = await call.write(record)
    await founder.tell_server()
    line, _ = kit.build_invitation(config, made.id, secret)
    return Invited(
        line=line, invitation_id=made.id, expires_at=made.expires_at, name=name, guest=request.guest
    )


def _check_free(tx: Transaction, name: str | None) -> None:
    """Refuse a name that a machine of the mesh has, with one that is free."""
    if name is not None and members.is_name_taken(tx, name, ""):
        free = find_free_name(name, lambda one: members.is_name_taken(tx, one, ""))
        again = Remedy(operation="mesh.invite", parameters={"name": free})
        free_name = (Candidate(address=free),)
        raise Refused(NameTaken(noun="node", name=name, candidates=free_name, remedies=(again,)))


async def join_mesh(call: MeshCall, request: JoinMesh) -> MeshView:
    """Join with an invitation; or found a mesh on an existing server."""
    kit = _require_kit(call, "join")
    if await asyncio.to_thread(kit.read) is not None:
        raise Refused(_build_member_refusal("this node belongs to a mesh already", "mesh.join"))
    await kit.prepare()
    if request.line.startswith(_URLS):
        config = await kit.found_at(_make_mesh_id(call), request.line, credentials=request.credentials)
        await _store_and_start(call, kit, config)
        return await _show(call)
    before = call.services.node
    _, config = kit.read_invitation(request.line, credentials=request.credentials)
    member = await _ask_to_join(call, kit, request, config)
    config = replace(config, relation=member.relation)
    await call.broker.as_system(lambda tx: members.apply_member(tx, member))
    await _store_and_start(call, kit, config)
    await call.broker.mesh.wait_for_founder(_PATIENCE)
    renamed = f"this machine is now called {member.name} (it was {before})"
    notes = (renamed,) if member.name != before else ()
    return replace(await _show(call), notes=notes)


async def _ask_to_join(call: MeshCall, kit: MeshKit, request: JoinMesh, config: MeshConfig) -> MemberEntry:
    login_key, proof = await asyncio.to_thread(kit.login_key)
    asked = JoinRequest(
        invitation_id="",
        node_id=call.services.node_id,
        name=name_node(request.name) if request.name else call.services.node,
        version=call.services.version,
        public_key=kit.keys().public_key,
        login_key=login_key,
        login_proof=proof,
    )
    try:
        answer = await kit.join(request.line, asked, credentials=request.credentials)
    except MeshDown as down:
        raise down.refused or Refused(MeshUnreachable(url=config.url, reason=down.reason)) from None
    body = (answer.member or "").encode()
    if not kit.keys().verify(config.founder_key, MEMBER_SIGNED_AS + body, answer.signature or ""):
        raise Refused(InvitationInvalid(problem="the answer is not signed by the founder of the mesh"))
    return decode(body, MemberEntry)


# -- members -----------------------------------------------------------------------------------------


async def remove_node(call: MeshCall, request: RemoveNode) -> NodeView:
    """Remove a machine; its connection is cut at once."""
    await _require_config(call, "remove")
    founder = await _require_founder(call, "mesh.remove", {"node": request.node})
    node = await call.read(lambda tx: _need_node(tx, request.node))
    if node.local:
        raise Refused(_build_member_refusal("the founder cannot remove itself", "mesh.remove"))
    await founder.change_member(node.id, removed=True)
    return await call.read(lambda tx: _show_node(tx, call, tx.need(Node, "node", node.id)))


def _need_node(tx: Transaction, name: str) -> Node:
    known = [one for one in members.list_nodes(tx) if one.state is not NodeState.REMOVED]
    found = next((one for one in known if name in (one.name, one.id)), None)
    if found is None:
        near = rank_names(name, [one.name for one in known], 3)
        look = Remedy(operation="mesh.nodes", parameters={}, why="list the nodes")
        candidates = tuple(Candidate(address=one) for one in near)
        raise Refused(NotFound(noun="node", id=name[:60], candidates=candidates, remedies=(look,)))
    return found


async def rename_node(call: MeshCall, request: RenameNode) -> MeshView:
    """Rename this machine; in a mesh, once the founder has agreed."""
    _permit(call)
    name, mesh = name_node(request.name), call.broker.mesh
    before = call.services.node
    await call.read(lambda tx: _check_new_name(tx, name))
    now = mesh.now
    if now is None:
        await _refuse_stopped(call)
        await call.broker.as_system(lambda tx: members.rename_local(tx, name))
    elif now.founder is not None:
        await now.founder.change_member(call.services.node_id, name=name)
        now.announcer.announce_all()
    else:
        await mesh.ask_for_name(name, _PATIENCE)
    notes = [f"this machine is now called {name} (it was {before})"] if name != before else []
    if now is not None and now.founder is not None and now.founder.is_behind:
        notes.append("the server of the mesh does not answer; other machines learn the name when it does")
    return replace(await _show(call), notes=tuple(notes))


def _check_new_name(tx: Transaction, name: str) -> None:
    if members.is_name_taken(tx, name, tx.services.node_id):
        free = find_free_name(name, lambda one: members.is_name_taken(tx, one, tx.services.node_id))
        again = Remedy(operation="mesh.rename", parameters={"name": free})
        free_name = (Candidate(address=free),)
        raise Refused(NameTaken(noun="node", name=name, candidates=free_name, remedies=(again,)))


async def _refuse_stopped(call: MeshCall) -> None:
    kit = call.broker.mesh.kit
    if kit is not None and await asyncio.to_thread(kit.read) is not None:
        raise Refused(_build_stopped())


async def rotate_login(call: MeshCall, request: RotateLogin) -> MeshView:
    """Make another login key; the founder lets it in once this node has certified it."""
    kit, _ = await _require_config(call, "rotate")
    now = call.broker.mesh.now
    if now is None:
        raise Refused(_build_stopped())
    key, proof = await asyncio.to_thread(lambda: kit.login_key(renew=True))
    if now.founder is not None:
        await now.founder.change_member(call.services.node_id, login_key=key, login_proof=proof)
    else:
        await call.broker.mesh.wait_for_login(key, _PATIENCE)
    return await _show(call)


async def share_attention(call: MeshCall, request: ShareAttention) -> MeshView:
    """Share the items that need the operator with the operator's other nodes, or stop it."""
    kit, config = await _require_config(call, "share")
    shared = replace(config, shares_attention=not request.off)
    await asyncio.to_thread(kit.store, shared)
    call.broker.mesh.change_config(shared)
    return await _show(call)


# -- reading -----------------------------------------------------------------------------------------


async def show_mesh(call: MeshCall, request: ShowMesh) -> MeshView:
    return await _show(call)


async def _show(call: MeshCall) -> MeshView:
    mesh, services = call.broker.mesh, call.services
    config = await asyncio.to_thread(mesh.kit.read) if mesh.kit is not None else None
    if config is None:
        return MeshView(member=False, node=services.node, problem=mesh.problem)
    nodes = [one for one in _list_members(call.glance()) if not one.local]
    status, now = mesh.status, mesh.now
    server = await now.server.check() if now is not None and now.server is not None else None
    connected, since = (status.connected, status.since) if status is not None else (False, None)
    return MeshView(
        member=True,
        node=services.node,
        mesh_id=config.mesh_id,
        url=config.url,
        founder=config.founder,
        relation=config.relation,
        stopped=config.stopped,
        connected=connected,
        since=since,
        out_of_date=is_out_of_date(connected, since, services.clock.now()),
        problem=mesh.describe_problem(),
        shares_attention=config.shares_attention,
        server=MeshServerView(
            running=server.running,
            version=server.version,
            pid=server.pid,
            connections=server.connections or 0,
            problem=server.problem,
        )
        if server is not None
        else None,
        nodes=len(nodes) + 1,
        unreachable=tuple(one.name for one in nodes if one.state is NodeState.UNREACHABLE),
    )


def _list_members(tx: Transaction) -> list[Node]:
    known = (NodeState.ONLINE, NodeState.UNREACHABLE)
    return [one for one in members.list_nodes(tx) if one.local or one.state in known]


async def list_nodes(call: MeshCall, request: ListMeshNodes) -> Page[NodeView]:
    """List this machine first, then the others by name."""

    def read(tx: Transaction) -> tuple[NodeView, ...]:
        found = members.list_nodes(tx) if request.all else _list_members(tx)
        found.sort(key=lambda one: (not one.local, one.name))
        return tuple(_show_node(tx, call, one) for one in found)

    return Page(items=await call.read(read))


def _show_node(tx: Transaction, call: MeshCall, node: Node) -> NodeView:
    mesh, member = call.broker.mesh, node.member
    now = mesh.now
    oldest = tx.ledger.one(OutboxEntry, "outbox_oldest", node=node.id, limit=_COUNTED)
    founder = now is not None and member is not None and member.public_key == now.config.founder_key
    return NodeView(
        id=node.id,
        name=node.name,
        state=node.state,
        here=node.local,
        founder=founder,
        relation=member.relation if member is not None else MemberRelation.OWN,
        user=find_node_owner(node, tx.services.operator) if node.guest_key is not None else None,
        version=node.version,
        agents=mesh.count_agents(node.id, local=node.local),
        last_seen=tx.services.nodes_heard.get(node.id, node.last_seen),
        since=node.lost_at,
        queued=tx.ledger.value("outbox_count", node=node.id, limit=_COUNTED),
        queued_since=oldest.created_at if oldest is not None else None,
        public_key=node.public_key,
    )


# -- what a request needs ----------------------------------------------------------------------------


def _permit(call: MeshCall) -> None:
    call.glance().permit(Deed.ADMINISTER, Subject(name="the mesh"))


def _require_kit(call: MeshCall, deed: str) -> MeshKit:
    """Return the kit; only the operator may use it, and only a daemon has it."""
    _permit(call)
    kit = call.broker.mesh.kit
    if kit is None:
        raise Refused(Forbidden(action=deed, subject="the mesh", needs=("a running daemon",)))
    return kit


async def _require_config(call: MeshCall, deed: str) -> tuple[MeshKit, MeshConfig]:
    kit = _require_kit(call, deed)
    config = await asyncio.to_thread(kit.read)
    if config is None:
        up = Remedy(operation="mesh.up", parameters={}, why="found one on this machine")
        raise Refused(NoMesh(node=call.services.node, remedies=(up,)))
    await kit.prepare()
    return kit, config


async def _require_founder(call: MeshCall, operation: str, parameters: dict[str, object]) -> Founder:
    """Return the founder's part; elsewhere, refuse with the command to run there."""
    now = call.broker.mesh.now
    if now is None:
        raise Refused(_build_stopped())
    if now.founder is None:
        nodes = await call.read(members.list_nodes)
        keyed = (one for one in nodes if one.public_key == now.config.founder_key)
        name = next((one.name for one in keyed), "the founder")
        there = Remedy(operation=operation, parameters=parameters, why=f"on {name}")
        raise Refused(NotFounder(founder=name, remedies=(there,)))
    return now.founder


def _build_member_refusal(problem: str, operation: str) -> BadRequest:
    look = Remedy(operation="mesh.status", parameters={}, why="show it")
    leave = Remedy(operation="mesh.leave", parameters={}, why="leave it first")
    remedies = (look,) if operation == "mesh.remove" else (look, leave)
    return BadRequest(problem=problem, remedies=remedies)


def _build_stopped() -> BadRequest:
    up = Remedy(operation="mesh.up", parameters={}, why="start it again")
    return BadRequest(problem="the mesh is stopped on this machine", remedies=(up,))
