"""Taking envelopes of other nodes: verified, then applied once, in one transaction with the record of it."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from msgspec.structs import replace

from scout.base.codec import decode
from scout.base.refusal import Diagnostic, Refused
from scout.broker.mesh import inbound, outbox
from scout.broker.mesh.envelopes import MeshIdentity
from scout.broker.mesh.files import ArrivingFiles
from scout.broker.mesh.sender import EnvelopeBroker
from scout.broker.transaction import admission
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent
from scout.model.events.mesh import EnvelopeReceived, ReceivedEnvelope
from scout.model.flight import FlightError, build_error
from scout.model.mesh.envelope import (
    DecisionPayload,
    EnvelopeHeader,
    FilePayload,
    Payload,
    ReceiptPayload,
    ReceiptState,
    SignedEnvelope,
    read_header,
    read_kind,
    read_payload,
)
from scout.model.mesh.member import MemberEntry, MemberRelation
from scout.model.node import Node, NodeState
from scout.model.remote_agent import find_node_owner
from scout.model.token import TokenKind
from scout.policy.directory import Viewpoint
from scout.policy.mesh.envelopes import (
    EnvelopeFacts,
    IntakeAction,
    check_payload,
    decide_intake,
    is_plain_receipt,
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
    def glance(self) -> Ledger: ...


class _Behind(Exception):  # noqa: N818 (a signal between two methods)
    """The envelope was taken meanwhile, or the one before it is missing."""


class Intake:
    """Takes the envelopes of the other nodes. `answer` sends a receipt."""

    def __init__(
        self, broker: IntakeBroker, identity: MeshIdentity, answer: Callable[[str, ReceiptPayload], None]
    ) -> None:
        self._broker = broker
        self._services = broker.services
        self._identity = identity
        self._answer = answer
        self._lines: dict[str, tuple[asyncio.Lock, int]] = {}
        self._files = ArrivingFiles(broker.services)
        self._forgeries: dict[tuple[str, str], float] = {}

    async def take(self, data: bytes) -> bool:
        """Take an envelope. Its effect is on disk when this returns; a repeated one has none.

        Envelopes of one conversation are taken one after the other, in the order of the calls.
        """
        header, node = self._read(data)
        line = header.conversation_id if header is not None else None
        if line is None:
            return await self._take_next(data, header, node)
        turn, waiting = self._lines.get(line, (asyncio.Lock(), 0))
        self._lines[line] = turn, waiting + 1
        try:
            async with turn:
                return await self._take_next(data, header, node)
        finally:
            turn, waiting = self._lines.pop(line)
            if waiting > 1:
                self._lines[line] = turn, waiting - 1

    async def _take_next(self, data: bytes, header: EnvelopeHeader | None, node: Node | None) -> bool:
        facts = self._find_facts(data, header, node)
        decision = decide_intake(facts)
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
        return await self._apply(header, node)

    # -- facts -------------------------------------------------------------------------------------

    def _read(self, data: bytes) -> tuple[EnvelopeHeader | None, Node | None]:
        try:
            header = read_header(decode(data, SignedEnvelope))
        except Refused:
            return None, None
        return header, self._broker.glance().get(Node, header.from_node)

    def _find_facts(self, data: bytes, header: EnvelopeHeader | None, node: Node | None) -> EnvelopeFacts:
        member = _find_member(node)
        facts = EnvelopeFacts(
            size=len(data),
            header=header,
            mesh_id=self._identity.mesh_id,
            node_id=self._identity.node_id,
            member=member,
            signed=False,
        )
        if header is None or member is None or not self._is_signed(data, member):
            return facts
        ledger = self._broker.glance()
        sender = header.sender.id if header.sender else None
        own = ledger.get(Agent, sender)
        known = ledger.remote_agent(sender) if sender else None
        return replace(
            facts,
            signed=True,
            sender_node=known.node_id if known else None,
            sender_is_own=own is not None and not own.is_remote,
            taken=find_received(ledger, header.id) is not None,
            has_predecessor=header.after is None or find_received(ledger, header.after) is not None,
        )

    def _is_signed(self, data: bytes, member: MemberEntry) -> bool:
        signed = decode(data, SignedEnvelope)
        return self._identity.keys.verify(member.public_key, signed.signed_bytes, signed.signature)

    # -- outcomes ----------------------------------------------------------------------------------

    async def _apply(self, header: EnvelopeHeader, node: Node) -> bool:
        """Apply an envelope and record it in one transaction, or record that it was refused."""
        try:
            payload = read_payload(header)
            check_payload(payload, header, MemberRelation.GUEST if node.guest_key else MemberRelation.OWN)
            if is_plain_receipt(payload):
                await self._broker.as_system(lambda tx: _apply_receipt(tx, header, payload))
                return True
            await self._broker.wait_for_probe()
            who = self._admit(header, node, payload)
            piece = payload if isinstance(payload, FilePayload) else None
            rest = await self._files.take_piece(piece) if piece is not None else None
            await self._broker.write(who, lambda tx: self._take(tx, header, node, payload, rest))
        except _Behind:
            return await self._settle_race(header)
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
        taken = find_received(tx.ledger, header.id) is not None
        behind = header.after is not None and find_received(tx.ledger, header.after) is None
        if taken or behind:
            raise _Behind
        subject = inbound.apply_payload(tx, header, node, payload, rest)
        received = _describe(header, ReceiptState.ACCEPTED, subject=subject)
        source = header.sender.id if header.sender else tx.services.system_agent
        tx.append(EnvelopeReceived, header.id, received, source=source)

    async def _settle_race(self, header: EnvelopeHeader) -> bool:
        """Answer an envelope that was taken twice at once; one that is behind another is offered again."""
        if find_received(self._broker.glance(), header.id) is None:
            return False
        self._answer_again(header)
        return True

    def _answer_again(self, header: EnvelopeHeader) -> None:
        found = find_received(self._broker.glance(), header.id)
        if found is not None:
            receipt = ReceiptPayload(of=header.id, state=found.outcome, problem=found.problem)
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
        await self._broker.as_system(lambda tx: _record_refusal(tx, header, error))
        refused = ReceiptPayload(of=header.id, state=ReceiptState.REFUSED, problem=error)
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


def find_received(ledger: Ledger, envelope_id: str) -> ReceivedEnvelope | None:
    """Return what became of an envelope that was taken; None if it was not."""
    for event in ledger.facts("envelope_received", envelope=envelope_id):
        if isinstance(event, EnvelopeReceived):
            return event.payload
    return None


def _apply_receipt(tx: Transaction, header: EnvelopeHeader, payload: Payload) -> None:
    assert isinstance(payload, ReceiptPayload)  # a plain receipt
    outbox.apply_receipt(tx, header.from_node, payload)


def _record_refusal(tx: Transaction, header: EnvelopeHeader, error: FlightError) -> None:
    if find_received(tx.ledger, header.id) is None:
        refused = _describe(header, ReceiptState.REFUSED, problem=error)
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
