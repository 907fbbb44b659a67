"""Output of the mesh: its state, and the line that invites."""

from __future__ import annotations

from scout.cli.connection.text import note, paint, print_out
from scout.policy.sentences import describe_mesh, describe_server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def show_mesh(view: dict[str, Any]) -> None:
    """Show the mesh as this machine sees it."""
    for text in view.get("notes", ()):
        print_out(text)
    if not view["member"]:
        print_out(f"{describe_mesh(view)}. Try: scout mesh up")
        return
    print_out(f"{paint(view['node'], 'bold')}: {describe_mesh(view)}")
    server = view.get("server")
    if server is not None:
        print_out(f"server: {describe_server(server)}")


def show_invitation(invited: dict[str, Any]) -> None:
    """Show the line to paste on the other machine."""
    until = str(invited["expiresAt"])[11:16]
    print_out(f"Run this on the other machine. It works once, until {until} UTC:")
    print_out(f"scout mesh join '{invited['line']}'")


def show_moved(moved: dict[str, Any]) -> None:
    """Show where an agent is, and what went with it."""
    word = "moved" if moved["arrived"] else "moving"
    print_out(f"{paint(word, 'green')} {moved['address']} to {moved['node']}")
    went = [_count(moved.get(key, 0), noun) for key, noun in _WENT if moved.get(key)]
    went += [f"alias {name}" for name in moved.get("aliases", ())]
    if went:
        print_out(f"with it: {', '.join(went)}")
    if moved.get("sessions"):
        print_out(f"sessions that stay here: {', '.join(moved['sessions'])}")
    for text in moved.get("notes", ()):
        note(f"note: {text}")


_WENT = (("unread", "unread message"), ("workItems", "work item"), ("questions", "question"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


PRINTERS = {
    "agent.move": show_moved,
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
