"""The tasks of a client at one agent, the last changed first, by pages."""

from typing import NamedTuple

from a2a.types import a2a_pb2
from a2a.utils.errors import InvalidParamsError

from scout.a2a.tasks import get_context, read_status
from scout.protocol.asks import FlightView, ListFlights
from scout.protocol.scout import Scout

_READ = 200  # flights per call
_NEWEST = 1000  # flights of a client that are looked at
_PAGE, _LARGEST_PAGE = 50, 100


class TaskPage(NamedTuple):
    """One page of tasks. `next_token` is empty on the last one; `total` counts all that match."""

    flights: list[FlightView]
    next_token: str
    size: int
    total: int


async def list_tasks(scout: Scout, agent_id: str, request: a2a_pb2.ListTasksRequest) -> TaskPage:
    """Return the page of a client's tasks that a request asks for, among its newest thousand."""
    size = _read_size(request)
    found = [one for one in await _read_newest(scout) if _is_wanted(one, agent_id, request)]
    found.sort(key=_get_place, reverse=True)
    left = found
    if request.page_token:
        after = _read_token(request.page_token)
        left = [one for one in found if _get_place(one) < after]
    shown = left[:size]
    token = _format_token(shown[-1]) if len(left) > size else ""
    return TaskPage(shown, token, size, len(found))


async def _read_newest(scout: Scout) -> list[FlightView]:
    found, cursor = list[FlightView](), None
    while len(found) < _NEWEST:
        page = await scout.call(ListFlights(mine=True, cursor=cursor, limit=_READ))
        found += page.items
        cursor = page.next
        if cursor is None:
            break
    return found


def _is_wanted(flight: FlightView, agent_id: str, request: a2a_pb2.ListTasksRequest) -> bool:
    if flight.target != agent_id or request.context_id not in ("", get_context(flight)):
        return False
    if request.status and request.status != read_status(flight).state:
        return False
    since = request.status_timestamp_after
    return not request.HasField("status_timestamp_after") or flight.updated_at >= since.ToMicroseconds()


def _read_size(request: a2a_pb2.ListTasksRequest) -> int:
    if not request.HasField("page_size"):
        return _PAGE
    if not 1 <= request.page_size <= _LARGEST_PAGE:
        raise InvalidParamsError(message=f"pageSize must be from 1 to {_LARGEST_PAGE}")
    return request.page_size


# -- the place in the list ---------------------------------------------------------------------------


def _get_place(flight: FlightView) -> tuple[int, str]:
    return int(flight.updated_at), flight.id


def _format_token(flight: FlightView) -> str:
    return f"{int(flight.updated_at)}.{flight.id}"


def _read_token(token: str) -> tuple[int, str]:
    moment, _, ident = token.partition(".")
    if not moment.isdigit() or not ident:
        raise InvalidParamsError(message="pageToken must be the nextPageToken of the page before")
    return int(moment), ident
