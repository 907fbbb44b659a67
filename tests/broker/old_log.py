"""Logs of earlier versions, kept under tests/data/logs: what happened, and the rows that followed from it.

`python -m tests.broker.old_log N` plays a full story through the operations of today and writes it as log N;
that is done once, when a version is new. From its release on the files are never made again: they are what
users have, and later code must read them, replay them to the same rows, and say where it decides otherwise.
"""

import asyncio
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from scout.base.codec import decode, encode_for_store
from scout.broker.local import LocalScout
from scout.model.waiting import WaitingKind
from scout.policy.limits import Limits
from scout.protocol.agents import ConfigureAgent, RetireAgent
from scout.protocol.asks import CompleteFlight, MakeAsk, RetryFlight
from scout.protocol.attention import AnswerAttention, Consult, Need, Notify
from scout.protocol.channels import CreateChannel
from scout.protocol.insight import ReportUsage
from scout.protocol.questions import AnswerQuestion, CloseQuestion, CreateQuestion, DeclineQuestion, Spawn
from scout.protocol.talk import Reply, Send
from scout.protocol.work import (
    AcceptWork,
    CreateWork,
    HandOverWork,
    ProgressWork,
    ReopenWork,
    ResumeWork,
    StartWork,
    SubmitWork,
    WaitWork,
)
from scout.store.log import read_rows
from scout.store.table import TABLES
from tests.broker.rig import Rig, advance_clock, online_agent, open_rig, poll_until_finished, wait_for_end

FOLDER = Path(__file__).parents[1] / "data" / "logs"


def logs() -> list[Path]:
    """The stored logs; beside each, the rows that followed from it."""
    return sorted(FOLDER.glob("log-*.jsonl"))


def find_rows(log: Path) -> Path:
    return log.with_name(log.name.replace("log-", "rows-"))


def rows(store: sqlite3.Connection) -> dict[str, dict[str, Any]]:
    """Every row of every replayed table, by table and id."""
    return {
        f"{table.name} {ident}": msgspec.json.decode(encode_for_store(decode(data, table.record)))
        for table in TABLES.values()
        for ident, data in store.execute(f"SELECT id, data FROM {table.name} ORDER BY id")
    }


async def story(rig: Rig) -> None:
    """Two agents that are there, two that are started, one person; a day of theirs."""
    arc, bow = await online_agent(rig, "arc"), await online_agent(rig, "bow")
    await rig.register("parrot", harness="echo")
    await rig.register("old", harness="echo")
    await _talk(rig, arc, bow)
    await _asks(rig, arc)
    await _questions(rig, arc, bow)
    await _work(rig, arc, bow)
    await _person(rig, arc)
    await arc.call(ReportUsage(prompt_tokens=1200, completion_tokens=300, model="opus", harness="claude"))
    for pause in (2000, 15_000):  # nobody moves: whoever holds the next move is reminded
        await advance_clock(rig, pause)
    await rig.operator(RetireAgent(address="@old", reason="not needed"))


async def _talk(rig: Rig, arc: LocalScout, bow: LocalScout) -> None:
    await arc.call(CreateChannel(name="dev", members=("@bow", "@parrot"), master="@bow"))
    sent = await arc.call(Send(body="@bow please look, and tell @parrot"))
    await bow.call(Reply(in_reply_to=sent.message_id, body="Seen."))
    for body, wake in (("hello all", False), ("who has time?", True), ("@parrot say something", False)):
        await arc.call(Send(channel="dev", body=body, wake=wake))
    await rig.operator(Send(broadcast=True, body="Lunch."))
    await arc.call(Send(to="@arc", body="a note to myself", follow_up=True, wake=True))


async def _asks(rig: Rig, arc: LocalScout) -> None:
    for body in ("!say done", "!fail broken"):
        asked = await arc.call(MakeAsk(to="@parrot", body=body))
        await poll_until_finished(rig, asked.flight_id)
    await poll_until_finished(rig, (await arc.call(RetryFlight(flight_id=asked.flight_id))).flight_id)
    await rig.operator(ConfigureAgent(address="@old", config={"wakePolicy": "manual"}))
    await arc.call(MakeAsk(to="@old", body="by hand"))
    await arc.call(MakeAsk(to="@parrot", body="one too many"))
    taken = await rig.operator(MakeAsk(to="@arc", body="Review this."))
    await arc.call(CompleteFlight(flight_id=taken.flight_id, output="Reviewed."))
    await wait_for_end(rig, taken.flight_id)


async def _questions(rig: Rig, arc: LocalScout, bow: LocalScout) -> None:
    first = await arc.call(CreateQuestion(to="@bow", body="Which port?", options=("7432", "80")))
    await bow.call(AnswerQuestion(question_id=first.id, answer="7432"))
    await arc.call(CloseQuestion(question_id=first.id))
    second = await bow.call(CreateQuestion(to="@arc", body="Is the parser fixed?"))
    spawn = Spawn(title="Fix the parser", owner_id="@parrot")
    await arc.call(AnswerQuestion(question_id=second.id, answer="Not yet.", spawn_work=spawn))
    third = await arc.call(CreateQuestion(to="@bow", body="Whose turn is it?"))
    await bow.call(DeclineQuestion(question_id=third.id, reason="not mine"))
    await arc.call(CreateQuestion(to="@bow", body="Still there?"))


async def _work(rig: Rig, arc: LocalScout, bow: LocalScout) -> None:
    item = await arc.call(CreateWork(title="Write the page", owner_id="@bow", labels=("docs",)))
    ident = item.id
    await bow.call(StartWork(work_item_id=ident))
    await bow.call(ProgressWork(work_item_id=ident, summary="half of it", done=1, total=2))
    await bow.call(WaitWork(work_item_id=ident, on=WaitingKind.APPROVAL, reason="may it be public?"))
    await bow.call(ResumeWork(work_item_id=ident))
    await bow.call(SubmitWork(work_item_id=ident))
    await arc.call(ReopenWork(work_item_id=ident, reason="a word is missing"))
    await bow.call(SubmitWork(work_item_id=ident))
    await arc.call(AcceptWork(work_item_id=ident))
    other = await arc.call(CreateWork(title="Clean up", owner_id="@old"))
    await arc.call(HandOverWork(work_item_id=other.id, to="@bow"))


async def _person(rig: Rig, arc: LocalScout) -> None:
    need = await arc.call(Need(question="May I delete the branch?", options=("yes", "no")))
    await rig.operator(AnswerAttention(attention_id=need.id, answer="yes"))
    await arc.call(Consult(question="Which name?", default_action="scout"))
    await arc.call(Notify(message="Deployed."))


def main(number: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_play(Path(folder)))
        store = sqlite3.connect(Path(folder) / "scout.db")
        facts = [encode_for_store(event) for row in read_rows(store, 0) for event in row.events]
        found = [{"row": name, "record": record} for name, record in rows(store).items()]
        store.close()
    FOLDER.mkdir(parents=True, exist_ok=True)
    log = FOLDER / f"log-{number}.jsonl"
    log.write_bytes(b"".join(fact + b"\n" for fact in facts))
    find_rows(log).write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in found))


async def _play(home: Path) -> None:
    async with open_rig(home, limits=Limits(wakes_per_hour=3)) as rig:
        await story(rig)


if __name__ == "__main__":
    main(int(sys.argv[1]))
