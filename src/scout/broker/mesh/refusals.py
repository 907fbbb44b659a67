"""Refusals of what is published in the name of a node, recorded so that nobody fills the log with them."""

import logging

from scout.broker.mesh import members
from scout.broker.transaction.call import Transactions

_LOG = logging.getLogger("scout.mesh")
_QUIET = 60.0  # seconds between two records of the same refusal
_MANY = 10_000


class RecordedRefusals:
    """Remembers which refusals were recorded, and when."""

    def __init__(self, broker: Transactions) -> None:
        self._broker = broker
        self._recorded: dict[tuple[str, str], float] = {}

    async def record(self, node_id: str, reason: str) -> None:
        """Record a refusal; the same one again only after a while."""
        now, last = self._broker.services.clock.monotonic(), self._recorded.get((node_id, reason))
        if last is not None and now - last < _QUIET:
            return
        if len(self._recorded) >= _MANY:
            self._recorded.clear()
        self._recorded[node_id, reason] = now
        _LOG.warning("refused from node %s: %s", node_id, reason)
        await self._broker.as_system(lambda tx: members.record_refusal(tx, node_id, reason))
