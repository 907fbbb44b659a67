"""Nothing is ever lost: whatever is spawned, written, damaged, repaired, finished and interrupted, all work is found.

Random sequences in a real repository. A commit or an uncommitted file is still where it was made, in the history
of a branch, or in the log: discarded by a named reason, in a commit that git still has.
"""

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from scout.model.events.envelope import Event
from scout.model.events.presence import AgentRetired
from scout.protocol.agents import ReviveAgent
from scout.protocol.tree.finish import FinishAgent, FinishDone
from scout.protocol.tree.spawn import SpawnAgents, SpawnRole
from scout.protocol.tree.view import ReconcileTree
from tests.tree.repositories import commit, git, repository

__all__ = ["CHOICES", "TreeWork"]

_REASON = "the property says so"
CHOICES: tuple[dict[str, Any], ...] = (
    {"merge": True, "ask": False},
    {"keep": True},
    {"discard": True, "reason": _REASON},
    {"discard": True},
    {},
)


class TreeWork(RuleBasedStateMachine):
    """A repository, its agents, and a list of everything that anybody wrote. A subclass brings the Scout."""

    children = Bundle("children")

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory(prefix="sct-")
        self.home = Path(self.folder.name).resolve()
        self.root = repository(self.home / "home" / "arc")
        self.number = 0
        self.commits: set[str] = set()
        self.files: list[tuple[Path, str]] = []  # what is not committed, with its text
        self.open_scout()

    def teardown(self) -> None:
        self.close_scout()
        self.folder.cleanup()

    def open_scout(self) -> None:
        raise NotImplementedError

    def close_scout(self) -> None:
        raise NotImplementedError

    def call(self, request: Any) -> Any:
        """A request of the person in the project; None if it is refused."""
        raise NotImplementedError

    def read_log(self) -> Iterable[Event]:
        raise NotImplementedError

    def next(self) -> str:
        self.number += 1
        return f"n{self.number}"

    # -- what people and agents do -----------------------------------------------------------------

    @rule(target=children, deep=st.booleans())
    def spawn(self, deep: bool) -> tuple[str, Path]:
        return self.make_child(deep)

    def make_child(self, deep: bool) -> tuple[str, Path]:
        """A new child of the root agent, or one below it; its id and its work tree."""
        made = self.call(SpawnAgents(slugs=(self.next(),), harness="echo", role=SpawnRole.TL))
        child = made.agents[0]
        if deep:
            below = self.call(SpawnAgents(slugs=(self.next(),), from_=child.path, harness="echo"))
            child = below.agents[0] if below is not None else child
        return child.agent.id, Path(child.working_dir or "")

    @rule(child=children)
    def write_commit(self, child: tuple[str, Path]) -> None:
        self._commit(child[1])

    @rule()
    def write_commit_of_the_parent(self) -> None:
        self._commit(self.root)

    def _commit(self, tree: Path) -> None:
        if tree.exists():
            self.commits.add(commit(tree, "shared.txt", f"{self.next()}\n"))
            self.files = [one for one in self.files if one[0].parent != tree]  # they are in the commit

    @rule(child=children)
    def write_file(self, child: tuple[str, Path]) -> None:
        if child[1].exists():
            text = self.next()
            path = child[1] / f"{text}.txt"
            path.write_text(text)
            self.files.append((path, text))

    @rule(child=children, choice=st.sampled_from(CHOICES))
    def finish(self, child: tuple[str, Path], choice: dict[str, Any]) -> None:
        self.call(FinishAgent(address=child[0], **choice))

    @rule(child=consumes(children))
    def revive(self, child: tuple[str, Path]) -> None:
        self.call(ReviveAgent(address=child[0]))

    @rule()
    def finish_all_that_is_done(self) -> None:
        self.call(FinishDone(ask=False))

    # -- damage and repairs --------------------------------------------------------------------------

    @rule(child=children, text=st.sampled_from(("", "{}", None)))
    def damage_identity(self, child: tuple[str, Path], text: str | None) -> None:
        """Somebody empties, forges or removes the file that says who works here."""
        file = child[1] / ".scout" / "identity.json"
        if not file.exists():
            return
        if text is None:
            file.unlink()
        else:
            file.write_text(text)

    @rule(child=children)
    def remove_folder(self, child: tuple[str, Path]) -> None:
        """Somebody removes a work tree in which everything is committed."""
        if (child[1] / ".git").exists() and not git(child[1], "status", "--porcelain"):
            shutil.rmtree(child[1])

    @rule(fix=st.booleans())
    def reconcile(self, fix: bool) -> None:
        self.call(ReconcileTree(fix=fix, project_root=str(self.root)))

    # -- nothing is lost ---------------------------------------------------------------------------

    @invariant()
    def every_commit_exists(self) -> None:
        for one in self.commits:
            assert git(self.root, "cat-file", "-t", one) == "commit"
        reached = set(git(self.root, "rev-list", "--branches", *self._discarded()).split())
        assert self.commits <= reached

    @invariant()
    def every_file_exists(self) -> None:
        gone = [path.name for path, text in self.files if not path.exists() or path.read_text() != text]
        trees = [git(self.root, "ls-tree", "--name-only", "-r", one).split() for one in self._discarded()]
        assert not [name for name in gone if not any(name in tree for tree in trees)]

    def _discarded(self) -> list[str]:
        """The commits that the log names as discarded by this reason."""
        retired = [one for one in self.read_log() if isinstance(one, AgentRetired)]
        found = [one.metadata.finished for one in retired if _REASON in one.payload.reason]
        return [name for one in found if one is not None for name in (one.commit, one.saved) if name]
