"""Which agent of a user is in front, and which chat is behind it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Candidate, Refused, Remedy
from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.model.conversation import MessageKind
from scout.model.people.user import ConnectorTarget, KeyState
from scout.model.problems.request import NotFound
from scout.model.problems.target import UnknownTarget
from scout.policy.people.foreground import (
    Foreground,
    Outlet,
    choose_connector_target,
    choose_foreground,
    is_for_foreground,
)
from tests.model.samples import T0, a_key, an_agent


def member(name: str, path: str, at: int | None = None, lifecycle: Lifecycle = Lifecycle.ACTIVE) -> Agent:
    active = T0.plus(at) if at is not None else None
    return an_agent(path, id=name, lifecycle=lifecycle, last_active_at=active)


# ------------------------------------------------------------------------------------- foreground


@pytest.mark.rows("R1.4-41", "R1.4-42")
def test_the_most_recent_foreground_agent() -> None:
    agents = [
        member("sleeping", "/u1/agent/late", 900, Lifecycle.SLEEPING),
        member("telegram", "/u1/telegram", 100),
        member("arc", "/u1/agent/arc", 300),
        member("sub-user", "/u1/subuser/kid", 200),
        member("never", "/u1/whatsapp"),
        member("gone", "/u1/agent/gone", 999, Lifecycle.RETIRED),
        member("cron", "/u1/cron/c1", 999),
        member("task", "/u1/task/t1", 999),
        member("sub", "/u1/agent/arc/sub/0", 999),
        member("memory", "/u1/agent/arc/memory", 999),
        member("search", "/u1/agent/arc/search/0", 999),
        member("system", "/system/sweeper", 999),
    ]
    assert choose_foreground(agents) == Foreground(
        agent_id="arc",
        rule="most recent foreground",
        considered=("arc", "sub-user", "telegram", "never", "sleeping"),
        passed_over={
            "gone": "it is retired",
            "cron": "a cron agent is in the background",
            "task": "a task agent is in the background",
            "sub": "a sub agent is in the background",
            "memory": "a memory agent is in the background",
            "search": "a search agent is in the background",
            "system": "a system agent is in the background",
        },
    )


@pytest.mark.rows("R1.4-42")
def test_without_a_foreground_agent_there_is_none() -> None:
    gone = member("gone", "/u1/agent/gone", 1, Lifecycle.RETIRED)
    assert choose_foreground([gone]) == Foreground(
        agent_id=None, rule="no foreground agent", passed_over={"gone": "it is retired"}
    )


def test_the_user_in_person_is_not_an_agent_in_front() -> None:
    person = member("ada", "/u1/direct", 999)
    found = choose_foreground([person, member("arc", "/u1/agent/arc", 1)])
    assert (found.agent_id, found.passed_over) == ("arc", {"ada": "it is the user in person"})


@pytest.mark.parametrize(
    ("path", "passed_on"),
    [
        ("/u1/cron/c1", True),
        ("/u1/task/t1", True),
        ("/u1/agent/arc/sub/0", True),
        ("/u1/agent/arc/memory", True),
        ("/u1/agent/arc/search/0", True),
        ("/system/sweeper", False),
        ("/u1/agent/arc", False),
        ("/u1/telegram", False),
        ("/u1/subuser/kid", False),
        ("/u2/cron/c1", False),
        ("/u1/direct", False),
    ],
)
def test_messages_of_background_agents_go_to_the_foreground_too(path: str, passed_on: bool) -> None:
    person, origin = member("ada", "/u1/direct"), member("x", path)
    sender = member("arc", "/u1/agent/arc")
    assert is_for_foreground(MessageKind.CHAT, origin, origin, person) is passed_on
    assert is_for_foreground(MessageKind.FINAL, sender, origin, person) is passed_on
    assert not is_for_foreground(MessageKind.QUESTION, origin, origin, person)
    assert not is_for_foreground(MessageKind.CHAT, person, origin, person)


@given(st.permutations([("a", 5), ("b", 5), ("c", 4), ("d", None)]))
def test_the_order_of_the_records_does_not_matter(order: list[tuple[str, int | None]]) -> None:
    found = choose_foreground(member(name, "/u1/agent/arc", at) for name, at in order)
    assert found.considered == ("a", "b", "c", "d")


# ------------------------------------------------------------------------------------- connectors

TELEGRAM = AgentPath.parse("/u1/telegram")


@pytest.mark.rows("R1.4-36", "R1.4-37")
def test_the_only_key_is_where_a_reply_goes() -> None:
    key = a_key()
    others = (
        a_key(id="k2", user="u2"),
        a_key(id="k3", connector="whatsapp"),
        a_key(id="k4", state=KeyState.FREED),
    )
    found = choose_connector_target(TELEGRAM, (*others, key))
    target = ConnectorTarget(connector="telegram", target_id="123456")
    assert found == Outlet(target=target, key_id=key.id, rule="only key", considered=(key.id,))
    assert "123456" not in TELEGRAM


@pytest.mark.rows("R1.4-38")
def test_of_several_keys_the_one_that_last_spoke_in_the_conversation_is_taken() -> None:
    one, two = a_key(id="k1", external_id="1"), a_key(id="k2", external_id="2")
    found = choose_connector_target(TELEGRAM, (one, two), "k2")
    assert found == Outlet(
        target=ConnectorTarget(connector="telegram", target_id="2"),
        key_id="k2",
        rule="last spoke in this conversation",
        considered=("k1", "k2"),
    )
    with pytest.raises(Refused) as caught:
        choose_connector_target(TELEGRAM, (one, two), "k9")
    assert caught.value.diagnostic == NotFound(
        noun="telegram account of u1 that spoke in this conversation",
        id="only",
        candidates=tuple(Candidate(address=key, why="telegram") for key in ("k1", "k2")),
        remedies=(Remedy(operation="user.keys", parameters={"user": "u1"}, why="list the accounts"),),
    )


@pytest.mark.rows("R1.4-39")
def test_a_user_without_a_key_is_a_diagnostic() -> None:
    with pytest.raises(Refused) as caught:
        choose_connector_target(TELEGRAM, (a_key(user="u2"),), "k1")
    link = Remedy(operation="user.link", parameters={"user": "u1", "connector": "telegram"})
    assert caught.value.diagnostic == NotFound(noun="telegram account of u1", id="only", remedies=(link,))


def test_the_built_in_connector_needs_no_key() -> None:
    target = ConnectorTarget(connector="direct", target_id="u1")
    assert choose_connector_target(AgentPath.parse("/u1/direct"), ()) == Outlet(
        target=target, rule="built in"
    )


@pytest.mark.parametrize(
    ("path", "kind", "parameters"),
    [("/u1/agent/arc", "agent", {"user": "u1"}), ("/system/sweeper", "system", {})],
)
def test_other_agents_have_no_chat_behind_them(path: str, kind: str, parameters: dict[str, str]) -> None:
    with pytest.raises(Refused) as caught:
        choose_connector_target(AgentPath.parse(path), (a_key(),))
    look = Remedy(operation="user.keys", parameters=parameters, why="list the accounts")
    assert caught.value.diagnostic == UnknownTarget(
        address=path, reason=f"a {kind} agent has no chat behind it", remedies=(look,)
    )


def test_a_time_is_compared_as_a_number() -> None:
    late = member("late", "/u1/agent/x")
    early = an_agent("/u1/agent/y", id="early", last_active_at=Time(1))
    assert choose_foreground([late, early]).agent_id == "early"
