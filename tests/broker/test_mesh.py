"""Two brokers in one mesh: nodes, members, the directory, and what is refused."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from scout.base.refusal import Refused
from scout.model.access.grant import Action
from scout.model.events.directory import NodeRefused
from scout.model.events.event_types import get_event_type
from scout.model.mesh.entry import SIGNED_AS
from scout.model.mesh.member import HEARTBEAT_SIGNED_AS, MEMBER_SIGNED_AS
from scout.protocol.access import AddGrant, SetAlias
from scout.protocol.agents import ConfigureAgent, Resolve, RetireAgent, ShowAgent, Who
from scout.protocol.log import ReadLog
from scout.protocol.mesh import (
    InviteNode,
    JoinMesh,
    LeaveMesh,
    ListMeshNodes,
    RemoveNode,
    RenameNode,
    RotateLogin,
    ShareAttention,
    ShowMesh,
    StartMesh,
    StopMesh,
)
from scout.protocol.request import Request
from scout.protocol.sessions import ListSessions, StartSession
from scout.store.integrity.verify import verify
from tests.broker.mesh_rig import (
    MeshRig,
    TestKeys,
    forge,
    list_nodes,
    open_mesh,
    read_member,
    wait_for,
)
from tests.broker.rig import Rig, expect_refusal, open_rig

Scene = Callable[[MeshRig], Awaitable[None]]


def play(scene: Scene, home: Path, *names: str, guests: tuple[str, ...] = ()) -> None:
    async def main() -> None:
        async with open_mesh(home, *names, guests=guests) as mesh:
            await scene(mesh)

    asyncio.run(main())
    for name in names:
        report = verify(home / name / "scout.db")
        assert report.clean, report


async def sees(rig: Rig, name: str) -> bool:
    found = await rig.operator(Who(all_nodes=True))
    return name in [one.address for one in found.items]


async def read_types(rig: Rig) -> list[str]:
    log = await rig.operator(ReadLog(limit=200))
    return [get_event_type(type(one)) for one in log.items]


async def has_event(rig: Rig, kind: str) -> bool:
    return kind in await read_types(rig)


def test_agents_of_one_node_are_seen_and_resolved_on_the_other(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await book.register("hudson", harness="echo", config={"description": "reviews"})
        await mini.register("hudson", harness="echo")
        await mini.register("arc", harness="echo")
        await wait_for(lambda: sees(book, "@arc"))
        await wait_for(lambda: sees(mini, "@hudson.node:book"))
        assert {one.address for one in (await mini.operator(Who())).items} == {"@hudson", "@arc"}
        everywhere = {one.address: one.node for one in (await mini.operator(Who(all_nodes=True))).items}
        assert everywhere == {"@hudson": "mini", "@arc": "mini", "@hudson.node:book": "book"}
        found = await mini.operator(Resolve(address="@hudson.node:book"))
        assert (found.address, found.description) == ("@hudson.node:book", "reviews")
        assert (await mini.operator(Resolve(address="@hudson"))).address == "@hudson"
        shown = await mini.operator(ShowAgent(address="@hudson.node:book"))
        assert (shown.node, shown.owner) == ("book", "ada")
        searched = await book.operator(Who(query="arc"))
        assert [one.node for one in searched.items] == ["mini"]

    play(scene, tmp_path, "book", "mini")


def test_a_retired_agent_is_listed_no_longer(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await book.register("arc", harness="echo")
        await wait_for(lambda: sees(mini, "@arc"))
        remote = (await mini.operator(ShowAgent(address="@arc"))).id
        await book.operator(RetireAgent(address="@arc"))

        async def is_gone() -> bool:
            return not await sees(mini, "@arc")

        await wait_for(is_gone)
        assert (await expect_refusal(mini.operator(Resolve(address="@arc")))).code == "unknown_target"
        told = await expect_refusal(mini.operator(Resolve(address=remote)))
        assert "book no longer lists it" in told.message

    play(scene, tmp_path, "book", "mini")


@pytest.mark.parametrize(
    "request_",
    [
        ListSessions(agent="@arc"),
        StartSession(agent="@arc"),
        ConfigureAgent(address="@arc", config={"description": "x"}),
        RetireAgent(address="@arc"),
    ],
    ids=lambda one: one.operation,
)
def test_what_only_its_node_can_do_is_refused_with_the_command_to_run_there(
    tmp_path: Path, request_: ListSessions
) -> None:
    async def scene(mesh: MeshRig) -> None:
        await mesh["book"].register("arc", harness="echo")
        await wait_for(lambda: sees(mesh["mini"], "@arc"))
        told = await expect_refusal(mesh["mini"].operator(request_))
        assert (told.code, told.node) == ("remote_target", "book")
        assert (told.remedies[0].operation, told.remedies[0].why) == (request_.operation, "on book")

    play(scene, tmp_path, "book", "mini")


def test_nobody_acts_as_an_agent_of_another_node(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        await mesh["book"].register("arc", harness="echo")
        await wait_for(lambda: sees(mesh["mini"], "@arc"))
        with pytest.raises(Refused, match="lives on book"):
            await mesh["mini"].scout(act_as="@arc")

    play(scene, tmp_path, "book", "mini")


def test_an_alias_may_name_an_agent_of_another_node(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        await mesh["book"].register("arc", harness="echo")
        await mesh["book"].register("huddy", harness="echo")
        mini = mesh["mini"]
        await wait_for(lambda: sees(mini, "@arc"))
        await mini.operator(SetAlias(name="huddy", target="@arc"))
        assert (await mini.operator(Resolve(address="@huddy"))).path.endswith("/arc")

    play(scene, tmp_path, "book", "mini")


def test_a_lost_node_is_noticed_and_comes_back(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await book.register("arc", harness="echo")
        await wait_for(lambda: sees(mini, "@arc"))
        loop = asyncio.get_running_loop()
        began = loop.time()
        mesh.link("book").cut()
        await wait_for(lambda: has_event(mini, "collab.node.lost"))
        assert loop.time() - began < 10  # five, and what a busy machine takes
        lost = (await list_nodes(mini))[1]
        assert (lost.name, lost.state) == ("book", "unreachable")
        assert lost.since is not None
        shown = await mini.operator(ShowAgent(address="@arc"))
        assert shown.status == "unreachable"
        told = await expect_refusal(mini.operator(Resolve(address="@nobody.node:book")))
        assert (told.code, told.since) == ("peer_unreachable", lost.since)
        assert (await mini.operator(ShowMesh())).unreachable == ("book",)
        await wait_for(lambda: has_event(book, "collab.node.lost"))  # it knows that it is alone
        mesh.link("book").heal()
        await wait_for(lambda: has_event(mini, "collab.node.recovered"))
        assert (await mini.operator(ShowAgent(address="@arc"))).status != "unreachable"

    play(scene, tmp_path, "book", "mini")


def test_a_node_that_was_just_admitted_is_given_time_for_its_first_heartbeat(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        keys, inlet = mesh.kits["book"].keys(), mini.broker.mesh
        assert isinstance(keys, TestKeys)
        (known,) = [one.id for one in await list_nodes(mini) if one.name == "book"]
        new = "nod_01kzsctqhje0ktrg8rw9jzp7aa"
        await inlet.take_member(
            new, forge(mesh.server.members[known], keys, MEMBER_SIGNED_AS, nodeId=new, name="new")
        )
        await inlet.take_heartbeat(new, None)
        states = {one.name: one.state for one in await list_nodes(mini)}
        assert states["new"] == "online"
        await wait_for(lambda: has_event(mini, "collab.node.lost"))  # but not for long
        assert {one.name: one.state for one in await list_nodes(mini)}["new"] == "unreachable"
        assert (await book.operator(ShowMesh())).unreachable == ()

    play(scene, tmp_path, "book", "mini")


# -- invitations -------------------------------------------------------------------------------------


@pytest.mark.rows("R8.j-2")
def test_an_invitation_works_once_and_not_after_its_time(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book = mesh["book"]
        used = await book.operator(InviteNode())
        late = await book.operator(InviteNode(expires=60))
        assert {used.invitation_id, late.invitation_id} <= set(mesh.server.invitations)
        mesh_kit = mesh.kits["mini"]
        await mesh["mini"].operator(LeaveMesh())
        await mesh["mini"].operator(JoinMesh(line=used.line))
        await mesh["mini"].operator(LeaveMesh())
        told = await expect_refusal(mesh["mini"].operator(JoinMesh(line=used.line)))
        assert (told.code, "used" in told.message) == ("invitation_invalid", True)
        book.clock.ahead += 61
        await wait_for(lambda: has_event(book, "collab.invitation.expired"))
        await wait_for(lambda: _has_no_invitations(mesh))
        told = await expect_refusal(mesh["mini"].operator(JoinMesh(line=late.line)))
        assert "expired" in told.message
        assert mesh_kit.read() is None

    play(scene, tmp_path, "book", "mini")


def test_a_taken_name_is_refused_with_a_free_one_and_another_name_renames(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await mini.register("arc", harness="echo")
        told = await expect_refusal(book.operator(InviteNode(name="mini")))
        assert (told.code, told.candidates[0].address) == ("name_taken", "mini-2")
        await mini.operator(LeaveMesh())
        invited = await book.operator(InviteNode())
        told = await expect_refusal(mini.operator(JoinMesh(line=invited.line, name="book")))
        assert (told.code, told.candidates[0].address) == ("name_taken", "book-2")
        joined = await mini.operator(JoinMesh(line=invited.line, name="studio"))
        assert joined.node == "studio"
        assert "studio (it was mini)" in joined.notes[0]
        await wait_for(lambda: sees(book, "@arc"))
        assert (await book.operator(Resolve(address="@arc.node:studio"))).address == "@arc"
        assert (await mini.operator(Resolve(address="@arc.node:studio"))).address == "@arc"

    play(scene, tmp_path, "book", "mini")


def test_only_the_founder_invites_and_removes(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        requests: list[Request[Any]] = [InviteNode()]
        requests.append(RemoveNode(node="book"))
        for request in requests:
            told = await expect_refusal(mesh["mini"].operator(request))
            assert (told.code, told.founder) == ("not_founder", "book")
            assert told.remedies[0].why == "on book"
        agent = await mesh["mini"].agent("arc")
        assert (await expect_refusal(agent.call(InviteNode()))).code == "forbidden"

    play(scene, tmp_path, "book", "mini")


def test_a_machine_without_a_mesh_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        async with open_rig(tmp_path) as rig:
            assert not (await rig.operator(ShowMesh())).member
            assert [one.name for one in (await rig.operator(ListMeshNodes())).items] == ["mini"]
            told = await expect_refusal(rig.operator(StartMesh()))
            assert told.code == "forbidden"  # only a daemon has a mesh
            renamed = await rig.operator(RenameNode(name="Studio.local"))
            assert renamed.node == "studio-local"

    asyncio.run(main())


def test_a_removed_node_is_cut_and_listed_no_longer(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await mini.register("arc", harness="echo")
        await wait_for(lambda: sees(book, "@arc"))
        told = await expect_refusal(book.operator(RemoveNode(node="mimi")))
        assert (told.code, told.candidates[0].address) == ("not_found", "mini")
        removed = await book.operator(RemoveNode(node="mini"))
        assert removed.state == "removed"
        assert not await sees(book, "@arc")
        assert "mini" not in [one.name for one in await list_nodes(book)]
        assert len(mesh.server.logins) == 1
        assert not mesh.link("mini").status.connected or "mini" not in mesh.server.links

    play(scene, tmp_path, "book", "mini")


def test_renaming_rotating_and_leaving_reach_the_others(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await mini.register("arc", harness="echo")
        await wait_for(lambda: sees(book, "@arc"))
        told = await expect_refusal(mini.operator(RenameNode(name="book")))
        assert told.code == "name_taken"
        assert (await mini.operator(RenameNode(name="studio"))).node == "studio"
        await wait_for(lambda: has_event(book, "collab.node.renamed"))
        assert (await book.operator(ShowAgent(address="@arc"))).node == "studio"
        before = set(mesh.server.logins.values())
        await mini.operator(RotateLogin())
        await wait_for(lambda: has_event(book, "collab.node.key_rotated"))
        assert len(set(mesh.server.logins.values()) - before) == 1
        assert (await book.operator(RenameNode(name="desk"))).node == "desk"
        await wait_for(lambda: has_event(mini, "collab.node.renamed"))
        assert not (await mini.operator(LeaveMesh())).member
        await wait_for(lambda: has_event(book, "collab.node.left"))
        assert not await sees(book, "@arc")
        await wait_for(lambda: _has_logins(mesh, 1))

    play(scene, tmp_path, "book", "mini")


async def _has_logins(mesh: MeshRig, count: int) -> bool:
    return len(mesh.server.logins) == count


def test_a_mesh_is_stopped_and_started_again(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        stopped = await book.operator(StopMesh())
        assert (stopped.member, stopped.stopped, stopped.connected) == (True, True, False)
        assert not mesh.server.running
        told = await expect_refusal(book.operator(InviteNode()))
        assert told.remedies[0].operation == "mesh.up"
        assert (await expect_refusal(book.operator(JoinMesh(line="x")))).code == "bad_request"
        await wait_for(lambda: has_event(mini, "collab.node.lost"))
        started = await book.operator(StartMesh())
        assert (started.connected, started.founder) == (True, True)
        assert started.server is not None
        await wait_for(lambda: has_event(mini, "collab.node.recovered"))
        shared = await mini.operator(ShareAttention())
        assert shared.shares_attention
        assert not (await mini.operator(ShareAttention(off=True))).shares_attention

    play(scene, tmp_path, "book", "mini")


# -- what is false -----------------------------------------------------------------------------------


@pytest.mark.rows("R8.t-2")
def test_forged_members_heartbeats_and_entries_are_refused_and_recorded(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await book.register("arc", harness="echo")
        own = await mini.register("own", harness="echo")
        await wait_for(lambda: sees(mini, "@arc"))
        await wait_for(lambda: sees(book, "@own"))
        inlet, server, stranger = mini.broker.mesh, mesh.server, TestKeys()
        book_id = next(one.id for one in await list_nodes(mini) if one.name == "book")
        (entry,) = [data for (node, _), data in server.entries.items() if node == book_id]
        arc = (await mini.operator(ShowAgent(address="@arc"))).id

        await inlet.take_member(
            book_id, forge(server.members[book_id], stranger, MEMBER_SIGNED_AS, name="evil")
        )
        beat = forge(server.beats[book_id], stranger, HEARTBEAT_SIGNED_AS, leaving=True, number=2**60)
        await inlet.take_heartbeat(book_id, beat)
        await inlet.take_heartbeat("nod_x", beat)
        forged = forge(entry, stranger, SIGNED_AS, revision=2**60, description="evil")
        book_keys = mesh.kits["book"].keys()
        assert isinstance(book_keys, TestKeys)
        mine = forge(entry, book_keys, SIGNED_AS, id=own.agent.id, revision=2**60)
        foreign = forge(entry, book_keys, SIGNED_AS, nodeId="nod_other", revision=2**60)
        await inlet.take_entries(
            [
                (book_id, arc, forged),
                (book_id, own.agent.id, mine),
                (book_id, arc, foreign),
                ("nod_x", arc, entry),
            ]
        )
        log = await mini.operator(ReadLog(limit=200))
        reasons = [one.payload.reason for one in log.items if isinstance(one, NodeRefused)]
        assert len(reasons) == 6, reasons  # the same one again is not recorded twice
        assert [one.name for one in await list_nodes(mini)] == ["mini", "book"]
        assert (await mini.operator(ShowAgent(address="@own"))).node == "mini"
        assert (await mini.operator(ShowAgent(address="@arc"))).description is None
        assert read_member(server.members[book_id]).name == "book"

    play(scene, tmp_path, "book", "mini")


def test_an_old_entry_changes_nothing(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await book.register("arc", harness="echo", config={"description": "old"})
        await wait_for(lambda: sees(mini, "@arc"))
        ((node_id, agent_id), old), *_ = [one for one in mesh.server.entries.items() if b"old" in one[1]]
        await book.operator(ConfigureAgent(address="@arc", config={"description": "new"}))

        async def is_new() -> bool:
            return (await mini.operator(ShowAgent(address="@arc"))).description == "new"

        await wait_for(is_new)
        await mini.broker.mesh.take_entries([(node_id, agent_id, old)])
        # One that is known is not even verified: a start reads the whole directory again.
        await mini.broker.mesh.take_entries([(node_id, agent_id, forge(old, TestKeys(), SIGNED_AS))])
        assert await is_new()
        log = await mini.operator(ReadLog(limit=200))
        assert not [one for one in log.items if isinstance(one, NodeRefused)]

    play(scene, tmp_path, "book", "mini")


@pytest.mark.rows("R8.d-1")
@pytest.mark.parametrize("change", ["altered", "forged", "older", "deleted"])
def test_an_own_entry_that_comes_back_altered_is_published_again(tmp_path: Path, change: str) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await book.register("arc", harness="echo", config={"description": "first"})
        await wait_for(lambda: sees(mini, "@arc"))
        ((node_id, agent_id), old), *_ = [one for one in mesh.server.entries.items() if b"first" in one[1]]
        await book.operator(ConfigureAgent(address="@arc", config={"description": "second"}))
        server = mesh.server
        await wait_for(lambda: _holds(server.entries.get((node_id, agent_id)), b"second"))
        true = server.entries[node_id, agent_id]
        bad = {
            "altered": true.replace(b"second", b"strange"),
            "forged": forge(true, TestKeys(), SIGNED_AS, revision=2**60),
            "older": old,
            "deleted": None,
        }[change]
        server.entries.pop((node_id, agent_id))
        server.tell(lambda inlet: inlet.take_entries([(node_id, agent_id, bad)]))
        await wait_for(lambda: _holds(server.entries.get((node_id, agent_id)), b"second"))
        assert server.entries[node_id, agent_id] != true, "it has a higher revision"

    play(scene, tmp_path, "book", "mini")


async def _holds(data: bytes | None, text: bytes) -> bool:
    return data is not None and text in data


# -- guests ------------------------------------------------------------------------------------------


@pytest.mark.rows("R8.t-3")
def test_a_guest_is_scoped_by_its_key(tmp_path: Path) -> None:
    async def scene(mesh: MeshRig) -> None:
        book, mini = mesh["book"], mesh["mini"]
        await book.register("arc", harness="echo")
        await mini.register("bow", harness="echo")
        await wait_for(lambda: sees(book, "@bow"))
        await wait_for(lambda: sees(mini, "@arc"))
        (guest,) = [one for one in await list_nodes(book) if one.name == "mini"]
        assert guest.relation == "guest"
        assert guest.public_key is not None
        assert guest.user == f"~{guest.public_key[:8]}"
        assert (await book.operator(ShowAgent(address="@bow"))).owner == guest.user
        (host,) = [one for one in await list_nodes(mini) if one.name == "book"]
        assert (await mini.operator(ShowAgent(address="@arc"))).owner == host.user
        granted = await book.operator(AddGrant(action=Action.ASK, node="mini", path="/ada/agent/arc"))
        assert granted.user == guest.user
        assert (
            await expect_refusal(book.operator(AddGrant(action=Action.ASK, node="moon")))
        ).code == "not_found"
        own = AddGrant(action=Action.ASK, node="book", path="/ada/agent/arc")
        assert (await expect_refusal(book.operator(own))).code == "bad_request"
        agent = await book.agent("cat", harness="echo")
        assert (await expect_refusal(agent.call(ShowAgent(address="@bow")))).code == "unknown_target"

    play(scene, tmp_path, "book", "mini", guests=("mini",))


async def _has_no_invitations(mesh: MeshRig) -> bool:
    """A used one keeps its login until its answer must have arrived."""
    return not mesh.server.invitations
