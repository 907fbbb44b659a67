"""Which envelopes are taken: by facts alone, and a forged one never spends the id of a true one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scout.base.codec import decode
from scout.base.refusal import Refused
from scout.identity.path import AgentPath
from scout.model.attention import AttentionKind
from scout.model.mesh.entry import AgentEntry
from scout.model.mesh.envelope import (
    ENVELOPE_LIMIT,
    VERSION,
    AskPayload,
    AttentionPayload,
    CancelPayload,
    Envelope,
    EnvelopeHeader,
    FlightPayload,
    MessagePayload,
    Payload,
    QuestionPayload,
    ReceiptPayload,
    ReceiptsPayload,
    ReceiptState,
    build_signed_bytes,
)
from scout.model.mesh.member import MemberEntry, MemberRelation
from scout.model.question import QuestionState
from scout.model.status import AgentStatus
from scout.policy.mesh.envelopes import (
    EnvelopeFacts,
    IntakeAction,
    check_payload,
    decide_intake,
    list_plain_receipts,
)
from tests.model.samples import (
    ALICE,
    BOB,
    T0,
    a_flight,
    a_message,
    a_question,
    an_ask,
    an_attention,
    ident,
)

HERE, THERE, THIRD = ident("nod", 1), ident("nod", 2), ident("nod", 3)
MEMBER = MemberEntry(
    node_id=THERE,
    name="mini",
    public_key="aa",
    login_key="bb",
    login_proof="cc",
    operator_key="dd",
    admitted_at=T0,
    updated_at=T0,
)
SENDER = AgentEntry(
    id=ALICE, node_id=THERE, path=AgentPath.parse("/u1/agent/arc"), status=AgentStatus.ONLINE, updated_at=T0
)
MESSAGE = MessagePayload(message=a_message(sender=ALICE), to=BOB)


def a_header(payload: Payload = MESSAGE, **changes: Any) -> EnvelopeHeader:
    fields: dict[str, Any] = {
        "id": ident("env"),
        "mesh": "mesh",
        "from_node": THERE,
        "to_node": HERE,
        "sent_at": T0,
        "lives": 60.0,
        "sender": SENDER,
        "payload": payload,
        **changes,
    }
    body, _ = build_signed_bytes(Envelope(**fields))
    return decode(body, EnvelopeHeader)


def facts(header: EnvelopeHeader | None = None, **changes: Any) -> EnvelopeFacts:
    known = EnvelopeFacts(
        size=100, header=header or a_header(), mesh_id="mesh", node_id=HERE, member=MEMBER, signed=True
    )
    return replace(known, **changes)


def test_a_true_envelope_is_taken_once_and_in_order() -> None:
    assert decide_intake(facts(sender_node=THERE)).action is IntakeAction.TAKE
    assert decide_intake(facts(a_header(sender=None))).action is IntakeAction.TAKE
    assert decide_intake(facts(taken=True)).action is IntakeAction.REPEAT
    assert decide_intake(facts(has_predecessor=False)).action is IntakeAction.HOLD
    assert decide_intake(facts(has_predecessor=False, taken=True)).action is IntakeAction.REPEAT


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"size": ENVELOPE_LIMIT + 1}, "too_large"),
        ({"header": None}, "bad_request"),
        ({"header": a_header(id=ident("msg"))}, "bad_request"),
        ({"member": None}, "unauthenticated"),
        ({"signed": False}, "unauthenticated"),
        ({"member": replace(MEMBER, removed=True)}, "unauthenticated"),
        ({"header": a_header(to_node=THIRD)}, "unauthenticated"),
        ({"header": a_header(mesh="other")}, "unauthenticated"),
    ],
)
def test_a_forged_envelope_is_refused_and_spends_no_id(change: dict[str, Any], code: str) -> None:
    for taken in (False, True):
        decision = decide_intake(replace(facts(taken=taken), **change))
        assert (decision.action, decision.authentic) == (IntakeAction.REFUSE, False)
        assert decision.problem is not None
        assert decision.problem.code == code


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        ({"header": a_header(v=VERSION + 1)}, "bad_request", f"version {VERSION + 1}"),
        ({"header": a_header(sender=replace(SENDER, node_id=THIRD))}, "forbidden", "speak"),
        ({"sender_is_own": True}, "forbidden", "speak"),
        ({"sender_node": THIRD}, "forbidden", "speak"),
    ],
)
def test_a_member_that_oversteps_is_refused_and_told(change: dict[str, Any], code: str, word: str) -> None:
    decision = decide_intake(replace(facts(), **change))
    assert (decision.action, decision.authentic) == (IntakeAction.REFUSE, True)
    assert decision.problem is not None
    assert decision.problem.code == code
    assert word in decision.problem.message


def test_a_kind_of_a_newer_version_is_refused_politely() -> None:
    strange = replace(a_header(), payload=decode(b'{"kind":"song"}', type(a_header().payload)))
    decision = decide_intake(facts(strange))
    assert decision.authentic
    assert decision.problem is not None
    assert "song" in decision.problem.message
    broken = replace(a_header(), payload=decode(b"[1]", type(a_header().payload)))
    problem = decide_intake(facts(broken)).problem
    assert problem is not None
    assert problem.code == "bad_request"


ASK = an_ask(sender=ALICE)
FLIGHT = a_flight(ask_id=ASK.id, requester_id=ASK.sender, target=ASK.target)
SAID = a_message(id=ASK.message_id, sender=ALICE)


def test_a_payload_speaks_for_the_sender_of_its_envelope() -> None:
    own = MemberRelation.OWN
    for payload in (
        MESSAGE,
        AskPayload(message=SAID, ask=ASK, flight=FLIGHT),
        CancelPayload(flight_id=FLIGHT.id),
        FlightPayload(flight=FLIGHT),
        QuestionPayload(question=a_question(asker_id=ALICE, responder_id=BOB), move="create"),
        QuestionPayload(
            question=a_question(asker_id=BOB, responder_id=ALICE, state=QuestionState.ANSWERED), move="answer"
        ),
    ):
        check_payload(payload, a_header(payload), own)
    for payload in (
        MessagePayload(message=a_message(sender=BOB), to=BOB),
        AskPayload(message=SAID, ask=replace(ASK, sender=BOB), flight=FLIGHT),
        AskPayload(message=SAID, ask=ASK, flight=replace(FLIGHT, ask_id=ident("ask", 9))),
        AskPayload(message=replace(SAID, sender=BOB), ask=ASK, flight=FLIGHT),
        QuestionPayload(question=a_question(asker_id=BOB, responder_id=ALICE), move="create"),
    ):
        with pytest.raises(Refused):
            check_payload(payload, a_header(payload), own)
    with pytest.raises(Refused):
        check_payload(MESSAGE, a_header(sender=None), own)


def test_a_guest_shares_no_attention() -> None:
    payload = AttentionPayload(item=an_attention(AttentionKind.APPROVAL))
    check_payload(payload, a_header(payload), MemberRelation.OWN)
    with pytest.raises(Refused):
        check_payload(payload, a_header(payload), MemberRelation.GUEST)


def test_only_receipts_that_end_a_row_go_unanswered() -> None:
    plain = [ReceiptPayload(of="env_1", state=state) for state in ReceiptState]
    assert [list_plain_receipts(one) for one in plain] == [(plain[0],), (), (plain[2],)]
    assert list_plain_receipts(ReceiptsPayload(receipts=(plain[0], plain[2]))) == (plain[0], plain[2])
    assert not list_plain_receipts(MESSAGE)


@given(st.permutations(list(range(5))), st.lists(st.integers(0, 4), max_size=8))
def test_any_order_and_any_repetition_applies_each_once_in_order(
    order: list[int], repeated: list[int]
) -> None:
    """A stream that reorders and repeats, and offers again what was held back."""
    waiting = [*order, *repeated]
    applied = list[int]()
    rounds = 0
    while waiting and rounds < 50:
        rounds += 1
        held = list[int]()
        for number in waiting:
            known = facts(taken=number in applied, has_predecessor=number == 0 or number - 1 in applied)
            action = decide_intake(known).action
            if action is IntakeAction.TAKE:
                applied.append(number)
            elif action is IntakeAction.HOLD:
                held.append(number)
        waiting = held
    assert applied == [0, 1, 2, 3, 4]
