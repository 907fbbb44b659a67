"""The tool that shows an agent its family: the tree of agents in its project."""

from typing import Any

from scout.mcp.call import Call
from scout.mcp.tools.result import drop_empty
from scout.mcp.tools.tool import Tool, map_request
from scout.model.agent import Lifecycle
from scout.protocol.tree.view import AgentTree, ShowTree, TreeAgent

_SHOWN = 200  # agents of one result
_NAMED = 20  # agents named in its line
_FACTS = ("ahead", "behind", "uncommitted", "operation", "problem")


async def _show(call: Call, request: ShowTree) -> dict[str, Any]:
    """Return the tree in short form; of a large one, the caller's ancestors and descendants come first."""
    tree = await call.scout.call(request)
    shown = _choose(tree)
    facts = {"agents": [_describe_agent(one) for one in shown], "unread": tree.unread}
    return {**drop_empty(facts), "more": len(tree.agents) - len(shown)}


def _choose(tree: AgentTree) -> list[TreeAgent]:
    if len(tree.agents) <= _SHOWN:
        return list(tree.agents)
    here = next((agent.path for agent in tree.agents if agent.here), "")
    near = [agent for agent in tree.agents if _is_related(agent.path, here)]
    others = [agent for agent in tree.agents if not _is_related(agent.path, here)]
    chosen = {agent.id for agent in [*near, *others][:_SHOWN]}
    return [agent for agent in tree.agents if agent.id in chosen]


def _is_related(path: str, here: str) -> bool:
    return f"{here}/".startswith(f"{path}/") or f"{path}/".startswith(f"{here}/")


def _describe_agent(agent: TreeAgent) -> dict[str, Any]:
    facts = agent.facts
    state = agent.status if agent.lifecycle is Lifecycle.ACTIVE else agent.lifecycle
    return {
        "address": agent.address,
        "depth": agent.depth,
        "role": agent.role,
        "name": agent.name,
        "state": state,
        "branch": agent.birth_branch,
        "checkedOut": facts.branch if facts else None,
        **{name: getattr(facts, name, None) or None for name in _FACTS},
        "work": agent.work,
        "you": agent.here,
    }


def _format_line(told: dict[str, Any]) -> str:
    agents: list[dict[str, Any]] = told.get("agents", [])
    count = len(agents) + told["more"]
    names = [f"{one['address']}{' (you)' if 'you' in one else ''} {one['state']}" for one in agents[:_NAMED]]
    more = ["…"] if count > len(names) else []
    return f"{count} agent{'' if count == 1 else 's'}: {', '.join([*names, *more])}"


FAMILY_TOOLS = (
    Tool(
        "agents_tree",
        "Show the agents of your project as a tree, with state, branch, work tree and current work.",
        map_request(ShowTree),
        {},
        _format_line,
        act=_show,
    ),
)
