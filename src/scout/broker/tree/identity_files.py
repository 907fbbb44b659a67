"""The identity files of agents that are retired or revived. The functions block: call them in a thread."""

from pathlib import Path

from msgspec.structs import replace

from scout.broker.tree.new_trees import build_identity
from scout.model.agent import Agent, Lifecycle
from scout.ports import TreePorts


def write_lifecycle(trees: TreePorts, agent: Agent, parent: Agent | None) -> None:
    """Write whether an agent is retired to its identity file, so that this survives the database."""
    folder = find_folder(trees, agent)
    if folder is not None:
        retired = agent.updated_at if agent.lifecycle is Lifecycle.RETIRED else None
        trees.folders.write_identity(folder, replace(build_identity(agent, parent), retired_at=retired))


def find_folder(trees: TreePorts, agent: Agent) -> str | None:
    """Return the folder of an agent's identity file: a work tree, the project, or the folder of a worker."""
    if agent.project_root is None:
        return None
    if agent.birth_branch is None:
        found = trees.folders.scan(_find_main_tree(trees, agent.project_root))
        return next((one.folder for one in found if one.identity and one.identity.id == agent.id), None)
    folder = agent.project_root if agent.parent_id is None else agent.working_dir
    exists = folder is not None and Path(folder, ".scout").is_dir()
    return folder if exists else None


def remove_worker(trees: TreePorts, agent: Agent) -> None:
    """Remove the folder of a worker. It holds nothing but its identity."""
    folder = find_folder(trees, agent)
    if folder is not None and agent.project_root is not None:
        trees.folders.remove_worker(_find_main_tree(trees, agent.project_root), Path(folder).name)


def _find_main_tree(trees: TreePorts, project_root: str) -> str:
    found = trees.work_trees.look(project_root, 0)
    return found.root if found is not None else project_root
