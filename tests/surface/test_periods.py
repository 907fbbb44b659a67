"""What happens when nobody does anything (3.4), with periods of a second instead of hours."""

from collections.abc import Generator
from typing import Any

import pytest

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon, eventually
from tests.surface.site import Agent, Site

pytestmark = pytest.mark.slow

_CONFIG = """
roots = ['{folder}/work']

[periods]
lease = 1
backOffFirst = 0.1
backOffMost = 0.2

[periods.sweeps]
workOpen = 2
workWorking = 2
workWaiting = 2
workReview = 2
delegation = 2
endpointSilent = 1
"""


@pytest.fixture(scope="module")
def brisk() -> Generator[Site]:
    """A daemon whose periods are short."""
    with a_shell() as shell:
        (shell.home / "config.toml").write_text(_CONFIG.format(folder=shell.folder))
        yield Site(shell, Daemon(shell.home, start_daemon(shell)))


def nudges(site: Site, about: str) -> list[Any]:
    return [event for event in site.log(family="collab.sweep.nudged") if about in str(event)]


def list_told(agent: Agent, *words: str) -> list[str]:
    return [text for text in agent.texts() if all(word in text for word in words)]


@pytest.mark.rows("R3.4-9")
def test_an_endpoint_without_heartbeat_becomes_stale(brisk: Site) -> None:
    made = brisk.agent("silent-end").endpoint(harness="codex")

    def state() -> Any:
        (found,) = brisk.show("@silent-end")["endpoints"]
        return found if found["state"] == "stale" else None

    assert eventually(state)["failure"]["was"] == "idle"
    assert brisk.resolve("@silent-end")["action"] == "wake"
    assert made["id"]


@pytest.mark.rows("R3.4-7", "R2.2-24")
def test_an_expired_lease_puts_its_delivery_back(brisk: Site) -> None:
    agent = brisk.agent("forgetful")
    brisk.post("/v1/messages", to="@forgetful", body="take it")
    (item,) = agent.claim()
    assert agent.claim() == []  # it is leased
    (again,) = eventually(lambda: agent.claim() or None)
    assert again["deliveryId"] == item["deliveryId"]
    assert again["delivery"]["attempts"] == 2
    acked = agent.post("/v1/inbox/ack", deliveryIds=[item["deliveryId"]])["items"]
    assert [one["state"] for one in acked] == ["acked"]


@pytest.mark.rows("R3.4-3", "R3.4-10", "R2.3-16")
@pytest.mark.parametrize("state", ["working", "waiting", "review"])
def test_a_stale_item_nudges_the_holder_of_its_next_move(brisk: Site, state: str) -> None:
    owner, third = brisk.agent(f"owner-{state}"), brisk.agent(f"third-{state}")
    item = third.post("/v1/work", title=f"a form in {state}", ownerId=owner.address)["id"]
    owner.post(f"/v1/work/{item}/start")
    if state == "waiting":
        owner.post(f"/v1/work/{item}/wait", on="actor", ref=third.address)
    if state == "review":
        owner.post(f"/v1/work/{item}/submit", summary="there")
    holder, other = (owner, third) if state == "working" else (third, owner)
    first = eventually(lambda: nudges(brisk, item) or None)[0]
    assert holder.id in str(first["payload"])
    assert list_told(holder, f"a form in {state}", "scout work")
    # One nudge in a period, to exactly one.
    assert not list_told(other, f"a form in {state}", "stale")
    times = [event["time"] for event in nudges(brisk, item)]
    assert len(times) == len({time[:19] for time in times})
    owner.post(f"/v1/work/{item}/cancel")
    owner.post("/v1/usage", promptTokens=1)
    assert brisk.log(family="collab.usage.reported")


@pytest.mark.rows("R3.4-4", "R3.4-5")
def test_a_mention_without_an_answer_nudges_its_target_then_the_sender(brisk: Site) -> None:
    target, sender = brisk.agent("mentioned"), brisk.agent("mentioner")
    sender.post("/v1/channels", name="mentions", members=["@mentioned"])
    sent = sender.post("/v1/messages", channel="mentions", body="@mentioned, please look at the form")

    def holders() -> Any:
        found = [str(event["payload"]) for event in nudges(brisk, sent["messageId"])]
        return found if len(found) >= 2 else None

    first, second, *_ = eventually(holders)
    assert target.id in first
    assert sender.id in second
