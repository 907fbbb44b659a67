"""Records as lines of the screen: marks, styles and short sentences."""

from scout.model.attention import AttentionState, Risk
from scout.model.flight import FLIGHT, FlightState
from scout.model.status import AgentStatus
from scout.policy import sentences
from scout.policy.sentences import add_node
from scout.protocol.agents import AgentView
from scout.protocol.asks import FlightView
from scout.protocol.attention import AttentionView
from scout.protocol.insight import Explanation
from scout.tui.names import NameBook
from scout.tui.text import (
    Paragraph,
    Span,
    format_age,
    format_clock,
    format_duration,
    read_clock,
    shorten_id,
    shorten_ids,
    show_text,
)

_QUIET = 10.0  # seconds without activity before it is mentioned

FLIGHT_MARKS: dict[FlightState, Span] = {
    FlightState.QUEUED: ("○", "dim"),
    FlightState.RUNNING: ("●", "green"),
    FlightState.WAITING: ("◐", "yellow"),
    FlightState.COMPLETED: ("✓", "green"),
    FlightState.FAILED: ("✗", "red"),
    FlightState.CANCELLED: ("–", "dim"),
}
AGENT_MARKS: dict[AgentStatus, Span] = {
    AgentStatus.ONLINE: ("●", "green"),
    AgentStatus.WAKING: ("◌", "cyan"),
    AgentStatus.WAITING: ("◐", "yellow"),
    AgentStatus.NEEDS_ATTENTION: ("!", "alarm"),
    AgentStatus.UNREACHABLE: ("✗", "red"),
    AgentStatus.OFFLINE: ("○", "dim"),
}
RISK_MARKS: dict[Risk, Span] = {
    Risk.HIGH: ("!", "alarm"),
    Risk.MEDIUM: ("▲", "yellow"),
    Risk.LOW: ("·", "dim"),
}
_OUTCOMES = {
    AttentionState.RESOLVED: "approved",
    AttentionState.DENIED: "denied",
    AttentionState.ANSWERED: "answered",
    AttentionState.EXPIRED: "expired",
    AttentionState.DISMISSED: "dismissed",
}
OPEN_STATES = (AttentionState.OPEN, AttentionState.NOTIFIED)


def describe_presence(agent: AgentView) -> str:
    """Return what an agent does, in a word or two."""
    shown = sentences.describe_presence(agent.status, agent.program_state)
    return shown.replace("needs attention", "needs you")


# -- flights -----------------------------------------------------------------------------------------


def name_target(flight: FlightView) -> str:
    """Return the target of a flight, with its node if that is another one."""
    return show_text(add_node(flight.target_address, flight.target_node))


def measure_flight(flight: FlightView) -> float:
    """Return how many seconds a flight has taken so far, or took."""
    end = (flight.finished_at or 0) / 1_000_000 or read_clock()
    return end - (flight.started_at or flight.created_at) / 1_000_000


def describe_live_line(flight: FlightView, names: NameBook) -> str:
    """Return what a flight does now: the latest activity, and how long it has been silent."""
    if flight.state is FlightState.FAILED and flight.error is not None:
        return shorten_ids(show_text(flight.error.message))
    if flight.state in FLIGHT.terminal:
        return show_text(flight.output if flight.output is not None else names.say_you(flight.reason))
    silent = read_clock() - flight.updated_at / 1_000_000
    quiet = f" · silent for {format_duration(silent)}" if silent >= _QUIET else ""
    return f"{shorten_ids(show_text(names.say_you(flight.reason) or flight.phase))}{quiet}"


def describe_state(flight: FlightView) -> Span:
    """Return the state of a flight and how long it takes."""
    time = format_duration(measure_flight(flight))
    style = FLIGHT_MARKS[flight.state][1]
    return (f"{flight.state} {time}", style)


# -- attention ---------------------------------------------------------------------------------------


def describe_outcome(item: AttentionView, names: NameBook) -> str:
    """Return how an item was decided and by whom; empty while it is open."""
    if item.state in OPEN_STATES:
        return ""
    by = names.name(item.decided_by_address)
    answer = f": {show_text(item.answer)}" if item.answer else ""
    return f"{_OUTCOMES[item.state]}{f' by {by}' if by else ''}{answer}"


def build_request_blocks(item: AttentionView) -> list[Paragraph]:
    """Return what is to be decided: the exact command or question first and whole, then the rest."""
    wish = item.permission
    if wish is None:
        same = item.body.startswith(item.title.removesuffix("…"))
        texts = [item.body] if same and item.body else [item.title, item.body]
        return [Paragraph(text, "bold", foreign=True, exact=True) for text in texts if text]
    blocks: list[Paragraph] = []
    exact = wish.command if wish.command is not None else wish.path
    tool = show_text(wish.tool) or "The program"
    if wish.observed:
        blocks.append(Paragraph("Seen on its screen:", "dim"))
    elif exact is not None:
        blocks.append(Paragraph(f"{tool} wants {'to run' if wish.command is not None else 'to use'}:", "dim"))
        blocks.append(Paragraph(exact, "bold", foreign=True, exact=True))
    else:
        blocks.append(Paragraph(f"{tool} wants to be used", "dim"))
    if wish.arguments:
        blocks += [Paragraph("with:", "dim")] * (not wish.observed)
        blocks.append(Paragraph(wish.arguments, "bold", foreign=True, exact=True))
    if wish.hidden:
        blocks.append(
            Paragraph(
                "It has hidden characters, shown as \\x1b or \\u202e. You approve exactly that.", "alarm"
            )
        )
    if wish.cut:
        blocks.append(
            Paragraph(
                f"{wish.cut} more characters are not stored. Look at it in the session itself.", "alarm"
            )
        )
    said = wish.words or item.body
    return [
        *blocks,
        *([Paragraph("It says:", "dim"), Paragraph(said, foreign=True, exact=True)] if said else []),
    ]


def build_item_blocks(item: AttentionView, names: NameBook) -> list[Paragraph]:
    """Return an item: what is to be decided, the risk, who asks in which flight, and how to decide it."""
    facts = [item.kind.value, f"{item.risk} risk", f"{format_age(item.created_at)} ago"]
    facts[2] = facts[2].replace("now ago", "just now")
    flight = item.return_path.flight_id
    who = names.name(item.agent_address, item.agent_node) or "scout"
    blocks = [*build_request_blocks(item), Paragraph("")]
    style = {Risk.HIGH: "alarm", Risk.MEDIUM: "yellow"}.get(item.risk, "dim")
    where = f" in {shorten_id(flight)}" if flight else ""
    blocks.append(Paragraph(f"{show_text(who)} asks{where} · {' · '.join(facts)}", style))
    if item.default_action:
        blocks.append(Paragraph(f"Without an answer: {show_text(item.default_action)}", "dim"))
    options = [action.value for action in item.actions if action.value]
    blocks += [Paragraph(f"{number}. {show_text(one)}") for number, one in enumerate(options, 1)]
    outcome = describe_outcome(item, names)
    return [*blocks, Paragraph(outcome.capitalize() if outcome else list_moves(item), "accent")]


def list_moves(item: AttentionView) -> str:
    """Return the keys that decide an item, in words."""
    offered = dict.fromkeys(action.move.value for action in item.actions)
    if not item.may_decide:
        return f"You may not decide it.{' d dismiss' if 'dismiss' in offered else ''}"
    keys = {"approve": "y approve · Y always", "deny": "n deny", "answer": "a answer", "dismiss": "d dismiss"}
    if item.permission is None or item.permission.observed:
        keys["approve"] = "y approve"
    return " · ".join(keys[move] for move in offered if move in keys)


# -- why ---------------------------------------------------------------------------------------------


def build_explanation(told: Explanation, names: NameBook) -> list[Paragraph]:
    """Return why a record is as it is: the reason, who was chosen and passed over, and each step."""
    blocks = [Paragraph(names.say_you(told.says), "bold", exact=True), Paragraph("")]
    for one in told.decisions:
        holder = names.agent(one.holder) if one.holder else "nobody"
        blocks.append(
            Paragraph(f"{format_clock(one.at)} {one.action} {show_text(holder)}: {show_text(one.rule)}")
        )
        blocks += [
            Paragraph(f"  not {show_text(names.agent(over.agent_id))}: {show_text(over.why)}", "dim")
            for over in one.passed_over
        ]
    for step in told.steps:
        why = show_text(names.say_you(step.reason))
        by = f" by {show_text(names.name(step.by))}" if step.by else ""
        blocks.append(
            Paragraph(f"{format_clock(step.at)} {step.type.removeprefix('collab.')}{by}  {why}", "dim")
        )
    return blocks
