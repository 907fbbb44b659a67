"""Changes of a repository's own git folder: work trees, branches, and reading which branches there are.

Git reads the repository's configuration here, because it must, so only commands are used that start nothing
on their own: no command checks files out, reads an index or shows text. Hooks, monitors and maintenance are
switched off by settings that outrank the repository's. Commands wait for locks of other git processes.
"""

from pathlib import Path
from typing import NamedTuple

from scout.ports import GitTree
from scout.tree.git.held_locks import wait_for_locks
from scout.tree.git.process import ENVIRONMENT, GitProcess, build_passed_environment
from scout.tree.git.repository import Repository

_SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.fsync": "all",
    "core.alternateRefsCommand": "",
    "core.askPass": "",
    "core.sshCommand": "false",
    "core.pager": "cat",
    "commit.gpgSign": "false",
    "credential.helper": "",
    "gc.auto": "0",
    "log.showSignature": "false",
    "maintenance.auto": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "worktree.guessRemote": "false",
}
_NAME, _EMAIL = "Scout", "scout@localhost"  # written to the reflog
_REFS = 64 << 20
_BEING_MADE = "Scout is making this work tree"


class Branches(NamedTuple):
    """All branches and remote-tracking branches of a repository, with their commits."""

    heads: dict[str, str]
    remotes: dict[str, str]


class Administration:
    """The git folder of one repository. `patience`: seconds to wait for locks of other git processes."""

    def __init__(self, repository: Repository, end: float, patience: float) -> None:
        self._repository = repository
        self._patience = patience
        environment = _build_environment(repository.common)
        self._git = GitProcess(repository.top, environment, end)
        here = _build_environment(repository.own)
        self._here = GitProcess(repository.top, here, end)

    # -- reading ---------------------------------------------------------------------------------

    def head_commit(self) -> str | None:
        """Return the commit that this work tree has checked out; None before the first one."""
        words = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        return self._here.run(*words, fine=(0, 1)).strip() or None

    def find_commit(self, revision: str) -> str | None:
        """Return the commit that a revision names."""
        words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        return self._here.run(*words, fine=(0, 1, 128)).strip() or None

    def list_branches(self) -> Branches:
        """Read all branches; symbolic ones, such as `origin/HEAD`, are only other names."""
        words = (
            "for-each-ref",
            "--format=%(objectname) %(symref) %(refname)",
            "refs/heads/",
            "refs/remotes/",
        )
        found = Branches({}, {})
        for line in self._git.call(words, most=_REFS).decode("utf-8", "surrogateescape").splitlines():
            commit, symbolic, name = line.split(" ", 2)
            if not symbolic:
                kind = found.heads if name.startswith("refs/heads/") else found.remotes
                kind[name.split("/", 2)[2]] = commit
        return found

    def list_trees(self) -> tuple[GitTree, ...]:
        """List all work trees, the main one first."""
        words = ("worktree", "list", "--porcelain", "-z")
        listed = wait_for_locks(lambda: self._git.call(words, most=_REFS), self._patience)
        blocks = listed.decode("utf-8", "replace").split("\0\0")
        return tuple(_read_tree(block.split("\0")) for block in blocks if block.strip("\0"))

    # -- changing --------------------------------------------------------------------------------

    def create_branch(self, branch: str, commit: str) -> None:
        """Create a branch. It fails if there is one of that name."""
        self._change(
            "update-ref", "--no-deref", "-m", "scout: created", _build_ref(branch), commit, "0" * len(commit)
        )

    def move_branch(self, branch: str, commit: str, before: str, why: str) -> None:
        """Move a branch from one commit to another. It fails if the branch is elsewhere."""
        self._change("update-ref", "--no-deref", "-m", why, _build_ref(branch), commit, before)

    def delete_branch(self, branch: str, commit: str) -> None:
        """Delete a branch. It fails if the branch is not at `commit`."""
        self._change("update-ref", "--no-deref", "-d", _build_ref(branch), commit)

    def add_tree(self, path: str, branch: str, *, anyhow: bool = False) -> None:
        """Add an empty work tree of an existing branch, locked while it is being made."""
        force = ("--force", "--force") if anyhow else ()
        words = (*force, "--no-checkout", "--lock", "--reason", _BEING_MADE, "--", path, branch)
        self._change("worktree", "add", *words)

    def add_detached_tree(self, path: str, commit: str) -> None:
        """Add an empty work tree of a commit."""
        self._change("worktree", "add", "--no-checkout", "--detach", "--", path, commit)

    def unlock_tree(self, path: str) -> None:
        self._change("worktree", "unlock", "--", path)

    def forget_tree(self, path: str) -> None:
        """Remove what the git folder knows about a work tree whose folder is gone."""
        self._change("worktree", "remove", "--force", "--force", "--", path)

    def _change(self, *words: str) -> None:
        wait_for_locks(lambda: self._git.run(*words), self._patience)


def _build_environment(folder: str) -> dict[str, str]:
    settings = list(_SETTINGS.items())
    given = {f"GIT_CONFIG_KEY_{number}": key for number, (key, _) in enumerate(settings)}
    values = {f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in enumerate(settings)}
    return {
        **build_passed_environment(),
        **ENVIRONMENT,
        **given,
        **values,
        "GIT_CONFIG_COUNT": str(len(settings)),
        "GIT_COMMITTER_NAME": _NAME,
        "GIT_COMMITTER_EMAIL": _EMAIL,
        "GIT_DIR": folder,
    }


def _build_ref(branch: str) -> str:
    return f"refs/heads/{branch}"


def _read_tree(lines: list[str]) -> GitTree:
    facts: dict[str, str] = {}
    for line in lines:
        word, _, value = line.partition(" ")
        facts.setdefault(word, value)
    branch = facts.get("branch", "").removeprefix("refs/heads/") or None
    commit = facts.get("HEAD", "")
    return GitTree(
        path=facts["worktree"],
        branch=branch,
        commit=commit if commit.strip("0") else None,
        missing=not Path(facts["worktree"]).is_dir(),
        locked=facts.get("locked"),
    )
