"""Which moment a request means, and whether the history reaches it. The caller's present rights apply."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.broker.operations.overview import build_purged
from scout.broker.past.feed import HistoryFeed
from scout.broker.transaction.call import CallBroker, CallContext
from scout.broker.transaction.transaction import Transaction
from scout.model.moment import Moment
from scout.model.problems.request import HistoryBehind, HistoryPurged, NoSuchMoment
from scout.policy.moment import parse_moment
from scout.policy.permit import Deed, Subject
from scout.protocol.correction import list_parameters
from scout.protocol.overview import Activity, ShowActivity
from scout.protocol.request import Request
from scout.store.history.feed import read_mark
from scout.store.history.moments import count_events, find_range, find_seq, read_time
from scout.store.retention.draft import measure_reach

T = TypeVar("T")
R = TypeVar("R", bound=Request[Any])


class PastBroker(CallBroker, Protocol):
    """The broker with the feed of its history."""

    history: HistoryFeed


class _Reach(NamedTuple):
    """How far the history and the log reach."""

    first: Moment | None
    indexed: Moment | None
    events: int


async def show_past(
    call: CallContext[PastBroker], request: R, function: Callable[[Transaction, R, Moment], T]
) -> T:
    """Answer a request as of the moment in `at`."""
    await _reach(call, request)
    return await call.read(lambda tx: function(tx, request, _find_moment(tx, request, str(_get_at(request)))))


def _get_at(request: Request[Any]) -> str | None:
    return getattr(request, "at", None)


async def _reach(call: CallContext[PastBroker], request: Request[Any]) -> None:
    """Let the history catch up if the moment is later than it."""
    if await call.read(lambda tx: _is_late(tx, _get_at(request))):
        await call.broker.history.catch_up()


def _is_late(tx: Transaction, text: str | None) -> bool:
    reach = _measure(tx)
    wanted = parse_moment(text, tx.now) if text is not None else tx.now
    indexed = reach.indexed
    if indexed is None or indexed.seq == reach.events:
        return indexed is None
    return wanted > indexed.at if isinstance(wanted, Time) else wanted > indexed.seq


def _measure(tx: Transaction) -> _Reach:
    ledger = tx.ledger
    mark, begin = read_mark(ledger.connection) or 0, measure_reach(ledger.connection).first_left
    first = read_time(ledger.connection, begin)
    done = read_time(ledger.connection, mark) if mark else None
    return _Reach(
        Moment(at=first, seq=begin) if first is not None else None,
        Moment(at=done, seq=mark) if done is not None else None,
        ledger.last_seq(),
    )


def _find_moment(tx: Transaction, request: Request[Any], text: str, field: str = "at") -> Moment:
    """Return the moment that a text means, or refuse it with the nearest that works."""
    wanted, reach = parse_moment(text, tx.now, field), _measure(tx)
    if reach.first is None or reach.indexed is None:
        raise Refused(_build_behind(text, reach))
    if wanted > (tx.now if isinstance(wanted, Time) else reach.events):
        last = _repeat(request, field, "now", "the last moment")
        reason = "it is in the future" if isinstance(wanted, Time) else f"the last event is {reach.events}"
        raise Refused(_build_missing(text, reason, reach, last))
    limit = reach.indexed.at if isinstance(wanted, Time) else reach.indexed.seq
    if wanted > limit and reach.indexed.seq < reach.events:
        raise Refused(_build_behind(text, reach))
    connection = tx.ledger.connection
    seq = find_seq(connection, wanted) if isinstance(wanted, Time) else wanted
    if 0 < seq < reach.first.seq:
        raise Refused(_build_purged(tx, request, field, text))
    at = wanted if isinstance(wanted, Time) else read_time(connection, seq)
    if seq < 1 or at is None:
        first = _repeat(request, field, "1", "at the first event")
        raise Refused(_build_missing(text, f"the first event is of {reach.first.at}", reach, first))
    return Moment(at=at, seq=seq)


def _repeat(request: Request[Any], field: str, moment: str, why: str) -> Remedy:
    """Return the same request at another moment."""
    return Remedy(
        operation=request.operation, parameters={**list_parameters(request), field: moment}, why=why
    )


def _build_purged(tx: Transaction, request: Request[Any], field: str, text: str) -> HistoryPurged:
    purged = measure_reach(tx.ledger.connection).purged
    assert purged is not None  # the first event that is left is not the first one
    first = _repeat(request, field, str(purged.last + 1), "at the first event that is left")
    return build_purged(tx, f"the history at {text:.60}", purged, first)


def _build_missing(text: str, reason: str, reach: _Reach, remedy: Remedy) -> NoSuchMoment:
    last = reach.indexed.at if reach.indexed else None
    first = reach.first.at if reach.first else None
    return NoSuchMoment(moment=text, reason=reason, first=first, last=last, remedies=(remedy,))


def _build_behind(text: str, reach: _Reach) -> HistoryBehind:
    done = reach.indexed
    look = Remedy(operation="status", parameters={}, why="see how far the history is")
    return HistoryBehind(
        moment=text,
        indexed=done.seq if done else 0,
        events=reach.events,
        until=done.at if done else None,
        remedies=(look,),
    )


# -- how much happened when ----------------------------------------------------------------------------


async def show_activity(call: CallContext[PastBroker], request: ShowActivity) -> Activity:
    """Return how far the history reaches, and the number of events in each part between two moments."""
    await _reach(call, request)
    return await call.read(lambda tx: _read_activity(tx, request))


def _read_activity(tx: Transaction, request: ShowActivity) -> Activity:
    tx.permit(Deed.ADMINISTER, Subject(name="the history"))
    reach = _measure(tx)
    if reach.first is None or reach.indexed is None:
        raise Refused(_build_behind("its beginning", reach))
    first, last = find_range(tx.ledger.connection)
    begin = _find_end(tx, request, request.from_, "from", first)
    end = _find_end(tx, request, request.to, "to", last)
    if end < begin:
        raise Refused(BadRequest(problem="the end is before the beginning", field="to"))
    parts = request.buckets
    times = [Time(begin + (end - begin) * part // parts) for part in range(parts + 1)]
    return Activity(
        first=reach.first,
        last=reach.indexed,
        events=reach.events,
        from_=begin,
        to=end,
        counts=tuple(count_events(tx.ledger.connection, times)),
    )


def _find_end(tx: Transaction, request: ShowActivity, text: str | None, field: str, default: Time) -> Time:
    return _find_moment(tx, request, text, field).at if text is not None else default
