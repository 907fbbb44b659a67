"""The tools for harness sessions, one row each."""

from scout.mcp.tools import lines
from scout.mcp.tools.tool import Argument, Tool, build_arguments, map_request
from scout.protocol import observation, sessions

_LIMIT = "maximum number"
_SESSION = ("id", "address", "harness", "state", "class", "running", "nativeIds", "cwd", "reason")

SESSION_TOOLS = (
    Tool(
        "topology",
        "List sessions and sub-agents that harnesses expose on this machine. They are not Scout agents.",
        map_request(observation.ShowTopology),
        build_arguments("harness", "live", limit=Argument("limit", _LIMIT)),
        lines.format_topology,
        shows=(
            "harness",
            "nativeId",
            "kind",
            "title",
            "cwd",
            "state",
            "live",
            "parent",
            "updatedAt",
            "sessionId",
            "agent",
            "source",
            "limits",
            "attach",
        ),
    ),
    Tool(
        "sessions_start",
        "Start a harness session for an agent. An ask does this automatically.",
        map_request(sessions.StartSession),
        build_arguments("agent", "harness", "model", "permission", "cwd"),
        lines.format_session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_attach",
        "Attach an existing session by its id. Never falls back to another.",
        map_request(sessions.AttachSession),
        build_arguments("session", "harness", "agent", "cwd"),
        lines.format_session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_stop",
        "Stop a session and its program. A flight running in it fails.",
        map_request(sessions.StopSession),
        build_arguments("sessionId", "reason"),
        lines.format_session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_inspect",
        "Show a session: state, process, tokens and last output.",
        map_request(sessions.GetSession),
        build_arguments("sessionId"),
        lines.format_session,
    ),
    Tool(
        "sessions_list",
        "List harness sessions, newest first.",
        map_request(sessions.ListSessions),
        build_arguments("agent", "live", limit=Argument("limit", _LIMIT)),
        lines.format_sessions,
        shows=("id", "agentId", "harness", "state", "modelObserved", "cwd", "reason"),
    ),
)
