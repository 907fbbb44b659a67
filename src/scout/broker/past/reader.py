"""Reading the past for one caller: records as they were, for those whom the caller may read now."""

from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from typing import TypeVar

from msgspec.structs import replace

from scout.base.machine import Mutable
from scout.base.refusal import Refused
from scout.broker.transaction.paging import decode_number, encode_cursor, get_page_size
from scout.broker.transaction.transaction import Transaction, require_reader
from scout.model.agent import Agent
from scout.model.attention import Attention, AttentionState
from scout.model.endpoint import Endpoint, EndpointState
from scout.model.flight import FLIGHT, Flight, FlightState
from scout.model.history import ONLINE
from scout.model.moment import Moment
from scout.model.problems.request import NotFound
from scout.model.status import AgentStatus, get_status
from scout.protocol.request import Page
from scout.store.history.past import LAST_RECORD, Past, PastRecord

T = TypeVar("T", bound=Mutable)
_SEARCHED = 2000  # records looked at for one page
_FEW = 200  # newest records of one agent that are looked at
_MANY = 10_000
OPEN_FLIGHTS = tuple(state for state in FlightState if state not in FLIGHT.terminal)
OPEN_ITEMS = (AttentionState.OPEN, AttentionState.NOTIFIED)
_REACHING = {
    ONLINE,
    *map(str, (EndpointState.ATTACHING, EndpointState.WAKING, EndpointState.UNREACHABLE)),
}
_ANY_TIME = float("inf")


class PastReader:
    """The records at a moment. `tx` is of the present: names, permissions and redactions are those of now."""

    def __init__(self, tx: Transaction, moment: Moment) -> None:
        self.tx = tx
        self.moment = moment
        self.records = Past(tx.ledger.connection, moment.seq)

    def need(self, kind: type[T], noun: str, record: T) -> T:
        """Return a record of the present as it was; refuse one that did not exist yet."""
        found = self.records.get(kind, record.id)
        if found is None:
            raise Refused(NotFound(noun=noun, id=f"{record.id} at {self.moment.at}"))
        return found

    # -- pages -------------------------------------------------------------------------------------

    def read_page(
        self,
        kind: type[T],
        is_wanted: Callable[[T], bool],
        *,
        states: Collection[str] | None = None,
        within: Collection[str] | None = None,
        party: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[T]:
        """Return a page of records, newest first.

        `states`: only these, which few records are in; `within`: only these, looked for among the newest.
        A limited number is searched at once, so the page may be short; its cursor continues from there.
        """
        wanted = get_page_size(limit, self.tx.rules.limits)
        before, searched = decode_number(cursor, LAST_RECORD), 0
        found: list[tuple[int, T]] = []
        while True:
            rows = self._read_rows(kind, states, party, before, wanted + 1)
            for row in rows:
                searched, before = searched + 1, row.record
                one = self.records.load(kind, row.record) if within is None or row.state in within else None
                if one is not None and is_wanted(one):
                    found.append((row.record, one))
                if len(found) > wanted:
                    return self._build_page(found[:wanted], found[wanted - 1][0])
            if len(rows) <= wanted:
                return self._build_page(found, None)
            if searched >= _SEARCHED:
                return self._build_page(found, before)

    def _read_rows(
        self, kind: type[T], states: Collection[str] | None, party: str | None, before: int, limit: int
    ) -> list[PastRecord]:
        if states is None:
            return self.records.list_newest(kind, party=party, before=before, limit=limit)
        return self.records.list_in(kind, states, party=party, before=before, limit=limit)

    def _build_page(self, found: Sequence[tuple[int, T]], last: int | None) -> Page[T]:
        following = encode_cursor(last) if last is not None else None
        return Page(items=tuple(one for _, one in found), next=following, moment=self.moment)

    # -- rights ------------------------------------------------------------------------------------

    def may_read(self, *parties: str | None) -> bool:
        """Whether the caller is one of these now, or may read one of them."""
        if self.tx.is_operator:
            return True
        try:
            require_reader(self.tx, *parties)
        except (Refused, IndexError):
            return False
        return True

    # -- agents ------------------------------------------------------------------------------------

    @cached_property
    def open_items(self) -> list[Attention]:
        """Return the items that waited for a person."""
        found = self.records.list_in(Attention, OPEN_ITEMS, limit=_MANY)
        return self.records.load_all(Attention, found)

    def list_of(self, kind: type[T], agent_id: str, states: Collection[str]) -> list[T]:
        """Return those of an agent's newest records that were in one of these states."""
        newest = self.records.list_newest(kind, party=agent_id, limit=_FEW)
        return self.records.load_all(kind, [one for one in newest if one.state in states])

    def list_endpoints(self, agent_id: str) -> list[Endpoint]:
        """Return the endpoints through which an agent was reached, or almost."""
        return self.list_of(Endpoint, agent_id, _REACHING)

    def list_open_flights(self, agent_id: str) -> list[Flight]:
        """Return the open flights to an agent."""
        open_ = self.list_of(Flight, agent_id, OPEN_FLIGHTS)
        return [one for one in open_ if one.target == agent_id]

    def find_status(self, agent: Agent) -> AgentStatus:
        """Return the status that an agent had, as fine as endpoints reported it."""
        needs = [one for one in self.open_items if one.agent_id == one.source.id == agent.id]
        return get_status(
            agent,
            [_keep_seen(one) for one in self.list_endpoints(agent.id)],
            self.moment.at,
            flights=self.list_open_flights(agent.id),
            attention=needs,
            within=_ANY_TIME,
        )

    def list_online(self) -> list[str]:
        """Return the agents with an endpoint that was idle or working, the newest endpoint first."""
        found = self.records.list_in(Endpoint, (ONLINE,), limit=_MANY)
        return [*dict.fromkeys(one.agent_id for one in self.records.load_all(Endpoint, found))]


def _keep_seen(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint that counts as heard from: one that fell silent was lost by an event."""
    return replace(endpoint, last_seen=endpoint.last_seen or endpoint.created_at)
