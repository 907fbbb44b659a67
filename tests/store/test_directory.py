"""The directory on disk answers as the one in memory does, and never by a scan."""

import contextlib
import sqlite3
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from scout.base.ids import derive_id
from scout.base.refusal import Refused
from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.model.alias import AliasTarget
from scout.model.endpoint import Endpoint, EndpointState
from scout.policy.directory import OUTSIDE, Directory, Wanted
from scout.policy.nearest import build_keys
from scout.policy.resolver.fleet import Fleet
from scout.policy.resolver.resolve import resolve
from scout.store.directory import StoredDirectory, View
from scout.store.ledger import Ledger
from scout.store.migrate import migrate
from tests.policy.fleets import NOW, agent, alias, endpoint, session
from tests.store.facts import append_records


@contextlib.contextmanager
def roll_back(store: sqlite3.Connection) -> Generator[None]:
    """One example after the other in the same file."""
    store.execute("BEGIN")
    try:
        yield
    finally:
        store.execute("ROLLBACK")


def ident(kind: str, name: str) -> str:
    return derive_id(kind, name)


NAMES = st.sampled_from(["arc", "bow"])
PLACES = st.sampled_from([None, "main", "fix"])
PROFILES = st.sampled_from([None, "dev"])
PROJECTS = st.sampled_from([None, "/src/a"])
MODELS = st.sampled_from([None, "gpt-5.5", "sonnet"])
HARNESSES = st.sampled_from([None, "claude", "codex"])
STATES = st.sampled_from([EndpointState.IDLE, EndpointState.STALE, EndpointState.REGISTERED])


@st.composite
def rosters(draw: st.DrawFn) -> list[tuple[Agent, list[Endpoint]]]:
    bases = draw(st.sets(st.tuples(NAMES, PLACES, PROFILES), min_size=1, max_size=6))
    made: list[tuple[Agent, list[Endpoint]]] = []
    for index, (name, place, profile) in enumerate(sorted(bases, key=str)):
        one = agent(
            name,
            id=ident("agt", f"a{index}"),
            path=f"/me/agent/a{index}",
            workspace=place,
            profile=profile,
            project_root=draw(PROJECTS),
            lifecycle=draw(st.sampled_from(Lifecycle)),
        )
        endpoints = [
            endpoint(
                one, draw(HARNESSES), draw(MODELS), id=ident("ept", f"{index}.{number}"), state=draw(STATES)
            )
            for number in range(draw(st.integers(0, 2)))
        ]
        made.append((one, endpoints))
    return made


WISHES = st.builds(
    Wanted,
    definition_id=NAMES,
    workspace=PLACES,
    profile=PROFILES,
    node=st.sampled_from([None, "mini", "book"]),
    exact=st.booleans(),
    harness=st.sampled_from([None, "claude"]),
    model=st.sampled_from([None, "5-5", "sonnet"]),
    online=st.booleans(),
    project_root=PROJECTS,
)


def both(
    store: sqlite3.Connection, roster: list[tuple[Agent, list[Endpoint]]]
) -> tuple[StoredDirectory, Fleet]:
    fleet = Fleet(NOW)
    for one, endpoints in roster:
        fleet.add(one, endpoints if one.lifecycle is not Lifecycle.RETIRED else [])
        append_records(store, one, *endpoints)
    return StoredDirectory(Ledger(store, node="mini"), View("me", everybody=True), NOW), fleet


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rosters(), st.lists(WISHES, max_size=5))
def test_find_answers_as_the_fleet_does(
    store: sqlite3.Connection, roster: list[tuple[Agent, list[Endpoint]]], wishes: list[Wanted]
) -> None:
    with roll_back(store):
        on_disk, in_memory = both(store, roster)
        for wish in wishes:
            expected = {one.id for one in in_memory.find(wish, 20)}
            assert {one.id for one in on_disk.find(wish, 20)} == expected
            assert on_disk.count(wish) == len(expected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rosters(), st.sampled_from(["@arc", "@bow#claude", "@arc?5.5", "@arc.main", "@arc.node:mini", "@acr"]))
def test_a_name_means_the_same_on_disk_and_in_memory(
    store: sqlite3.Connection, roster: list[tuple[Agent, list[Endpoint]]], text: str
) -> None:
    def answer(directory: Directory) -> tuple[str, ...]:
        try:
            found = resolve(text, directory, OUTSIDE, NOW)
        except Refused as refused:
            return (refused.diagnostic.code,)
        return found.agent.id, found.canonical, found.rule

    with roll_back(store):
        on_disk, in_memory = both(store, roster)
        assert answer(on_disk) == answer(in_memory)


@pytest.mark.rows("R1.3-5")
def test_each_lookup(store: sqlite3.Connection) -> None:
    root = agent(
        "arc", id=ident("agt", "r"), path="/me/agent/arc", project_root="/src/a", birth_branch="main"
    )
    gone = agent("bow.x", id=ident("agt", "g"), path="/me/agent/bow", lifecycle=Lifecycle.RETIRED)
    tree = agent(
        "arc.fix", id=ident("agt", "t"), path="/me/agent/t", project_root="/src/a", working_dir="/src/t"
    )
    way = endpoint(root, id=ident("ept", "e"))
    talk = session(root, ident("ses", "s"), native_ids={"thread": "0f"})
    name = alias("huddy", AliasTarget(agent_id=root.id), id=ident("als", "a"))
    append_records(store, root, gone, tree, way, talk, name)
    directory = StoredDirectory(Ledger(store, node="mini"), View("me", everybody=True), NOW)
    assert directory.agent(gone.id) == directory.at_path(AgentPath("/me/agent/bow")) == gone
    assert directory.at_branch("/src/a", "main") == root
    assert directory.at_branch("/src/a", "main.x") is None
    assert (directory.of_project("/src/a"), directory.of_project("/src/t")) == (root, tree)
    assert directory.retired(Wanted(definition_id="bow", workspace="x")) == gone
    assert directory.retired(Wanted(definition_id="bow")) is None
    assert (list(directory.endpoints(root.id)), directory.endpoint(way.id)) == ([way], way)
    assert directory.session(talk.id) == directory.native_session("claude", "0f") == talk
    assert directory.native_session("codex", "0f") is None
    assert directory.alias("huddy") == name
    assert (
        StoredDirectory(Ledger(store, node="mini"), View("ada", everybody=True), NOW).alias("huddy") is None
    )
    assert (list(directory.aliases_of(root.id, 5)), list(directory.aliases_of(tree.id, 5))) == ([name], [])
    assert directory.node("mini") is None
    assert list(directory.near(build_keys("hudy"), 5)) == ["huddy"]
    assert list(directory.near(build_keys("bwo"), 5)) == []  # only a retired agent had that name
    assert list(directory.prefixed("hu", 5)) == ["huddy"]
    assert (
        list(StoredDirectory(Ledger(store, node="mini"), View("ada", everybody=True), NOW).prefixed("hu", 5))
        == []
    )
    assert list(directory.in_workspace("fix", 5)) == [tree]


class Watched(sqlite3.Connection):
    """A connection that remembers what it was asked."""

    asked: list[tuple[str, tuple[object, ...]]]

    def execute(self, sql: str, parameters: tuple[object, ...] = (), /) -> sqlite3.Cursor:  # type: ignore[override] (narrower)
        self.asked.append((sql, parameters))
        return super().execute(sql, parameters)


VIEWS = [
    View("me", everybody=True),
    View("me", users=("me",)),
    View("me", users=("me", "ada"), paths=(AgentPath.parse("/ada/agent/x"),), projects=("/p",)),
]


@pytest.mark.parametrize(
    "text",
    [
        "@arc",
        "@arc.main",
        "@arc#claude?sonnet",
        "@arc.node:mini",
        "@acr",
        "/me/agent/arc",
        "session:claude:0f",
        "project:/a",
    ],
)
@pytest.mark.rows("R1.3-38")
@pytest.mark.parametrize("view", VIEWS, ids=["everybody", "one user", "granted"])
def test_no_lookup_of_the_resolver_scans_a_table(tmp_path: Path, text: str, view: View) -> None:
    connection = sqlite3.connect(tmp_path / "scout.db", factory=Watched, isolation_level=None)
    connection.asked = []
    migrate(connection)
    first = agent("arc.a", id=ident("agt", "1"), path="/me/agent/1")
    second = agent("arc.b", id=ident("agt", "2"), path="/me/agent/2")
    append_records(connection, first, second)
    connection.asked.clear()
    with contextlib.suppress(Refused):
        resolve(text, StoredDirectory(Ledger(connection, node="mini"), view, NOW), OUTSIDE, NOW)
    assert connection.asked
    for sql, values in list(connection.asked):
        plan = [row[3] for row in sqlite3.Connection.execute(connection, f"EXPLAIN QUERY PLAN {sql}", values)]
        scans = [line for line in plan if line.startswith("SCAN") and "CONSTANT" not in line]
        assert not [line for line in scans if "(subquery" not in line], (sql, plan)
        assert not [line for line in plan if "agents_by_owner" in line or "agents_by_root" in line], (
            sql,
            plan,
        )
    connection.close()


def test_an_agent_among_many_of_its_definition_is_found_by_its_workspace(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "scout.db", factory=Watched, isolation_level=None)
    connection.asked = []
    migrate(connection)
    append_records(connection, agent("arc.a", id=ident("agt", "1"), path="/me/agent/1"))
    connection.asked.clear()
    directory = StoredDirectory(Ledger(connection, node="mini"), VIEWS[0], NOW)
    named = Wanted(definition_id="arc", workspace="a", node="mini")
    for wanted in (named, replace(named, exact=True), replace(named, node=None, project_root="/p")):
        directory.find(wanted, 2)
    for sql, values in list(connection.asked):
        plan = [row[3] for row in sqlite3.Connection.execute(connection, f"EXPLAIN QUERY PLAN {sql}", values)]
        assert any("agents_by_name (definition_id=? AND workspace=?" in line for line in plan), plan
    connection.close()
