"""Refusals about users, their chats and their schedules."""

from scout.base.refusal import Diagnostic


class MalformedCron(Diagnostic, tag="malformed_cron"):
    """The text does not say when a schedule runs.

    It has five fields, separated by blanks, or is a name: @hourly, @daily (or @midnight), @weekly,
    @monthly, @yearly (or @annually). `position` is the character (from 0) at which reading failed,
    `example` a text that is accepted.

      minute         0-59
      hour           0-23
      day of month   1-31, or L for the last day
      month          1-12, or jan-dec
      day of week    0-7 (0 and 7 are Sunday), or sun-sat; 1#2 is the second Monday, 5L the last Friday

    A field is * (every), a number, a range (1-5), a list (1,15) or a step (*/10). If both the day of the
    month and the day of the week are given, the schedule runs on days that match either.
    """

    text: str
    position: int
    problem: str
    expected: str
    example: str = ""

    @property
    def message(self) -> str:
        instead = f"; for example '{self.example}'" if self.example else ""
        return f"found {self.problem} at character {self.position}; expected {self.expected}{instead}"
