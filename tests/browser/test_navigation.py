"""The navigation at every width: beside the view, as a rail, and behind a button."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from scout.web.views.table import NAV
from tests.browser.browsing import SECONDS, Desk, find_violations
from tests.surface.site import Site

expect.set_options(timeout=SECONDS)

_HIDDEN = """() => [...document.querySelectorAll('[data-go]')].filter((link) => {
  const { left, right, width } = link.getBoundingClientRect();
  return width === 0 || left < 0 || right > innerWidth || link.scrollWidth > link.clientWidth;
}).map((link) => link.textContent)"""


def _find_hidden(page: Page) -> list[Any]:
    """The links of views that are not whole on the screen without scrolling sideways."""
    found: list[Any] = page.evaluate(_HIDDEN)
    return found


@pytest.mark.rows("R4.4-26")
@pytest.mark.parametrize("width", [701, 900, 1040, 1041, 1400])
def test_every_view_is_in_sight_beside_the_view(make_desk: Callable[..., Desk], width: int) -> None:
    page = make_desk(viewport={"width": width, "height": 800}).sign_in().page
    assert _find_hidden(page) == []
    expect(page.get_by_role("button", name="Views: Now")).to_be_hidden()
    for name in ("Fleet", "This machine"):
        expect(page.get_by_role("list", name=name)).to_be_visible()


@pytest.mark.rows("R4.4-26")
def test_on_a_narrow_screen_the_views_open_and_close_by_keys(
    make_desk: Callable[..., Desk], site: Site
) -> None:
    site.agent("menu-arc").post("/v1/attention", title="Counted on the button?")
    desk = make_desk(viewport={"width": 360, "height": 740}).sign_in()
    page = desk.page
    menu = page.get_by_role("button", name="Views: Now")
    views = page.get_by_role("navigation", name="Views")
    expect(views).to_be_hidden()
    expect(menu.locator(".badge")).to_be_visible()
    menu.focus()
    page.keyboard.press("Enter")
    expect(views).to_be_visible()
    assert _find_hidden(page) == []
    assert find_violations(page) == []
    page.keyboard.press("Escape")
    expect(views).to_be_hidden()
    expect(menu).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(views.get_by_role("link", name="Now")).to_be_focused()
    views.get_by_role("link", name=NAV[-1].title).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(NAV[-1].title)
    expect(page.get_by_role("button", name=f"Views: {NAV[-1].title}")).to_be_visible()
    desk.wait_until_live()
    page.get_by_role("button", name=f"Views: {NAV[-1].title}").click()
    page.set_viewport_size({"width": 1400, "height": 800})
    expect(views).not_to_have_css("position", "fixed")  # the menu does not stay open above the page
    assert desk.complaints == []


def test_the_menu_needs_no_script(make_desk: Callable[..., Desk], site: Site) -> None:
    page = make_desk(viewport={"width": 360, "height": 740}, java_script_enabled=False).page
    page.goto(site.post("/v1/web/links")["url"])
    page.get_by_role("button", name="Views: Now").click()
    page.get_by_role("link", name="Flights", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Flights")
