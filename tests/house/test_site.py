"""The pages hang together: every link leads somewhere, the site builds from them, and it fetches nothing from elsewhere."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
ZENSICAL = Path(sys.executable).with_name("zensical")

_LINK = re.compile(r"!?\[[^]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#+ (?P<title>.+)$", re.MULTILINE)
_CODE = re.compile(r"^(?P<fence> *`{3,}).*?^(?P=fence)$|`[^`\n]*`", re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """The links of a page that lead into the repository."""
    found = (link["target"] for link in _LINK.finditer(_CODE.sub("", page.read_text("utf-8"))))
    return [target for target in found if not re.match(r"\w+:", target)]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them."""
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = (re.sub(r"[^\w\- ]", "", heading["title"].lower()) for heading in _HEADING.finditer(text))
    return {title.strip().replace(" ", "-") for title in titles}


def dead_links(page: Path) -> list[str]:
    dead: list[str] = []
    for target in links(page):
        file, _, anchor = target.partition("#")
        place = (page.parent / file).resolve() if file else page
        if not place.exists() or (anchor and place.suffix == ".md" and anchor not in anchors(place)):
            dead.append(target)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_a_dead_link_and_a_dead_anchor_are_found(tmp_path: Path) -> None:
    (tmp_path / "there.md").write_text("# There\n\n## The `place` itself\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](there.md) [b](there.md#the-place-itself) [c](gone.md) [d](there.md#gone) `[e](code.md)` [f](https://x.y)"
    )
    assert dead_links(page) == ["gone.md", "there.md#gone"]


# -- the site --------------------------------------------------------------------------------------------


def list_pages(nav: list[dict[str, Any]]) -> Iterator[str]:
    """The pages of a navigation: each row is a title with a page, or with rows of its own."""
    for row in nav:
        for below in row.values():
            yield from [below] if isinstance(below, str) else list_pages(below)


def test_the_navigation_has_every_page() -> None:
    project = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/0")}  # reached from their index
    assert sorted(list_pages(project["nav"])) == sorted(pages - decisions)


class _Fetched(HTMLParser):
    """What a browser fetches to show a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in {"script", "img", "iframe", "source"} and given.get("src"):
            self.found.append(str(given["src"]))
        if tag == "link" and given.get("rel") in {"stylesheet", "preconnect", "preload", "icon"}:
            self.found.append(str(given["href"]))


def list_fetched(page: Path) -> list[str]:
    parser = _Fetched()
    parser.feed(page.read_text("utf-8"))
    return parser.found


def build(folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [ZENSICAL, "build", "--strict"], cwd=folder, capture_output=True, encoding="utf-8", check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    if not ZENSICAL.exists():
        pytest.skip("NOT PROVED HERE: zensical is not installed: the site was not built")
    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    return tmp_path


@pytest.mark.slow
def test_the_site_builds_and_fetches_nothing_from_elsewhere(copy: Path) -> None:
    result = build(copy)
    assert result.returncode == 0, result.stdout + result.stderr
    site = copy / ".site"
    built = {str(page.relative_to(site).with_suffix(".md")) for page in site.rglob("*.html")}
    expected = {str(page.relative_to(copy / "docs")) for page in (copy / "docs").rglob("*.md")}
    assert {name.replace("README", "index") for name in expected} <= built
    outside = {
        target
        for page in site.rglob("*.html")
        for target in list_fetched(page)
        if re.match(r"(\w+:)?//", target)
    }
    assert outside == set()


@pytest.mark.slow
def test_a_dead_link_fails_the_build(copy: Path) -> None:
    page = copy / "docs" / "index.md"
    page.write_text(f"{page.read_text()}\n[nowhere](gone.md)\n")
    assert build(copy).returncode != 0
