"""The tree of agents as a drawing: from left to right, one box for each agent, joined to its parent."""

from collections.abc import Sequence
from urllib.parse import quote

from scout.protocol.tree.view import TreeAgent
from scout.web.drawing import draw, draw_words, show_number
from scout.web.html import Html, tag

_WIDE, _HIGH, _RIGHT, _DOWN = 210, 52, 44, 12  # a box, and the gaps beside and below it
_DOTS = {
    "online": "good",
    "waking": "accent",
    "waiting": "warn",
    "needs_attention": "warn",
    "unreachable": "bad",
}
_NAME, _BRANCH = 24, 30  # letters that fit in a box


def draw_tree(agents: Sequence[TreeAgent]) -> Html:
    """Return the drawing of agents that come in the order of the tree, each after its parent."""
    rows = _place(agents)
    deepest = max(one.depth for one in agents)
    width = (deepest + 1) * (_WIDE + _RIGHT) - _RIGHT + 4
    height = int((max(rows.values()) + 1) * (_HIGH + _DOWN)) - _DOWN + 4
    shown = {one.id: one for one in agents}
    edges = [
        _draw_edge(shown[one.parent_id], one, rows)
        for one in agents
        if one.parent_id is not None and one.parent_id in shown
    ]
    boxes = [_draw_box(one, rows[one.id]) for one in agents]
    label = f"{len(agents)} agents by branch. The list below has the same facts."
    # Its parts are links, so it is a group and not one image.
    return draw(label, (width, height), *edges, *boxes, cls="tree-picture", scale=False, role="group")


def _place(agents: Sequence[TreeAgent]) -> dict[str, float]:
    """Return the row of each agent: leaves one under the other, a parent in the middle of its children."""
    children = dict[str, list[str]]()
    shown = {one.id for one in agents}
    for one in agents:
        if one.parent_id is not None and one.parent_id in shown:
            children.setdefault(one.parent_id, []).append(one.id)
    rows = dict[str, float]()
    leaf = 0
    for one in agents:
        if one.id not in children:
            rows[one.id] = leaf
            leaf += 1
    for one in reversed(agents):
        if below := children.get(one.id):
            rows[one.id] = (rows[below[0]] + rows[below[-1]]) / 2
    return rows


def _get_corner(agent: TreeAgent, row: float) -> tuple[float, float]:
    return agent.depth * (_WIDE + _RIGHT) + 2, row * (_HIGH + _DOWN) + 2


def _draw_edge(parent: TreeAgent, child: TreeAgent, rows: dict[str, float]) -> Html:
    left, top = _get_corner(parent, rows[parent.id])
    right, bottom = _get_corner(child, rows[child.id])
    x1, y1, x2, y2 = left + _WIDE, top + _HIGH / 2, right, bottom + _HIGH / 2
    middle = show_number((x1 + x2) / 2)
    begin, end = f"{show_number(x1)} {show_number(y1)}", f"{show_number(x2)} {show_number(y2)}"
    path = f"M{begin} C{middle} {show_number(y1)} {middle} {show_number(y2)} {end}"
    return tag("path", d=path, cls="tree-edge")


def _draw_box(agent: TreeAgent, row: float) -> Html:
    x, y = _get_corner(agent, row)
    dot = "rest" if agent.lifecycle == "retired" else _DOTS.get(agent.status, "quiet")
    branch = agent.facts.branch if agent.facts and agent.facts.branch else agent.birth_branch
    state = _count_changes(agent)
    words = f"{agent.address}, {agent.status}, branch {branch or 'of its parent'}, {state or 'clean'}"
    box = tag(
        "rect",
        x=show_number(x),
        y=show_number(y),
        width=_WIDE,
        height=_HIGH,
        rx=6,
        cls="tree-node here" if agent.here else "tree-node",
    )
    circle = tag("circle", cx=show_number(x + 14), cy=show_number(y + 17), r=4, cls=f"tree-dot-{dot}")
    return tag(
        "a",
        tag("title", f"{words}. {agent.work.title}" if agent.work else words),
        box,
        circle,
        draw_words(x + 26, y + 21, _fit(agent.name or agent.address, _NAME), "node-name"),
        draw_words(x + 12, y + 41, _fit(branch or "in the work tree above", _BRANCH - len(state) - 2)),
        tag(
            "text",
            state,
            x=show_number(x + _WIDE - 10),
            y=show_number(y + 41),
            text_anchor="end",
            cls="node-warn",
        )
        if state
        else None,
        href=f"/tree/{quote(agent.address, safe='@')}",
    )


def _count_changes(agent: TreeAgent) -> str:
    """Return ahead, behind and uncommitted as signs, as git prompts show them."""
    facts = agent.facts
    if facts is None:
        return ""
    signs = (("↑", facts.ahead), ("↓", facts.behind), ("●", facts.uncommitted))
    return " ".join(f"{sign}{count}" for sign, count in signs if count)


def _fit(words: str, letters: int) -> str:
    """Return a text that fits in a box: the end of a name says more than its beginning."""
    return words if len(words) <= letters else f"…{words[-max(letters - 1, 3) :]}"
