"""The MCP tools of each role, by name. The tools themselves are defined in `mcp`."""

from collections.abc import Mapping

from scout.model.agent import ToolRole

_WORKER = (
    "whoami",
    "ask",
    "invocations_wait",
    "invocations_get",
    "flight_cancel",
    "messages_send",
    "messages_reply",
    "messages_inbox",
    "messages_channel",
    "channels_list",
    "agents_resolve",
    "question_create",
    "question_answer",
    "question_close",
    "work_create",
    "work_update",
    "work_get",
    "work_list",
    "files_reserve",
    "files_release",
    "files_status",
    "operator_need",
    "operator_consult",
    "operator_notify",
    "notify_parent",
)
_DEV = (*_WORKER, "agents_search", "broker_feed", "usage_report")
_TL = (*_DEV, "topology", "agents_tree", "agent_spawn", "spawn_subtree")
_HOST = (
    *_TL,
    "sessions_start",
    "sessions_attach",
    "sessions_stop",
    "sessions_inspect",
    "sessions_list",
    "card_create",
    "agents_register",
    "aliases_list",
    "aliases_resolve",
)

ROLE_TOOLS: Mapping[ToolRole, tuple[str, ...]] = {
    ToolRole.WORKER: _WORKER,
    ToolRole.DEV: _DEV,
    ToolRole.TL: _TL,
    ToolRole.HOST: _HOST,
}


def list_roles(tool: str) -> tuple[str, ...]:
    """Return the roles that have a tool; none for an unknown name."""
    return tuple(role for role, tools in ROLE_TOOLS.items() if tool in tools)
