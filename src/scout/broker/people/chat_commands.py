"""Commands that Scout answers in a chat, with the rights of the person who typed them."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from scout.base.refusal import Refused
from scout.policy.people.chat_texts import (
    HELP,
    describe_agents,
    describe_group_status,
    describe_status,
    describe_stop,
)
from scout.policy.people.inbound import ChatCommand
from scout.protocol.agents import Who
from scout.protocol.asks import CancelFlight, FlightView, ListFlights
from scout.protocol.attention import ListAttention
from scout.protocol.request import Request

T = TypeVar("T")
_SHOWN = 20
_MOST = 200


class ChatCaller(Protocol):
    """Scout as the person in the chat sees it."""

    async def call(self, request: Request[T]) -> T: ...


async def answer_command(
    scout: ChatCaller,
    command: ChatCommand,
    came_from_here: Callable[[FlightView], bool],
    *,
    group: bool = False,
) -> str:
    """Return the answer to a command. `came_from_here`: the asks of this chat. `group`: others read it."""
    if group and command is ChatCommand.STATUS:
        return await _answer_group_status(scout, came_from_here)
    return await _ANSWERS[command](scout, came_from_here)


async def _answer_help(_: ChatCaller, __: Any) -> str:
    return HELP


async def _answer_who(scout: ChatCaller, _: Any) -> str:
    page = await scout.call(Who(limit=_SHOWN))
    rows = [(one.alias or one.address, one.status, one.description or "") for one in page.items]
    return describe_agents(rows, page.next is not None)


async def _answer_status(scout: ChatCaller, _: Any) -> str:
    flights = await scout.call(ListFlights(open=True, limit=_SHOWN))
    needs = await scout.call(ListAttention(limit=_SHOWN))
    return describe_status(
        [(one.target_address, one) for one in flights.items], [one.title for one in needs.items]
    )


async def _answer_group_status(scout: ChatCaller, came_from_here: Callable[[FlightView], bool]) -> str:
    """List what was asked for in this chat. What else concerns the person is not for the group."""
    flights = await scout.call(ListFlights(open=True, mine=True, limit=_MOST))
    return describe_group_status([(one.target_address, one) for one in flights.items if came_from_here(one)])


async def _answer_stop(scout: ChatCaller, came_from_here: Callable[[FlightView], bool]) -> str:
    """Cancel the asks of this chat that are not finished."""
    flights = await scout.call(ListFlights(open=True, mine=True, limit=_MOST))
    stopped: list[str] = []
    for flight in flights.items:
        if came_from_here(flight):
            try:
                await scout.call(CancelFlight(flight_id=flight.id, reason="stopped from a chat"))
            except Refused:
                continue  # it has just ended
            stopped.append(flight.target_address)
    return describe_stop(stopped)


_ANSWERS: dict[ChatCommand, Callable[[ChatCaller, Any], Awaitable[str]]] = {
    ChatCommand.HELP: _answer_help,
    ChatCommand.WHO: _answer_who,
    ChatCommand.STATUS: _answer_status,
    ChatCommand.STOP: _answer_stop,
}
