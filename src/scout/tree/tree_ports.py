"""The ports of agent trees, as the daemon uses them."""

from collections.abc import Sequence
from pathlib import Path

from scout.ports import TreePorts
from scout.tree.folders import ScoutFolders
from scout.tree.journal import FileJournal
from scout.tree.worktrees import GitWorkTrees


def build_tree_ports(home: Path, key: bytes, environment: Sequence[str] = ()) -> TreePorts:
    """Return the ports. `home`: Scout's data folder; `key` signs identity files.

    `environment`: names of further variables that the operator's commands get.
    """
    data = home / "trees"
    return TreePorts(
        work_trees=GitWorkTrees(data, environment),
        folders=ScoutFolders(key),
        journal=FileJournal(data / "journal"),
    )
