"""The other versions of Python on which Scout is supported, where this machine has them."""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.installing import TOOLS, add_wheels, fetch_wheels, find_wheel, make_environment, share

__all__ = ["OTHERS", "make_python"]

_SUPPORTED = ("3.11", "3.12", "3.13")
OTHERS = [one for one in _SUPPORTED if one != f"{sys.version_info.major}.{sys.version_info.minor}"]


def make_python(version: str) -> Path:
    """The interpreter of an environment with Scout, made once for all workers."""
    python = _find_python(version)
    if python is None:
        pytest.skip(f"this machine has no Python {version}")
    wheels = (fetch_wheels(), add_wheels(version, python))

    def build(folder: Path) -> None:
        make_environment(folder, python, wheels, str(find_wheel()), *TOOLS)

    return share(f"python-{version}", build) / "bin" / "python"


@functools.cache
def _find_python(version: str) -> Path | None:
    return next((found for one in _list_candidates(version) if (found := _identify(one, version))), None)


def _list_candidates(version: str) -> Iterator[Path]:
    """By PATH, and where pyenv keeps those that are not chosen for this folder."""
    folders = [Path(one) for one in os.environ.get("PATH", "").split(os.pathsep)]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for folder in [*folders, *sorted(pyenv.glob(f"versions/{version}.*/bin"))]:
        yield folder / f"python{version}"


def _identify(program: Path, version: str) -> Path | None:
    """The interpreter behind a name. Running it is the only proof: a version manager may leave an empty name."""
    script = (
        "import sys, ensurepip, ssl, sqlite3; print(*sys.version_info[:2], sep='.'); print(sys.executable)"
    )
    try:
        done = subprocess.run(
            [program, "-I", "-c", script], capture_output=True, text=True, timeout=30, check=False
        )
    except OSError:
        return None
    named, _, path = done.stdout.strip().partition("\n")
    return Path(path) if done.returncode == 0 and named == version else None
