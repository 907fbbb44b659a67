"""What Codex's sandbox must let a spawned agent write so that it can commit (decision 0038)."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SMALL = 4096
# Parts of the git folder that all work trees of a repository share. Its configuration and hooks are not here.
_SHARED = ("objects", "refs/heads", "logs/refs/heads", "reftable")
# Files that decide which configuration git reads, inside the folder that belongs to the work tree.
_FIXED = ("commondir", "gitdir", "config.worktree", "modules")


def list_commit_access(repository: str, work_tree: Path) -> dict[str, str]:
    """Return the paths that a commit in a linked work tree writes, and those that stay read-only.

    `repository` is the project root that Scout recorded. What the work tree itself says about its git folder
    is not believed: an agent could name any folder there.
    """
    common = Path(os.path.realpath(repository)) / ".git"
    own = _find_own_folder(common, work_tree)
    if own is None:
        return {}
    writable = [folder for folder in (*(common / one for one in _SHARED), own) if _is_real_folder(folder)]
    return {
        **{str(folder): "write" for folder in writable},
        **{str(own / name): "read" for name in _FIXED},
    }


def build_permissions(access: Mapping[str, str], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return Codex's workspace profile with this access. `settings`: the user's own for that sandbox."""
    files: dict[str, str] = {}
    files |= {str(root): "write" for root in settings.get("writable_roots", ())}
    excluded = {":slash_tmp": "exclude_slash_tmp", ":tmpdir": "exclude_tmpdir_env_var"}
    files |= {name: "read" for name, key in excluded.items() if settings.get(key) is True}
    network = {"enabled": settings.get("network_access") is True}
    return {"extends": ":workspace", "filesystem": {**files, **access}, "network": network}


def _find_own_folder(common: Path, work_tree: Path) -> Path | None:
    """Return the folder that git keeps for a work tree; git names the work tree in it."""
    wanted = os.path.realpath(work_tree / ".git")
    try:
        folders = sorted((common / "worktrees").iterdir())
    except OSError:
        return None
    found = (one for one in folders if _is_real_folder(one) and _read_path(one / "gitdir") == wanted)
    return next(found, None)


def _read_path(file: Path) -> str | None:
    """Return the real path that a small file of git names."""
    try:
        with file.open("rb") as opened:
            text = os.fsdecode(opened.read(_SMALL)).strip()
    except OSError:
        return None
    return os.path.realpath(file.parent / text) if text else None


def _is_real_folder(folder: Path) -> bool:
    """Whether a path is a folder, reached through no link."""
    return folder.is_dir() and os.path.realpath(folder) == str(folder)
