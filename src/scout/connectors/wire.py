"""The base of what a platform sends."""

from scout.base.record import Record


class WireRecord(Record, rename=lambda name: name):
    """A part of an answer or event, with the platform's names. Fields that Scout does not use are ignored."""
