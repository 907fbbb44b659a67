"""What can be done with a flight, in the list and in its own view."""

from scout.model.flight import FLIGHT, FlightState
from scout.protocol.asks import CancelFlight, FlightView, RetryFlight
from scout.tui.describe import name_target
from scout.tui.dialogs import Chooser, KeyChoice
from scout.tui.text import Paragraph, show_text
from scout.tui.view import ViewHost

_RETRIED = (FlightState.FAILED, FlightState.CANCELLED)


class FlightActions:
    """Cancel, retry, ask back, open, diff and explain."""

    host: ViewHost

    @property
    def flight(self) -> FlightView | None:
        """The flight that is meant."""
        raise NotImplementedError

    def offers(self, action: str) -> bool:
        """Whether the state of the flight allows what a key does."""
        flight = self.flight
        if action == "cancel":
            return flight is not None and flight.state not in FLIGHT.terminal
        if action in ("open", "diff"):
            return flight is None or flight.target_node is None
        return action != "retry" or (flight is not None and flight.state in _RETRIED)

    def do_cancel(self) -> None:
        flight = self.flight
        if flight is None:
            return
        if flight.state in FLIGHT.terminal:
            self.host.say(f"It is {flight.state} already.", "yellow")
        else:
            self.host.start(self._cancel(flight))

    async def _cancel(self, flight: FlightView) -> None:
        asked = [Paragraph(name_target(flight), "dim"), Paragraph(flight.body, foreign=True)]
        title = "Cancel this flight and interrupt its program?"
        if await self.host.ask_person(Chooser(title, [KeyChoice("x", "cancel it", "cancel")], asked)):
            await self.host.call(CancelFlight(flight_id=flight.id))
            self.host.say(f"Cancelled {flight.id}.", "green")

    def do_retry(self) -> None:
        flight = self.flight
        if flight is None:
            return
        if flight.state not in _RETRIED:
            self.host.say(
                f"Only a failed or cancelled flight can be retried; it is {flight.state}.", "yellow"
            )
        else:
            self.host.start(self._retry(flight))

    async def _retry(self, flight: FlightView) -> None:
        receipt = await self.host.call(RetryFlight(flight_id=flight.id))
        self.host.say("Retried, in a new flight.", "green")
        self.host.show_record(receipt.flight_id)

    def do_reply(self) -> None:
        if (flight := self.flight) is not None:
            self.host.compose_ask(flight.target_address, flight.conversation_id)

    def do_open(self) -> None:
        if (flight := self.flight) is not None and not self._refer("flight get", flight):
            self.host.open_session(flight.session_id or flight.target_address)

    def do_diff(self) -> None:
        if (flight := self.flight) is not None and not self._refer("diff", flight):
            self.host.show_diff(flight.id)

    def _refer(self, command: str, flight: FlightView) -> bool:
        """Name the command to run on the node that runs the flight; False if that is this one."""
        if flight.target_node is not None:
            where = show_text(flight.target_node)
            self.host.say(f"It runs on {where}. Run it there: scout {command} {flight.id}", "yellow")
        return flight.target_node is not None

    def do_why(self) -> None:
        if (flight := self.flight) is not None:
            self.host.explain(flight.id)
