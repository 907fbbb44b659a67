"""Finding interrupted work after a restart, from the records alone."""

from collections.abc import Sequence

from scout.broker.delivery import turn_record
from scout.broker.delivery.turn_record import HOLDER
from scout.broker.effects import flight_state
from scout.broker.transaction.transaction import Transaction
from scout.model.access.token import Token
from scout.model.delivery import Delivery, DeliveryMove, DeliveryState, InspectResult, settle_uncertain
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.flight import Flight
from scout.model.problems.session import Layer
from scout.ports import Failed
from scout.store.ledger import LAST, Ledger

_LATER = (1 << 62) - 1
_SOME = 200


def list_uncertain_deliveries(ledger: Ledger) -> list[Delivery]:
    """Return the deliveries that were leased to the dispatcher when the broker died."""
    leased = ledger.many(Delivery, "deliveries_leased", after=-1, limit=_LATER)
    return [one for one in leased if one.leased_by == HOLDER]


def list_running_deliveries(ledger: Ledger) -> list[Delivery]:
    """Return the deliveries that programs took and did not finish."""
    leased = {one.endpoint_id for one in list_uncertain_deliveries(ledger)}
    working = [one for one in _list_busy_endpoints(ledger) if one.state is EndpointState.WORKING]
    found = [find_delivery_of_endpoint(ledger, one) for one in working if one.id not in leased]
    for flight in ledger.many(Flight, "flights_due", now=_LATER, limit=_LATER):
        if flight.started_at is not None and not flight.is_asking:  # a waiting flight needs no running turn
            deliveries = ledger.many(Delivery, "deliveries_of_flight", flight=flight.id)
            found += [one for one in deliveries[-1:] if one.wake and one.state is DeliveryState.ACKED]
    return list({one.id: one for one in found if one is not None}.values())


def _list_busy_endpoints(ledger: Ledger) -> list[Endpoint]:
    held = ledger.many(Endpoint, "endpoints_held", limit=_LATER)
    return [one for one in held if one.state is not EndpointState.IDLE]


def find_delivery_of_endpoint(ledger: Ledger, endpoint: Endpoint) -> Delivery | None:
    """Return the delivery an endpoint works on: the one with an active token, else the last changed."""
    for token in ledger.many(Token, "tokens_of_session", session=endpoint.session_id, limit=_SOME):
        if token.label.startswith("dlv_"):
            return ledger.get(Delivery, token.label)
    before = LAST
    while some := ledger.many(Delivery, "deliveries_to", agent=endpoint.agent_id, before=before, limit=_SOME):
        begun = [one for one in some if one.endpoint_id == endpoint.id and one.wake and one.attempts]
        begun = [one for one in begun if one.carried_with is None]
        if begun:
            return max(begun, key=lambda one: one.updated_at)
        before = some[-1].id
    return None


def free_idle_endpoints(tx: Transaction, known: Sequence[Delivery]) -> None:
    """Free the endpoints that are marked as working or waking but have no running turn."""
    busy = {one.endpoint_id for one in known}
    for endpoint in _list_busy_endpoints(tx.ledger):
        if endpoint.id not in busy:
            turn_record.free_endpoint(tx, endpoint.id, "the broker was restarted")


def list_pending_deliveries(ledger: Ledger) -> list[Delivery]:
    """Return the deliveries that wait for a program, the soonest first."""
    return ledger.many(Delivery, "deliveries_due", now=_LATER, limit=_LATER)


def find_session_of_delivery(ledger: Ledger, ident: str) -> tuple[str | None, str | None, str]:
    """Return the harness and session that a delivery went to, and the run id they know it by."""
    delivery = ledger.get(Delivery, ident)
    endpoint = ledger.get(Endpoint, delivery.endpoint_id) if delivery else None
    if delivery is None or endpoint is None:
        return None, None, ""
    return endpoint.harness, endpoint.session_id, turn_record.build_run_id(delivery)


def settle_uncertain_delivery(tx: Transaction, ident: str, found: InspectResult) -> bool:
    """Record what the program reports about a leased delivery; whether to follow its turn."""
    delivery = tx.need(Delivery, "delivery", ident)
    leads = delivery.carried_with is None
    if delivery.state is not DeliveryState.LEASED:
        return leads
    after = settle_uncertain(delivery, found, tx.now, tx.rules.back_off)
    move = DeliveryMove.ACK if found is InspectResult.TAKEN else DeliveryMove.EXPIRE
    if found is InspectResult.TAKEN and delivery.wake and leads:
        flight_state.record_wake(tx, delivery, "its program had taken it before the restart")
    flight_state.record_delivery(tx, delivery, after, move)
    if found is not InspectResult.TAKEN:
        end_run(tx, delivery, "the broker was restarted")
    return leads


def fail_lost_run(tx: Transaction, ident: str) -> None:
    """Fail a turn whose program took the prompt and is gone without a result."""
    delivery = tx.need(Delivery, "delivery", ident)
    if delivery.state is DeliveryState.ACKED:
        reason = "its program was gone when the broker started again"
        turn_record.fail_begun_turn(tx, delivery, Failed(layer=Layer.PROCESS, reason=reason))
    end_run(tx, delivery, "its program was gone after a restart")


def end_run(tx: Transaction, delivery: Delivery, reason: str) -> None:
    """Free the endpoint of a run and revoke its credential."""
    turn_record.free_endpoint(tx, delivery.endpoint_id, reason)
    if delivery.session_id is not None:
        for token in tx.ledger.many(Token, "tokens_of_session", session=delivery.session_id, limit=_SOME):
            if token.label == delivery.id:
                turn_record.revoke_run_token(tx, token)
