"""The mirror: agents of other nodes are found as the own ones are, second, and never by a scan."""

import contextlib
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from scout.base.ids import derive_id
from scout.base.refusal import Refused
from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.model.endpoint import EndpointState, Transport
from scout.model.events.directory import NodeCreated
from scout.model.events.envelope import Changed
from scout.model.mesh.entry import AgentEntry, RemoteInstance
from scout.model.node import Node, NodeMove, move_node
from scout.model.status import AgentStatus
from scout.policy.directory import Viewpoint, Wanted
from scout.policy.resolver.resolve import resolve
from scout.store import mirror
from scout.store.directory import StoredDirectory, View
from scout.store.ledger import Ledger
from scout.store.migrate import migrate
from tests.policy.fleets import NOW, agent
from tests.store.facts import append_records, fact
from tests.store.test_directory import VIEWS, Watched

MINI = Node(id=derive_id("nod", "mini"), created_at=NOW, updated_at=NOW, name="mini", local=True)
BOOK = Node(id=derive_id("nod", "book"), created_at=NOW, updated_at=NOW, name="book")
HERE = Viewpoint(node="mini", user="me")
ALL = View("me", everybody=True)


def entry(definition: str, *, node: Node = BOOK, **more: object) -> AgentEntry:
    facts: dict[str, object] = {
        "status": AgentStatus.ONLINE,
        "definition_id": definition,
        "updated_at": NOW,
        **more,
    }
    ident = derive_id("agt", node.name, definition, str(more.get("workspace")))
    path = AgentPath.parse(f"/dewi/agent/{definition}")
    return AgentEntry(**{"id": ident, "node_id": node.id, "path": path, **facts})  # pyright: ignore[reportArgumentType] (facts of a test)


def running(harness: str, model: str | None = None, *, online: bool = True) -> tuple[RemoteInstance, ...]:
    return (
        RemoteInstance(endpoint_id=derive_id("ept", harness), harness=harness, model=model, online=online),
    )


def put(store: sqlite3.Connection, *entries: AgentEntry, owner: str = "me") -> None:
    mirror.write_entries(store, entries, owner)


def add_node(store: sqlite3.Connection, node: Node) -> None:
    fact(store, NodeCreated, node.id, Changed(record=node, move="create", by="agt_x"))


@pytest.fixture
def meshed(store: sqlite3.Connection) -> sqlite3.Connection:
    add_node(store, MINI)
    add_node(store, BOOK)
    return store


def directory(store: sqlite3.Connection, view: View = ALL) -> StoredDirectory:
    return StoredDirectory(Ledger(store, node="mini"), view, NOW, meshed=True)


def means(store: sqlite3.Connection, text: str) -> Agent:
    return resolve(text, directory(store), HERE, NOW, needs_endpoint=False).agent


@pytest.mark.rows("R1.3-5")
def test_a_bare_name_is_the_own_nodes_and_a_node_names_the_other(meshed: sqlite3.Connection) -> None:
    own = agent("hudson", id=derive_id("agt", "own"), path="/me/agent/hudson", node="mini")
    append_records(meshed, own)
    put(meshed, entry("hudson"), entry("arc"))
    assert means(meshed, "@hudson").node == "mini"
    assert means(meshed, "@hudson.node:book").node == "book"
    assert means(meshed, "@arc").node == "book"
    assert means(meshed, entry("arc").id).id == entry("arc").id
    assert directory(meshed).count(Wanted(definition_id="hudson")) == 2
    assert not directory(meshed).find(Wanted(definition_id="arc", own=True), 2)
    assert not directory(meshed).find(Wanted(definition_id="arc", project_root="/p"), 2)


def test_an_agent_of_another_node_belongs_to_the_operator_here(meshed: sqlite3.Connection) -> None:
    put(meshed, entry("arc", name="Arc", description="draws"))
    found = means(meshed, "@arc")
    assert (found.owner, str(found.path), found.is_remote) == ("me", "/me/agent/arc", True)
    assert (found.config.name, found.config.description) == ("Arc", "draws")
    assert directory(meshed).at_path(AgentPath.parse("/me/agent/arc")) is None


def test_each_condition_narrows(meshed: sqlite3.Connection) -> None:
    put(
        meshed,
        entry("arc", instances=running("codex", "gpt-5.5")),
        entry("arc", workspace="fix", instances=running("claude", online=False)),
        entry("arc", workspace="old", profile="dev"),
    )
    seen = directory(meshed)

    def count(**more: object) -> int:
        wanted = replace(Wanted(definition_id="arc"), **more)
        assert seen.count(wanted) == len(seen.find(wanted, 20))
        return seen.count(wanted)

    assert count() == 3
    assert count(workspace="fix") == count(exact=True) == count(profile="dev") == count(online=True) == 1
    assert count(harness="codex") == count(model="5-5") == 2  # one of them takes any
    assert count(node="book") == 3
    assert count(node="mini") == count(node="nowhere") == 0


@pytest.mark.parametrize(("owner", "view", "shown"), [("me", 1, 1), ("~1a2b3c4d", 1, 0), ("~1a2b3c4d", 0, 1)])
def test_a_view_shows_agents_of_its_users(
    meshed: sqlite3.Connection, owner: str, view: int, shown: int
) -> None:
    put(meshed, entry("arc"), owner=owner)
    seen = directory(meshed, VIEWS[view])
    assert len(seen.find(Wanted(definition_id="arc"), 2)) == shown
    assert len(seen.prefixed("ar", 5)) == shown
    assert bool(seen.agent(entry("arc").id)) == bool(shown)


def test_a_grant_on_a_path_shows_no_agent_of_another_node(meshed: sqlite3.Connection) -> None:
    put(meshed, entry("x"), owner="ada")
    granted = View("me", users=("me",), paths=(AgentPath.parse("/ada/agent/x"),))
    assert directory(meshed, granted).agent(entry("x").id) is None


def test_near_names_prefixes_and_workspaces(meshed: sqlite3.Connection) -> None:
    put(meshed, entry("hudson", workspace="fix"))
    seen = directory(meshed)
    assert list(seen.prefixed("hud", 5)) == ["hudson"]
    assert [one.definition_id for one in seen.in_workspace("fix", 5)] == ["hudson"]
    with pytest.raises(Refused) as refused:
        means(meshed, "@hudsn")
    assert "@hudson" in [one.address for one in refused.value.diagnostic.candidates]


def test_an_unknown_node_names_the_nearest(meshed: sqlite3.Connection) -> None:
    put(meshed, entry("arc"))
    with pytest.raises(Refused, match="no node is called bok") as refused:
        means(meshed, "@arc.node:bok")
    assert [one.address for one in refused.value.diagnostic.candidates] == ["@arc.node:book"]


def test_a_lost_node_makes_its_agents_unreachable(meshed: sqlite3.Connection) -> None:
    put(meshed, entry("arc", instances=running("codex")))
    found = Ledger(meshed).remote_agent(entry("arc").id)
    assert found is not None
    assert (found.status, found.endpoints[0].state) == (AgentStatus.ONLINE, EndpointState.IDLE)
    assert found.endpoints[0].transport is Transport.MESH
    add_node(meshed, move_node(BOOK, NodeMove.LOSE, NOW))
    lost = Ledger(meshed).remote_agent(entry("arc").id)
    assert lost is not None
    assert (lost.status, lost.endpoints[0].state) == (AgentStatus.UNREACHABLE, EndpointState.UNREACHABLE)
    with pytest.raises(Refused) as refused:
        means(meshed, "@nobody.node:book")
    assert refused.value.diagnostic.code == "peer_unreachable"
    assert str(NOW) in refused.value.diagnostic.message


def unlist(store: sqlite3.Connection) -> None:
    mirror.unlist_agents(store, BOOK.id, [entry("arc").id])


def leave(store: sqlite3.Connection) -> None:
    mirror.unlist_node(store, BOOK.id)


def retire(store: sqlite3.Connection) -> None:
    put(store, entry("arc", lifecycle=Lifecycle.RETIRED))


@pytest.mark.parametrize("end", [unlist, leave, retire])
def test_an_agent_that_left_keeps_its_name(
    meshed: sqlite3.Connection, end: Callable[[sqlite3.Connection], None]
) -> None:
    put(meshed, entry("arc"))
    end(meshed)
    known = directory(meshed).agent(entry("arc").id)
    assert known is not None
    assert (known.lifecycle, known.definition_id) == (Lifecycle.RETIRED, "arc")
    assert not directory(meshed).find(Wanted(definition_id="arc"), 2)
    assert list(directory(meshed).prefixed("ar", 5)) == []
    with pytest.raises(Refused, match="book no longer lists it"):
        means(meshed, entry("arc").id)


def test_only_its_own_node_unlists_an_agent(meshed: sqlite3.Connection) -> None:
    put(meshed, entry("arc"))
    mirror.unlist_agents(meshed, MINI.id, [entry("arc").id])
    assert means(meshed, "@arc").node == "book"
    assert mirror.find_revisions(meshed, [entry("arc").id]) == {entry("arc").id: (BOOK.id, 1)}
    mirror.drop_all(meshed)
    assert not Ledger(meshed).has_remote_agents()


@pytest.mark.parametrize(
    "text", ["@arc", "@arc.main", "@arc#claude?sonnet", "@arc.node:book", "@acr", "@arc.node:bok", "@none"]
)
@pytest.mark.rows("R1.3-38")
@pytest.mark.parametrize("view", VIEWS, ids=["everybody", "one user", "granted"])
def test_no_lookup_of_the_mirror_scans_a_table(tmp_path: Path, text: str, view: View) -> None:
    connection = sqlite3.connect(tmp_path / "scout.db", factory=Watched, isolation_level=None)
    connection.asked = []
    migrate(connection)
    add_node(connection, MINI)
    add_node(connection, BOOK)
    put(connection, entry("arc"), entry("arc", workspace="main"))
    connection.asked.clear()
    with contextlib.suppress(Refused):
        resolve(text, StoredDirectory(Ledger(connection, node="mini"), view, NOW, meshed=True), HERE, NOW)
    for sql, values in list(connection.asked):
        plan = [row[3] for row in sqlite3.Connection.execute(connection, f"EXPLAIN QUERY PLAN {sql}", values)]
        scans = [line for line in plan if line.startswith("SCAN") and "CONSTANT" not in line]
        assert not [line for line in scans if "(subquery" not in line], (sql, plan)
        assert not [line for line in plan if "remote_agents_of_node" in line], (sql, plan)
    connection.close()


@pytest.mark.rows("R8.d-4")
@pytest.mark.slow
def test_a_name_costs_the_same_among_a_hundred_thousand_agents_of_other_nodes(
    meshed: sqlite3.Connection,
) -> None:
    own = agent("hudson", id=derive_id("agt", "own"), path="/me/agent/hudson", node="mini")
    append_records(meshed, own)
    put(meshed, entry("arc"))

    def count_steps() -> int:
        """The virtual machine's steps for three names: a count that no load of the machine changes."""
        steps = 0

        def step() -> int:
            nonlocal steps
            steps += 1
            return 0

        meshed.set_progress_handler(step, 1)
        try:
            for text in ("@hudson", "@arc", "@arc.node:book"):
                means(meshed, text)
        finally:
            meshed.set_progress_handler(None, 1)
        return steps

    alone = count_steps()
    began = time.monotonic()
    meshed.execute("BEGIN")
    for first in range(0, 100_000, 1000):
        put(meshed, *(entry(f"n{number}") for number in range(first, first + 1000)))
    meshed.execute("COMMIT")
    assert time.monotonic() - began < 120
    assert count_steps() <= 1.5 * alone
