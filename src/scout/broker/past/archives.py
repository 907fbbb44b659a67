"""Requests about archives, and the redaction of a message, which reaches them."""

from typing import Protocol

from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.broker.operations import talk
from scout.broker.past.archiver import Archiver, record_rewritten
from scout.broker.past.moments import PastBroker
from scout.broker.transaction.call import CallContext, find_answer
from scout.broker.transaction.paging import build_page, decode_bound, get_page_size
from scout.broker.transaction.transaction import Transaction
from scout.model.retention.archive import Archive
from scout.policy.moment import parse_moment
from scout.policy.permit import Deed, Subject
from scout.policy.retention import check_age, choose_purged
from scout.protocol.overview import ArchiveReport, CreateArchive, ListArchives, PurgeArchives, PurgeReport
from scout.protocol.request import Page
from scout.protocol.talk import MessageView, RedactMessage
from scout.store.history.moments import find_seq, read_time
from scout.store.retention.draft import count_rows, find_boundary, list_kept, measure_reach
from scout.store.retention.erase import Rewritten


class ArchiveBroker(PastBroker, Protocol):
    """The broker with its archiver."""

    archiver: Archiver


def _require_operator(tx: Transaction) -> None:
    tx.permit(Deed.ADMINISTER, Subject(name="the archive"))


# -- archiving -------------------------------------------------------------------------------------------


async def create_archive(call: CallContext[ArchiveBroker], request: CreateArchive) -> ArchiveReport:
    """Archive the log before a moment."""
    known = await call.read(lambda tx: _require_operator(tx) or find_answer(tx, request))
    if known is not None:
        return known
    await call.broker.history.catch_up()
    plan = await call.read(lambda tx: _plan_archive(tx, request))
    if request.dry_run:
        return plan
    made = await call.broker.archiver.archive(call.write, plan.last)
    answer = _build_report(plan.before, made)
    return await call.write_once(request, lambda _, __: answer)


def _plan_archive(tx: Transaction, request: CreateArchive) -> ArchiveReport:
    """Return what would be archived."""
    connection = tx.ledger.connection
    before, until = _find_end(tx, request)
    done, last = measure_reach(connection).archived, find_boundary(connection, until)
    events, size = count_rows(connection, done, last)
    first = done + 1 if events else 0
    return ArchiveReport(
        before=before, dry_run=True, events=events, first=first, last=last, files=0, size=size
    )


def _find_end(tx: Transaction, request: CreateArchive) -> tuple[Time, int]:
    """Return the moment before which the log is archived, and its last event before it."""
    after = tx.rules.retention.archive_after
    if request.before is None and after is None:
        problem = "say before which moment, or set retention.archiveAfter"
        raise Refused(BadRequest(problem=problem, field="before"))
    wanted = parse_moment(request.before, tx.now, "before") if request.before else tx.now.plus(-(after or 0))
    connection = tx.ledger.connection
    if isinstance(wanted, Time):
        before = check_age(wanted, tx.now, request.operation)
        return before, find_seq(connection, Time(before - 1))
    return check_age(read_time(connection, wanted) or tx.now, tx.now, request.operation), wanted - 1


def _build_report(before: Time, made: list[Archive]) -> ArchiveReport:
    first, last = (made[0].first, made[-1].last) if made else (0, 0)
    size = sum(one.size for one in made)
    events = last - first + 1 if made else 0
    return ArchiveReport(
        before=before, dry_run=False, events=events, first=first, last=last, files=len(made), size=size
    )


def list_archives(tx: Transaction, request: ListArchives) -> Page[Archive]:
    """List the archives, newest first."""
    _require_operator(tx)
    wanted = get_page_size(request.limit, tx.rules.limits)
    found = tx.ledger.many(Archive, "archives_all", before=decode_bound(request.cursor), limit=wanted + 1)
    return build_page(found, wanted, lambda one: one.id)


# -- purging ---------------------------------------------------------------------------------------------


async def purge_archives(call: CallContext[ArchiveBroker], request: PurgeArchives) -> PurgeReport:
    """Delete archives before a moment, or all of them."""
    known = await call.read(lambda tx: _require_operator(tx) or find_answer(tx, request))
    if known is not None:
        return known
    before = await call.read(lambda tx: _parse_purge(tx, request))
    if request.dry_run:
        return await call.read(lambda tx: _plan_purge(tx, before))
    purged = await call.broker.archiver.purge(call.write, before)
    left = await call.read(lambda tx: measure_reach(tx.ledger.connection).first_left)
    answer = _describe_purge(purged, left, dry_run=False)
    return await call.write_once(request, lambda _, __: answer)


def _parse_purge(tx: Transaction, request: PurgeArchives) -> Time | None:
    if (request.before is None) is not request.everything:
        look = Remedy(
            operation="purge",
            parameters={"before": None, "everything": True, "dryRun": True},
            why="show what the archive has",
        )
        problem = "use either `before` or `everything`"
        raise Refused(BadRequest(problem=problem, field="before", remedies=(look,)))
    wanted = parse_moment(request.before, tx.now, "before") if request.before is not None else None
    if wanted is not None and not isinstance(wanted, Time):
        raise Refused(BadRequest(problem="expected a time and not the number of an event", field="before"))
    return wanted


def _plan_purge(tx: Transaction, before: Time | None) -> PurgeReport:
    connection = tx.ledger.connection
    chosen = list(choose_purged(list_kept(connection), before))
    left = chosen[-1].last + 1 if chosen else measure_reach(connection).first_left
    return _describe_purge(chosen, left, dry_run=True)


def _describe_purge(chosen: list[Archive], left: int, *, dry_run: bool) -> PurgeReport:
    return PurgeReport(
        dry_run=dry_run,
        events=sum(one.last - one.first + 1 for one in chosen),
        files=len(chosen),
        size=sum(one.size for one in chosen),
        since=chosen[0].since if chosen else None,
        until=chosen[-1].until if chosen else None,
        first_left=left,
    )


# -- redaction -------------------------------------------------------------------------------------------


async def redact_message(call: CallContext[ArchiveBroker], request: RedactMessage) -> MessageView:
    """Remove a message's body everywhere: from the log, its row, the search index and the archives."""
    await call.read(lambda tx: talk.require_redaction(tx, request))

    def redact(tx: Transaction, same: RedactMessage, done: list[Rewritten]) -> MessageView:
        record_rewritten(tx, done)
        return talk.redact_message(tx, same)

    async def write(done: list[Rewritten]) -> MessageView:
        return await call.write_once(request, lambda tx, same: redact(tx, same, done))

    now = call.services.clock.now()
    return await call.broker.archiver.redact(request.message_id, now, write)
