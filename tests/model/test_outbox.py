"""The outbox: a row ends only by a receipt or by its expiry, and tells what must be taken before it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Refused
from scout.model.flight import FlightError
from scout.model.mesh.envelope import EnvelopeKind, ReceiptState
from scout.model.mesh.outbox import (
    OPEN,
    OUTBOX,
    OutboxEntry,
    build_mesh_receipt,
    expire_entry,
    forward_entry,
    is_due_entry,
    retry_entry,
    take_receipt,
)
from scout.model.mesh_receipt import OutboxState
from tests.model.samples import CONVERSATION, T0, T1, ident
from tests.model.table import cells, check_cell

GONE = FlightError(code="peer_unreachable", message="node mini is unreachable")
TABLE = """
          forward   retry  accept   deliver   refuse  expire
queued    forwarded -      accepted delivered refused expired
forwarded -         queued accepted delivered refused expired
accepted  -         -      -        delivered -       -
delivered -         -      -        -         -       -
refused   -         -      -        -         -       -
expired   -         -      -        -         -       -
"""


def an_entry(number: int = 0, **changes: Any) -> OutboxEntry:
    fields: dict[str, Any] = {"conversation_id": CONVERSATION, **changes}
    return OutboxEntry(
        id=ident("env", number),
        created_at=T0,
        updated_at=T0,
        node_id=ident("nod"),
        kind=EnvelopeKind.MESSAGE,
        subject=ident("msg"),
        next_attempt_at=T0,
        expires_at=T0.plus(86_400),
        **fields,
    )


@pytest.mark.parametrize(("state", "move", "after"), cells(OUTBOX, TABLE))
def test_the_table(state: str, move: str, after: str) -> None:
    check_cell(OUTBOX, state, move, after)


def test_a_row_is_forwarded_accepted_and_delivered() -> None:
    entry = an_entry()
    assert is_due_entry(entry, T0)
    assert not is_due_entry(entry, T0.plus(-1))
    sent = forward_entry(entry, T0.plus(2), T0)
    assert (sent.state, sent.attempts, sent.next_attempt_at) == (OutboxState.FORWARDED, 1, T0.plus(2))
    assert not is_due_entry(sent, T0.plus(9))
    again = retry_entry(sent, T1)
    assert (again.state, again.attempts, is_due_entry(again, T1)) == (OutboxState.QUEUED, 1, True)
    twice = forward_entry(again, T1, T1)
    assert (twice.attempts, twice.forwarded_at) == (2, T0)
    accepted = take_receipt(twice, ReceiptState.ACCEPTED, T1)
    assert (accepted.state, accepted.accepted_at, accepted.delivered_at) == (OutboxState.ACCEPTED, T1, None)
    delivered = take_receipt(accepted, ReceiptState.DELIVERED, T1.plus(1))
    assert (delivered.accepted_at, delivered.delivered_at) == (T1, T1.plus(1))
    receipt = build_mesh_receipt(delivered, "mini")
    assert (receipt.node, receipt.state, receipt.forwarded_at) == ("mini", OutboxState.DELIVERED, T0)


def test_a_receipt_may_come_before_the_servers_answer() -> None:
    accepted = take_receipt(an_entry(), ReceiptState.ACCEPTED, T1)
    assert (accepted.state, accepted.forwarded_at) == (OutboxState.ACCEPTED, T1)
    with pytest.raises(Refused):
        forward_entry(accepted, T1, T1)


def test_a_refusal_keeps_its_reason_and_a_late_receipt_changes_nothing() -> None:
    refused = take_receipt(an_entry(), ReceiptState.REFUSED, T1, GONE)
    assert (refused.state, refused.problem, refused.accepted_at) == (OutboxState.REFUSED, GONE, None)
    expired = expire_entry(an_entry(), GONE, T1)
    assert (expired.state, expired.problem) == (OutboxState.EXPIRED, GONE)
    assert take_receipt(expired, ReceiptState.ACCEPTED, T1) is expired
    assert take_receipt(refused, ReceiptState.DELIVERED, T1) is refused


@given(st.lists(st.sampled_from(list(ReceiptState)), max_size=6))
def test_receipts_end_a_row_once_in_any_number_and_order(receipts: list[ReceiptState]) -> None:
    entry = an_entry()
    ends = list[OutboxState]()
    for one in receipts:
        after = take_receipt(entry, one, T1)
        if after is not entry and entry.state in OPEN:
            ends.append(after.state)
        entry = after
    assert len(ends) == min(len(receipts), 1)
    assert (entry.state in OPEN) is not bool(receipts)
