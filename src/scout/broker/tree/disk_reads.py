"""Reads of work trees off the event loop, bounded in time.

They have their own few threads: a disk that does not answer must not take the threads of other requests.
"""

import asyncio
import functools
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from scout.base.refusal import Refused
from scout.ports import Clock, FoundFolder, GitFailed, TreePorts, TreeState, TreeToCompare

T = TypeVar("T")
_LOG = logging.getLogger("scout.tree")
_THREADS = 2
_AT_ONCE = 50  # work trees compared in one call


@functools.cache
def _get_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="scout-tree")


async def read_disk(work: Callable[[], T], seconds: float) -> T:
    """Run a read in a thread; raise TimeoutError if it takes longer. A late result is dropped."""
    running = asyncio.get_running_loop().run_in_executor(_get_threads(), work)
    async with asyncio.timeout(seconds):
        return await asyncio.shield(running)


async def compare_trees(
    trees: TreePorts, clock: Clock, wanted: Sequence[TreeToCompare], seconds: float
) -> Mapping[str, TreeState]:
    """Return the state of each work tree by its path, as far as they can be read in this time."""
    found: dict[str, TreeState] = {}
    end, left = clock.monotonic() + seconds, iter(wanted)
    while some := tuple(islice(left, _AT_ONCE)):
        remaining = end - clock.monotonic()
        if remaining <= 0:
            break
        try:
            states = await read_disk(functools.partial(trees.work_trees.states, some), remaining)
        except TimeoutError:
            break
        except GitFailed as failure:
            states = tuple(TreeState(path=one.path, problem=str(failure)) for one in some)
        found.update((one.path, state) for one, state in zip(some, states, strict=True))
    return found


async def scan_folders(
    trees: TreePorts, clock: Clock, roots: Sequence[str], seconds: float
) -> tuple[Mapping[str, tuple[FoundFolder, ...]], tuple[str, ...]]:
    """Return the agents' folders of each project, and a note for each project that could not be read."""
    found: dict[str, tuple[FoundFolder, ...]] = {}
    notes: list[str] = []
    end = clock.monotonic() + seconds
    for root in roots:
        try:
            left = max(0.0, end - clock.monotonic())
            found[root] = await read_disk(functools.partial(_scan_settled, trees, root), left)
        except TimeoutError:
            notes.append(f"{root} could not be read within {seconds:.0f} s")
        except (GitFailed, OSError, Refused) as failure:
            notes.append(f"{root} could not be read: {failure}")
    for note in notes:
        _LOG.warning(note)
    return found, tuple(notes)


def _scan_settled(trees: TreePorts, root: str) -> tuple[FoundFolder, ...]:
    """Scan a project without the folders that are being made or removed now."""
    changing = {one.folder for one in trees.journal.unfinished()}
    found = trees.folders.scan(root)
    changing |= {one.folder for one in trees.journal.unfinished()}
    return tuple(one for one in found if one.identity is not None or one.folder not in changing)
