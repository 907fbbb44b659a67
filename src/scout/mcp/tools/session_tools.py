"""The tools for harness sessions, one row each."""

from scout.mcp.tools import lines
from scout.mcp.tools.tool import Argument, Tool, arguments, one
from scout.protocol import observation, sessions

_LIMIT = "maximum number"
_SESSION = ("id", "address", "harness", "state", "class", "running", "nativeIds", "cwd", "reason")

SESSION_TOOLS = (
    Tool(
        "topology",
        "List sessions and sub-agents that harnesses expose on this machine. They are not Scout agents.",
        one(observation.ShowTopology),
        arguments("harness", "live", limit=Argument("limit", _LIMIT)),
        lines.topology,
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
        one(sessions.StartSession),
        arguments("agent", "harness", "model", "permission", "cwd"),
        lines.session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_attach",
        "Attach an existing session by its id. Never falls back to another.",
        one(sessions.AttachSession),
        arguments("session", "harness", "agent", "cwd"),
        lines.session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_stop",
        "Stop a session and its program. A flight running in it fails.",
        one(sessions.StopSession),
        arguments("sessionId", "reason"),
        lines.session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_inspect",
        "Show a session: state, process, tokens and last output.",
        one(sessions.GetSession),
        arguments("sessionId"),
        lines.session,
    ),
    Tool(
        "sessions_list",
        "List harness sessions, newest first.",
        one(sessions.ListSessions),
        arguments("agent", "live", limit=Argument("limit", _LIMIT)),
        lines.sessions,
        shows=("id", "agentId", "harness", "state", "modelObserved", "cwd", "reason"),
    ),
)
