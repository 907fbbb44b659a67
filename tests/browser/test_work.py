"""A person moves work on the board by keys alone."""

import pytest

from tests.browser.browsing import Desk
from tests.surface.site import Site


@pytest.mark.slow
@pytest.mark.rows("R4.4-18")
def test_a_work_item_is_made_reopened_and_accepted_by_keys(desk: Desk, site: Site) -> None:
    owner = site.puller("boardwork-arc")
    page = desk.open("/work")
    page.keyboard.press("+")
    page.keyboard.type("boardwork: tidy the index")
    page.keyboard.press("Tab")
    page.keyboard.type(owner.address)
    page.keyboard.press("Enter")
    card = page.locator(".card", has_text="boardwork: tidy the index")
    card.wait_for()
    ident = card.get_attribute("data-key") or ""

    owner.post(f"/v1/work/{ident}/submit", summary="done at last")
    review = page.locator("#main [data-list=work-review]").locator(f"[data-key={ident}]")
    review.wait_for()
    review.focus()
    page.keyboard.press("n")
    page.keyboard.type("the index has gaps")
    page.keyboard.press("Enter")
    page.locator("[data-list=work-working]").locator(f"[data-key={ident}]").wait_for()
    assert site.get(f"/v1/work/{ident}")["reason"] == "the index has gaps"

    owner.post(f"/v1/work/{ident}/submit", summary="no gaps")
    review.wait_for()
    review.focus()
    page.keyboard.press("y")
    done = page.locator("[data-list=work-done]").locator(f"[data-key={ident}]")
    done.wait_for()
    assert site.get(f"/v1/work/{ident}")["state"] == "done"

    # The card kept the focus on its way to another lane, so it opens at once.
    page.wait_for_function("id => document.activeElement?.getAttribute('data-key') === id", arg=ident)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/work/{ident}")
    desk.wait_until_live()
    assert page.get_by_role("heading", level=1).inner_text() == "boardwork: tidy the index"
    page.keyboard.press("n")
    page.keyboard.type("once more")
    page.keyboard.press("Enter")
    page.locator(f"[data-key={ident}] .state[data-state=working]").wait_for()
    assert desk.complaints == []
