"""Output of agent trees: the picture, what a scan found, and what a reconciliation found."""

from __future__ import annotations

from scout.cli.connection.refusal import render_command
from scout.cli.connection.text import (
    cut,
    get_columns,
    get_first_line,
    join_lines,
    note,
    paint,
    print_out,
    wrap,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_STATES = {
    "working": "green",
    "online": "green",
    "waiting": "yellow",
    "needs_attention": "yellow",
    "unreachable": "red",
}
_HERE = "← you are here"
_OFFERED = 10  # folders shown of each kind


# -- the picture ---------------------------------------------------------------------------------------


def _show_tree(told: dict[str, Any]) -> None:
    agents: list[dict[str, Any]] = told.get("agents", [])
    stems = _draw_stems([one.get("depth", 0) for one in agents])
    project: str | None = None
    for agent, (stem, below) in zip(agents, stems, strict=True):
        if not agent.get("depth") and agent.get("projectRoot") != project:
            project = agent.get("projectRoot")
            print_out(paint(cut(project or "without a project", get_columns()), "dim"))
        _show_agent(agent, stem, below)
    if not agents:
        print_out("No agents here yet.")
        for remedy in told.get("next", []):
            print_out(f"try: {render_command(remedy).replace('…', 'NAME')}")
    _show_offers(told.get("orphans", []), "Folders without an agent")
    if told.get("unread"):
        note(f"{_count(told['unread'], 'work tree')} could not be read in time; shown as unknown")
    for one in told.get("notes", []):
        note(one)


def _draw_stems(depths: Sequence[int]) -> list[tuple[str, str]]:
    """Return, for each agent, the lines that lead to it, and those of the text below its name."""
    stems: list[tuple[str, str]] = []
    more: list[bool] = []  # whether another sibling follows, for each level from the bottom up
    for number in range(len(depths) - 1, -1, -1):
        depth = depths[number]
        below = number + 1 < len(depths) and depths[number + 1] > depth
        last = len(more) <= depth or not more[depth]
        outer = "".join("│  " if level < len(more) and more[level] else "   " for level in range(1, depth))
        stem = outer + ("└─ " if last else "├─ ") if depth else ""
        inner = outer + ("   " if last else "│  ") if depth else ""
        stems.append((stem, inner + ("│  " if below else "   ")))
        more = [*more[:depth], *([False] * (depth - len(more))), True]
    return stems[::-1]


def _show_agent(agent: dict[str, Any], stem: str, below: str) -> None:
    state = _get_state(agent)
    name = paint(agent["address"], "bold")
    role = " ".join(filter(None, (agent["role"], agent.get("name"))))
    words = [name, role, paint(state.replace("_", " "), _STATES.get(state, "dim"))]
    head = f"{stem}{'  '.join(words)}" + (f"  {paint(_HERE, 'cyan')}" if agent.get("here") else "")
    print_out(cut(head, get_columns()))
    for line in _format_details(agent):
        print_out(cut(f"{paint(below, 'dim') if below.strip() else below}{line}", get_columns()))


def _get_state(agent: dict[str, Any]) -> str:
    if agent["lifecycle"] != "active":
        return agent["lifecycle"]
    running = agent.get("work", {}).get("state") == "running"
    return "working" if running and agent["status"] == "online" else agent["status"]


def _format_details(agent: dict[str, Any]) -> list[str]:
    branch = _describe_branch(agent)
    work = agent.get("work")
    lines = [branch] if branch else []
    if work:
        room = (get_columns() or 100) - 20 - 3 * agent.get("depth", 0)
        waits = f" on {work['waitingOn']}" if work.get("waitingOn") else ""
        more = f" (and {agent['moreWork']} more)" if agent.get("moreWork") else ""
        lines.append(f"{work['state']}{waits}: {get_first_line(work['title'], max(room, 20))}{more}")
    return lines


def _describe_branch(agent: dict[str, Any]) -> str:
    """Return the branch of an agent and the state of its work tree."""
    born, facts = agent.get("birthBranch"), agent.get("facts")
    if not born:
        return ""
    if facts is None:
        return paint(f"{born}  work tree unknown", "dim") if agent["lifecycle"] != "retired" else born
    if facts.get("problem"):
        return f"{born}  {paint(facts['problem'], 'red')}"
    parts = [born]
    if facts.get("branch") != born:
        parts.append(paint(f"checked out: {facts.get('branch') or 'no branch'}", "yellow"))
    parts += [f"{facts[word]} {word}" for word in ("ahead", "behind") if facts.get(word)]
    if facts.get("uncommitted"):
        parts.append(paint(_count(facts["uncommitted"], "changed file"), "yellow"))
    if facts.get("operation"):
        parts.append(paint(f"{facts['operation']} in progress", "yellow"))
    return "  ".join(parts)


# -- folders that are only offered ---------------------------------------------------------------------


def _show_offers(offers: list[dict[str, Any]], title: str) -> None:
    if offers:
        print_out(paint(title, "bold"))
    for one in offers[:_OFFERED]:
        system = " (ExoMonad)" if one.get("system") == "exo" else ""
        lines = [f"  {one['folder']}{system}", wrap(one["reason"], "    ")]
        claims = ", ".join(f"{key}: {value}" for key, value in one.get("claims", {}).items())
        if claims:
            lines.append(cut(f"    it claims {claims}", get_columns()))
        if one.get("adopt"):
            lines.append(f"    adopt? {render_command(one['adopt'])}")
        print_out(join_lines(lines))
    if len(offers) > _OFFERED:
        print_out(f"  … and {len(offers) - _OFFERED} more: scout tree --scan --json")


# -- a scan --------------------------------------------------------------------------------------------


def _show_scan(told: dict[str, Any]) -> None:
    for one in told.get("registered", []):
        retired = "  retired" if one["lifecycle"] == "retired" else ""
        branch = f"  {one['birthBranch']}" if one.get("birthBranch") else ""
        print_out(f"{paint('found', 'green')} {one['address']}{branch}{retired}")
    projects, found = told.get("projects", []), len(told.get("registered", []))
    if not projects:
        print_out("No project is known yet: scout spawn NAME, in a project, makes it known.")
        return
    words = f"{_count(len(projects), 'project')}, {_count(told.get('known', 0), 'agent')} known"
    print_out(f"{words}, {found} found again")
    _show_offers(told.get("offered", []), "Not registered")
    for one in told.get("notes", []):
        note(one)


# -- a reconciliation ----------------------------------------------------------------------------------


def _show_reconciliation(told: dict[str, Any]) -> None:
    findings: list[dict[str, Any]] = told.get("findings", [])
    for one in findings:
        _show_finding(one)
    for one in told.get("notes", []):
        note(one)
    for one in told.get("leftOut", []):
        note(f"{one} is left out: a spawn or finish is changing it; compare again when it has ended")
    projects = _count(len(told.get("projects", [])), "project")
    compared = f"{_count(told.get('agents', 0), 'agent')} in {projects}"
    left = [one for one in findings if not one.get("fixed")]
    repairable = [one for one in left if one.get("repair") and not one.get("problem")]
    if not left:
        print_out(f"{paint('clean', 'green')}: {compared}, no differences" + (" left" if findings else ""))
        return
    print_out(f"{_count(len(left), 'difference')}: {compared}")
    if repairable:
        print_out(f"try: scout tree --reconcile --fix  (repairs {len(repairable)} of them)")


def _show_finding(one: dict[str, Any]) -> None:
    fixed = one.get("fixed")
    mark = paint("fixed", "green") if fixed else paint(one["kind"].replace("_", " "), "yellow")
    lines = [f"{mark}  {one['subject']}", wrap(one["words"], "  ")]
    if one.get("repair"):
        lines.append(f"  {'done' if fixed else 'repair'}: {one['repair']}")
    if one.get("problem"):
        lines.append(wrap(one["problem"], f"  {paint('not repaired:', 'red')} "))
    if one.get("remedy"):
        lines.append(f"  try: {render_command(one['remedy'])}")
    print_out(join_lines(lines))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


PRINTERS: dict[str, Callable[[Any], None]] = {
    "tree": _show_tree,
    "tree.scan": _show_scan,
    "tree.reconcile": _show_reconciliation,
}
