"""The mesh as a drawing: this machine, the server, and the other machines, joined by their links."""

from collections.abc import Sequence

from scout.base.codec import to_plain
from scout.policy.sentences import describe_queue
from scout.protocol.mesh import MeshView, NodeView
from scout.web.drawing import draw, draw_words, show_number
from scout.web.html import Html, tag

_WIDE, _HIGH, _RIGHT, _DOWN = 168, 52, 76, 12  # a box, and the gaps beside and below it
_LETTERS = 19  # that fit in a box
_DOTS = {"online": "good", "unreachable": "bad", "left": "rest", "removed": "rest"}


def draw_mesh(mesh: MeshView, nodes: Sequence[NodeView]) -> Html:
    """Return the drawing of this machine at the left, the server, and the other machines at the right."""
    here = next((one for one in nodes if one.here), None)
    others = [one for one in nodes if not one.here]
    height = max(len(others), 1) * (_HIGH + _DOWN) - _DOWN + 4
    middle = (height - _HIGH) / 2
    boxes = [_draw_machine(here, 0, middle)] if here is not None else []
    boxes.append(_draw_server(mesh, middle))
    edges = [_draw_link(0, middle, middle, whole=mesh.connected)]
    for row, one in enumerate(others):
        y = 2 + row * (_HIGH + _DOWN)
        boxes.append(_draw_machine(one, 2, y))
        edges.append(_draw_link(1, middle, y, whole=one.state == "online"))
    width = 3 * _WIDE + 2 * _RIGHT + 4
    label = f"{len(nodes)} machines and their server. The list below has the same facts."
    return draw(label, (width, height), *edges, *boxes, cls="tree-picture", scale=False)


def _draw_machine(node: NodeView, column: int, y: float) -> Html:
    agents = "1 agent" if node.agents == 1 else f"{node.agents} agents"
    waits = "" if node.here or not node.queued else f", {node.queued} waiting"
    words = f"{node.name}, {node.state}, {agents}, {describe_queue(to_plain(node))}"
    dot = _DOTS.get(node.state, "quiet")
    return _draw_box(column, y, (node.name, f"{agents}{waits}"), words, dot, here=node.here)


def _draw_server(mesh: MeshView, y: float) -> Html:
    place = (mesh.url or "").partition("//")[2]
    dot = "good" if mesh.connected else "bad"
    said = "connected" if mesh.connected else "stopped" if mesh.stopped else "not connected"
    words = f"server at {mesh.url}, {said}"
    return _draw_box(1, y, ("server", place), words, dot)


def _draw_box(
    column: int, y: float, told: tuple[str, str], words: str, dot: str, *, here: bool = False
) -> Html:
    x = column * (_WIDE + _RIGHT) + 2
    name, below = told
    box = tag(
        "rect",
        x=show_number(x),
        y=show_number(y),
        width=_WIDE,
        height=_HIGH,
        rx=6,
        cls="tree-node here" if here else "tree-node",
    )
    circle = tag("circle", cx=show_number(x + 14), cy=show_number(y + 17), r=4, cls=f"tree-dot-{dot}")
    return tag(
        "g",
        tag("title", words),
        box,
        circle,
        draw_words(x + 26, y + 21, _fit(name), "node-name"),
        draw_words(x + 12, y + 41, _fit(below)),
    )


def _draw_link(column: int, begin: float, end: float, *, whole: bool) -> Html:
    """Return the link from a column to the next; a broken one is dashed."""
    x1 = column * (_WIDE + _RIGHT) + 2 + _WIDE
    x2, y1, y2 = x1 + _RIGHT, show_number(begin + _HIGH / 2), show_number(end + _HIGH / 2)
    half = show_number(x1 + _RIGHT / 2)
    path = f"M{x1} {y1} C{half} {y1} {half} {y2} {x2} {y2}"
    return tag("path", d=path, cls="tree-edge" if whole else "tree-edge broken")


def _fit(words: str) -> str:
    return words if len(words) <= _LETTERS else f"{words[: _LETTERS - 1]}…"
