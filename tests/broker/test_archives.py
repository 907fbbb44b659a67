"""Old parts of the log move into files: nothing that was answered before is answered otherwise."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.base.time import Time
from scout.broker.upkeep import housekeeping
from scout.model.ask import AskReceipt
from scout.model.events.talk import MessagePosted
from scout.model.problems.request import Forbidden, HistoryPurged
from scout.model.retention.archive import ArchiveKind, ArchiveState
from scout.protocol.asks import GetFlight, ListFlights, MakeAsk
from scout.protocol.insight import Why
from scout.protocol.log import ReadFeed, ReadLog, Watch
from scout.protocol.overview import CreateArchive, ListArchives, PurgeArchives
from scout.protocol.questions import CreateQuestion, ListQuestions
from scout.protocol.request import Request
from scout.protocol.talk import GetMessage, RedactMessage, Search
from scout.protocol.work import CreateWork, GetWork, ListWork
from scout.store.archive.files import get_folder
from scout.store.archive.rows import forget_rows
from scout.store.database import connect
from scout.store.integrity.backup import backup, restore
from scout.store.integrity.redactions import read_redactions, redact_backup
from scout.store.integrity.verify import verify
from tests.broker.rig import (
    Rig,
    advance_clock,
    as_test,
    expect_refusal,
    online_agent,
    open_rig,
    run_scene,
    wait_for_end,
    wait_until,
)

DAY = 86_400.0
MONTH = 30 * DAY


async def ask(rig: Rig, text: str) -> AskReceipt:
    """An ask that is answered at once."""
    await rig.agent("arc", harness="echo")
    made = await rig.operator(MakeAsk(to="@arc", body=text))
    await wait_for_end(rig, made.flight_id)
    return made


async def settle(rig: Rig) -> None:
    """Let the indexes follow the log."""
    await advance_clock(rig, 0)
    await rig.broker.history.catch_up()


async def play_months(rig: Rig) -> AskReceipt:
    """Some months of history; the first ask is old, and some things stay open."""
    live = await online_agent(rig)
    first = await ask(rig, "the secret is 1234")
    await rig.operator(CreateWork(title="fix the parser", owner_id="@live"))
    await live.call(CreateQuestion(to="@arc", body="Which port?"))
    for _ in range(3):
        await advance_clock(rig, MONTH)
        await ask(rig, "what is new?")
    await online_agent(rig)
    await rig.operator(MakeAsk(to="@live", body="this one stays open"))
    await advance_clock(rig, 4 * DAY)
    await settle(rig)
    return first


async def read_all(rig: Rig) -> list[str]:
    """The whole log."""
    found: list[str] = []
    after = 0
    while True:
        page = await rig.operator(ReadLog(after=after, limit=200))
        found += [f"{one.seq} {one.id} {one.time} {one.target}" for one in page.items]
        if page.next is None:
            return found
        after = int(page.next)


async def read_answers(rig: Rig, first: AskReceipt) -> dict[str, Any]:
    """What people see of old things; none of it may change."""
    flight = first.flight_id
    asked: dict[str, Callable[[], Awaitable[Any]]] = {
        "flight": lambda: rig.operator(GetFlight(flight_id=flight)),
        "then": lambda: rig.operator(GetFlight(flight_id=flight, at="30")),
        "why": lambda: rig.operator(Why(id=flight)),
        "message": lambda: rig.operator(Why(id=first.message_id)),
        "open": lambda: rig.operator(ListFlights(open=True)),
        "work": lambda: rig.operator(ListWork()),
        "questions": lambda: rig.operator(ListQuestions()),
        "words": lambda: rig.operator(Search(query="secret")),
        "feed": lambda: rig.operator(ReadFeed(address="@live", limit=20)),
        "back": lambda: rig.operator(ReadLog(before=40, limit=30)),
    }
    return {name: await read() for name, read in asked.items()}


def find_changed(now: dict[str, Any], before: dict[str, Any]) -> list[str]:
    return [name for name, answer in now.items() if answer != before[name]]


def count_rows(rig: Rig) -> int:
    store = connect(rig.home / "scout.db", readonly=True)
    try:
        return store.execute("SELECT count(*) FROM events").fetchone()[0]
    finally:
        store.close()


@as_test
async def test_what_is_archived_is_answered_as_before(rig: Rig) -> None:
    first = await play_months(rig)
    log, answers, rows = await read_all(rig), await read_answers(rig, first), count_rows(rig)
    plan = await rig.operator(CreateArchive(before="3 days ago", dry_run=True))
    assert plan.events > 50
    assert await read_all(rig) == log
    done = await rig.operator(CreateArchive(before="3 days ago"))
    assert (done.events, done.first, done.last) == (plan.events, plan.first, plan.last)
    assert count_rows(rig) < rows / 2
    forget_rows()
    assert (await read_all(rig))[: len(log)] == log
    assert find_changed(await read_answers(rig, first), answers) == []
    report = await asyncio.to_thread(verify, rig.home / "scout.db")
    assert report.clean, report
    assert (report.snapshot, report.archives) == (done.last, done.files)


@as_test
async def test_a_second_run_continues_after_the_first(rig: Rig) -> None:
    first = await play_months(rig)
    log, answers = await read_all(rig), await read_answers(rig, first)
    one = await rig.operator(CreateArchive(before="70 days ago"))
    two = await rig.operator(CreateArchive(before="3 days ago"))
    none = await rig.operator(CreateArchive(before="3 days ago"))
    assert (two.first, none.events) == (one.last + 1, 0)
    assert (await read_all(rig))[: len(log)] == log
    assert find_changed(await read_answers(rig, first), answers) == []
    listed = (await rig.operator(ListArchives())).items
    kinds = sorted((one.kind, one.state) for one in listed)
    assert kinds == [
        (ArchiveKind.EVENTS, ArchiveState.KEPT),
        (ArchiveKind.EVENTS, ArchiveState.KEPT),
        (ArchiveKind.SNAPSHOT, ArchiveState.KEPT),
        (ArchiveKind.SNAPSHOT, ArchiveState.REPLACED),
    ]
    files = {file.name for file in get_folder(rig.home / "scout.db").iterdir()}
    assert files == {one.file for one in listed if one.state is ArchiveState.KEPT}


@as_test
async def test_a_stream_reads_what_is_archived(rig: Rig) -> None:
    await play_months(rig)
    await rig.operator(CreateArchive(before="3 days ago"))
    stream = (await rig.scout()).watch(Watch(after=3))
    assert [(await anext(stream)).seq for _ in range(5)] == [4, 5, 6, 7, 8]
    await stream.aclose()


@as_test
async def test_the_last_days_stay_and_only_the_operator_archives(rig: Rig) -> None:
    await play_months(rig)
    young = await expect_refusal(rig.operator(CreateArchive(before="1 day ago")))
    assert young.code == "bad_request"
    assert young.remedies[0].parameters == {"before": "2 days ago"}
    assert (await expect_refusal(rig.operator(CreateArchive()))).field == "before"
    agent = await rig.agent("arc")
    refused: list[Request[Any]] = [
        CreateArchive(before="9 days ago"),
        ListArchives(),
        PurgeArchives(everything=True),
    ]
    for request in refused:
        assert isinstance(await expect_refusal(agent.call(request)), Forbidden)


@as_test
async def test_an_agent_that_was_registered_long_ago_works_on(rig: Rig) -> None:
    """A transaction that looks at an archived event is run again when its file is loaded."""
    await play_months(rig)
    await rig.operator(CreateArchive(before="3 days ago"))
    forget_rows()
    event = await rig.broker.as_system(lambda tx: tx.ledger.log.get(3))  # on the event loop
    assert event is not None
    assert event.seq == 3
    forget_rows()
    await advance_clock(rig, DAY)
    made = await ask(rig, "are you there?")
    assert (await rig.operator(GetFlight(flight_id=made.flight_id))).state == "completed"
    work = (await rig.operator(ListWork())).items[0]
    assert (await rig.operator(GetWork(work_item_id=work.id))).steps


SECRET = b"secret is 1234"


def find_secret(folder: Path) -> list[str]:
    """The files that have the secret, also those of SQLite and of the archive."""
    files = [one for one in folder.rglob("*") if one.is_file()]
    return [one.name for one in files if SECRET in _read(one)]


def _read(file: Path) -> bytes:
    return gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()


async def redact_secret(rig: Rig, first: AskReceipt) -> None:
    """Redact the question and the answer."""
    flight = await rig.operator(GetFlight(flight_id=first.flight_id))
    for ident in (first.message_id, flight.output_message_id or ""):
        await rig.operator(RedactMessage(message_id=ident))


def test_a_redaction_reaches_the_archive(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        first = await play_months(rig)
        await rig.operator(CreateArchive(before="3 days ago"))
        assert len(find_secret(get_folder(tmp_path / "scout.db"))) == 2  # the events, and the snapshot
        await redact_secret(rig, first)
        assert (await rig.operator(GetMessage(message_id=first.message_id))).body == ""
        assert not (await rig.operator(Search(query="secret"))).items
        said = [
            one for one in (await rig.operator(ReadLog(limit=200))).items if isinstance(one, MessagePosted)
        ]
        assert all("1234" not in one.payload.text for one in said)
        await rig.operator(RedactMessage(message_id=first.message_id))
        await settle(rig)
        listed = (await rig.operator(ListArchives())).items
        names = {file.name for file in get_folder(tmp_path / "scout.db").iterdir()}
        assert names == {one.file for one in listed if one.state is ArchiveState.KEPT}

    run_scene(scene, tmp_path)
    assert find_secret(tmp_path) == []


def test_a_redaction_while_files_are_written_reaches_them(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        first = await play_months(rig)
        run = asyncio.create_task(rig.operator(CreateArchive(before="3 days ago")))
        await redact_secret(rig, first)
        await run
        await settle(rig)

    run_scene(scene, tmp_path)
    assert find_secret(tmp_path) == []


def test_a_redaction_that_is_not_stored_yet_reaches_a_file_that_is_begun_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Private parts order the two: the run begins its file after the redaction has looked for files."""

    async def scene(rig: Rig) -> None:
        first = await play_months(rig)
        archiver, has_looked = rig.broker.archiver, asyncio.Event()
        read, redact, folder = archiver._read, archiver.redact, get_folder(tmp_path / "scout.db")
        redactions = list[asyncio.Task[None]]()

        async def read_slowly(work: Callable[[Any], Any]) -> Any:
            if archiver._runs.locked() and not archiver._files.locked() and not redactions:
                redactions.append(asyncio.create_task(redact_secret(rig, first)))
                await has_looked.wait()
            return await read(work)

        def has_begun() -> bool:
            return bool(archiver._files._waiters) or any(folder.glob("events-*"))

        async def redact_slowly(message_id: str, now: Time, write: Callable[..., Awaitable[Any]]) -> Any:
            async def store(done: Any) -> Any:
                has_looked.set()
                await wait_until(has_begun)
                return await write(done)

            return await redact(message_id, now, store)

        monkeypatch.setattr(archiver, "_read", read_slowly)
        monkeypatch.setattr(archiver, "redact", redact_slowly)
        assert (await rig.operator(CreateArchive(before="3 days ago"))).files == 1
        await redactions[0]
        await settle(rig)

    run_scene(scene, tmp_path)
    assert find_secret(tmp_path) == []


def test_a_backup_has_the_archives_and_loses_what_is_redacted(tmp_path: Path) -> None:
    home, copy = tmp_path / "home", tmp_path / "copy.db"
    home.mkdir()

    async def scene(rig: Rig) -> tuple[AskReceipt, list[str], dict[str, Any]]:
        first = await play_months(rig)
        await rig.operator(CreateArchive(before="3 days ago"))
        await asyncio.to_thread(backup, home / "scout.db", copy)
        answers = await read_answers(rig, first)
        log = await read_all(rig)
        await redact_secret(rig, first)
        return first, log, answers

    first, log, answers = run_scene(scene, home)
    store = home / "scout.db"
    other = tmp_path / "other" / "scout.db"
    other.parent.mkdir()
    assert restore(copy, other, tmp_path / "none") == (None, 0, ())
    assert verify(other).clean

    async def look(rig: Rig) -> None:
        rig.clock.ahead += 94 * DAY
        assert (await read_all(rig))[: len(log)] == log
        changed = find_changed(await read_answers(rig, first), answers)
        assert changed == []

    run_scene(look, other.parent)
    aside = tmp_path / "aside.db"
    done = restore(copy, store, aside)
    assert done == (aside, 2, ())
    assert get_folder(aside).is_dir()
    assert verify(store).clean
    assert find_secret(home) == []
    assert len(find_secret(tmp_path / "other")) > 1
    assert redact_backup(read_redactions(aside), copy) == 2
    assert restore(copy, tmp_path / "third.db", tmp_path / "none") == (None, 0, ())
    assert verify(tmp_path / "third.db").clean
    assert find_secret(get_folder(tmp_path / "third.db")) == []


@as_test
async def test_what_is_purged_is_refused_with_the_reason(rig: Rig) -> None:
    first = await play_months(rig)
    await rig.operator(CreateArchive(before="70 days ago"))
    await rig.operator(CreateArchive(before="3 days ago"))
    plan = await rig.operator(PurgeArchives(before="65 days ago", dry_run=True))
    done = await rig.operator(PurgeArchives(before="65 days ago"))
    assert (done.files, done.events, done.first_left) == (1, plan.events, plan.first_left)
    flight = first.flight_id
    assert (await rig.operator(GetFlight(flight_id=flight))).state == "completed"
    refused: list[Request[Any]] = [
        Why(id=flight),
        Why(id=first.message_id),
        ReadLog(after=3),
        ReadLog(before=9),
        ReadFeed(address="@live", after=3),
        GetFlight(flight_id=flight, at="5"),
        ListFlights(at="90 days ago"),
    ]
    for request in refused:
        problem = await expect_refusal(rig.operator(request))
        assert isinstance(problem, HistoryPurged), request
        assert problem.first_left == done.first_left
        assert problem.purged_by in problem.message
    stream = (await rig.scout()).watch(Watch(after=3))
    assert isinstance(await expect_refusal(anext(stream)), HistoryPurged)
    assert (await rig.operator(ReadLog())).items[0].seq == done.first_left
    everything = await rig.operator(PurgeArchives(everything=True))
    assert everything.files == 1
    assert (await rig.operator(PurgeArchives(everything=True))).files == 0
    assert (await expect_refusal(rig.operator(PurgeArchives()))).field == "before"
    assert (await expect_refusal(rig.operator(PurgeArchives(before="7")))).field == "before"


@as_test
async def test_a_setting_archives_by_age(rig: Rig) -> None:
    first = await play_months(rig)
    answers = await read_answers(rig, first)
    housekeeping.archive_old(rig.broker)  # nothing is archived by default
    await rig.broker.archiver.wait()
    assert not (await rig.operator(ListArchives())).items
    after = replace(rig.broker.services.rules.retention, archive_after=60 * DAY)
    rig.broker.services.rules = replace(rig.broker.services.rules, retention=after)
    for _ in range(2):
        housekeeping.archive_old(rig.broker)
        await rig.broker.archiver.wait()
        assert len((await rig.operator(ListArchives())).items) == 2
    assert find_changed(await read_answers(rig, first), answers) == []
    done = await rig.operator(CreateArchive())  # the setting says what is old
    assert done.events == 0


@pytest.mark.parametrize("damage", ["lost", "changed"])
@pytest.mark.parametrize("kind", ["events", "snapshot"])
def test_a_damaged_archive_is_reported(tmp_path: Path, damage: str, kind: str) -> None:
    async def play() -> None:
        async with open_rig(tmp_path) as rig:
            await play_months(rig)
            await rig.operator(CreateArchive(before="3 days ago"))

    asyncio.run(play())
    forget_rows()
    (file,) = get_folder(tmp_path / "scout.db").glob(f"{kind}-*")
    if damage == "lost":
        file.unlink()
    else:
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 1
        file.write_bytes(data)
    report = verify(tmp_path / "scout.db")
    assert not report.clean
    assert str(file) in report.damage[0]
    assert not report.differences
