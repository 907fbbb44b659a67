"""Legacy descriptors: ten variants to paths and config."""

import copy
from typing import Any

import pytest

from scout.base.codec import encode
from scout.base.time import Time
from scout.identity.legacy import (
    CONFIG_KEYS,
    Conversion,
    Converted,
    Duplicate,
    LegacyAgent,
    Rejected,
    convert,
)
from scout.identity.path import AgentPath

KEYS = {"telegram:123": "u1", "whatsapp:w9": "u2"}


def old(agent_id: str, kind: object, updated: int = 0, user: str = "u1", **fields: Any) -> LegacyAgent:
    descriptor = {"type": kind, **fields}
    return LegacyAgent(id=agent_id, user_id=user, descriptor=descriptor, updated_at=Time(updated))


def paths(found: Conversion) -> dict[str, str]:
    return {one.id: str(one.path) for one in found.converted}


def only(agent: LegacyAgent) -> Converted:
    found = convert([agent], KEYS)
    assert (found.duplicates, found.deferred, found.rejected) == ((), (), ())
    assert len(found.converted) == 1
    return found.converted[0]


def convert_rejected(*agents: LegacyAgent) -> Rejected:
    found = convert(agents, KEYS)
    assert len(found.rejected) == 1
    assert (found.duplicates, found.deferred) == ((), ())
    return found.rejected[0]


ALL = [
    old("a1", "user", connector="telegram", userId="123", channelId="c77"),
    old("a2", "permanent", name="Arc", username="arc", description="d", systemPrompt="p", workspaceDir="/w"),
    old("a3", "cron", id="daily", name="Daily"),
    old("a4", "task", id="t1"),
    old("a5", "subagent", id="a5", parentAgentId="a1", name="helper"),
    old("a6", "memory-agent", id="a1"),
    old("a7", "memory-search", id="a7", parentAgentId="a6", name="find"),
    old("a8", "subuser", id="s1", name="Sue", systemPrompt="be kind"),
    old("a9", "system", tag="gc"),
    old("b1", "app", id="b1", parentAgentId="a1", name="App", systemPrompt="p", appId="app-1"),
]


@pytest.mark.rows(
    "R1.4-43",
    "R1.4-44",
    "R1.4-45",
    "R1.4-46",
    "R1.4-47",
    "R1.4-48",
    "R1.4-49",
    "R1.4-50",
    "R1.4-51",
    "R1.4-52",
)
def test_the_ten_variants() -> None:
    found = convert(ALL, KEYS)
    config = {one.id: one.config for one in found.converted}
    assert paths(found) == {
        "a1": "/u1/telegram",
        "a2": "/u1/agent/Arc",
        "a3": "/u1/cron/daily",
        "a4": "/u1/task/t1",
        "a5": "/u1/telegram/sub/0",
        "a6": "/u1/telegram/memory",
        "a7": "/u1/telegram/memory/search/0",
        "a8": "/u1/subuser/s1",
        "a9": "/system/gc",
    }
    assert config == {
        "a1": {},
        "a2": {
            "name": "Arc",
            "username": "arc",
            "description": "d",
            "systemPrompt": "p",
            "workspaceDir": "/w",
        },
        "a3": {"name": "Daily"},
        "a4": {},
        "a5": {"name": "helper"},
        "a6": {},
        "a7": {"name": "find"},
        "a8": {"name": "Sue", "systemPrompt": "be kind"},
        "a9": {},
    }
    assert found.deferred == ("b1",)
    assert (found.duplicates, found.rejected) == ((), ())


def test_the_config_that_is_kept() -> None:
    assert CONFIG_KEYS == ("name", "username", "description", "systemPrompt", "workspaceDir", "appId")
    bare = only(old("x", "permanent", name="arc", description="", systemPrompt=None, other="y"))
    assert bare.config == {"name": "arc"}
    assert only(old("x", "cron", id="c")).config == {}
    assert only(old("x", "task", id="c", appId="app-1")).config == {"appId": "app-1"}


@pytest.mark.rows("R1.4-37", "R1.4-43")
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"connector": "telegram", "userId": "123", "channelId": "c77"}, "/u1/telegram"),
        ({"connector": "telegram", "userId": "999", "channelId": "123"}, "/u1/telegram"),
        ({"connector": "telegram", "userId": 123}, "/u1/telegram"),
        ({"connector": "whatsapp", "channelId": "w9"}, "/u2/whatsapp"),
    ],
)
def test_a_user_is_found_through_its_connector_key(fields: dict[str, Any], path: str) -> None:
    found = only(old("x", "user", user="someone", **fields))
    assert found.path == path
    assert "123" not in found.path


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"connector": "telegram", "userId": "1", "channelId": "2"},
            "no user has the connector key telegram:2 or telegram:1",
        ),
        ({"connector": "whatsapp", "userId": "123"}, "no user has the connector key whatsapp:123"),
        ({"connector": "telegram"}, "no user has the connector key telegram"),
        ({"userId": "123"}, "expected a text (at connector)"),
        ({"connector": "", "userId": "123"}, "expected a text (at connector)"),
    ],
)
def test_a_user_that_nobody_is(fields: dict[str, Any], reason: str) -> None:
    assert convert_rejected(old("x", "user", **fields)) == Rejected(id="x", reason=reason, code="bad_request")


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        (old("x", "permanent", name="My Agent"), "/u1/agent/my-agent"),
        (old("x", "permanent", name="Keep.This_1~"), "/u1/agent/Keep.This_1~"),
        (old("x", "permanent", name="Héllo"), "/u1/agent/hello"),
        (old("x", "cron", id="a b"), "/u1/cron/a-b"),
        (old("x", "task", id="ab12"), "/u1/task/ab12"),
        (old("x", "subuser", id="a/b"), "/u1/subuser/a-b"),
        (old("x", "system", tag="g c"), "/system/g-c"),
        (old("x", "system", user="ignored user", tag="gc"), "/system/gc"),
    ],
)
def test_names_that_are_no_segments_are_folded(agent: LegacyAgent, path: str) -> None:
    assert only(agent).path == path


@pytest.mark.parametrize(
    ("agent", "reason", "code"),
    [
        (
            old("x", "robot"),
            "found the unknown descriptor type 'robot' at character 0; expected one of the ten",
            "malformed_address",
        ),
        (
            old("x", None),
            "found the unknown descriptor type None at character 0; expected one of the ten",
            "malformed_address",
        ),
        (
            old("x", "permanent", name="memory"),
            "found the reserved word 'memory' at character 10; expected a name that is not a path word",
            "malformed_address",
        ),
        (
            old("x", "permanent", name="日本"),
            "found no letter or digit in the name at character 0; expected a letter or a digit",
            "malformed_address",
        ),
        (old("x", "permanent"), "expected a text (at name)", "bad_request"),
        (old("x", "permanent", name=5), "expected a text (at name)", "bad_request"),
        (old("x", "task", id="t", name=["x"]), "expected a text (at name)", "bad_request"),
        (old("x", "cron"), "expected a text (at id)", "bad_request"),
        (old("x", "system"), "expected a text (at tag)", "bad_request"),
        (
            old("x", "task", user="u 1", id="t"),
            "found the character ' ' at character 2; expected letters, digits and . _ ~ -",
            "malformed_address",
        ),
        (old("x", "subagent", parentAgentId="nobody"), "its parent 'nobody' is unknown", "bad_request"),
        (old("x", "subagent"), "its parent '?' is unknown", "bad_request"),
        (old("x", "memory-search", parentAgentId="x"), "its parent 'x' is unknown", "bad_request"),
        (old("x", "memory-agent"), "its parent '?' is unknown", "bad_request"),
    ],
)
def test_what_cannot_be_converted_is_reported(agent: LegacyAgent, reason: str, code: str) -> None:
    assert convert_rejected(agent) == Rejected(id="x", reason=reason, code=code)
    others = convert([agent, ALL[1]], KEYS)
    assert paths(others) == {"a2": "/u1/agent/Arc"}


def test_children_of_what_cannot_be_converted_are_reported_too() -> None:
    found = convert([old("a", "robot"), old("b", "subagent", parentAgentId="a")], KEYS)
    assert [(one.id, one.code) for one in found.rejected] == [
        ("a", "malformed_address"),
        ("b", "bad_request"),
    ]


@pytest.mark.rows("R1.4-47", "R1.4-49")
def test_children_take_indexes_in_the_order_of_their_ids() -> None:
    agents = [
        old("p", "permanent", name="arc"),
        *(old(f"s{n}", "subagent", updated=10 - n, parentAgentId="p", name="x") for n in (2, 0, 1)),
        *(old(f"q{n}", "memory-search", updated=n, parentAgentId="p", name="x") for n in (1, 0)),
        old("t0", "subagent", parentAgentId="s1", name="x"),
    ]
    expected = {
        "p": "/u1/agent/arc",
        "s0": "/u1/agent/arc/sub/0",
        "s1": "/u1/agent/arc/sub/1",
        "s2": "/u1/agent/arc/sub/2",
        "q0": "/u1/agent/arc/search/0",
        "q1": "/u1/agent/arc/search/1",
        "t0": "/u1/agent/arc/sub/1/sub/0",
    }
    assert paths(convert(agents, KEYS)) == expected
    assert paths(convert(agents[::-1], KEYS)) == expected


def test_a_rejected_child_leaves_no_gap() -> None:
    agents = [
        old("p", "permanent", name="arc"),
        old("s0", "subagent", parentAgentId="p", name=5),
        old("s1", "subagent", parentAgentId="p", name="x"),
    ]
    found = convert(agents, KEYS)
    assert paths(found)["s1"] == "/u1/agent/arc/sub/0"
    assert [one.id for one in found.rejected] == ["s0"]


def test_too_deep_a_tree_is_reported() -> None:
    chain = [old(f"s{n:02}", "subagent", parentAgentId=f"s{n - 1:02}") for n in range(1, 19)]
    found = convert([old("s00", "task", id="t"), *chain], KEYS)
    assert len(found.converted) == 17
    assert [(one.id, one.code) for one in found.rejected] == [
        ("s17", "malformed_address"),
        ("s18", "bad_request"),
    ]


@pytest.mark.rows("R1.4-54")
def test_of_duplicates_the_newest_is_kept() -> None:
    agents = [
        old("a", "permanent", updated=1, name="arc", description="old"),
        old("b", "permanent", updated=3, name="arc", description="new"),
        old("c", "permanent", updated=2, name="arc", description="middle"),
    ]
    for order in (agents, agents[::-1]):
        found = convert(order, KEYS)
        assert [(one.id, one.config["description"]) for one in found.converted] == [("b", "new")]
        path = AgentPath.parse("/u1/agent/arc")
        assert found.duplicates == (
            Duplicate(id="c", path=path, kept_id="b"),
            Duplicate(id="a", path=path, kept_id="b"),
        )
        assert found.rejected == ()


@pytest.mark.rows("R1.4-54")
def test_of_equally_new_duplicates_the_first_by_id_is_kept() -> None:
    agents = [old("b", "task", id="t"), old("a", "task", id="t")]
    assert [one.id for one in convert(agents, KEYS).duplicates] == ["b"]


@pytest.mark.rows("R1.4-54")
def test_of_two_memories_the_newest_is_kept() -> None:
    agents = [
        old("p", "task", id="t"),
        old("m1", "memory-agent", updated=1, id="p"),
        old("m2", "memory-agent", updated=2, id="p"),
        old("m0", "memory-agent", updated=0, id="p"),
    ]
    found = convert(agents, KEYS)
    assert paths(found) == {"p": "/u1/task/t", "m2": "/u1/task/t/memory"}
    assert [(one.id, one.kept_id) for one in found.duplicates] == [("m1", "m2"), ("m0", "m2")]


@pytest.mark.rows("R1.4-54")
def test_a_row_that_comes_twice_is_a_duplicate_of_itself() -> None:
    agents = [
        old("p", "task", updated=1, id="t", name="old"),
        old("p", "task", updated=2, id="t", name="new"),
        old("s", "subagent", updated=2, parentAgentId="p", name="new"),
        old("s", "subagent", updated=1, parentAgentId="p", name="old"),
    ]
    found = convert(agents, KEYS)
    assert [(one.id, one.config["name"]) for one in found.converted] == [("p", "new"), ("s", "new")]
    assert paths(found)["s"] == "/u1/task/t/sub/0"
    assert [(one.id, one.kept_id) for one in found.duplicates] == [("p", "p"), ("s", "s")]


@pytest.mark.rows("R1.4-53")
def test_the_plan_changes_nothing_and_repeats_itself() -> None:
    agents, keys, existing = copy.deepcopy(ALL), dict(KEYS), {"a1": AgentPath.parse("/u1/telegram")}
    first = convert(agents, keys, existing)
    assert (agents, keys, existing) == (ALL, KEYS, {"a1": AgentPath.parse("/u1/telegram")})
    assert convert(agents, keys, existing) == first
    assert convert(list(reversed(agents)), keys, existing) == first
    assert encode(convert(ALL, KEYS)) == encode(convert(ALL, KEYS))


@pytest.mark.rows("R1.4-53")
def test_agents_that_were_converted_before_keep_their_paths() -> None:
    existing = {one.id: one.path for one in convert(ALL, KEYS).converted}
    assert paths(convert(ALL, KEYS, existing)) == {agent_id: str(path) for agent_id, path in existing.items()}
    # A child that sorts before the others comes later: the next index, not theirs.
    more = [*ALL, old("a0", "subagent", parentAgentId="a1", name="new")]
    assert paths(convert(more, KEYS, existing))["a0"] == "/u1/telegram/sub/1"
    assert paths(convert(more, KEYS))["a0"] == "/u1/telegram/sub/0"
    # A new child of an agent that is no longer in the source.
    late = [old("z", "memory-search", parentAgentId="a6", name="new")]
    assert paths(convert(late, KEYS, existing)) == {"z": "/u1/telegram/memory/search/1"}


def test_an_index_follows_the_highest_that_was_given() -> None:
    parent = AgentPath.parse("/u1/task/t")
    existing = {"p": parent, "x": parent.sub(7), "y": parent.sub(3), "m": parent.memory()}
    agents = [old("s", "subagent", parentAgentId="p"), old("t", "subagent", parentAgentId="p")]
    assert paths(convert(agents, KEYS, existing)) == {"s": "/u1/task/t/sub/8", "t": "/u1/task/t/sub/9"}


def test_a_path_that_was_given_before_is_not_given_again() -> None:
    existing = {"gone": AgentPath.parse("/u1/task/t")}
    found = convert([old("new", "task", updated=9, id="t")], KEYS, existing)
    assert found.converted == ()
    assert found.duplicates == (Duplicate(id="new", path=existing["gone"], kept_id="gone"),)


def test_nothing_gives_an_empty_plan() -> None:
    assert convert([], {}) == Conversion(converted=(), duplicates=(), deferred=(), rejected=())
    assert convert([], {}, None) == convert([], {}, {})
