"""Random work in a tree and in its parent: nothing uncommitted or unmerged is ever reported as absent or lost."""

import hashlib
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from scout.ports import GitFailed
from scout.tree.worktrees import GitWorkTrees
from tests.tree.repositories import git, head, repository, trees

NAMES = ("a.txt", "b.txt", "below/c.txt", "new.txt", "below", "ignored.log", "d e/ü.txt")
TEXTS = ("1\n", "2\n", "longer\n")


class Forest:
    """A parent with one child, both of which a user changes with git."""

    def __init__(self, folder: Path) -> None:
        self.work: GitWorkTrees = trees(folder)
        self.root = repository(folder / "arc")
        (self.root / ".git" / "info").mkdir(exist_ok=True)
        (self.root / ".git" / "info" / "exclude").write_text("*.log\n")
        self.tree = Path(self.work.add(str(self.root), "main.auth", "auth", head(self.root)).path)
        self.kept = set[str]()  # every commit that the child has made

    # -- what a user does --------------------------------------------------------------------------

    def write(self, place: Path, name: str, text: str) -> None:
        path = place / name
        if path.is_dir():
            shutil.rmtree(path)
        if path.parent.is_file():
            path.parent.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def delete(self, place: Path, name: str) -> None:
        path = place / name
        if path.is_dir():
            shutil.rmtree(path)
        elif path.exists():
            path.unlink()

    def stage(self, place: Path, name: str) -> None:
        git(place, "add", "--", name, check=False)

    def commit(self, place: Path) -> None:
        git(place, "add", "-A")
        git(place, "commit", "-q", "-m", "work", check=False)
        if place == self.tree:
            self.kept.add(head(self.tree))

    def hide(self, place: Path, name: str, mark: str) -> None:
        git(place, "update-index", mark, name, check=False)

    def detach(self) -> None:
        git(self.tree, "checkout", "-q", "--detach")

    def attach(self) -> None:
        git(self.tree, "checkout", "-q", "main.auth", check=False)

    def rename(self) -> None:
        git(self.tree, "branch", "-m", "main.auth", "other", check=False)

    def publish(self) -> None:
        git(self.root, "update-ref", "refs/remotes/origin/x", head(self.tree))

    # -- what is true, found without Scout ---------------------------------------------------------

    def uncommitted(self, place: Path) -> set[str]:
        """Files that differ from the commit, in the folder or in the index."""
        stored = self._stored(place, "ls-tree", "-r", "-z", "--format=%(objectname) %(path)", "HEAD")
        staged = self._stored(place, "ls-files", "-z", "--format=%(objectname) %(path)")
        here = {name: _blob(data) for name, data in self.everything(place).items()}
        names = {name for name in {*stored, *here} if stored.get(name) != here.get(name)}
        names -= self._skipped(place) - {*here}
        names |= {name for name in {*stored, *staged} if stored.get(name) != staged.get(name)}
        return {name for name in names if name in stored or name in staged or not name.endswith(".log")}

    def _skipped(self, place: Path) -> set[str]:
        """Files that are outside of a sparse checkout: their absence is no change, and loses nothing."""
        lines = git(place, "ls-files", "-z", "-t").split("\0")
        return {line[2:] for line in lines if line.startswith("S ")}

    def _stored(self, place: Path, *words: str) -> dict[str, str]:
        lines = git(place, *words).split("\0")
        return {name: ident for ident, _, name in (line.partition(" ") for line in lines if line)}

    def everything(self, place: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(place)): path.read_bytes()
            for path in place.rglob("*")
            if path.is_file() and not {".git", ".scout"} & {*path.relative_to(place).parts}
        }

    # -- what Scout says ---------------------------------------------------------------------------

    def check_state(self) -> None:
        state = self.work.state(str(self.tree), "main.auth", "main", most=1000)
        assert state.problem is None
        assert {*state.uncommitted} == self.uncommitted(self.tree)
        tips = ["HEAD", *(["main.auth"] if git(self.root, "branch", "--list", "main.auth") else [])]
        unmerged = git(self.tree, "rev-list", *tips, "^main").split()
        assert state.ahead == len(unmerged)
        assert len(state.unmerged) == len(unmerged)
        own = (
            ("--exclude=main.auth", "--exclude=other")
            if state.branch == "other"
            else ("--exclude=main.auth",)
        )
        lost = git(self.tree, "rev-list", *tips, "--not", *own, "--branches", "--remotes").split()
        assert state.unpushed == len(lost)

    def check_saved(self) -> None:
        """What is saved before a tree is discarded is all that would be lost."""
        before = self.everything(self.tree)
        saved = self.work.save_uncommitted(str(self.tree), "saved")
        assert self.everything(self.tree) == before
        assert (saved is not None) or not self.uncommitted_now()
        commit = saved or head(self.tree)
        stored = self._stored(self.tree, "ls-tree", "-r", "-z", "--format=%(objectname) %(path)", commit)
        wanted = {name: data for name, data in before.items() if name in stored or not name.endswith(".log")}
        for name in self._skipped(self.tree) - {*before}:
            stored.pop(name, None)
        assert {name: _blob(data) for name, data in wanted.items()} == stored

    def uncommitted_now(self) -> set[str]:
        """Files on disk that differ from the commit."""
        stored = self._stored(self.tree, "ls-tree", "-r", "-z", "--format=%(objectname) %(path)", "HEAD")
        here = {name: _blob(data) for name, data in self.everything(self.tree).items()}
        names = {name for name in {*stored, *here} if stored.get(name) != here.get(name)}
        names -= self._skipped(self.tree) - {*here}
        return {name for name in names if name in stored or not name.endswith(".log")}

    def merge(self) -> None:
        """A merge loses nothing of the parent's, and a refused one changes nothing."""
        before, files, dirty = head(self.root), self.everything(self.root), self.uncommitted(self.root)
        tracked = self._stored(self.root, "ls-files", "-z", "--format=%(objectname) %(path)")
        try:
            preview = self.work.preview_merge(str(self.root), "main", "main.auth")
            merged = self.work.merge(str(self.root), preview, "merge", lambda _: None)
        except GitFailed:
            assert (head(self.root), self.everything(self.root)) == (before, files)
            return
        assert merged.commit == head(self.root)
        if not preview.needed:
            assert self.everything(self.root) == files
            return
        assert git(self.root, "rev-list", "main.auth", "^main") == ""
        after = self.everything(self.root)
        assert {name: after.get(name) for name in files if name not in tracked} == {
            name: text for name, text in files.items() if name not in tracked
        }
        assert self.uncommitted(self.root) == {name for name in dirty if name not in tracked}

    def check_commits(self) -> None:
        """Every commit of the child still exists."""
        for one in self.kept:
            assert git(self.root, "cat-file", "-t", one) == "commit"


def _blob(data: bytes) -> str:
    """The id that git gives to this content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


Action = tuple[str, ...]


def _actions() -> st.SearchStrategy[Action]:
    place, name, text = st.sampled_from(("tree", "root")), st.sampled_from(NAMES), st.sampled_from(TEXTS)
    on, off = ("--assume-unchanged", "--skip-worktree"), ("--no-assume-unchanged", "--no-skip-worktree")
    words = ("detach", "attach", "rename", "publish", "merge", "merge", "check_saved")
    return st.one_of(
        st.tuples(st.just("write"), place, name, text),
        st.tuples(st.just("write"), place, name, text),
        st.tuples(st.just("delete"), place, name),
        st.tuples(st.just("stage"), place, name),
        st.tuples(st.just("commit"), place),
        st.tuples(st.just("commit"), place),
        st.tuples(st.just("hide"), place, name, st.sampled_from((*on, *off))),
        st.tuples(st.sampled_from(words)),
    )


@pytest.mark.slow
@settings(max_examples=25, phases=[Phase.explicit, Phase.generate])  # each step runs git: no time to shrink
@given(st.lists(_actions(), min_size=3, max_size=12))
def test_nothing_is_reported_as_absent_and_nothing_is_lost(actions: list[Action]) -> None:
    note(repr(actions))
    folder = Path(tempfile.mkdtemp())
    try:
        forest = Forest(folder)
        for word, *rest in actions:
            place = [getattr(forest, one) for one in rest[:1]]
            getattr(forest, word)(*place, *rest[1:])
        forest.check_state()
        forest.merge()
        forest.check_state()
        forest.check_saved()
        forest.check_commits()
    finally:
        shutil.rmtree(folder)
