"""Waking as a law: whatever is said and moved among whomever, one holder at most, and never silence instead."""

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.base.codec import decode
from scout.base.refusal import Refused
from scout.broker.local import LocalScout
from scout.model.conversation import MessageKind, SoftMentions
from scout.model.events.asks import DeliveryRequested
from scout.model.events.envelope import Event, WakeFact
from scout.model.events.talk import MessagePosted, read_message
from scout.model.question import QUESTION
from scout.model.waiting import WaitingKind
from scout.model.work_item import WORK_ITEM
from scout.policy.wake import WakeAction, WakeFacts, decide_wake
from scout.protocol.agents import RetireAgent, ShowAgent
from scout.protocol.asks import MakeAsk
from scout.protocol.channels import CreateChannel
from scout.protocol.log import ReadLog
from scout.protocol.questions import (
    AnswerQuestion,
    CreateQuestion,
    DeclineQuestion,
    GetQuestion,
    QuestionView,
    ReopenQuestion,
)
from scout.protocol.request import Request
from scout.protocol.talk import Send
from scout.protocol.work import (
    AcceptWork,
    CreateWork,
    GetWork,
    HandOverWork,
    ReopenWork,
    StartWork,
    SubmitWork,
    WaitWork,
    WorkView,
)
from scout.store.integrity.verify import verify
from tests.broker.rig import Rig, online_agent, open_rig, read_log, wait_until
from tests.seeds import run_seed
from tests.soak import Soaked

KINDS = ("program", "live", "bare", "manual", "person", "retired")
SPEAKS = ("program", "live", "bare", "manual")
REACHABLE = ("program", "live", "manual", "person")
DEEDS = (
    "send",
    "send",
    "room",
    "room",
    "room",
    "room",
    "ask",
    "question",
    "work",
    "move",
    "move",
    "move",
    "broadcast",
)


@dataclass
class Stage:
    """Who is there, and what was begun."""

    rig: Rig
    chance: Random
    kinds: dict[str, str] = field(default_factory=dict[str, str])  # by address
    ids: dict[str, str] = field(default_factory=dict[str, str])
    seats: dict[str, LocalScout] = field(default_factory=dict[str, LocalScout])
    rooms: list[str] = field(default_factory=list[str])
    records: dict[str, QuestionView | WorkView] = field(default_factory=dict[str, QuestionView | WorkView])

    def somebody(self) -> str:
        return self.chance.choice(list(self.kinds))

    def maybe(self, likely: float = 0.5) -> bool:
        return self.chance.random() < likely

    def kind_of(self, agent_id: str) -> str:
        address = next(one for one, known in self.ids.items() if known == agent_id)
        return self.kinds[address]

    async def enter(self, kinds: list[str]) -> None:
        self.seats["operator"] = await self.rig.scout()
        self.ids["operator"], self.kinds["operator"] = self.rig.broker.services.operator_agent, "person"
        for number, kind in enumerate(kinds):
            name = f"a{number}"
            address = f"/ada/chat{number}" if kind == "person" else f"@{name}"
            if kind == "person":
                await self.rig.operator(Send(to=address, body="welcome", create={}))
            elif kind == "live":
                await online_agent(self.rig, name)
            else:
                policy = {"wake_policy": "manual"} if kind == "manual" else {}
                await self.rig.register(name, harness=None if kind == "bare" else "echo", **policy)
            self.ids[address], self.kinds[address] = (
                (await self.rig.operator(ShowAgent(address=address))).id,
                kind,
            )
            if kind in SPEAKS:
                self.seats[address] = await self.rig.agent(name)

    async def furnish(self, rooms: int) -> None:
        for number in range(rooms):
            self.rooms.append(f"room{number}")
            await self.rig.operator(
                CreateChannel(
                    name=self.rooms[-1],
                    members=tuple(self.somebody() for _ in range(3)),
                    master=self.somebody() if self.maybe() else None,
                    quiet=self.maybe(0.2),
                    soft_mentions=SoftMentions.WAKE if self.maybe() else SoftMentions.RECORD,
                )
            )
        for address, kind in self.kinds.items():
            if kind == "retired":
                await self.retire(address)

    async def retire(self, address: str) -> None:
        await self.rig.operator(RetireAgent(address=address))
        self.kinds[address] = "retired"
        self.seats.pop(address, None)
        for ident in self.records:  # what it held has another holder now
            if ident.startswith("qst"):
                self.records[ident] = await self.rig.operator(GetQuestion(question_id=ident))
            else:
                self.records[ident] = await self.rig.operator(GetWork(work_item_id=ident))

    # -- one deed -----------------------------------------------------------------------------------

    def request(self, number: int) -> tuple[str, Request[Any]]:
        """Who does it, and what is asked of the broker."""
        by, to, third = self.chance.choice(list(self.seats)), self.somebody(), self.somebody()
        body = f"{to} take this, or {third}" if self.maybe() else f"so {third} and {to} know"
        kind = self.chance.choice([MessageKind.CHAT, MessageKind.CHAT, *MessageKind])
        words: dict[str, Any] = {
            "body": body,
            "kind": kind,
            "wake": self.maybe(),
            "follow_up": self.maybe(0.3),
        }
        match self.chance.choice(DEEDS):
            case "send":
                return by, Send(to=to, **words) if self.maybe(0.7) else Send(**words)
            case "room":
                return by, Send(channel=self.chance.choice(self.rooms), **words)
            case "broadcast":
                return by, Send(broadcast=True, **words)
            case "ask":
                return by, MakeAsk(to=to, body=f"please, {number}")
            case "move" if self.records:
                return self.move(self.chance.choice(list(self.records.values())), to)
            case "question":
                return by, CreateQuestion(to=to, body="which?")
            case _:
                return by, CreateWork(title="a thing", owner_id=to, reviewer_id=third)

    def move(self, record: QuestionView | WorkView, to: str) -> tuple[str, Request[Any]]:
        """Something that may be done next with what was begun; often by the one who may, as it may be."""
        ident = record.id
        if isinstance(record, QuestionView):
            moves: list[tuple[str, Request[Any]]] = [
                (record.responder_id, AnswerQuestion(question_id=ident, answer="that one")),
                (record.responder_id, DeclineQuestion(question_id=ident)),
                (record.asker_id, ReopenQuestion(question_id=ident, to=to)),
            ]
        else:
            moves = [
                (record.owner_id, StartWork(work_item_id=ident)),
                (record.owner_id, WaitWork(work_item_id=ident, on=WaitingKind.ACTOR, ref=to)),
                (record.owner_id, SubmitWork(work_item_id=ident, summary="done")),
                (record.reviewer_id or record.requester_id, AcceptWork(work_item_id=ident)),
                (record.requester_id, ReopenWork(work_item_id=ident, reason="more")),
                (record.requester_id, HandOverWork(work_item_id=ident, to=to)),
            ]
        who, wish = self.chance.choice(moves)
        return next((one for one in self.seats if self.ids[one] == who), "operator"), wish

    async def do(self, number: int) -> None:
        by, request = self.request(number)
        before = self.rig.broker.glance().last_seq()
        try:
            result = await self.seats[by].call(request)
        except Refused:
            return
        if isinstance(result, QuestionView | WorkView):
            await self.check_told(by, result, before)
            self.records[result.id] = result

    async def check_told(self, by: str, view: QuestionView | WorkView, before: int) -> None:
        """Who has come to owe the next move, and is not its doer, was told of it."""
        settled = QUESTION.settled if isinstance(view, QuestionView) else WORK_ITEM.settled
        owes = view.next_move_owner_id
        if owes is None or owes == self.ids[by] or view.state in settled:
            return
        if self.kind_of(owes) in REACHABLE:
            page = await self.rig.operator(ReadLog(after=before, limit=200))
            new = [one for one in page.items if isinstance(one, DeliveryRequested)]
            told = [one.payload.record.target for one in new if one.payload.record.sender == self.ids[by]]
            known = self.records.get(view.id)
            knew = known is not None and known.next_move_owner_id == owes
            assert owes in told or knew, (by, view, self.kind_of(owes))


# -- the laws ------------------------------------------------------------------------------------------


def _once(events: list[Event], stage: Stage) -> None:
    """At most one is woken for a message: a program that can be started, and not its sender by itself."""
    messages = {
        one.id: one for one in (read_message(event) for event in events if isinstance(event, MessagePosted))
    }
    woken: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, DeliveryRequested) and event.payload.record.wake:
            record = event.payload.record
            woken.setdefault(str(record.message_id), []).append(record.target)
            assert stage.kind_of(record.target) in ("program", "retired")  # retired: later, perhaps
    for ident, targets in woken.items():
        said = messages[ident]
        assert len(targets) == 1, (said, targets)
        assert said.sender not in targets or said.follow_up or said.ask_id, said
        assert said.kind not in (MessageKind.STATUS, MessageKind.FINAL), said


def _decide_again(wake: WakeFact) -> None:
    """What is stored is enough to decide the same again, and the sender is no holder but by its own wish."""
    facts = decode(wake.facts, WakeFacts)
    occasion, reaches = facts.occasion, {one.agent_id: one for one in facts.reaches}
    again = decide_wake(occasion, reaches, facts.routing).stored
    if wake.rule == "wake_budget":
        assert (wake.action, wake.agent_id) == (WakeAction.HOLD, again.agent_id)
    else:
        assert again == wake
    assert wake.agent_id != occasion.sender.agent_id or occasion.follow_up
    duty = occasion.duty
    owes = duty.next_move_owner_id if duty and not duty.settled else None
    if (
        wake.agent_id is None
        and owes not in (None, occasion.sender.agent_id)
        and "wakes no agent" not in wake.rule
    ):
        reach = reaches[str(owes)]
        assert reach.find_obstacle(waking=True), wake


async def _play_random(home: Path, chance: Random) -> None:
    async with open_rig(home) as made:
        stage = Stage(made, chance)
        await stage.enter([*KINDS, "program", *chance.choices(KINDS, k=2)])
        await stage.furnish(3)
        for number in range(60):
            await stage.do(number)
            if number == 40:  # one goes out of service in the middle
                await stage.retire(chance.choice([one for one in stage.seats if one != "operator"]))
        await wait_until(lambda: not made.broker.dispatcher.lanes)
        events = await read_log(made)
    _once(events, stage)
    for event in events:
        if event.metadata.wake is not None:
            _decide_again(event.metadata.wake)


def _holds(seed: int) -> None:
    with tempfile.TemporaryDirectory(prefix="scout-waking-") as folder:
        asyncio.run(_play_random(Path(folder), Random(seed)))
        assert verify(Path(folder) / "scout.db").clean


seeds = st.integers(min_value=0, max_value=2**32)


@pytest.mark.rows("R3.3-1", "R3.3-2", "R3.3-5", "R3.3-8")
@settings(max_examples=4, deadline=None)
@given(seed=seeds)
def test_one_holder_at_most_and_never_nobody_while_somebody_owes(seed: int) -> None:
    _holds(seed)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_hundred_random_days(soaked: Soaked) -> None:
    for number in range(100):
        _holds(run_seed() + number)
    soaked(days=100)
