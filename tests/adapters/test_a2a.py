"""Agents of other systems as a harness, by the suite that every adapter runs, and what is special about them.

The other side is a server made of the official SDK, as a program of its own.
"""

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec.structs import replace

from scout.adapters.a2a.adapter import A2a
from scout.base.refusal import Refused
from scout.daemon.secret_file import read_secret
from scout.model.delivery import InspectResult
from scout.model.endpoint import Transport
from scout.model.problems.session import Missing
from scout.ports import (
    Accepted,
    Completed,
    Failed,
    Harness,
    HarnessEvent,
    HumanAnswer,
    NeedsHuman,
    TurnProgress,
)
from tests.a2a.others import other_agent
from tests.adapters.conformance import Conformance
from tests.adapters.turns import Turn, collect, first, run_on, turn

pytestmark = pytest.mark.slow  # the first turn loads the SDK


@pytest.fixture(scope="module")
def streaming() -> Generator[str]:
    with other_agent() as url:
        yield url


@pytest.fixture(scope="module")
def polling() -> Generator[str]:
    with other_agent("--no-streaming") as url:
        yield url


@pytest.fixture(params=["streaming", "polling"])
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(request.param)


def make(folder: Path) -> A2a:
    return A2a(folder / "sessions", read_secret)


def at(url: str, body: str) -> Turn:
    one = turn(body)
    return Turn(replace(one.spec, url=url), one.prompt)


class TestA2a(Conformance):
    @pytest.fixture(autouse=True)
    def find_url(self, streaming: str) -> None:
        self.url = streaming

    def test_stable_identity(self, tmp_path: Path) -> None:
        """Its name is stable too, but not reserved: an agent may be called a2a."""
        assert (A2a.name, self.make(tmp_path).name) == ("a2a", "a2a")

    def make(self, folder: Path) -> Harness:
        return make(folder)

    def answering(self, body: str) -> Turn:
        return at(self.url, body)

    def failing(self) -> Turn:
        return at(self.url, "!fail it broke")

    def hanging(self) -> Turn:
        return at(self.url, "!hang")


async def answer_when_asked(harness: Harness, one: Turn, answer: HumanAnswer) -> list[HarnessEvent]:
    """The events of a turn that asks once, and what it is answered."""
    found: list[HarnessEvent] = []
    async for event in harness.deliver(one.spec, one.prompt):
        found.append(event)
        if isinstance(event, NeedsHuman):
            assert await harness.respond(one.spec.session_id, event.request, answer)
            assert not await harness.respond(one.spec.session_id, event.request, answer)
            assert not await harness.respond("ses_another", event.request, answer)
    return found


def test_a_question_is_put_to_a_person_and_the_answer_continues_the_task(url: str, tmp_path: Path) -> None:
    one = at(url, "!ask Which colour?")
    events = run_on(
        "asyncio", answer_when_asked(make(tmp_path), one, HumanAnswer(allow=True, text="green, please"))
    )
    asked = [event for event in events if isinstance(event, NeedsHuman)]
    assert [(event.question, event.kind) for event in asked] == [("Which colour?", "question")]
    assert events[-1] == Completed(text="green, please")


def test_a_dismissed_question_ends_the_turn(url: str, tmp_path: Path) -> None:
    one = at(url, "!ask Which colour?")
    events = run_on(
        "asyncio", answer_when_asked(make(tmp_path), one, HumanAnswer(allow=False, text="not now"))
    )
    assert isinstance(events[-1], Failed)
    assert events[-1].reason == "its question was not answered: not now"


def test_the_same_question_is_asked_again_after_a_restart(url: str, tmp_path: Path) -> None:
    one = at(url, "!ask Which colour?")

    async def ask(harness: Harness) -> NeedsHuman:
        async for event in harness.deliver(one.spec, one.prompt):
            if isinstance(event, NeedsHuman):
                return event
        raise AssertionError

    before = run_on("asyncio", ask(make(tmp_path)))
    assert run_on("asyncio", ask(make(tmp_path))) == before


def test_a_turn_is_followed_after_a_restart_and_not_sent_again(url: str, tmp_path: Path) -> None:
    one = at(url, "!hang")

    async def begin() -> None:
        event, rest = await first(make(tmp_path), one)
        assert isinstance(event, Accepted)
        assert isinstance(rest, asyncio.Task)
        rest.cancel()  # the broker is gone
        await asyncio.gather(rest, return_exceptions=True)

    async def resume() -> list[HarnessEvent]:
        harness = make(tmp_path)
        names = one.spec.session_id, one.prompt.delivery_id
        assert await harness.inspect(*names) is InspectResult.TAKEN
        event, rest = await first(harness, one)
        assert isinstance(event, Accepted)
        assert await harness.interrupt(*names)
        return await rest

    run_on("asyncio", begin())
    task = (tmp_path / "sessions" / one.spec.session_id / one.prompt.delivery_id / "task.json").read_bytes()
    assert isinstance(run_on("asyncio", resume())[-1], Failed)
    again = (tmp_path / "sessions" / one.spec.session_id / one.prompt.delivery_id / "task.json").read_bytes()
    assert task[:-1] in again  # the same task, and that it was interrupted


def test_what_it_says_while_it_works_is_a_sign_of_life(streaming: str, tmp_path: Path) -> None:
    events = run_on("asyncio", collect(make(tmp_path), at(streaming, "hello")))
    assert events == [Accepted(), TurnProgress(text="working on it"), Completed(text="hello")]


def test_a_file_of_an_answer_is_stored_under_a_safe_name(url: str, tmp_path: Path) -> None:
    one = at(url, "!file the notes")
    last = run_on("asyncio", collect(make(tmp_path), one))[-1]
    assert isinstance(last, Completed)
    stored = tmp_path / "sessions" / one.spec.session_id / one.prompt.delivery_id / "_notes.txt"
    assert last.text == f"see the file\n\n[file ../notes.txt: {stored}]"
    assert stored.read_text() == "the notes"


def test_a_rejected_task_fails(url: str, tmp_path: Path) -> None:
    last = run_on("asyncio", collect(make(tmp_path), at(url, "!reject not my job")))[-1]
    assert isinstance(last, Failed)
    assert last.reason == "it rejected the task: not my job"


def test_an_agent_that_cannot_be_reached_is_tried_again(tmp_path: Path) -> None:
    (last,) = run_on("asyncio", collect(make(tmp_path), at("http://127.0.0.1:1", "hello")))
    assert isinstance(last, Failed)
    assert last.again


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/x", "http://user@127.0.0.1/x", "nonsense"])
def test_a_url_that_is_none_is_not_called(url: str, tmp_path: Path) -> None:
    (last,) = run_on("asyncio", collect(make(tmp_path), at(url, "hello")))
    assert isinstance(last, Failed)
    assert not last.again


def test_without_a_url_a_session_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        run_on("asyncio", make(tmp_path).start(turn().spec))
    assert [one.operation for one in refused.value.diagnostic.remedies] == ["agent.config"]


def test_it_is_reached_by_a2a() -> None:
    assert A2a.capabilities.transport is Transport.A2A


# -- the credential ----------------------------------------------------------------------------------


def with_credential(one: Turn, file: Path, text: str, mode: int = 0o600) -> Turn:
    file.write_text(text)
    file.chmod(mode)
    return Turn(replace(one.spec, credential_file=str(file)), one.prompt)


def test_the_credential_in_the_file_is_sent(tmp_path: Path) -> None:
    with other_agent("--token", "s3cret") as url:
        right = with_credential(at(url, "hello"), tmp_path / "right", "s3cret\n")
        wrong = with_credential(at(url, "hello"), tmp_path / "wrong", "other\n")
        assert run_on("asyncio", collect(make(tmp_path), right))[-1] == Completed(text="hello")
        (last,) = run_on("asyncio", collect(make(tmp_path), wrong))
    assert isinstance(last, Failed)
    assert (last.missing, last.again) == (Missing.LOGIN, False)


def test_a_credential_that_others_can_read_is_not_sent(tmp_path: Path) -> None:
    one = with_credential(at("http://127.0.0.1:1", "hello"), tmp_path / "open", "s3cret", 0o644)
    (last,) = run_on("asyncio", collect(make(tmp_path), one))
    assert isinstance(last, Failed)
    assert "others can read or write it" in last.reason


def test_a_credential_is_not_sent_in_clear_to_another_machine(tmp_path: Path) -> None:
    one = with_credential(at("http://192.0.2.1/agent", "hello"), tmp_path / "token", "s3cret")
    (last,) = run_on("asyncio", collect(make(tmp_path), one))
    assert isinstance(last, Failed)
    assert last.reason == "the credential is not sent to 192.0.2.1 without TLS: use https"


def test_a_card_cannot_name_another_host(tmp_path: Path) -> None:
    with other_agent("--interface", "http://127.0.0.1:1/inside") as url:
        (last,) = run_on("asyncio", collect(make(tmp_path), at(url, "hello")))
    assert isinstance(last, Failed)
    assert last.reason == f"its card names no interface by JSON-RPC or HTTP+JSON at {url}"
