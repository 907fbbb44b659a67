"""Taking envelopes of other nodes: verified, then applied once, in one transaction with the record of it."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from scout.base.refusal import Diagnostic, Refused
from scout.broker.mesh import inbound, outbox
from scout.broker.mesh.envelopes import MeshIdentity
from scout.broker.mesh.files import take_piece
from scout.broker.mesh.messages import TargetLeaving
from scout.broker.mesh.sender import EnvelopeBroker
from scout.broker.transaction import admission
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.transaction import Transaction
from scout.model.access.token import TokenKind
from scout.model.events.mesh import EnvelopeReceived, ReceivedEnvelope
from scout.model.flight import FlightError, build_error
from scout.model.mesh.envelope import (
    ENVELOPE_LIMIT,
    DecisionPayload,
    EnvelopeHeader,
    FilePayload,
    Payload,
    ReceiptPayload,
    ReceiptState,
    SignedBundle,
    SignedEnvelope,
    read_headers,
    read_kind,
    read_parcel,
    read_payload,
)
from scout.model.mesh.member import MemberEntry, MemberRelation
from scout.model.node import Node, NodeState
from scout.model.problems.target import RemoteTarget
from scout.model.remote_agent import find_node_owner
from scout.policy.directory import Viewpoint
from scout.policy.mesh.envelopes import (
    EnvelopeFacts,
    IntakeAction,
    check_payload,
    decide_intake,
    list_plain_receipts,
)
from scout.policy.permit import Actor
from scout.ports import Surroundings
from scout.store.ledger import Ledger

T = TypeVar("T")
_LOG = logging.getLogger("scout.mesh")
_QUIET = 60.0  # seconds between two records of the same forgery: nobody fills the log with them


class IntakeBroker(EnvelopeBroker, Protocol):
    """The broker as the intake needs it."""

    async def write(
        self, who: Admitted, work: Callable[[Transaction], T], place: Surroundings | None = None
    ) -> T: ...
    async def wait_for_probe(self) -> None: ...


class _Behind(Exception):  # noqa: N818 (a signal between two methods)
    """The envelope was taken meanwhile, or the one before it is missing."""


class _Parcel(NamedTuple):
    """What the envelopes of a parcel share, looked up once. `node`: the node that signed it, as it says.

    `taken`: which of its envelopes, and of those before them, were taken when it came. `senders`: for each
    agent that speaks, the node that lists it, and whether this node has an agent of its id.
    """

    size: int
    node: Node | None = None
    member: MemberEntry | None = None
    signed: bool = False
    taken: frozenset[str] = frozenset()
    senders: Mapping[str, tuple[str | None, bool]] = {}


class _Arrived(NamedTuple):
    """An envelope that came; `header` is None if it cannot be read."""

    header: EnvelopeHeader | None
    parcel: _Parcel


class Intake:
    """Takes the envelopes of the other nodes. `answer` sends a receipt."""

    def __init__(
        self, broker: IntakeBroker, identity: MeshIdentity, answer: Callable[[str, ReceiptPayload], None]
    ) -> None:
        self._broker = broker
        self._services = broker.services
        self._identity = identity
        self._answer = answer
        self._under_way: set[str] = set()  # envelopes that were given to the store
        self._forgeries: dict[tuple[str, str], float] = {}

    async def take(self, data: bytes) -> bool:
        """Take an envelope or a bundle. Its effect is on disk when this returns; a repeated one has none.

        Envelopes take effect in the order of the calls: each is given to the store before another is read.
        """
        arrived = self._open(data)
        if len(arrived) == 1:
            return await self._take_one(arrived[0])
        return all(await asyncio.gather(*map(self._take_one, arrived)))

    async def _take_one(self, arrived: "_Arrived") -> bool:
        header, node = arrived.header, arrived.parcel.node
        decision = decide_intake(self._find_facts(arrived))
        if decision.action is IntakeAction.REFUSE:
            assert decision.problem is not None  # a refusal has a reason
            await self._refuse(header, decision.problem, authentic=decision.authentic)
            return True
        assert header is not None  # it would be refused
        assert node is not None
        if decision.action is IntakeAction.HOLD:
            return False
        if decision.action is IntakeAction.REPEAT:
            self._answer_again(header)
            return True
        self._under_way.add(header.id)
        try:
            return await self._apply(header, node)
        finally:
            self._under_way.discard(header.id)

    # -- facts -------------------------------------------------------------------------------------

    def _open(self, data: bytes) -> "list[_Arrived]":
        """Return the envelopes of a parcel; something that cannot be read is one without a header."""
        unreadable = [_Arrived(None, _Parcel(len(data)))]
        if len(data) > ENVELOPE_LIMIT:
            return unreadable  # it is refused unread
        try:
            parcel = read_parcel(data)
            headers = read_headers(parcel)
        except Refused:
            return unreadable
        if not headers:
            return unreadable
        known = self._look_up(len(data), parcel, headers)
        # One signature speaks for one node: what names another one in the same bundle is forged.
        forged = known._replace(signed=False)
        by = headers[0].from_node
        return [_Arrived(one, known if one.from_node == by else forged) for one in headers]

    def _look_up(
        self, size: int, parcel: SignedEnvelope | SignedBundle, headers: Sequence[EnvelopeHeader]
    ) -> _Parcel:
        ledger = self._broker.glance()
        node = ledger.get(Node, headers[0].from_node)
        member = _find_member(node)
        if member is None or not self._identity.keys.verify(
            member.public_key, parcel.signed_bytes, parcel.signature
        ):
            return _Parcel(size, node, member)
        idents = {ident for one in headers for ident in (one.id, one.after) if ident is not None}
        senders = {one.sender.id for one in headers if one.sender is not None}
        return _Parcel(
            size,
            node,
            member,
            signed=True,
            taken=ledger.list_taken(idents),
            senders={ident: _find_sender(ledger, ident) for ident in senders},
        )

    def _find_facts(self, arrived: "_Arrived") -> EnvelopeFacts:
        header, parcel = arrived.header, arrived.parcel
        sender = header.sender if header is not None else None
        sender_node, is_own = parcel.senders.get(sender.id, (None, False)) if sender else (None, False)
        return EnvelopeFacts(
            size=parcel.size,
            header=header,
            mesh_id=self._identity.mesh_id,
            node_id=self._identity.node_id,
            member=parcel.member,
            signed=parcel.signed,
            sender_node=sender_node,
            sender_is_own=is_own,
            taken=header is not None and header.id in parcel.taken,
            has_predecessor=header is None or header.after is None or self._is_coming(header.after, parcel),
        )

    def _is_coming(self, envelope_id: str, parcel: _Parcel) -> bool:
        """Whether an envelope was taken, or is being taken before what comes now."""
        known = envelope_id in parcel.taken or envelope_id in self._under_way
        return known or self._broker.glance().has_received(envelope_id)

    # -- outcomes ----------------------------------------------------------------------------------

    async def _apply(self, header: EnvelopeHeader, node: Node) -> bool:
        """Apply an envelope and record it in one transaction, or record that it was refused."""
        try:
            payload = read_payload(header)
            check_payload(payload, header, MemberRelation.GUEST if node.guest_key else MemberRelation.OWN)
            receipts = list_plain_receipts(payload)
            if receipts:
                await self._broker.as_system(lambda tx: _apply_receipts(tx, header, receipts))
                return True
            await self._broker.wait_for_probe()
            who = self._admit(header, node, payload)
            piece = payload if isinstance(payload, FilePayload) else None
            rest = await take_piece(self._services, piece) if piece is not None else None
            await self._broker.write(who, lambda tx: self._take(tx, header, node, payload, rest))
        except _Behind:
            return await self._settle_race(header)
        except TargetLeaving:
            return False  # it is offered again
        except Refused as refusal:
            await self._refuse(header, refusal.diagnostic)
            return True
        except Exception:  # noqa: BLE001 (one envelope must not stop the others; it is logged)
            _LOG.exception("envelope %s of node %s", header.id, node.name)
            return False  # it is offered again
        self._answer(header.from_node, ReceiptPayload(of=header.id, state=ReceiptState.ACCEPTED))
        return True

    def _admit(self, header: EnvelopeHeader, node: Node, payload: Payload) -> Admitted:
        """Return the remote agent that speaks: with the rights of an agent of its operator, and no path.

        What a node tells about its own records is recorded by the broker itself.
        """
        if header.sender is None or not inbound.is_spoken(payload):
            return admission.admit_system(self._services)
        owner = find_node_owner(node, self._services.operator)
        # The operator decides from any of the own nodes, as far as this node shares its items.
        kind = TokenKind.OPERATOR if isinstance(payload, DecisionPayload) else TokenKind.AGENT
        actor = Actor(kind=kind, token_id="", user=owner, agent_id=header.sender.id, node=node.name)
        return Admitted(actor, Viewpoint(agent_id=header.sender.id, user=owner, node=self._services.node))

    def _take(
        self, tx: Transaction, header: EnvelopeHeader, node: Node, payload: Payload, rest: int | None
    ) -> None:
        behind = header.after is not None and not tx.ledger.has_received(header.after)
        if behind or tx.ledger.has_received(header.id):
            raise _Behind
        subject = inbound.apply_payload(tx, header, node, payload, rest)
        received = _describe(header, ReceiptState.ACCEPTED, subject=subject)
        source = header.sender.id if header.sender else tx.services.system_agent
        tx.append(EnvelopeReceived, header.id, received, source=source)

    async def _settle_race(self, header: EnvelopeHeader) -> bool:
        """Answer an envelope that was taken twice at once; one that is behind another is offered again."""
        if not self._broker.glance().has_received(header.id):
            return False
        self._answer_again(header)
        return True

    def _answer_again(self, header: EnvelopeHeader) -> None:
        found = find_received(self._broker.glance(), header.id)
        if found is not None:
            receipt = ReceiptPayload(
                of=header.id, state=found.outcome, problem=found.problem, moved_to=found.moved_to
            )
            self._answer(header.from_node, receipt)

    async def _refuse(
        self, header: EnvelopeHeader | None, problem: Diagnostic, *, authentic: bool = True
    ) -> None:
        """Record a refusal. An authentic envelope is answered; a forged one is recorded once a minute."""
        _LOG.warning("envelope refused: %s: %s", problem.code, problem.message)
        error = replace(build_error(problem), remedies=())
        if not authentic:
            await self._record_forgery(header, error)
            return
        assert header is not None  # an authentic envelope was read
        moved_to = problem.node_id or None if isinstance(problem, RemoteTarget) else None
        await self._broker.as_system(lambda tx: _record_refusal(tx, header, error, moved_to))
        refused = ReceiptPayload(of=header.id, state=ReceiptState.REFUSED, problem=error, moved_to=moved_to)
        self._answer(header.from_node, refused)

    async def _record_forgery(self, header: EnvelopeHeader | None, error: FlightError) -> None:
        named = header.from_node if header is not None else ""
        node = self._broker.glance().get(Node, named)
        key, now = (node.id if node else "", error.code), self._services.clock.monotonic()
        if now < self._forgeries.get(key, -_QUIET) + _QUIET:
            return
        self._forgeries[key] = now
        target = node.id if node is not None else self._identity.node_id

        def record(tx: Transaction) -> None:
            forged = ReceivedEnvelope(
                envelope_id="",
                node_id=target,
                kind="",
                outcome=ReceiptState.REFUSED,
                authentic=False,
                problem=error,
            )
            tx.append(EnvelopeReceived, target, forged)

        await self._broker.as_system(record)


def _find_member(node: Node | None) -> MemberEntry | None:
    """Return the entry of another node; one that was removed here is removed, whatever its entry says."""
    if node is None or node.local or node.member is None:
        return None
    return replace(node.member, removed=node.member.removed or node.state is NodeState.REMOVED)


def _find_sender(ledger: Ledger, agent_id: str) -> tuple[str | None, bool]:
    """Return the node that lists an agent, and whether this node has an agent of its id."""
    own, listed = ledger.own_agent(agent_id), ledger.remote_agent(agent_id)
    is_own = own is not None and (own.moved_to is None or listed is None)
    return listed.node_id if listed else None, is_own


def find_received(ledger: Ledger, envelope_id: str) -> ReceivedEnvelope | None:
    """Return what became of an envelope that was taken; None if it was not."""
    for event in ledger.facts("envelope_received", envelope=envelope_id):
        if isinstance(event, EnvelopeReceived):
            return event.payload
    return None


def _apply_receipts(tx: Transaction, header: EnvelopeHeader, receipts: Sequence[ReceiptPayload]) -> None:
    for one in receipts:
        outbox.apply_receipt(tx, header.from_node, one)


def _record_refusal(
    tx: Transaction, header: EnvelopeHeader, error: FlightError, moved_to: str | None
) -> None:
    if not tx.ledger.has_received(header.id):
        refused = _describe(header, ReceiptState.REFUSED, problem=error, moved_to=moved_to)
        tx.append(EnvelopeReceived, header.id, refused)


def _describe(header: EnvelopeHeader, outcome: ReceiptState, **more: Any) -> ReceivedEnvelope:
    return ReceivedEnvelope(
        envelope_id=header.id,
        node_id=header.from_node,
        kind=_read_kind(header),
        outcome=outcome,
        conversation_id=header.conversation_id,
        sender=header.sender.id if header.sender else None,
        **more,
    )


def _read_kind(header: EnvelopeHeader) -> str:
    try:
        return read_kind(header)[:40]
    except Refused:
        return ""
