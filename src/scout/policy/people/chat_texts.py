"""What Scout itself says in a chat, in Markdown. Everything that others wrote is made visible first."""

import re
from collections.abc import Sequence

from scout.base.refusal import Diagnostic
from scout.base.visible import make_lines_visible, make_visible
from scout.model.access.permission import PermissionRequest
from scout.model.attention import Attention, AttentionKind, AttentionState, Risk
from scout.model.flight import Flight
from scout.model.status import AgentStatus

REPEAT = "(may be a repeat)"
_KINDS = {
    AttentionKind.APPROVAL: "asks for approval",
    AttentionKind.QUESTION: "asks",
    AttentionKind.PERMISSION: "asks for permission",
    AttentionKind.WAITING: "waits for you",
    AttentionKind.REVIEW: "asks for a review",
    AttentionKind.FAILURE: "failed",
    AttentionKind.SETUP: "needs you",
    AttentionKind.NOTIFY: "says",
    AttentionKind.CONSULT: "asks, and continues without an answer",
}
_OUTCOMES = {
    AttentionState.RESOLVED: "Approved",
    AttentionState.DENIED: "Denied",
    AttentionState.ANSWERED: "Answered",
    AttentionState.EXPIRED: "Expired",
    AttentionState.DISMISSED: "Dismissed",
}
_LONG, _MANY_LINES = 700, 15  # what phones show without a tap
_GAP = re.compile(r"[ \t]{20}|\n\s*\n\s*\n")  # blanks that push the rest out of sight
_MARKS = re.compile(r"([\\`*_\[\]()#+.!~>|-])")


def quote_text(text: str) -> str:
    """Return a text of others on one line, with nothing in it that is formatting."""
    return _MARKS.sub(r"\\\1", make_visible(text))


def fence_text(text: str) -> str:
    """Return a text of others as a code block, with everything in it visible."""
    shown = make_lines_visible(text)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"


# -- attention ---------------------------------------------------------------------------------------


def describe_item(item: Attention, agent: str, lines: Sequence[str] = ()) -> str:
    """Return an attention item: what is asked in full, and below it how to decide it."""
    who = quote_text(agent) or "Scout"
    risk = "⚠️ **High risk.** " if item.risk is Risk.HIGH else ""
    blocks = [f"{risk}**{who}** {_KINDS[item.kind]}:", *_describe_request(item), "\n".join(lines)]
    return "\n\n".join(block for block in blocks if block)


def _describe_request(item: Attention) -> list[str]:
    if item.permission is not None:
        return _describe_permission(item.permission)
    default = f"Without an answer: {quote_text(item.default_action)}" if item.default_action else ""
    words = item.body if item.title.rstrip("…") in item.body else f"{item.title}\n{item.body}"
    return [make_lines_visible(words.strip()), default]


def _describe_permission(wish: PermissionRequest) -> list[str]:
    """Return the exact request; an approval covers these characters."""
    tool = f"{quote_text(wish.tool)}:" if wish.tool else ""
    exact = wish.command if wish.command is not None else wish.path
    beside = fence_text(wish.arguments) if wish.arguments else ""
    cut = f"{wish.cut} more characters are not shown here." if wish.cut else ""
    hidden = "It has hidden characters, which are shown as codes." if wish.hidden else ""
    said = f"It says: {quote_text(wish.words)}" if wish.words else ""
    long = _describe_length(f"{exact or ''}\n{wish.arguments}".strip())
    return [tool, fence_text(exact) if exact is not None else "", beside, cut, hidden, long, said]


def _describe_length(text: str) -> str:
    """Return a warning where a phone shows the beginning of a text only, or where the end is far away."""
    lines = text.count("\n") + 1
    if len(text) <= _LONG and lines <= _MANY_LINES and not _GAP.search(text):
        return ""
    return f"It has {lines} lines and {len(text)} characters: read it to its end."


def describe_outcome(item: Attention, by: str) -> str:
    """Return how an item was decided, and by whom."""
    words = _OUTCOMES.get(item.state, "Closed")
    answer = f": {quote_text(item.answer)}" if item.answer else ""
    who = f" by {quote_text(by)}" if by and item.state is not AttentionState.EXPIRED else ""
    standing = ", and the same from now on" if item.allowance_id else ""
    why = f" ({quote_text(item.reason)})" if item.reason else ""
    return f"{words}{who}{answer}{standing}{why}"


# -- people ------------------------------------------------------------------------------------------


def describe_pairing(connector: str) -> str:
    """Return the one message that somebody unknown gets in a day."""
    return (
        "Hello. This is Scout, and it does not know this account. To link it, type this on the machine where "
        f"Scout runs, and send me the code that it prints:\n\n```\nscout user link USER {connector}\n```"
    )


def describe_link(user: str, agent: str, *, group: bool) -> str:
    """Return the confirmation of a linked account."""
    whom = "This group" if group else "This account"
    name = quote_text(user)
    return f"{whom} is linked to **{name}**. What you write here goes to {quote_text(agent)}.\n\n{HELP}"


HELP = (
    "`@agent text` asks an agent, any other text asks the agent of this chat.\n"
    "/who lists agents, /status shows what runs and what needs you, /stop stops the turn that you asked for."
)


def describe_refusal(problem: Diagnostic, command: str = "") -> str:
    """Return why nothing came of a text, with the names that were probably meant.

    `command`: what would help, typed on the machine.
    """
    words = quote_text(problem.message[:1].upper() + problem.message[1:])
    names = [f"`{make_visible(one.address)}`" for one in problem.candidates[:5]]
    nearest = f"Try {' or '.join(names)} at the beginning of your message." if names else ""
    shell = f"On the machine: `{make_visible(command)}`" if command and not names else ""
    ends = "" if words.endswith((".", "?")) else "."
    return "\n\n".join(part for part in (f"{words}{ends}", nearest, shell) if part)


# -- commands ----------------------------------------------------------------------------------------


def describe_agents(rows: Sequence[tuple[str, AgentStatus, str]], more: bool) -> str:
    """Return the answer to /who: address, status and description of each agent."""
    if not rows:
        return "There are no agents that you can see."
    lines = [f"- `{make_visible(name)}` {status}{_describe(says)}" for name, status, says in rows]
    return "\n".join([*lines, *(["… and more"] if more else [])])


def _describe(says: str) -> str:
    return f": {quote_text(says)}" if says else ""


def describe_status(flights: Sequence[tuple[str, Flight]], needs: Sequence[str]) -> str:
    """Return the answer to /status: the open asks with the agents that work on them, and what needs you."""
    waiting = [f"- {quote_text(title)}" for title in needs]
    needed = "\n".join(["Needs you:", *waiting]) if waiting else "Nothing needs you."
    return f"{_list_flights(flights)}\n\n{needed}"


def describe_group_status(flights: Sequence[tuple[str, Flight]]) -> str:
    """Return the answer to /status in a group: the open asks that were made there."""
    return f"{_list_flights(flights)}\n\nWhat needs you is shown in your private chat."


def _list_flights(flights: Sequence[tuple[str, Flight]]) -> str:
    lines = [f"- `{make_visible(name)}` {_describe_flight(flight)}" for name, flight in flights]
    return "\n".join(["Running:", *lines]) if lines else "Nothing is running."


def _describe_flight(flight: Flight) -> str:
    reason = f" ({quote_text(flight.reason)})" if flight.reason else ""
    return f"{flight.state}{reason}"


def describe_stop(names: Sequence[str]) -> str:
    """Return the answer to /stop."""
    if not names:
        return "Nothing that you asked for here is running."
    return f"Stopped: {', '.join(f'`{make_visible(name)}`' for name in names)}."


def name_author(text: str, author: str) -> str:
    """Return a text with the agent that wrote it."""
    return f"**{quote_text(author)}**\n\n{text}" if author else text
