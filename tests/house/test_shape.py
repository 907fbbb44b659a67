"""The layout rules of CONTRIBUTING.md that a machine can check."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
MODULES = sorted(SOURCE.rglob("*.py"))

_CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
_LAYERS = next(contract["layers"] for contract in _CONTRACTS if contract["id"] == "layers")
_PURE = next(contract["source_modules"] for contract in _CONTRACTS if contract["id"] == "pure-rooms")

ROOMS = {room for layer in _LAYERS for room in re.findall(r"\w+", layer)}
OTHER_TESTS = {
    "browser",
    "conformance",
    "contract",
    "data",
    "guard",
    "house",
    "live",
    "replay",
    "stories",
    "surface",
}
EMPTY_WORDS = {"common", "core", "helpers", "manager", "service", "types", "utils"}

# Text that is true of one machine or one network only.
LOCAL = re.compile(
    r"/home/\w|/Users/\w|/root/\.|pypi\.org|pythonhosted\.org|registry\.npmjs|deb\.debian\.org|"
    + re.escape(str(ROOT))
)
# A suppression without its reason, given in parentheses behind it.
BARE_SUPPRESSION = re.compile(r"#\s*(noqa|type: ignore|pyright: ignore|pragma: no)(?!.*\(.+\))")


def _texts() -> Iterator[Path]:
    """What is written here by hand, ignored and generated files aside."""
    yield from (ROOT / name for name in ("dev", "pyproject.toml", ".ci/run"))
    yield from ROOT.glob("*.md")
    for folder in ("bench", "docs", "examples", "src", "tests", "tools"):
        yield from (file for file in (ROOT / folder).rglob("*") if file.is_file() and file.suffix != ".pyc")


def _lines(pattern: re.Pattern[str], files: list[Path]) -> list[str]:
    return [
        f"{file.relative_to(ROOT)}:{number}"
        for file in files
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1)
        if pattern.search(line)
    ]


def _length(file: Path) -> int:
    return len(file.read_text().splitlines())


def _dotted(file: Path) -> str:
    return ".".join(file.relative_to(SOURCE).with_suffix("").parts)


def test_a_module_is_named_after_what_it_holds() -> None:
    assert [str(file) for file in MODULES if EMPTY_WORDS & set(_dotted(file).split("."))] == []


def test_no_file_grows_past_500_lines() -> None:
    assert {file.name: _length(file) for file in MODULES if _length(file) > 500} == {}


def test_no_folder_is_too_full() -> None:
    most = {
        folder: 30 if folder.parts[-1] in {room.split(".")[1] for room in _PURE} else 24
        for folder in _folders()
    }
    assert {folder.name: _entries(folder) for folder in _folders() if _entries(folder) > most[folder]} == {}


def _folders() -> list[Path]:
    return sorted({file.parent for file in MODULES})


def _entries(folder: Path) -> int:
    return len([file for file in folder.glob("*.py") if file.name != "__init__.py"])


def test_a_public_class_name_has_one_meaning() -> None:
    """`Scout` is one meaning in two places: the protocol, and the client that follows it."""
    found: dict[str, list[str]] = {}
    for file in MODULES:
        for node in ast.parse(file.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(_dotted(file))
    assert {name: files for name, files in found.items() if len(files) > 1 and name != "Scout"} == {}


def test_the_readme_stays_a_first_page() -> None:
    assert [file.name for file in ROOT.glob("README.md") if _length(file) > 125] == []


def test_tests_mirror_the_rooms() -> None:
    folders = {folder.name for folder in (ROOT / "tests").iterdir() if folder.is_dir()}
    assert folders - ROOMS - OTHER_TESTS - {"__pycache__"} == set()


def test_only_packages_list_their_names() -> None:
    listed = [
        _dotted(file)
        for file in MODULES
        if file.name != "__init__.py" and "__all__" in file.read_text("utf-8")
    ]
    assert listed == []  # a leading underscore says what is private


def test_nothing_written_here_is_true_of_one_machine_only() -> None:
    assert _lines(LOCAL, list(_texts())) == []


def test_a_suppression_has_a_reason() -> None:
    code = [file for file in _texts() if file.suffix == ".py"]
    assert _lines(BARE_SUPPRESSION, code) == []
