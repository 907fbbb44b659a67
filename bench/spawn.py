"""What a spawn costs on top of git's own `worktree add`, in a repository of a thousand files."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.daemon import fresh
from bench.figure import Figure

COUNT = 12
FILES = 1000
GOAL = 100.0  # milliseconds on top of git's own time


def figures(scale: float = 1.0) -> Iterator[Figure]:
    """Work trees added by git and agents spawned by Scout, in turns; the median of each."""
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder, fresh() as to:
        root = _repository(Path(folder).resolve() / "arc")
        plain, spawned, parent = list[float](), list[float](), ""
        for number in range(max(round(COUNT * scale), 7)):
            if number % 7 == 0:  # below the cap of children: each lot has a parent of its own
                lot = {"slugs": [f"lot{number // 7}"], "harness": "echo", "projectPath": str(root)}
                parent = to.call("POST", "/v1/spawn", lot)["agents"][0]["path"]
            add = ["worktree", "add", "-q", "-b", f"plain{number}", f"{folder}/plain{number}", "main"]
            plain.append(_timed(lambda words=add: _git(root, *words)))
            wish = {"slugs": [f"n{number}"], "harness": "echo", "from": parent}
            spawned.append(_timed(lambda body=wish: to.call("POST", "/v1/spawn", body)))
        own, ours = sorted(plain)[len(plain) // 2], sorted(spawned)[len(spawned) // 2]
        yield Figure(name="git worktree add, 1,000 files", result=own, unit="ms")
        yield Figure(name="spawn, 1,000 files", result=ours, unit="ms")
        yield Figure(name="spawn on top of git's own time", result=ours - own, unit="ms", goal=GOAL)


def _repository(root: Path) -> Path:
    for number in range(FILES):
        file = root / f"d{number % 20}" / f"f{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n" * 50)
    _git(root, "init", "-q", "-b", "main")
    _git(root, "add", "-A")
    _git(root, "-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "-qm", "first")
    return root


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(root), *words], check=True, capture_output=True)


def _timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - began)
