"""The compatibility checklist of an adapter, one case a line. Every adapter runs it: see `Subject`."""

import asyncio
from abc import ABC, abstractmethod
from pathlib import Path

import msgspec
import pytest

from scout.base.refusal import Refused
from scout.identity.reserved import HARNESSES
from scout.model.agent import PermissionProfile
from scout.model.delivery import InspectResult
from scout.ports import (
    Accepted,
    Capabilities,
    Completed,
    Failed,
    Harness,
    HarnessEvent,
    NeedsHuman,
    TurnUsage,
    UsageKind,
)
from tests.adapters.turns import Turn, collect, first, run_on

__all__ = ["Conformance"]


class Subject(ABC):
    """What the suite needs to know about an adapter: how to make it, and turns that go one way."""

    @abstractmethod
    def make(self, folder: Path) -> Harness:
        """A new adapter, as after a restart of the broker; `folder` is what it may keep."""

    @abstractmethod
    def answering(self, body: str) -> Turn:
        """A turn whose answer is its body."""

    @abstractmethod
    def failing(self) -> Turn:
        """A turn that fails with the words `it broke`."""

    @abstractmethod
    def hanging(self) -> Turn:
        """A turn that does not end by itself."""


class Conformance(Subject):
    """A test class per adapter inherits the cases. `at_once`: as many turns as its programs can bear."""

    at_once = 10

    def test_stable_identity(self, tmp_path: Path) -> None:
        one, other = self.make(tmp_path), self.make(tmp_path)
        assert one.name == other.name
        assert one.name in HARNESSES
        assert one.capabilities == other.capabilities

    def test_registers_or_attaches_an_endpoint(self, loop: str, tmp_path: Path) -> None:
        async def main() -> None:
            harness, spec = self.make(tmp_path), self.answering("x").spec
            assert (await harness.probe()).ready
            started = await harness.start(spec)
            (native,) = started.native_ids.values()
            assert await harness.attach(spec, native) == started

        run_on(loop, main())

    def test_start_attach_and_inspect_are_deterministic(self, loop: str, tmp_path: Path) -> None:
        async def main() -> None:
            one = self.answering("x")
            seen = [await self._look(self.make(tmp_path), one) for _ in range(2)]
            assert seen[0] == seen[1]
            assert seen[0][2] is not InspectResult.TAKEN

        run_on(loop, main())

    async def _look(self, harness: Harness, one: Turn) -> tuple[object, object, InspectResult]:
        started = await harness.start(one.spec)
        (native,) = started.native_ids.values()
        attached = await harness.attach(one.spec, native)
        return started, attached, await harness.inspect(one.spec.session_id, one.prompt.delivery_id)

    def test_receives_a_message(self, loop: str, tmp_path: Path) -> None:
        harness, one = self.make(tmp_path), self.answering("good morning")

        async def main() -> None:
            event, rest = await first(harness, one)
            assert isinstance(event, Accepted)
            assert await harness.inspect(one.spec.session_id, one.prompt.delivery_id) is InspectResult.TAKEN
            await rest

        run_on(loop, main())

    def test_receives_an_ask_and_gives_a_result(self, loop: str, tmp_path: Path) -> None:
        events = run_on(loop, collect(self.make(tmp_path), self.answering("zwölf € 🙂\nand more")))
        assert isinstance(events[0], Accepted)
        assert events[-1] == Completed(text="zwölf € 🙂\nand more")
        assert [one for one in events if isinstance(one, Completed | Failed)] == events[-1:]

    def test_a_reply_belongs_to_its_turn(self, loop: str, tmp_path: Path) -> None:
        harness = self.make(tmp_path)
        turns = [self.answering(f"this is turn {number}") for number in range(self.at_once)]

        async def main() -> list[list[HarnessEvent]]:
            return await asyncio.gather(*(collect(harness, one) for one in turns))

        replies = [events[-1] for events in run_on(loop, main())]
        assert replies == [Completed(text=one.prompt.body) for one in turns]

    def test_reports_failed(self, loop: str, tmp_path: Path) -> None:
        events = run_on(loop, collect(self.make(tmp_path), self.failing()))
        assert isinstance(events[0], Accepted)
        last = events[-1]
        assert isinstance(last, Failed)
        assert last.reason.endswith("it broke")
        assert last.layer

    def test_says_nothing_final_while_it_works_and_can_be_interrupted(
        self, loop: str, tmp_path: Path
    ) -> None:
        harness, one = self.make(tmp_path), self.hanging()
        names = one.spec.session_id, one.prompt.delivery_id

        async def main() -> None:
            assert not await harness.interrupt(*names)
            event, rest = await first(harness, one)
            assert isinstance(event, Accepted)
            assert await harness.interrupt(*names)
            last = (await rest)[-1]
            assert isinstance(last, Failed)
            assert (last.layer, last.reason, last.again) == ("session", "interrupted", False)
            assert not await harness.interrupt(*names)
            assert (await collect(harness, one))[-1] == last

        run_on(loop, main())

    def test_stopping_a_session_ends_its_turn(self, loop: str, tmp_path: Path) -> None:
        harness, one = self.make(tmp_path), self.hanging()

        async def main() -> None:
            await harness.stop(one.spec.session_id)
            _, rest = await first(harness, one)
            await harness.stop("ses_another")
            await harness.stop(one.spec.session_id)
            last = (await rest)[-1]
            assert isinstance(last, Failed)
            assert last.layer == "session"

        run_on(loop, main())

    def test_reports_waiting_only_if_it_can_take_the_answer(self, loop: str, tmp_path: Path) -> None:
        harness = self.make(tmp_path)
        events = run_on(loop, collect(harness, self.answering("may I?")))
        assert harness.capabilities.permissions or not [e for e in events if isinstance(e, NeedsHuman)]

    def test_another_session_is_refused_with_a_remedy(self, loop: str, tmp_path: Path) -> None:
        with pytest.raises(Refused) as refused:
            run_on(loop, self.make(tmp_path).attach(self.answering("x").spec, "somebody-elses"))
        diagnostic = refused.value.diagnostic
        assert diagnostic.code == "session_not_attachable"
        assert "somebody-elses" in diagnostic.message
        assert [remedy.operation for remedy in diagnostic.remedies] == ["session.start"]

    def test_mentions_in_a_body_are_only_text(self, loop: str, tmp_path: Path) -> None:
        body = "@somebody else: $(false) `false` #codex"
        assert run_on(loop, collect(self.make(tmp_path), self.answering(body)))[-1] == Completed(text=body)

    def test_imports_no_transcripts(self, loop: str, tmp_path: Path) -> None:
        harness, one = self.make(tmp_path), self.answering("what was said before")
        later = self.answering("now")
        later = Turn(one.spec, later.prompt)

        async def main() -> None:
            await collect(harness, one)
            events = await collect(harness, later)
            assert b"before" not in msgspec.json.encode(events)

        run_on(loop, main())

    def test_documents_its_permission_and_wake_behaviour(self, tmp_path: Path) -> None:
        told = msgspec.json.encode(self.make(tmp_path).capabilities)
        capabilities = msgspec.json.decode(told, type=Capabilities)
        assert capabilities == self.make(tmp_path).capabilities
        assert set(capabilities.native_profiles) <= set(PermissionProfile)

    def test_recovers_or_explains_after_a_restart(self, loop: str, tmp_path: Path) -> None:
        one = self.answering("said once")
        before, after = self.make(tmp_path), self.make(tmp_path)

        async def main() -> None:
            ended = (await collect(before, one))[-1]
            found = await after.inspect(one.spec.session_id, one.prompt.delivery_id)
            assert found in {InspectResult.TAKEN, InspectResult.UNKNOWN}
            assert (await collect(after, one))[-1] == ended

        run_on(loop, main())

    def test_reports_usage_or_marks_an_estimate(self, loop: str, tmp_path: Path) -> None:
        harness = self.make(tmp_path)
        events = run_on(loop, collect(harness, self.answering("count me")))
        spent = [event.estimated for event in events if isinstance(event, TurnUsage)]
        expected = {UsageKind.NONE: [], UsageKind.ESTIMATED: [True], UsageKind.EXACT: [False]}
        assert spent == expected[harness.capabilities.usage]
