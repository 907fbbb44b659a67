"""What only the command line does, and what later parts of Scout bring: rows that remedies may name."""

from scout.protocol.operation import local

__all__ = ["LOCAL"]

LOCAL = (
    local("up", "Start the daemon if none runs, and say where it is."),
    local("open", "Go on with an agent's session in this terminal.", "address"),
    local("down", "Stop the daemon; what it started goes on."),
    local("restart", "Replace the running daemon."),
    local("doctor", "Check this installation, and say what to mend."),
    local("demo", "Play the main job with two agents in two sample projects."),
    local("setup", "Connect Scout to a program you work in.", "host?"),
    local("mcp", "Be an MCP server on standard input and output.", host=""),
    local("hook", "Report what happens in a session; called by a host.", "event", host=""),
    local("statusline", "One line about what waits; called by a host.", host=""),
    local("wait", "Wait for a flight to finish; stopping to wait never stops the work.", "flightId"),
    local("flight.wait", "Wait for a flight to finish; stopping to wait never stops the work.", "flightId"),
    local("explain", "Explain a diagnostic code.", "code?"),
    local("contract", "Print the prompt contract.", harness=""),
    local("config", "Show every setting and where it comes from."),
    local("config.set", "Change a setting.", "key", "value"),
    local("config.roots", "Show or change the directories in which programs may be started.", add=""),
    local("verify", "Replay the log on a copy and compare it with the tables."),
    local("backup", "Copy the store while it is in use.", "file"),
    local("restore", "Put a copy in the place of the store.", "file"),
    # Later parts: collaboration, people, the mesh.
    local("tree", "Show an agent and those below it.", "address?"),
    local("spawn", "Create a child agent.", "slug", **{"from": "", "role": ""}),
    local("user.keys", "List a user's connector keys.", "user?"),
    local("user.link", "Link a chat account to a user by a one-time code.", "user", "connector"),
    local("mesh.status", "Show the nodes and their links."),
)
