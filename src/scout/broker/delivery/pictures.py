"""A picture of the work tree before and after a turn of a program, so that its changes can be shown."""

import asyncio
import logging

from scout.broker.delivery.opening import PreparedTurn
from scout.broker.transaction.services import Services

_LOG = logging.getLogger("scout.dispatch")


async def take_before(services: Services, prepared: PreparedTurn) -> None:
    """Of a turn whose program has not heard of it yet. It never keeps the turn from going on."""
    kept, spec = services.snapshots, prepared.spec
    if kept is None or prepared.accepted or not _is_pictured(services, prepared):
        return
    try:
        await asyncio.to_thread(kept.before, spec.session_id, prepared.flight_id or "", spec.cwd or "")
    except (OSError, ValueError):
        _LOG.exception("a picture of %s", spec.cwd)


async def take_after(services: Services, prepared: PreparedTurn) -> None:
    """Of a turn that is over: its answer is not held up by this, the next turn is."""
    kept, spec = services.snapshots, prepared.spec
    if kept is None or not _is_pictured(services, prepared):
        return
    try:
        await asyncio.to_thread(kept.after, spec.session_id, prepared.flight_id or "")
    except (OSError, ValueError):
        _LOG.exception("a picture of %s", spec.cwd)


def _is_pictured(services: Services, prepared: PreparedTurn) -> bool:
    can = services.harnesses[prepared.harness].capabilities
    return can.starts_programs and prepared.flight_id is not None and prepared.spec.cwd is not None
