"""How the items of an inbox are acknowledged."""

import pytest

from scout.protocol.inbox import AckInbox, InboxItem, build_acknowledgements
from tests.model.samples import a_delivery


def test_deliveries_are_acknowledged_together_and_conversations_up_to_the_furthest_item() -> None:
    items = [
        InboxItem(delivery_id="dlv_1"),
        InboxItem(conversation_id="cnv_1", seq=4),
        InboxItem(delivery_id="dlv_2"),
        InboxItem(conversation_id="cnv_1", seq=9),
        InboxItem(conversation_id="cnv_2", seq=2),
    ]
    assert build_acknowledgements(items) == [
        AckInbox(delivery_ids=("dlv_1", "dlv_2")),
        AckInbox(conversation_id="cnv_1", seq=9),
        AckInbox(conversation_id="cnv_2", seq=2),
    ]
    assert build_acknowledgements(items[1:2]) == [AckInbox(conversation_id="cnv_1", seq=4)]
    assert build_acknowledgements([]) == []


def test_only_an_item_for_you_alone_has_a_delivery() -> None:
    delivery = a_delivery()
    assert InboxItem(delivery_id=delivery.id, delivery=delivery).delivered is delivery
    with pytest.raises(AssertionError):
        _ = InboxItem(conversation_id="cnv_1", seq=1).delivered
