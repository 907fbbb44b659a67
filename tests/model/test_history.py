"""Which records are followed, by which states, and whom they concern."""

from typing import Any

import pytest

from scout.base.record import Record
from scout.model.endpoint import EndpointState
from scout.model.history import FOLLOWED, list_parties
from scout.model.node import pause_node
from tests.model.samples import (
    T1,
    a_flight,
    a_node,
    a_question,
    a_session,
    a_work_item,
    an_agent,
    an_attention,
    an_endpoint,
)


@pytest.mark.parametrize(
    ("record", "kind", "state"),
    [
        (an_agent(), "agent", "active"),
        (an_endpoint(state=EndpointState.IDLE), "endpoint", "online"),
        (an_endpoint(state=EndpointState.WORKING), "endpoint", "online"),
        (an_endpoint(state=EndpointState.STALE), "endpoint", "stale"),
        (a_session(), "session", "starting"),
        (a_flight(), "flight", "queued"),
        (a_work_item(), "work_item", "open"),
        (an_attention(), "attention", "open"),
        (a_question(), "question", "open"),
        (a_node(), "node", "running"),
        (pause_node(a_node(), "agt_x", T1), "node", "paused"),
    ],
)
def test_a_followed_record_has_a_kind_and_a_state(record: Any, kind: str, state: str) -> None:
    followed = FOLLOWED[type(record)]
    assert (followed.name, followed.get_state(record)) == (kind, state)


def test_a_record_concerns_each_of_its_parties_once() -> None:
    flight = a_flight()
    assert list_parties(flight) == (flight.target, flight.requester_id)
    item = a_work_item()
    assert set(list_parties(item)) == {item.owner_id, item.requester_id}
    assert list_parties(a_node()) == ()


def test_every_followed_field_exists() -> None:
    for record, kind in FOLLOWED.items():
        assert issubclass(record, Record)
        assert set(kind.parties) <= set(record.__struct_fields__)
