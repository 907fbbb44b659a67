"""A store that is full: what has to be recorded is recorded as soon as there is room again."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from scout.base.refusal import Refused
from scout.model.delivery import Backoff, back_off
from scout.model.problems.request import StoreFull

T = TypeVar("T")
_LOG = logging.getLogger("scout.store")
_MOST = 5.0  # seconds between two tries: a person who has made room waits no longer


async def until_stored(work: Callable[[], Awaitable[T]], rule: Backoff) -> T:
    """The result of work that writes; on a full disk it is tried again until it is done."""
    tries = 0
    while True:
        try:
            return await work()
        except Refused as refusal:
            if not isinstance(refusal.diagnostic, StoreFull):
                raise
            tries += 1
            if tries == 1:
                _LOG.warning("%s; what happened is recorded when there is room", refusal)
            await asyncio.sleep(min(back_off(tries, rule), _MOST))
