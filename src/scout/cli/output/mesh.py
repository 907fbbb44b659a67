"""Output of the mesh: its state, and the line that invites."""

from __future__ import annotations

from scout.cli.connection.text import paint, print_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def show_mesh(view: dict[str, Any]) -> None:
    """Show the mesh as this machine sees it."""
    for note in view.get("notes", ()):
        print_out(note)
    if not view["member"]:
        print_out(f"{view['node']} belongs to no mesh. Try: scout mesh up")
        return
    print_out(f"{paint(view['node'], 'bold')}: {describe_mesh(view)}")
    server = view.get("server")
    if server is not None:
        print_out(_describe_server(server))


def describe_mesh(view: dict[str, Any]) -> str:
    """Describe the connection and the machines in one line."""
    role = "founded" if view.get("founder") else "joined"
    away = ", ".join(view.get("unreachable", ()))
    machines = f"{count_machines(view['nodes'])}{f', not reachable: {away}' if away else ''}"
    return f"{role} at {view['url']}, {_describe_link(view)}, {machines}"


def count_machines(number: int, kind: str = "") -> str:
    """Return a number of machines in words; `kind`: an adjective."""
    words = f"{kind} machine".lstrip()
    return f"1 {words}" if number == 1 else f"{number} {words}s"


def _describe_link(view: dict[str, Any]) -> str:
    if view.get("stopped"):
        return "stopped; `scout mesh up` starts it again"
    if view.get("connected"):
        return "connected"
    return f"not connected ({view.get('problem') or 'no answer'})"


def _describe_server(server: dict[str, Any]) -> str:
    if not server["running"]:
        return f"server: not running ({server.get('problem') or 'stopped'})"
    others = count_machines(server.get("connections", 0), "other")
    return f"server: nats-server {server.get('version', '')}, {others} connected"


def show_invitation(invited: dict[str, Any]) -> None:
    """Show the line to paste on the other machine."""
    until = str(invited["expiresAt"])[11:16]
    print_out(f"Run this on the other machine. It works once, until {until} UTC:")
    print_out(f"scout mesh join '{invited['line']}'")


PRINTERS = {
    **dict.fromkeys(
        (
            "mesh.up",
            "mesh.down",
            "mesh.status",
            "mesh.join",
            "mesh.rename",
            "mesh.rotate",
            "mesh.leave",
            "mesh.share",
        ),
        show_mesh,
    ),
    "mesh.invite": show_invitation,
}
