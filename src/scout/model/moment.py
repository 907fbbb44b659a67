"""A moment of the past."""

from scout.base.record import Record
from scout.base.time import Time


class Moment(Record):
    """A moment of the past: its time, and the number of the last event before it."""

    at: Time
    seq: int
