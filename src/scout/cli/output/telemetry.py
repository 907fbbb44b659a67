"""Output of traces and metrics: where they go, and whether they arrive."""

from typing import Any


def describe_telemetry(status: dict[str, Any]) -> str:
    """Return the state of the exports in one line."""
    where, problem = status["endpoint"], status.get("problem", "")
    counts = f"{status.get('exported', 0)} steps sent, {status.get('dropped', 0)} dropped"
    words = {
        "starting": f"on, to {where}; nothing was sent yet",
        "working": f"on, to {where}; {counts}",
        "failing": f"exports to {where} fail: {problem}; {counts}",
        "unavailable": f"nothing is sent to {where}: {problem}",
    }
    bodies = "; bodies are included" if status.get("bodies") else ""
    return words[status["state"]] + bodies
