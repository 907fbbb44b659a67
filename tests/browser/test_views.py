"""Every view, in both themes and at three widths: pictures to look at, and nothing that axe-core objects to."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from scout.web.views.table import NAV
from tests.browser.browsing import PICTURES, THEMES, WIDTHS, Desk, find_violations
from tests.browser.fleet import fill_views
from tests.surface.site import Site

VIEWS = tuple(link.path for link in NAV)


@pytest.fixture(scope="session")
def fleet(site: Site) -> list[str]:
    """A fleet with something in every view; the views of single records."""
    arc = site.agent("picture-arc", harness="echo")
    site.finished(site.ask(arc.address, "Say hello.")["flightId"])
    hud = site.puller("picture-hud")
    flight = site.ask(hud.address, "Review the last commit, and look for races in the writer.")
    arc.post("/v1/attention", title="Deploy to production?", risk="high", body="It restarts three servers.")
    arc.post("/v1/attention/need", question="Which branch?", options=["main", "dev"])
    conversation = site.post("/v1/messages", to=hud.address, body="The build is green.\nLook at main.")
    return [
        f"/agents/{hud.address}",
        f"/flights/{flight['flightId']}",
        f"/flights/{flight['flightId']}?diff=1",
        f"/conversations/{conversation['conversationId']}",
        f"/why/{flight['flightId']}",
        "/agents?by=project",
        "/inbox?all=1",
        "/design",
        *fill_views(site),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.rows("R4.4-9")
def test_every_view_at_every_width(make_desk: Callable[..., Desk], fleet: list[str], theme: str) -> None:
    desk = make_desk(color_scheme=theme, viewport={"width": WIDTHS[-1], "height": 900}).sign_in()
    PICTURES.mkdir(exist_ok=True)
    problems = list[str]()
    for path in (*VIEWS, *fleet):
        page = desk.open(path)
        name = re.sub(r"_\w{10,}", "", path.strip("/")).replace("/", "-").replace("?", "-") or "now"
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=PICTURES / f"{name}-{theme}-{width}.png")
            problems += [f"{path} {theme} {width}: {one}" for one in _look(page)]
        problems += [f"{path} {theme}: {one}" for one in find_violations(page)]
    assert problems == []
    assert desk.complaints == []


def _look(page: Page) -> list[str]:
    """A view has one heading and one navigation, never scrolls sideways, and cuts off no button."""
    facts: Any = page.evaluate(
        "[document.querySelectorAll('h1').length, document.querySelectorAll('nav[aria-label=Views]').length,"
        " document.documentElement.scrollWidth - document.documentElement.clientWidth,"
        " [...document.querySelectorAll('.row :is(.button, .icon-button)')].filter((one) => one.offsetWidth"
        " && one.getBoundingClientRect().right > one.closest('.row').getBoundingClientRect().right).length]"
    )
    headings, navigations, beyond, cut_off = facts
    found = [f"{headings} headings"] if headings != 1 else []
    found += [f"{navigations} navigations"] if navigations != 1 else []
    found += [f"{cut_off} buttons cut off"] if cut_off else []
    return [*found, f"{beyond} pixels too wide"] if beyond > 0 else found


@pytest.mark.usefixtures("fleet")
@pytest.mark.rows("R4.4-9")
def test_every_view_reads_without_scripts(make_desk: Callable[..., Desk], site: Site) -> None:
    page = make_desk(java_script_enabled=False).page
    page.goto(site.post("/v1/web/links")["url"])
    for link in NAV:
        page.get_by_role("navigation", name="Views").get_by_role("link", name=link.title).click()
        assert page.get_by_role("heading", level=1).inner_text() == link.title
        assert page.locator("main").inner_text().strip() != link.title
