"""The time slider in a real browser: move it, see the past, come back."""

import pytest

from tests.browser.browsing import SECONDS, Desk, find_violations
from tests.surface.site import Site

pytestmark = pytest.mark.slow


@pytest.mark.rows("R4.4-17")
def test_the_slider_opens_a_moment_that_stays_as_it_was(desk: Desk, site: Site) -> None:
    site.puller("slider-arc")
    page = desk.open("/log")
    slider = page.get_by_role("slider", name="Moment")
    slider.focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**/?at=*", timeout=SECONDS)
    banner = desk.shown("You see Scout as it was at")
    assert page.locator("main[data-past]").count() == 1
    assert page.locator("fieldset.past button:enabled").count() == 0
    assert find_violations(page) == []

    # What happens now does not change what was.
    flights = page.locator("#main").inner_text()
    site.post("/v1/attention", title="A slider must not show this", risk="low")
    page.wait_for_function("document.querySelector('#live').dataset.live === 'live'", timeout=SECONDS)
    assert page.locator("#main").inner_text() == flights

    page.get_by_role("link", name="Back to now").click()
    banner.wait_for(state="detached", timeout=SECONDS)
    assert page.locator("main[data-past]").count() == 0
    assert desk.complaints == []
