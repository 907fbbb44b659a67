"""Whether an envelope from another node is taken: decided from facts alone, with the reason for a refusal.

An envelope is authentic if its node is a member and its signature is right. Only then its id may count as
taken and its node gets a receipt. Otherwise anybody could make this node skip an envelope of another.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from scout.base.ids import parse_prefix
from scout.base.record import Record
from scout.base.refusal import BadRequest, Diagnostic, Refused
from scout.model.mesh.envelope import (
    ENVELOPE_LIMIT,
    VERSION,
    AskPayload,
    AttentionPayload,
    BroadcastPayload,
    CancelPayload,
    DecisionPayload,
    EnvelopeHeader,
    EnvelopeKind,
    MailPayload,
    MessagePayload,
    MovePayload,
    Payload,
    QuestionPayload,
    ReceiptPayload,
    ReceiptsPayload,
    ReceiptState,
    WorkPayload,
    read_kind,
)
from scout.model.mesh.member import MemberEntry, MemberRelation
from scout.model.problems.request import Forbidden, TooLarge, Unauthenticated
from scout.model.question import QuestionState
from scout.model.ref import PREFIXES, RefKind

_OWN_ONLY = (
    BroadcastPayload,
    AttentionPayload,
    DecisionPayload,
    MovePayload,
    MailPayload,
    WorkPayload,
)  # between machines of one operator


class IntakeAction(StrEnum):
    """Apply it; answer it again, because it was taken before; wait for an earlier one; refuse it."""

    TAKE = "take"
    REPEAT = "repeat"
    HOLD = "hold"
    REFUSE = "refuse"


class EnvelopeFacts(Record):
    """What is known about an envelope. `header` is None if it could not be read.

    `sender_node`: the node that lists the sender, as far as this node knows; None: no node does.
    `sender_is_own`: this node has an agent of the sender's id. `taken`: its id was taken before.
    `has_predecessor`: the envelope that must come before it was taken, or none must.
    """

    size: int
    header: EnvelopeHeader | None
    mesh_id: str
    node_id: str
    member: MemberEntry | None
    signed: bool
    sender_node: str | None = None
    sender_is_own: bool = False
    taken: bool = False
    has_predecessor: bool = True


class IntakeDecision(Record):
    """What happens with an envelope. `authentic`: it is from the node that it names; it gets a receipt."""

    action: IntakeAction
    authentic: bool = True
    problem: Diagnostic | None = None


def decide_intake(facts: EnvelopeFacts) -> IntakeDecision:
    """Decide whether an envelope is taken. The payload is checked afterwards, by `check_payload`."""
    forged = _find_forgery(facts)
    if forged is not None:
        return IntakeDecision(action=IntakeAction.REFUSE, authentic=False, problem=forged)
    assert facts.header is not None  # it would be refused
    if facts.taken:
        return IntakeDecision(action=IntakeAction.REPEAT)
    problem = _find_problem(facts, facts.header)
    if problem is not None:
        return IntakeDecision(action=IntakeAction.REFUSE, problem=problem)
    return IntakeDecision(action=IntakeAction.TAKE if facts.has_predecessor else IntakeAction.HOLD)


def _find_forgery(facts: EnvelopeFacts) -> Diagnostic | None:
    """Return why an envelope cannot be believed to be from the node that it names, for this node."""
    header, member = facts.header, facts.member
    if facts.size > ENVELOPE_LIMIT:
        return TooLarge(what="envelope", size=facts.size, limit=ENVELOPE_LIMIT)
    if header is None or parse_prefix(header.id) != PREFIXES[RefKind.ENVELOPE]:
        return BadRequest(problem="this is no envelope")
    if member is None:
        return Unauthenticated(reason=f"{header.from_node:.60} is no member of the mesh", needs=_NEEDS)
    if not facts.signed:
        return Unauthenticated(reason="the signature of the envelope is not its node's", needs=_NEEDS)
    if member.removed:
        return Unauthenticated(reason=f"the node {member.name} was removed from the mesh", needs=_NEEDS)
    if header.to_node != facts.node_id or header.mesh != facts.mesh_id:
        return Unauthenticated(reason="the envelope is for another node or mesh", needs=_NEEDS)
    return None


_NEEDS = ("the key of an admitted node",)
_KINDS = frozenset(EnvelopeKind)


def _find_problem(facts: EnvelopeFacts, header: EnvelopeHeader) -> Diagnostic | None:
    """Return why an authentic envelope is refused."""
    if header.v > VERSION:
        return _refuse_version(f"version {header.v} of envelopes")
    try:
        kind = read_kind(header)
    except Refused as refusal:
        return refusal.diagnostic
    if kind not in _KINDS:
        return _refuse_version(f"the envelope kind '{kind:.40}'")
    sender = header.sender
    if sender is None:
        return None
    foreign = sender.node_id != header.from_node or facts.sender_is_own
    if foreign or facts.sender_node not in (None, header.from_node):
        return _refuse_sender("a node speaks only for its own agents")
    return None


def _refuse_version(what: str) -> BadRequest:
    return BadRequest(problem=f"this node speaks version {VERSION} of the mesh and does not know {what}")


def _refuse_sender(needs: str) -> Forbidden:
    return Forbidden(action="speak", subject="another agent", needs=(needs,))


# -- payloads ----------------------------------------------------------------------------------------


def check_payload(payload: Payload, header: EnvelopeHeader, relation: MemberRelation) -> None:
    """Refuse a payload that speaks for another than the envelope's sender, or that a guest may not send."""
    if isinstance(payload, _OWN_ONLY) and relation is not MemberRelation.OWN:
        raise Refused(Forbidden(action="share", subject="a record", needs=("a node of the same operator",)))
    find_speaker = _SPEAKERS.get(type(payload))
    if find_speaker is None:
        return
    speaker, sender = find_speaker(payload), header.sender.id if header.sender else None
    if sender is None or speaker not in (None, sender):
        raise Refused(_refuse_sender("the sender of the envelope"))
    if isinstance(payload, AskPayload):
        _check_ask(payload)


def _check_ask(payload: AskPayload) -> None:
    message, ask, flight = payload.message, payload.ask, payload.flight
    belongs = (ask.message_id, flight.ask_id, flight.requester_id, flight.target)
    if belongs != (message.id, ask.id, ask.sender, ask.target) or message.sender != ask.sender:
        raise Refused(BadRequest(problem="the message, ask and flight do not belong together"))


def _find_question_speaker(payload: QuestionPayload) -> str:
    """Return who moves a question: its responder answers or declines, its asker does everything else."""
    question = payload.question
    answered = question.state in (QuestionState.ANSWERED, QuestionState.DECLINED)
    return question.responder_id if answered else question.asker_id


_SPEAKERS: Mapping[type[Any], Callable[[Any], str | None]] = {
    MessagePayload: lambda payload: payload.message.sender,
    BroadcastPayload: lambda payload: payload.message.sender,
    AskPayload: lambda payload: payload.ask.sender,
    CancelPayload: lambda _: None,  # whoever may cancel the flight here
    QuestionPayload: _find_question_speaker,
}


def list_plain_receipts(payload: Payload) -> tuple[ReceiptPayload, ...]:
    """Return the receipts of a payload that only ends outbox rows of ours; none of any other payload.

    It is not answered, and a receipt that is lost is asked for again.
    """
    if isinstance(payload, ReceiptsPayload):
        return payload.receipts
    if isinstance(payload, ReceiptPayload) and payload.state is not ReceiptState.DELIVERED:
        return (payload,)
    return ()
