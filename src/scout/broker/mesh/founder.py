"""The founder of a mesh: it invites, admits, renames and removes nodes, and signs an entry for each."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from msgspec.structs import replace

from scout.base.codec import decode, encode
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.mesh import members
from scout.broker.mesh.signatures import sign_record
from scout.broker.transaction.call import Transactions
from scout.broker.transaction.transaction import Transaction
from scout.model.events.directory import INVITATION_EVENTS, InvitationCreated
from scout.model.mesh.entry import SignedEntry
from scout.model.mesh.join import JoinAnswer, JoinRequest
from scout.model.mesh.member import (
    LOGIN_SIGNED_AS,
    MEMBER_SIGNED_AS,
    Invitation,
    InvitationMove,
    MemberEntry,
    MemberRelation,
    NodeHeartbeat,
    move_invitation,
)
from scout.model.node import Node
from scout.model.problems.mesh import InvitationInvalid
from scout.model.remote_agent import scope_user
from scout.policy.mesh.join_proof import hash_secret, is_joiner_proved, prove_founder
from scout.policy.mesh.membership import build_member, check_invitation, choose_node_name
from scout.ports.mesh import MeshConfig, MeshDown, MeshLink, MeshServer, NodeKeys
from scout.store.ledger import LAST, Ledger

_MANY = 10_000
_ARRIVES = 5.0  # seconds in which the answer to a join request arrives


class Founder:
    """Answers join requests, and changes the entries of members. Exists on the node that founded the mesh."""

    def __init__(
        self,
        broker: Transactions,
        config: MeshConfig,
        keys: NodeKeys,
        link: MeshLink,
        server: MeshServer | None,
    ) -> None:
        self._broker = broker
        self._services = broker.services
        self._config = config
        self._keys = keys
        self._link = link
        self._server = server
        # Used invitations whose login stays until the answer has arrived, and until when.
        self._answered: dict[str, tuple[str, float]] = {}
        # What the server has not been told yet, because it did not answer.
        self._logins_due = False
        self._members_due: set[str] = set()
        self._catching_up = asyncio.Lock()

    # -- invitations -------------------------------------------------------------------------------

    def record_invitation(self, tx: Transaction, invitation: Invitation, secret: str) -> Invitation:
        """Store an invitation with the hash of its secret."""
        stored = replace(invitation, hashed=hash_secret(secret))
        return tx.record(InvitationCreated, stored, move="create")

    async def expire_invitations(self) -> None:
        """Expire old invitations; no machine can connect with these, or with used ones, any more."""
        now = self._services.clock.monotonic()
        arrived = [ident for ident, (_, until) in self._answered.items() if until <= now]
        for ident in arrived:
            del self._answered[ident]
        due = await self._broker.read(_find_due(self._services.clock.now()))
        if due:
            await self._broker.as_system(_expire_invitations)
        if due or arrived:
            await self.tell_server()

    async def set_logins(self) -> None:
        """Tell the server who may connect: members and those who are invited."""
        if self._server is None:
            return
        nodes = await self._broker.read(_list_nodes)
        invited = await self._broker.read(
            lambda ledger: ledger.many(Invitation, "invitations_open", limit=_MANY)
        )
        known = [one.member for one in nodes if one.member is not None and not one.member.removed]
        await self._server.set_logins(
            {one.node_id: one.login_key for one in known},
            {
                **{one.id: one.login_key for one in invited if one.login_key},
                **{ident: key for ident, (key, _) in self._answered.items()},
            },
        )

    # -- joining -----------------------------------------------------------------------------------

    async def admit(self, request: JoinRequest) -> JoinAnswer:
        """Admit a node that proves the secret of an invitation; a refusal is part of the answer."""
        try:
            member = await self._broker.as_system(lambda tx: self._admit(tx, request))
        except Refused as refused:
            return JoinAnswer(refusal=encode(refused.diagnostic))
        invitation = await self._broker.read(lambda ledger: ledger.get(Invitation, request.invitation_id))
        assert invitation is not None  # it was used just now
        until = self._services.clock.monotonic() + _ARRIVES
        self._answered[invitation.id] = invitation.login_key or "", until
        await self.tell_server(member)
        signed = decode(self._sign(member), SignedEntry)
        answer = JoinAnswer(
            member=signed.body,
            signature=signed.signature,
            mesh_id=self._config.mesh_id,
            nonce=self._services.ids.secret(),
        )
        proof = prove_founder(invitation.hashed, self._config.mesh_id, self._keys.public_key, request, answer)
        return replace(answer, proof=proof)

    def _admit(self, tx: Transaction, request: JoinRequest) -> MemberEntry:
        known = tx.get(Invitation, request.invitation_id)
        mesh_id, key = self._config.mesh_id, self._keys.public_key
        proved = known is not None and is_joiner_proved(known.hashed, mesh_id, key, request)
        invitation = check_invitation(known, tx.now, proved=proved and self._is_certified(request))
        before = tx.get(Node, request.node_id)
        if invitation.relation is MemberRelation.GUEST:
            _check_scope(tx, request)
        name = choose_node_name(
            invitation.name or request.name, lambda one: members.is_name_taken(tx, one, request.node_id)
        )
        member = build_member(request, name, invitation.relation, key, tx.now)
        if before is not None and before.member is not None:
            member = replace(member, revision=before.member.revision + 1)
        used = move_invitation(invitation, InvitationMove.USE, tx.now, node_id=request.node_id)
        tx.record(INVITATION_EVENTS[InvitationMove.USE], used, move=InvitationMove.USE)
        members.apply_member(tx, member)
        return member

    def _is_certified(self, request: JoinRequest) -> bool:
        certified = LOGIN_SIGNED_AS + request.login_key.encode()
        return self._keys.verify(request.public_key, certified, request.login_proof)

    # -- members -----------------------------------------------------------------------------------

    def build_own_member(self, tx: Transaction, login: tuple[str, str]) -> MemberEntry:
        """Return the entry of this node; another login key is another revision."""
        node = members.get_local(tx)
        known = node.member
        if known is not None and (known.login_key, known.name) == (login[0], node.name):
            return known
        return MemberEntry(
            node_id=node.id,
            name=node.name,
            public_key=self._keys.public_key,
            login_key=login[0],
            login_proof=login[1],
            relation=MemberRelation.OWN,
            operator_key=self._keys.public_key,
            revision=known.revision + 1 if known is not None else 1,
            admitted_at=known.admitted_at if known is not None else tx.now,
            updated_at=tx.now,
        )

    async def publish_members(self) -> None:
        """Publish the entries of all members: the server may have lost them."""
        for node in await self._broker.read(_list_nodes):
            if node.member is not None and not node.member.removed:
                await self._publish_member(node.member)

    async def _publish_member(self, member: MemberEntry) -> None:
        await self._link.put_member(member.node_id, self._sign(member))

    async def tell_server(self, *changed: MemberEntry) -> None:
        """Tell the server who may connect, and publish entries that changed.

        The change is stored here and holds. If the server does not answer now, `catch_up` tells it.
        """
        self._logins_due = True
        self._members_due.update(one.node_id for one in changed)
        with suppress(MeshDown):
            await self.catch_up()

    @property
    def is_behind(self) -> bool:
        """Whether the server has not been told everything."""
        return self._logins_due or bool(self._members_due)

    async def catch_up(self) -> None:
        """Tell the server what it has not been told yet. Raises `MeshDown`."""
        if not self.is_behind:
            return
        async with self._catching_up:
            logins, self._logins_due = self._logins_due, False
            members_due, self._members_due = self._members_due, set()
            try:
                if logins:
                    await self.set_logins()
                    logins = False
                for node in await self._broker.read(_list_nodes):
                    if node.id in members_due and node.member is not None:
                        await self._publish_member(node.member)
                        members_due.discard(node.id)
            except BaseException:
                self._logins_due |= logins
                self._members_due |= members_due
                raise

    def _sign(self, member: MemberEntry) -> bytes:
        return sign_record(self._keys, MEMBER_SIGNED_AS, member)

    async def change_member(self, node_id: str, **changes: object) -> MemberEntry | None:
        """Give a member another entry: here, at the server, and at the other nodes with their next sync."""
        member = await self._broker.as_system(lambda tx: _change_member(tx, node_id, changes))
        if member is None:
            return None
        if member.removed:
            await self._tell_removed(member)
        await self.tell_server(member)
        return member

    async def _tell_removed(self, member: MemberEntry) -> None:
        """Tell a node that it was removed before its connection is cut, if the server can be reached."""
        with suppress(MeshDown):
            await self._link.tell_member(member.node_id, self._sign(member))

    async def grant_wish(self, node: Node, beat: NodeHeartbeat) -> None:
        """Give a node what its heartbeat asks for: a free name, a key that it certified, or to leave."""
        assert node.member is not None  # a heartbeat of a member
        changes: dict[str, object] = {}
        if beat.leaving:
            changes["removed"] = True
        if beat.login_key and beat.login_key != node.member.login_key:
            certified = LOGIN_SIGNED_AS + beat.login_key.encode()
            if self._keys.verify(node.member.public_key, certified, beat.login_proof or ""):
                changes |= {"login_key": beat.login_key, "login_proof": beat.login_proof}
        if beat.name != node.member.name:
            taken = await self._broker.as_system(lambda tx: members.is_name_taken(tx, beat.name, node.id))
            changes |= {} if taken else {"name": beat.name}
        if changes:
            await self.change_member(node.id, **changes)


def _check_scope(tx: Transaction, request: JoinRequest) -> None:
    """Refuse a guest whose user would be that of another one: grants to that user would be its own too."""
    scoped = scope_user(request.public_key)
    for node in members.list_nodes(tx):
        key = node.member.operator_key if node.member is not None else None
        if key not in (None, request.public_key) and scope_user(key or "") == scoped:
            raise Refused(InvitationInvalid(problem=f"another guest is the user {scoped}: use another key"))


def _list_nodes(ledger: Ledger) -> list[Node]:
    return ledger.many(Node, "nodes_all", before=LAST, limit=_MANY)


def _change_member(tx: Transaction, node_id: str, changes: dict[str, object]) -> MemberEntry | None:
    node = tx.get(Node, node_id)
    if node is None or node.member is None:
        return None
    member = replace(node.member, revision=node.member.revision + 1, updated_at=tx.now, **changes)
    members.apply_member(tx, member)
    return member


def _find_due(now: Time) -> Callable[[Ledger], list[Invitation]]:
    return lambda ledger: [
        one for one in ledger.many(Invitation, "invitations_open", limit=_MANY) if one.expires_at <= now
    ]


def _expire_invitations(tx: Transaction) -> None:
    for one in _find_due(tx.now)(tx.ledger):
        expired = move_invitation(one, InvitationMove.EXPIRE, tx.now)
        tx.record(INVITATION_EVENTS[InvitationMove.EXPIRE], expired, move=InvitationMove.EXPIRE)
