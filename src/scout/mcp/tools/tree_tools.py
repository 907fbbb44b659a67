"""The tools for agent trees, one row each."""

import asyncio
from typing import Any

from scout.base.codec import decode
from scout.base.refusal import Remedy
from scout.mcp.call import STEP, Call
from scout.mcp.tools.result import build_call, drop_empty
from scout.mcp.tools.tool import Argument, Tool, build_arguments, map_request
from scout.protocol.operations import build_command_line
from scout.protocol.tree.spawn import FailedSpawn, SpawnAgents, SpawnedAgent

_AGENT = ("slug", "address", "path", "birthBranch", "workingDir", "created", "flightId", "notes")


async def _spawn(call: Call, request: SpawnAgents) -> dict[str, Any]:
    """Spawn agents; progress is reported while their work trees are set up."""
    working = asyncio.ensure_future(call.ask(request))
    steps = 0
    while not (await asyncio.wait({working}, timeout=STEP))[0]:
        steps += 1
        await call.tell(steps, "the work trees are being set up")
    spawned = await working
    flights = [agent.flight_id for agent in spawned.agents if agent.flight_id]
    told = drop_empty(
        {
            "parent": spawned.parent,
            "agents": [_describe_agent(agent) for agent in spawned.agents],
            "failed": [_describe_failure(failed) for failed in spawned.failed],
            "notes": spawned.notes,
        }
    )
    return {**told, "next": build_call("invocations_wait", flightId=flights[0])} if flights else told


def _describe_agent(agent: SpawnedAgent) -> dict[str, Any]:
    facts: dict[str, Any] = drop_empty(agent, _AGENT)
    return {**facts, "setup": agent.setup.output[-500:] if agent.setup else ""}


def _describe_failure(failed: FailedSpawn) -> dict[str, Any]:
    error = failed.error
    tries = [build_command_line(decode(remedy, Remedy)) for remedy in error.get("remedies", ())]
    return {"slug": failed.slug, "code": error["code"], "message": error["message"], "try": tries}


def _format_line(facts: dict[str, Any]) -> str:
    made = ", ".join(agent["address"] for agent in facts.get("agents", ()))
    failed = "".join(f"; {one['slug']} failed: {one['message']}" for one in facts.get("failed", ()))
    return f"{made} below {facts['parent']}{failed}."


def _build_tool(name: str, says: str, *, main: bool = False) -> Tool:
    return Tool(
        name,
        says,
        map_request(SpawnAgents),
        build_arguments(
            "slugs",
            "role",
            "harness",
            "model",
            "count",
            "task",
            "base",
            "allowDirty",
            "noSetup",
            **{"from": Argument("from", "the parent; default: you")},
        ),
        _format_line,
        act=_spawn,
        main=main,
    )


TREE_TOOLS = (
    _build_tool(
        "agent_spawn",
        "Create child agents, each on its own branch and work tree below yours; a worker shares your "
        "directory. With `task` each is asked at once.",
        main=True,
    ),
    _build_tool("spawn_subtree", "The same as agent_spawn."),
)
