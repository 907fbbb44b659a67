"""A daemon without a mesh, with the extra `mesh` installed and without it: start, memory, modules."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Generator, Iterator
from pathlib import Path

from bench.daemon import running
from bench.figure import Figure

ROUNDS = 5
SAME = 1.1
LIBRARIES = ("cryptography", "nacl", "nats", "nkeys", "scout.mesh")
# Stands for an interpreter without the extra: its libraries are not found.
_HIDE = """
    import importlib.abc, sys

    class Hidden(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {hidden}:
                raise ModuleNotFoundError(name, name=name)

    sys.meta_path.insert(0, Hidden())
"""


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """In turn, so that what else the machine does meets both alike."""
    rounds = max(round(ROUNDS * scale), 2)
    found: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for _ in range(rounds):
        for installed, costs in found.items():
            costs.append(_start(installed))
    start, memory = (
        [statistics.median(one[place] for one in found[installed]) for installed in (True, False)]
        for place in (0, 1)
    )
    yield Figure(name="no mesh: processor time of the start", result=start[0], unit="ms")
    yield Figure(
        name="no mesh: start with the extra against without", result=start[0] / start[1], unit="x", goal=SAME
    )
    yield Figure(name="no mesh: memory", result=memory[0], unit="MB")
    yield Figure(
        name="no mesh: memory with the extra against without",
        result=memory[0] / memory[1],
        unit="x",
        goal=SAME,
    )
    loaded = len(list_loaded(("scout.daemon.serve",)))
    yield Figure(name="no mesh: modules of it that are loaded", result=loaded, unit="", goal=0)


def _start(installed: bool) -> tuple[float, float]:
    """Return the processor time up to the first answer in milliseconds, and the memory in MB."""
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder, _hiding(installed) as environ:
        words = ["env", *environ, sys.executable, "-m", "scout.daemon"]
        with running(Path(folder), words) as started:
            return started.read_processor_time(), started.memory()


@contextlib.contextmanager
def _hiding(installed: bool) -> Generator[list[str]]:
    if installed:
        yield []
        return
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        names = {name.partition(".")[0] for name in LIBRARIES} - {"scout"}
        (Path(folder) / "sitecustomize.py").write_text(textwrap.dedent(_HIDE).format(hidden=names))
        yield [f"PYTHONPATH={folder}"]


def list_loaded(modules: tuple[str, ...]) -> list[str]:
    """Return which modules of the mesh an interpreter has after importing these."""
    code = f"import sys, json, {', '.join(modules)}; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ, check=True, capture_output=True, text=True
    )
    found: list[str] = json.loads(done.stdout)
    return [one for one in found if one.startswith(LIBRARIES)]
