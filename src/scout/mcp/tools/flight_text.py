"""How a flight is told to who asked for it."""

from typing import Any

from scout.mcp.tools.result import compact, next_call
from scout.model.flight import FLIGHT
from scout.protocol.asks import FlightView


def flight_facts(view: FlightView) -> dict[str, Any]:
    """Its state and result, and how to wait for it while it is open."""
    shown = {
        "flightId": view.id,
        "askId": view.ask_id,
        "state": view.state,
        "phase": view.phase,
        "target": view.target_address,
        "output": view.output,
        "error": view.error,
        "reason": view.reason,
        "waitingOn": view.waiting_on,
        "nextMoveOwnerId": view.next_move_owner_id,
        "workItemId": view.work_item_id,
        "mayRepeat": view.may_repeat,
        "revision": view.revision,
    }
    after = next_call("invocations_wait", flightId=view.id) if view.state not in FLIGHT.terminal else None
    return {**compact(shown), **({"next": after} if after else {})}
