"""Mesh: the machines whose agents reach each other, their links, and the server."""

from collections.abc import Sequence

from scout.base.codec import to_plain
from scout.model.node import NodeState
from scout.policy.sentences import (
    count_machines,
    describe_link,
    describe_queue,
    describe_server,
    list_roles,
)
from scout.protocol.mesh import ListMeshNodes, MeshView, NodeView, ShowMesh
from scout.web.html import Child, Html, join, tag
from scout.web.layout import PageBody
from scout.web.mesh_picture import draw_mesh
from scout.web.parts import (
    Column,
    build_button,
    build_list,
    build_panel,
    show_command,
    show_empty,
    show_facts,
    show_state,
    show_time,
)
from scout.web.views.request import PageRequest

_FAMILIES = ("collab.node", "collab.envelope", "collab.invitation")
_DRAWN = 30
_COLUMNS = (
    Column("State", "c-state"),
    Column("Machine", "c-agent"),
    Column("Agents", "c-number"),
    Column("Waiting", "c-what"),
    Column("Seen", "c-when"),
    Column("Version", "c-wide"),
    Column("Actions", "c-act"),
)


async def show_mesh(request: PageRequest) -> PageBody:
    """Return the machines of the mesh, or how to connect some."""
    mesh = await request.scout.call(ShowMesh())
    if not mesh.member:
        return PageBody("Mesh", _show_nothing(mesh), _FAMILIES)
    every = request.get_flag("all")
    nodes = (await request.scout.call(ListMeshNodes(all=every))).items
    main = tag(
        "div",
        build_panel("Links", _draw(mesh, nodes), cls="wide"),
        build_panel("Machines", _list_nodes(mesh, nodes), ident="machines", cls="wide"),
        build_panel("This machine", _show_facts(mesh), _build_own_moves(mesh), ident="here"),
        build_panel("Invite", _build_invitation(mesh, nodes)),
        cls="columns",
    )
    switch = tag(
        "a",
        "Without former" if every else "Former too",
        cls="button",
        href="/mesh" + ("" if every else "?all=1"),
    )
    return PageBody("Mesh", main, _FAMILIES, actions=switch)


def _show_nothing(mesh: MeshView) -> Html:
    found = build_button(
        "Found a mesh here",
        "mesh.up",
        {},
        cls="primary",
        confirm="Start a server that listens on all addresses of this machine? Only machines that you invite "
        "can use it.",
        done="The mesh is founded. Invite a machine.",
    )
    problem = tag("p", mesh.problem, cls="warning") if mesh.problem else None
    words = join("A mesh connects machines that run Scout, so that their agents reach each other.")
    return tag("div", problem, show_empty(f"{mesh.node} belongs to no mesh.", words), show_steps(), found)


def show_steps() -> Html:
    """Return how two machines are connected."""
    return tag(
        "ol",
        tag("li", "On the machine that the others can reach: ", show_command("scout mesh up")),
        tag("li", "There, for each other machine: ", show_command("scout mesh invite --name mini")),
        tag(
            "li", "On the other machine, paste the line that this printed: ", show_command("scout mesh join")
        ),
        cls="steps",
    )


def _draw(mesh: MeshView, nodes: Sequence[NodeView]) -> Html:
    picture = tag(
        "div",
        draw_mesh(mesh, nodes[:_DRAWN]),
        cls="tree-box",
        tabindex=0,
        role="region",
        aria_label="Machines and links",
    )
    more = len(nodes) - _DRAWN
    rest = tag("p", f"{more} more machines are listed below.", cls="quiet") if more > 0 else None
    return join(picture, rest)


# -- the machines --------------------------------------------------------------------------------------


def _list_nodes(mesh: MeshView, nodes: Sequence[NodeView]) -> Html:
    rows = [(one.id, None, _list_cells(mesh, one)) for one in nodes]
    alone = tag("p", "No other machine has joined yet. Invite one below.", cls="quiet")
    return join(
        build_list("nodes", "Machines of the mesh", _COLUMNS, rows), alone if len(nodes) == 1 else None
    )


def _list_cells(mesh: MeshView, node: NodeView) -> tuple[Child, ...]:
    state = show_state(node.state, node.state)
    since = show_time(node.since, ago=False)
    since = tag("span", " since ", since, cls="quiet") if since else None
    seen = "now" if node.state is NodeState.ONLINE else show_time(node.last_seen)
    return (
        join(state, since) if since else state,
        _show_name(node),
        node.agents,
        "" if node.here else _show_queue(node),
        seen,
        node.version or "",
        _build_removal(node) if mesh.founder and not node.here else None,
    )


def _show_name(node: NodeView) -> Html:
    belongs = [f"its agents belong to {node.user}"] if node.user is not None else []
    said = ", ".join([*list_roles(to_plain(node)), *belongs])
    return tag("span", tag("strong", node.name), tag("span", f" ({said})", cls="quiet") if said else None)


def _show_queue(node: NodeView) -> Html:
    words = describe_queue(to_plain(node))
    since = show_time(node.queued_since)
    return tag("span", words, join(", the oldest ", since) if since else None)


def _build_removal(node: NodeView) -> Html | None:
    if node.state is NodeState.REMOVED:
        return None
    return build_button(
        "Remove",
        "mesh.remove",
        {"node": node.name},
        cls="danger",
        key="x",
        confirm=f"Remove {node.name} from the mesh? Its connection is cut. It needs a new invitation to come "
        "back.",
        done="Removed.",
        name=f"Remove {node.name}",
    )


# -- this machine --------------------------------------------------------------------------------------


def _show_facts(mesh: MeshView) -> Html:
    plain, since = to_plain(mesh), show_time(mesh.since, ago=False)
    facts = (
        ("Name", mesh.node),
        ("Mesh", "founded here" if mesh.founder else "joined"),
        ("Server", tag("code", mesh.url or "")),
        ("Connection", join(describe_link(plain), " since ", since) if since else describe_link(plain)),
        ("Server here", describe_server(to_plain(mesh.server)) if mesh.server is not None else None),
        ("Machines", count_machines(mesh.nodes)),
        ("Not reachable", ", ".join(mesh.unreachable)),
        ("Items that need you", "shared with your other machines" if mesh.shares_attention else "only here"),
    )
    return show_facts(facts)


def _build_own_moves(mesh: MeshView) -> Html:
    if mesh.stopped:
        return tag("div", build_button("Start", "mesh.up", {}, done="Started."), cls="actions")
    share = build_button(
        "Share no items" if mesh.shares_attention else "Share items that need you",
        "mesh.share",
        {"off": mesh.shares_attention},
        done="Changed.",
    )
    rotate = build_button("Rotate login key", "mesh.rotate", {}, done="This machine has another login key.")
    stop = build_button(
        "Stop",
        "mesh.down",
        {},
        confirm="Stop the mesh on this machine? Other machines cannot reach its agents until you start it.",
        done="Stopped.",
    )
    leave = build_button(
        "Leave",
        "mesh.leave",
        {},
        cls="danger",
        confirm=f"{_describe_leaving(mesh)} It needs a new invitation to come back.",
        done="Left.",
    )
    moves = tag("div", share, rotate, stop, leave, cls="actions")
    return join(moves, _build_form("Rename this machine", "mesh.rename", "New name", "studio", "Renamed."))


def _describe_leaving(mesh: MeshView) -> str:
    return "End this mesh, and its server?" if mesh.founder else f"Leave the mesh with {mesh.node}?"


# -- invitations ---------------------------------------------------------------------------------------


def _build_invitation(mesh: MeshView, nodes: Sequence[NodeView]) -> Html:
    if not mesh.founder:
        founder = next((one.name for one in nodes if one.founder), "the machine that founded the mesh")
        return join(
            tag("p", f"Machines are invited and removed on {founder}. Run this there:"),
            show_command("scout mesh invite --name NAME"),
        )
    words = "The line works once, for 15 minutes. It holds a secret: send it by a way you trust."
    return join(
        tag("p", words, cls="quiet"),
        _build_form("Invite a machine", "mesh.invite", "Its name", "mini", _INVITED, key="+"),
        _build_form("Invite a guest", "mesh.invite", "Its name", "theirs", _INVITED, guest=True),
    )


_INVITED = "Run this on the other machine. It works once, for 15 minutes."


def _build_form(
    label: str,
    operation: str,
    field: str,
    sample: str,
    done: str,
    *,
    guest: bool = False,
    key: str | None = None,
) -> Html:
    invites = operation == "mesh.invite"
    name = tag(
        "label",
        field,
        tag("input", name="name", cls="input", placeholder=sample, required=not invites, autocomplete="off"),
    )
    button = tag("button", label, type="submit", cls="button primary")
    form = tag(
        "form",
        name,
        button,
        cls="filters",
        data_form=operation,
        data_parameters='{"guest":true}' if guest else None,
        data_done=done,
        data_command="scout mesh join '{line}'" if invites else None,
    )
    summary = tag("summary", label, cls="button", data_key_press=key, aria_keyshortcuts=key)
    return tag(
        "details",
        summary,
        form,
        cls="new-record",
        data_focus=True,
        data_page_keys=key is not None,
        data_key=label,
    )
