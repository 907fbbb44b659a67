"""The next step for an ask when a turn of a person's live session ends without an answer to it."""

from enum import StrEnum

from scout.model.session import LiveTurn


class TurnStep(StrEnum):
    """Send the turn's last text as the answer, remind the agent, or wait for the session's user."""

    REPLY = "reply"
    REMIND = "remind"
    WAIT = "wait"


def choose_step(turn: LiveTurn, flight_id: str, text: str) -> TurnStep:
    """Return the next step for a flight that is still running when a turn ends.

    The turn's text is the answer only if the ask alone started the turn. Anything else is a private
    conversation between a person and their agent.
    """
    if flight_id == turn.alone_for and text.strip():
        return TurnStep.REPLY
    return TurnStep.WAIT if flight_id in turn.reminded else TurnStep.REMIND
