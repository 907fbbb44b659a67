"""Echo, by the suite that every adapter runs, and its directives."""

import asyncio
import time
from pathlib import Path

import pytest

from scout.adapters.echo import Echo
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer
from scout.ports import Accepted, Completed, Failed, Harness, HarnessEvent
from tests.adapters.conformance import Conformance
from tests.adapters.turns import Turn, collect, turn


class TestEcho(Conformance):
    def make(self, folder: Path) -> Harness:
        return Echo()

    def answering(self, body: str) -> Turn:
        return turn(body)

    def failing(self) -> Turn:
        return turn("!fail it broke")

    def hanging(self) -> Turn:
        return turn("!hang")


@pytest.mark.parametrize(
    ("body", "events"),
    [
        ("hello", [Accepted(), Completed(text="hello")]),
        ("", [Accepted(), Completed(text="")]),
        (" \n", [Accepted(), Completed(text=" \n")]),
        ("!say yes, but\nnot this", [Accepted(), Completed(text="yes, but")]),
        ("!say", [Accepted(), Completed(text="")]),
        ("!sayings", [Accepted(), Completed(text="!sayings")]),
        ("first\n!fail x", [Accepted(), Completed(text="first\n!fail x")]),
        ("!fail no\nmore", [Accepted(), Failed(layer=Layer.HARNESS, reason="no")]),
        ("!fail", [Accepted(), Failed(layer=Layer.HARNESS, reason="failed")]),
        ("!refuse later", [Failed(layer=Layer.HARNESS, reason="later", again=True)]),
    ],
)
def test_the_first_line_may_direct_it(body: str, events: list[HarnessEvent]) -> None:
    assert asyncio.run(collect(Echo(), turn(body, text="the whole prompt"))) == events


def test_what_it_refused_it_did_not_take() -> None:
    async def main() -> None:
        echo, one = Echo(), turn("!refuse")
        await collect(echo, one)
        assert await echo.inspect(one.spec.session_id, one.prompt.delivery_id) is InspectResult.UNKNOWN

    asyncio.run(main())


@pytest.mark.slow
def test_it_is_cheap_and_forgets_the_oldest_turns_but_none_that_hangs() -> None:
    async def main() -> None:
        echo, hanging, oldest = Echo(), turn("!hang"), turn("old")
        stream = echo.deliver(hanging.spec, hanging.prompt)
        assert await anext(stream) == Accepted()
        await collect(echo, oldest)
        began = time.process_time()
        for _ in range(5000):
            await collect(echo, turn("x"))
        assert time.process_time() - began < 5  # 1000 a second; really far more
        assert await echo.inspect(oldest.spec.session_id, oldest.prompt.delivery_id) is InspectResult.UNKNOWN
        assert await echo.interrupt(hanging.spec.session_id, hanging.prompt.delivery_id)
        assert isinstance(await anext(stream), Failed)

    asyncio.run(main())
