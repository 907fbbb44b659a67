"""Scout as people install it. The wheels are fetched once for a whole run; every installation is made offline from them."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.cli.running import Shell

__all__ = [
    "ROOT",
    "TOOLS",
    "WAYS",
    "Installed",
    "Way",
    "add_wheels",
    "clean",
    "fetch_wheels",
    "find_wheel",
    "make_environment",
    "offline",
    "run",
    "share",
]

ROOT = Path(__file__).parents[2]
NAME = "scout-broker"
_BIN = Path(sys.executable).parent  # pipx and uv are beside the interpreter of the tests
_STRANGERS = ("PIP_", "PIPX_", "UV_", "PYTHON", "VIRTUAL_ENV", "XDG_")
_BUILDERS = ("hatchling", "pip")  # for a checkout; pipx wants a pip of its own
TOOLS = ("hypothesis", "pytest", "pytest-timeout", "typeid-python")  # of the tests of the pure rooms
_SECONDS = 240


# -- once for all workers of a run -------------------------------------------------------------------


def share(name: str, build: Callable[[Path], None]) -> Path:
    """A folder that one worker builds while the others wait. It goes away with the run.

    Where it cannot be had, the test is skipped, and so are the others that need it.
    """
    folder = Path(tempfile.gettempdir()) / "packages" / name
    folder.parent.mkdir(exist_ok=True)
    problem = folder.with_name(f"{name}.problem")
    with folder.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists() and not problem.exists():
            _build_whole(folder, problem, build)
    if problem.exists():
        pytest.skip(f"NOT PROVED HERE: {name} is not installed: {problem.read_text()}")
    return folder


def _build_whole(folder: Path, problem: Path, build: Callable[[Path], None]) -> None:
    """Whole or not at all; what could not be fetched is said in a file."""
    folder.mkdir()
    try:
        build(folder)
    except NotFetched as reason:
        problem.write_text(str(reason))
    finally:
        if problem.exists() or sys.exc_info()[0] is not None:
            shutil.rmtree(folder)


class NotFetched(Exception):  # noqa: N818 (a fact, not a mistake)
    """The package index does not answer, or has no wheel for this machine."""


# -- wheels ------------------------------------------------------------------------------------------


def fetch_wheels() -> Path:
    """Scout's wheel, built from this tree, with everything that it, its build and some of its tests need."""
    return share("wheels", _fetch_base)


def find_wheel() -> Path:
    (wheel,) = fetch_wheels().glob("scout_broker-*.whl")
    return wheel


def add_wheels(version: str, python: Path) -> Path:
    """The wheels that are compiled for one version of Python, for another one; the others serve both."""
    compiled = [one.name for one in fetch_wheels().glob("*.whl") if not one.name.endswith("-none-any.whl")]
    packages = ["{}=={}".format(*name.split("-")) for name in compiled]

    def build(folder: Path) -> None:
        words = ["--python", str(python), "download", "--no-deps", "--only-binary", ":all:"]
        _run_pip([*words, "--dest", str(folder), *packages])

    return share(f"wheels-{version}", build)


def _fetch_base(folder: Path) -> None:
    """Wheels at the versions that the tests run with, so that a verdict depends on no new release."""
    _run_pip(["wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)])
    (wheel,) = folder.glob("scout_broker-*.whl")
    pins = folder / "pins.txt"
    known = {one.name: one.version for one in distributions() if one.name not in (NAME, "pip")}
    pins.write_text("".join(f"{name}=={version}\n" for name, version in known.items()))
    words = ["download", "--only-binary", ":all:", "--constraint", str(pins), "--dest", str(folder)]
    _run_pip([*words, str(wheel), *_BUILDERS, *TOOLS])


def _run_pip(words: list[str]) -> None:
    """With the settings of the person for the index: this is the only step that needs it."""
    words = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "--quiet", *words]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(
            words, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NotFetched(f"pip was not done in {_SECONDS} s") from None
    if done.returncode != 0:
        raise NotFetched(" ".join(done.stderr.split())[-300:])


# -- installations -----------------------------------------------------------------------------------


class Way(NamedTuple):
    """Where an installer puts programs, and its command lines. `install` takes a checkout or a wheel."""

    programs: Path
    install: tuple[str, ...]
    remove: tuple[str, ...]


@dataclass(frozen=True)
class Installed(Shell):
    """A person's shell with an installed Scout; nothing in it knows of this tree."""

    programs: Path = Path("bin")

    @property
    def program(self) -> list[str]:
        return [str(self.programs / "scout")]

    @property
    def environ(self) -> dict[str, str]:
        return {**clean(super().environ), "HOME": str(self.folder / "person"), "PYTHONWARNINGS": "error"}


def clean(environ: Mapping[str, str]) -> dict[str, str]:
    """No variable of the tests or of the person that changes an interpreter or an installer."""
    return {name: value for name, value in environ.items() if not name.startswith(_STRANGERS)}


def offline(folder: Path, *wheels: Path) -> dict[str, str]:
    """Installers that know these wheels and nothing else, and write below this folder only."""
    places = " ".join(map(str, wheels or (fetch_wheels(),)))
    return clean(os.environ) | {
        "HOME": str(folder / "person"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": places,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COMPILE": "1",  # a story needs a small part of the modules
        "PIPX_HOME": str(folder / "pipx"),
        "PIPX_BIN_DIR": str(folder / "pipx-bin"),
        "PIPX_MAN_DIR": str(folder / "pipx-man"),
        "PIPX_COMPLETION_DIR": str(folder / "pipx-completion"),
        "PIPX_DEFAULT_BACKEND": "uv",
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": places.replace(" ", ","),
        "UV_NO_CONFIG": "1",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_CACHE_DIR": str(Path(tempfile.gettempdir()) / "packages" / "uv-cache"),
        "UV_TOOL_DIR": str(folder / "uv"),
        "UV_TOOL_BIN_DIR": str(folder / "uv-bin"),
    }


def run(words: Sequence[str], environ: Mapping[str, str]) -> str:
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-4000:])
    return done.stdout


def prepare_pip(folder: Path) -> Way:
    python = str(folder / "venv" / "bin" / "python")
    run([sys.executable, "-m", "venv", str(folder / "venv")], offline(folder))
    install = (python, "-m", "pip", "install")
    return Way(folder / "venv" / "bin", install, (python, "-m", "pip", "uninstall", "--yes", NAME))


def prepare_pipx(folder: Path) -> Way:
    pipx = (sys.executable, "-m", "pipx")
    install = (*pipx, "install", "--force", "--python", sys.executable)
    return Way(folder / "pipx-bin", install, (*pipx, "uninstall", NAME))


def prepare_uv(folder: Path) -> Way:
    uv = (str(_BIN / "uv"), "tool")
    install = (*uv, "install", "--force", "--python", sys.executable)
    return Way(folder / "uv-bin", install, (*uv, "uninstall", NAME))


WAYS = {"pip": prepare_pip, "pipx": prepare_pipx, "uv tool": prepare_uv}


def make_environment(folder: Path, python: Path, wheels: tuple[Path, ...], *packages: str) -> None:
    """An environment of this interpreter with these packages; quickly, and without an index."""
    environ, uv = offline(folder, *wheels), str(_BIN / "uv")
    run([uv, "venv", "--allow-existing", "--python", str(python), str(folder)], environ)
    run([uv, "pip", "install", "--python", str(folder), *packages], environ)
