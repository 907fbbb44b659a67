"""Scenes in a git repository: the broker with the ports of agent trees."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from scout.broker.local import LocalScout
from scout.ports import TreePorts
from scout.tree.tree_ports import build_tree_ports
from tests.broker.rig import Rig, run_scene
from tests.tree.repositories import KEY, repository

Scene = Callable[[Rig, Path], Awaitable[None]]


def ports(home: Path) -> TreePorts:
    return build_tree_ports(home, KEY)


def run(home: Path, scene: Scene, **options: Any) -> None:
    """Run a scene in a repository that is called arc."""
    root = repository(home / "home" / "arc")

    async def play(rig: Rig) -> None:
        await scene(rig, root)

    run_scene(play, home, **{"trees": ports(home), "roots": (str(home),), **options})


async def person(rig: Rig, folder: Path) -> LocalScout:
    return await rig.scout(directory=str(folder))
