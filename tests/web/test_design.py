"""The design view shows every component: what the views use is there, or this fails."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import scout.web
from scout.web import drawing, parts
from scout.web.views import design
from tests.surface.site import Site
from tests.web.visitor import Visitor

_ASSETS = Path(scout.web.__file__).parent / "assets"
# Classes that no component has: the document without a session, and the places of panels in one view.
_ELSEWHERE = {"alone", "way-in", "now"}


def list_styled_classes() -> set[str]:
    """Every class that a style is written for, except the column widths of single lists."""
    found = set[str]()
    for file in _ASSETS.glob("*.css"):
        text = re.sub(r'/\*.*?\*/|"[^"]*"', "", file.read_text(), flags=re.DOTALL)
        for selector in re.findall(r"([^{}]+)\{", text):
            found |= set(re.findall(r"\.([a-zA-Z][\w-]*)", selector))
    return {one for one in found if not one.startswith("list-") or one == "list-empty"}


def list_functions(module: object) -> set[str]:
    """The public functions that a module defines."""
    found = inspect.getmembers(module, inspect.isfunction)
    return {
        name
        for name, one in found
        if not name.startswith("_") and one.__module__ == getattr(module, "__name__", "")
    }


@pytest.fixture(scope="module")
def document(site: Site) -> str:
    visitor = Visitor(site)
    visitor.enter()
    return visitor.get("/design").body.decode()


@pytest.mark.rows("R4.4-9")
def test_every_class_with_a_style_is_shown(document: str) -> None:
    shown = {one for group in re.findall(r' class="([^"]+)"', document) for one in group.split()}
    # The page's own module adds the words beside the range.
    assert list_styled_classes() - _ELSEWHERE - {"slider-moment"} - shown == set()


def test_every_component_is_used() -> None:
    names = {node.id for node in ast.walk(ast.parse(inspect.getsource(design))) if isinstance(node, ast.Name)}
    assert list_functions(parts) - names == set()
    # The axes and numbers of a plot are shown by the plots themselves.
    assert {"draw_strip", "draw_progress"} <= list_functions(drawing) & names


def test_a_class_that_is_used_has_a_style(document: str) -> None:
    shown = {one for group in re.findall(r' class="([^"]+)"', document) for one in group.split()}
    unstyled = {one for one in shown - list_styled_classes() if not one.startswith("list-")}
    assert unstyled <= {"c-state", "c-agent", "select", "type-body", "took"}
