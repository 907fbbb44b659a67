"""The turn of an ask is prepared in the ask's own transaction, when its target is idle and a slot is free."""

import asyncio
from pathlib import Path
from typing import Any, cast

from scout.adapters.echo import Echo
from scout.broker.local import LocalScout
from scout.model.flight import FlightState
from scout.policy.limits import Limits
from scout.ports import Capabilities
from scout.protocol.asks import AskReceipt, MakeAsk
from scout.protocol.overview import PauseScout, ResumeScout
from tests.broker.rig import Rig, as_test, expect_refusal, list_events, run_scene, wait_for_end, wait_until
from tests.broker.test_full_store import set_pages

# As a trace shows the bytes of a row of the log.
_LEASED, _ASKED = b"collab.delivery.leased".hex(), b"collab.ask.created".hex()


async def warm_agents(rig: Rig, *names: str) -> LocalScout:
    """Agents whose sessions are live and idle, and another agent that asks them."""
    for name in names:
        await rig.register(name, harness="echo")
    asker = await rig.agent("asker")
    for name in names:
        await ask(asker, name, "warm up")
    await settle(rig)
    return asker


async def ask(asker: LocalScout, name: str, body: str = "hello") -> AskReceipt:
    answer = await asker.call(MakeAsk(to=f"@{name}", body=body, wait=20))
    assert (answer.state, answer.output) == (FlightState.COMPLETED, body)
    return answer


async def settle(rig: Rig) -> None:
    """Wait until every turn has ended, not only its flight."""
    await wait_until(lambda: not rig.broker.dispatcher.lanes)


def watch_commits(rig: Rig) -> list[str]:
    statements: list[str] = []
    rig.broker._database.trace(statements.append)
    return statements


def split_commits(statements: list[str]) -> list[str]:
    """The statements of each commit that stored an event."""
    return [text for text in "\n".join(statements).split("COMMIT") if "INSERT INTO events" in text]


def count_joined(statements: list[str]) -> int:
    """How many asks were stored together with the lease of their delivery."""
    joined = [text for text in split_commits(statements) if _ASKED in text]
    return sum(text.count(_LEASED) for text in joined)


@as_test
async def test_an_ask_to_an_idle_agent_takes_two_commits(rig: Rig) -> None:
    asker = await warm_agents(rig, "parrot")
    statements = watch_commits(rig)
    answer = await ask(asker, "parrot")
    first, second = split_commits(statements)
    assert _ASKED in first
    assert _LEASED in first
    assert b"collab.flight.completed".hex() in second
    assert await list_events(rig, answer.flight_id) == [
        "flight.queued",
        "flight.updated",
        "flight.started",
        "flight.completed",
    ]


@as_test
async def test_asks_of_one_moment_to_one_agent_follow_each_other(rig: Rig) -> None:
    asker = await warm_agents(rig, "parrot")
    statements = watch_commits(rig)
    await asyncio.gather(*(ask(asker, "parrot", f"ask {number}") for number in range(5)))
    assert count_joined(statements) == 1


def test_no_more_turns_are_prepared_than_may_run(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        names = [f"parrot{number}" for number in range(6)]
        asker = await warm_agents(rig, *names)
        statements = watch_commits(rig)
        await asyncio.gather(*(ask(asker, name) for name in names))
        together = max(text.count(_LEASED) for text in split_commits(statements) if _ASKED in text)
        assert together == 2
        await settle(rig)
        assert rig.broker.dispatcher.slots.running == 0

    run_scene(scene, tmp_path, limits=Limits(running_turns=2))


@as_test
async def test_a_pause_of_the_same_moment_holds_the_turn(rig: Rig) -> None:
    asker = await warm_agents(rig, "parrot")
    operator = await rig.scout()
    _, asked = await asyncio.gather(
        operator.call(PauseScout()), asker.call(MakeAsk(to="@parrot", body="later"))
    )
    assert "delivery.leased" not in [
        name.rpartition("collab.")[2] for name in await list_events(rig, asked.flight_id)
    ]
    assert not rig.broker.dispatcher.runner.running
    await rig.operator(ResumeScout())
    assert (await wait_for_end(rig, asked.flight_id)).output == "later"


@as_test
async def test_a_commit_that_fails_gives_the_slot_back(rig: Rig) -> None:
    asker = await warm_agents(rig, "parrot")
    set_pages(rig, 1)  # SQLite takes what the file has now
    refused = await expect_refusal(asker.call(MakeAsk(to="@parrot", body="x" * 200_000)))
    assert refused.code == "store_full"
    set_pages(rig, 1_000_000)
    assert not rig.broker.dispatcher._reserved
    statements = watch_commits(rig)
    await ask(asker, "parrot")
    assert count_joined(statements) == 1


class Moody:
    """What an echo can do; asked whether it calls back, it fails as often as `faults` says."""

    def __init__(self) -> None:
        self.faults = 0

    def __getattr__(self, name: str) -> Any:
        if name == "calls_back" and self.faults:
            self.faults -= 1
            raise RuntimeError("no idea")
        return getattr(Echo.capabilities, name)


def test_an_ask_is_stored_even_if_its_turn_cannot_be_prepared(tmp_path: Path) -> None:
    moody, echo = Moody(), Echo()
    echo.capabilities = cast("Capabilities", moody)

    async def scene(rig: Rig) -> None:
        asker = await warm_agents(rig, "parrot")
        statements = watch_commits(rig)
        moody.faults = 1
        await ask(asker, "parrot")
        assert (moody.faults, count_joined(statements)) == (0, 0)
        await settle(rig)
        await ask(asker, "parrot")
        assert count_joined(statements) == 1

    run_scene(scene, tmp_path, harnesses={"echo": echo})
