"""The keys of the screens: the terminal application and the page in a browser use the same ones.

A key is spelled as it is shown: `y`, `?`, `Ctrl-K`, `Enter`, `Esc`, `Space`; `g n` is `g`, then `n`. A
capital letter is that letter with Shift. Single keys do nothing while the person types in a field.
"""

from scout.base.record import Record


class Key(Record):
    """One row: what is pressed, the action's name, and what it does, for the list behind `?`.

    `views`: where it works; everywhere if empty.
    """

    keys: tuple[str, ...]
    action: str
    says: str
    views: tuple[str, ...] = ()


_FLIGHTS = ("flights", "flight")
_AGENTS = ("agents", "agent")
_WORK = ("work", "work item")
_SCHEDULES = ("schedules", "schedule")

VIEWS = (
    Key(keys=("1", "g n"), action="view.now", says="Now: what needs you, who works, what finished"),
    Key(keys=("2", "g i"), action="view.inbox", says="Inbox: decide what needs you"),
    Key(keys=("3", "g a"), action="view.agents", says="Agents"),
    Key(keys=("4", "g f"), action="view.flights", says="Flights: every ask and its state"),
    Key(keys=("5", "g c"), action="view.conversations", says="Conversations"),
    Key(keys=("6", "g w"), action="view.work", says="Work items"),
    Key(keys=("7", "g l"), action="view.log", says="Log: what happened, as sentences"),
    Key(keys=("0", "g m"), action="view.mesh", says="Mesh: machines and links"),
)

EVERYWHERE = (
    Key(keys=("?",), action="help", says="List the keys"),
    Key(keys=("Ctrl-K",), action="find", says="Find an agent, a flight or a command"),
    Key(keys=("c",), action="ask", says="Compose an ask"),
    Key(keys=("/",), action="filter", says="Filter the list"),
    Key(keys=("j", "Down"), action="next", says="Next row"),
    Key(keys=("k", "Up"), action="previous", says="Previous row"),
    Key(keys=("Enter",), action="show", says="Show the row"),
    Key(keys=("Esc",), action="back", says="Back"),
    Key(keys=("w",), action="why", says="Why is it so? Explained from the log"),
)

IN_VIEWS = (
    Key(keys=("y",), action="approve", says="Approve exactly what is shown", views=("inbox",)),
    Key(
        keys=("Y",), action="approve.always", says="Approve, and allow the same from now on", views=("inbox",)
    ),
    Key(keys=("n",), action="deny", says="Deny", views=("inbox",)),
    Key(keys=("a",), action="answer", says="Answer with a text or an option", views=("inbox",)),
    Key(keys=("d",), action="dismiss", says="Dismiss without an answer", views=("inbox",)),
    Key(keys=("Space",), action="select", says="Select several items", views=("inbox",)),
    Key(keys=("o",), action="open", says="Open the session in this terminal", views=(*_AGENTS, *_FLIGHTS)),
    Key(keys=("x",), action="cancel", says="Cancel the flight", views=_FLIGHTS),
    Key(keys=("t",), action="retry", says="Retry a failed or cancelled flight", views=_FLIGHTS),
    Key(keys=("d",), action="diff", says="Diff: what changed in the work tree", views=_FLIGHTS),
    Key(
        keys=("r",),
        action="reply",
        says="Reply: ask back, or write in the conversation",
        views=(*_AGENTS, *_FLIGHTS, "conversations", "conversation"),
    ),
    Key(keys=("s",), action="start", says="Start or resume the work item", views=_WORK),
    Key(keys=("u",), action="submit", says="Submit the work item for review", views=_WORK),
    Key(keys=("y",), action="accept", says="Accept the result", views=_WORK),
    Key(keys=("n",), action="reopen", says="Reopen: say what is missing", views=_WORK),
    Key(keys=("p",), action="progress", says="Report progress", views=("work item",)),
    Key(keys=("e",), action="wait", says="Wait for somebody or something", views=("work item",)),
    Key(keys=("h",), action="hand_over", says="Hand the work item over", views=("work item",)),
    Key(keys=("x",), action="work.cancel", says="Cancel the work item", views=("work item",)),
    Key(keys=("x",), action="stop", says="Stop the session", views=("sessions", "session")),
    Key(keys=("s",), action="run", says="Run the schedule now", views=_SCHEDULES),
    Key(keys=("p",), action="pause", says="Pause or resume the schedule", views=_SCHEDULES),
    Key(keys=("x",), action="node.remove", says="Remove the machine", views=("mesh",)),
    Key(
        keys=("+",),
        action="new",
        says="New work item or schedule, or invite a machine",
        views=("work", "schedules", "mesh"),
    ),
    Key(keys=("m",), action="seen", says="Mark what finished as seen", views=("now",)),
)

# Views that only the page has.
PAGE_VIEWS = (
    Key(keys=("8", "g s"), action="view.sessions", says="Sessions: what runs on this machine"),
    Key(keys=("9", "g t"), action="view.tree", says="Tree: agents, branches and work trees"),
    Key(keys=("g d",), action="view.schedules", says="Schedules"),
    Key(keys=("g u",), action="view.usage", says="Usage: tokens by day, harness and agent"),
)

KEYS = (*VIEWS, *PAGE_VIEWS, *EVERYWHERE, *IN_VIEWS)


def list_keys(view: str) -> list[Key]:
    """Return the keys that work in a view, those of the view first."""
    return [*(row for row in IN_VIEWS if view in row.views), *EVERYWHERE, *VIEWS]
