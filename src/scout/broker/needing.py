"""What needs a person: raised once, decided once, and the answer travels back to what is blocked."""

from scout.broker.turn import Turn
from scout.model.question import Question
from scout.model.work_item import WorkItem

__all__ = ["follow"]


def follow(turn: Turn, record: Question | WorkItem) -> None:
    """A person who holds the next move of a record finds it in the inbox; once it moves on, no longer."""
