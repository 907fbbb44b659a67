"""Mesh: the machines whose agents reach each other, what waits for each, and the server."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult

from scout.base.codec import to_plain
from scout.model.node import NodeState
from scout.policy.sentences import (
    describe_mesh,
    describe_node_state,
    describe_queue,
    describe_server,
    list_roles,
)
from scout.protocol.mesh import InviteNode, ListMeshNodes, MeshView, NodeView, RemoveNode, ShowMesh
from scout.tui.dialogs import Chooser, KeyChoice, TextDialog
from scout.tui.rows import Row, RowColumn, RowList, build_note, build_title
from scout.tui.text import Paragraph, Span, format_age, format_clock, show_text
from scout.tui.view import ScreenView, ViewHost

_MARKS: dict[NodeState, Span] = {
    NodeState.ONLINE: ("●", "green"),
    NodeState.UNREACHABLE: ("✗", "red"),
    NodeState.LEFT: ("–", "dim"),
    NodeState.REMOVED: ("–", "dim"),
}
_FIRST_STEPS = (
    "A mesh connects machines that run Scout, so that their agents reach each other.",
    "",
    "On the machine that the others can reach:  scout mesh up",
    "There, for each other machine:             scout mesh invite --name mini",
    "On the other machine:                      scout mesh join LINE",
)


class MeshMachines(ScreenView):
    """The machines. `+` invites one, `x` removes one."""

    key: ClassVar[str] = "mesh"
    nouns: ClassVar[frozenset[str]] = frozenset({"node", "envelope", "invitation"})

    def __init__(self, host: ViewHost) -> None:
        super().__init__(host)
        self._mesh: MeshView | None = None
        self._machines: dict[str, NodeView] = {}

    def compose(self) -> ComposeResult:
        yield RowList((RowColumn(1), RowColumn(28), RowColumn(0), RowColumn(10, right=True)))

    async def load(self) -> None:
        self._mesh = await self.host.call(ShowMesh())
        found = await self.host.call(ListMeshNodes()) if self._mesh.member else None
        self._machines = {node.name: node for node in found.items} if found is not None else {}
        self.draw()

    def tick(self) -> None:
        if self._mesh is not None:
            self.query_one(RowList).set_rows(self._build_rows(self._mesh))

    def _build_rows(self, mesh: MeshView) -> list[Row]:
        said = show_text(describe_mesh(to_plain(mesh)))
        if not mesh.member:
            problem = [build_note(f"  {show_text(mesh.problem)}", "yellow")] if mesh.problem else []
            first = [build_note(f"  {line}") for line in _FIRST_STEPS]
            return [build_note(f"  {said}.", ""), *problem, build_note(""), *first]
        facts = [build_note(f"  {said}", "" if mesh.connected else "yellow")]
        if mesh.server is not None:
            facts.append(build_note(f"  server: {show_text(describe_server(to_plain(mesh.server)))}"))
        rows = [_build_row(node) for node in self._machines.values()]
        alone = (
            [build_note("  No other machine has joined. Press + to invite one.")] if len(rows) == 1 else []
        )
        return [*facts, build_note(""), build_title("Machines", str(len(rows))), *rows, *alone]

    def offers(self, action: str) -> bool:
        founder = self._mesh is not None and self._mesh.founder
        node = self._machines.get(self.query_one(RowList).key)
        if action == "node.remove":
            return founder and node is not None and not node.here
        return action != "new" or founder

    def do_new(self) -> None:
        self.host.start(self._invite())

    async def _invite(self) -> None:
        dialog = TextDialog("Invite a machine: its name", hint="mini; empty: its own")
        name = await self.host.ask_person(dialog)
        if name is None:
            return
        line = (await self.host.call(InviteNode(name=name or None))).line
        await self._show_line(f"scout mesh join '{line}'")

    async def _show_line(self, command: str) -> None:
        says = "Run this on the other machine. It works once, for 15 minutes."
        blocks = [Paragraph(says, "dim"), Paragraph(""), Paragraph(command, "bold", foreign=True, exact=True)]
        if await self.host.ask_person(Chooser("Invitation", [KeyChoice("c", "Copy it", "copy")], blocks)):
            self.host.copy(command)
            self.host.say("Copied, if your terminal allows it.", "green")

    def do_node_remove(self) -> None:
        node = self._machines.get(self.query_one(RowList).key)
        if node is None:
            self.host.say("Choose a machine first.", "yellow")
        else:
            self.host.start(self._remove(node))

    async def _remove(self, node: NodeView) -> None:
        title = f"Remove {show_text(node.name)} from the mesh? Its connection is cut."
        if await self.host.ask_person(Chooser(title, [KeyChoice("x", "remove it", "remove")])):
            await self.host.call(RemoveNode(node=node.name))
            self.host.say(f"Removed {show_text(node.name)}.", "green")


def _build_row(node: NodeView) -> Row:
    since = format_clock(node.since) if node.since is not None else ""
    seen = "now" if node.state is NodeState.ONLINE else format_age(node.last_seen)
    return Row(
        node.name,
        (
            _MARKS[node.state],
            (f"{show_text(node.name)}{_list_roles(node)}", ""),
            (" · ".join(_list_facts(node, since)), _MARKS[node.state][1] if since else ""),
            (seen, "dim"),
        ),
    )


def _list_roles(node: NodeView) -> str:
    said = ", ".join(list_roles(to_plain(node)))
    return f" ({said})" if said else ""


def _list_facts(node: NodeView, since: str) -> Sequence[str]:
    waits = describe_queue(to_plain(node), f"{format_age(node.queued_since)} ago" if node.queued else "")
    agents = "1 agent" if node.agents == 1 else f"{node.agents} agents"
    facts = (describe_node_state(node.state, since), agents, "" if node.here else waits, node.version or "")
    return [show_text(one) for one in facts if one]
