"""What becomes of an ask when a turn of a person's own session ends without an answer to it."""

from enum import StrEnum

from scout.model.session import LiveTurn


class TurnStep(StrEnum):
    """Hand over the turn's last text, ask the agent for its answer, or wait for the session's user."""

    REPLY = "reply"
    REMIND = "remind"
    WAIT = "wait"


def step_after_turn(turn: LiveTurn, flight_id: str, text: str) -> TurnStep:
    """The next step for a flight that is still running when a turn ends.

    Only the text of a turn that the ask alone began is its answer: what a person and their agent say to
    each other is nobody else's.
    """
    if flight_id == turn.alone_for and text.strip():
        return TurnStep.REPLY
    return TurnStep.WAIT if flight_id in turn.reminded else TurnStep.REMIND
