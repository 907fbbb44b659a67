"""The tools for harness sessions, one row each."""

from scout.mcp.tools import lines
from scout.mcp.tools.tool import Argument, Tool, arguments, one
from scout.protocol import observation, sessions

_LIMIT = "how many"
_SESSION = ("id", "address", "harness", "state", "class", "running", "nativeIds", "cwd", "reason")

SESSION_TOOLS = (
    Tool(
        "topology",
        "Sessions and sub-agents that harnesses show on this machine; none is an agent of Scout by that.",
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
        "Start a harness session for an agent. An ask starts one by itself.",
        one(sessions.StartSession),
        arguments("agent", "harness", "model", "permission", "cwd"),
        lines.session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_attach",
        "Take up a session that exists, by its own id: exactly this one, or a refusal.",
        one(sessions.AttachSession),
        arguments("session", "harness", "agent", "cwd"),
        lines.session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_stop",
        "End a session and its program; a flight that ran in it fails.",
        one(sessions.StopSession),
        arguments("sessionId", "reason"),
        lines.session,
        shows=_SESSION,
    ),
    Tool(
        "sessions_inspect",
        "One harness session: its state, its process, its tokens and what it wrote last.",
        one(sessions.GetSession),
        arguments("sessionId"),
        lines.session,
    ),
    Tool(
        "sessions_list",
        "Harness sessions, newest first.",
        one(sessions.ListSessions),
        arguments("agent", "live", limit=Argument("limit", _LIMIT)),
        lines.sessions,
        shows=("id", "agentId", "harness", "state", "modelObserved", "cwd", "reason"),
    ),
)
