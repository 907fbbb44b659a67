"""Whom and what a fact concerns."""

from scout.base.time import Time
from scout.model.events.asks import FlightQueued, Nudge, SweepNudged
from scout.model.events.envelope import Changed, Metadata, list_concerned, list_concerned_agents
from scout.model.ref import Ref
from tests.model.samples import a_flight, ident

FLIGHT = a_flight()
BY, TO = ident("agt", 8), ident("agt", 9)


def test_a_fact_concerns_its_two_ends_whom_it_names_and_whom_its_record_names() -> None:
    event = FlightQueued(
        id=ident("evt"),
        seq=1,
        time=Time(0),
        source=Ref.to(BY),
        target=Ref.to(FLIGHT.id),
        payload=Changed(record=FLIGHT),
        metadata=Metadata(target_agents=(TO,)),
    )
    assert {BY, TO, FLIGHT.id, FLIGHT.target, FLIGHT.requester_id, FLIGHT.ask_id} <= list_concerned(event)
    assert list_concerned_agents(event) == sorted({BY, TO, FLIGHT.target, FLIGHT.requester_id})


def test_a_fact_without_a_record_concerns_whom_its_payload_names() -> None:
    nudge = Nudge(holder_id=TO, about=Ref.to(FLIGHT.id), rule="flight", count=1)
    event = SweepNudged(
        id=ident("evt"), seq=1, time=Time(0), source=Ref.to(BY), target=Ref.to(FLIGHT.id), payload=nudge
    )
    assert list_concerned_agents(event) == sorted((BY, TO))
