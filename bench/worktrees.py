"""Work trees of agents: one more beside git's own, and many of them compared, listed and scanned."""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.figure import Figure
from scout.base.time import Time
from scout.ports import IdentityFile
from scout.ports.worktrees import TreeToCompare
from scout.tree.folders import ScoutFolders
from scout.tree.worktrees import GitWorkTrees

FILES, ROUNDS, MANY = 1000, 15, 1000
GOAL = 100.0  # milliseconds more than git's own `worktree add`
WHO = ("-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "init.defaultBranch=main")


def figures(scale: float) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="scout-bench-") as folder:
        forest = _Forest(Path(folder))
        theirs, ours = _in_turns(forest.add_by_git, forest.add)
        yield Figure(name=f"git worktree add, {FILES:,} files", result=theirs, unit="ms")
        yield Figure(name=f"a work tree of an agent, {FILES:,} files", result=ours, unit="ms")
        yield Figure(name="a work tree, more than git's own", result=ours - theirs, unit="ms", goal=GOAL)
        yield Figure(name="state of a work tree", result=_best(forest.compare_one), unit="ms")
        yield Figure(name="state of a work tree with commits", result=_best(forest.compare_ahead), unit="ms")
        count = max(10, round(MANY * scale))
        forest.fill(count)
        yield Figure(name=f"list of {count:,} work trees", result=_best(forest.list_all, 5), unit="ms")
        yield Figure(name=f"scan of {count:,} work trees", result=_best(forest.scan, 5), unit="ms")
        yield Figure(name=f"state of {count:,} work trees", result=_best(forest.compare_all, 2), unit="ms")


class _Forest:
    """A repository, and work trees made in two ways."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "arc"
        self.work = GitWorkTrees(folder / "data")
        self.folders = ScoutFolders(b"k" * 32)
        self.number = 0
        self.root.mkdir()
        self._git("init", "-q")
        for number in range(FILES):
            path = self.root / f"d{number % 40}" / f"f{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(f"{number}\n" * 40)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "first")
        self.base = self._git("rev-parse", "HEAD")
        self.one = TreeToCompare(
            self.work.add(str(self.root), "main.one", "one", self.base).path, "main.one", "main"
        )
        ahead = Path(self.work.add(str(self.root), "main.ahead", "ahead", self.base).path)
        (ahead / "new.txt").write_text("new\n")
        self._git("add", "-A", at=ahead)
        self._git("commit", "-q", "-m", "more", at=ahead)
        self.ahead = TreeToCompare(str(ahead), "main.ahead", "main")
        self.all: list[TreeToCompare] = []

    def add_by_git(self) -> None:
        self.number += 1
        name = f"git{self.number}"
        self._git("worktree", "add", "-q", "-b", name, str(self.folder / name), self.base)

    def add(self) -> None:
        self.number += 1
        name = f"s{self.number}"
        self.work.add(str(self.root), f"main.{name}", name, self.base)

    def fill(self, count: int) -> None:
        """Work trees without files: their number is measured, not their size."""
        empty = self._git("commit-tree", "-m", "empty", self._git("mktree"))
        for number in range(count):
            name = f"many{number}"
            path = self.work.add(str(self.root), f"main.{name}", name, empty).path
            created = Time(1_790_000_000_000_000)
            identity = IdentityFile(
                id=f"agt_{number}", path=f"/me/agent/arc/sub/{number}", created_at=created
            )
            self.folders.write_identity(path, identity)
            self.all.append(TreeToCompare(path, f"main.{name}", "main"))

    def compare_one(self) -> None:
        self.work.states((self.one,))

    def compare_ahead(self) -> None:
        self.work.states((self.ahead,))

    def compare_all(self) -> None:
        states = self.work.states(self.all)
        assert not any(state.problem for state in states)

    def list_all(self) -> None:
        assert len(self.work.list_trees(str(self.root))) > len(self.all)

    def scan(self) -> None:
        found = self.folders.scan(str(self.root))
        assert len([one for one in found if one.identity]) == len(self.all)

    def _git(self, *words: str, at: Path | None = None) -> str:
        command = ["git", *WHO, *words]
        done = subprocess.run(
            command, cwd=at or self.root, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        return done.stdout.strip()


def _in_turns(*calls: Callable[[], None]) -> list[float]:
    """The best milliseconds of each, in turns: what else the machine does meets them all."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        best = [min(before, _milliseconds(call)) for before, call in zip(best, calls, strict=True)]
    return best


def _best(call: Callable[[], None], rounds: int = ROUNDS) -> float:
    return min(_milliseconds(call) for _ in range(rounds))


def _milliseconds(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1000
