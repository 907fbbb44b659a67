"""Deciding in the page: by keyboard alone, several at once, and against others who decide the same."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from tests.browser.browsing import SECONDS, Desk
from tests.surface.site import Site

expect.set_options(timeout=SECONDS)


def _raise(site: Site, name: str, *titles: str, **more: str) -> list[str]:
    agent = site.agent(name)
    return [str(agent.post("/v1/attention", title=title, **more)["id"]) for title in titles]


def _focus(page: Page, item: str) -> None:
    """Press j until this item has the focus, as a person without a mouse does."""
    for _ in range(100):
        page.keyboard.press("j")
        if page.evaluate("document.activeElement?.dataset.key") == item:
            return
    raise AssertionError(f"{item} is never reached")


@pytest.mark.rows("R4.4-10")
def test_from_the_link_to_an_approval_by_keyboard_alone(make_desk: Callable[..., Desk], site: Site) -> None:
    desk = make_desk()
    (item,) = _raise(site, "keys-arc", "Deploy by keyboard?", risk="high")
    desk.sign_in()
    page = desk.page
    page.keyboard.press("g")
    page.keyboard.press("i")
    expect(page.get_by_role("heading", level=1)).to_have_text("Inbox")
    desk.wait_until_live()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("Approve exactly what is shown")
    page.keyboard.press("Escape")
    _focus(page, item)
    page.keyboard.press("y")
    expect(page.locator("#toasts")).to_contain_text("Approved.")
    assert site.get(f"/v1/attention/{item}")["state"] == "resolved"
    assert desk.complaints == []


def test_a_question_is_answered_in_place(desk: Desk, site: Site) -> None:
    asked = site.agent("answer-arc").post(
        "/v1/attention/need", question="Which port?", options=["80", "8080"]
    )
    page = desk.open("/inbox")
    item = page.locator(f"[data-key='{asked['id']}']")
    item.get_by_label("Answer: Which port?").fill("9090")
    page.reload()
    desk.wait_until_live()
    expect(item.get_by_label("Answer: Which port?")).to_have_value("9090")  # a draft survives a reload
    page.keyboard.press("Escape")
    item.get_by_label("Answer: Which port?").press("Enter")
    expect(page.locator("#toasts")).to_contain_text("Answered.")
    found = site.get(f"/v1/attention/{asked['id']}")
    assert (found["state"], found["answer"]) == ("answered", "9090")


def test_several_are_decided_at_once(desk: Desk, site: Site) -> None:
    items = _raise(site, "bulk-arc", "First?", "Second?", "Third?")
    page = desk.open("/inbox")
    for title in ("First?", "Second?"):
        page.get_by_label(f"Select {title}").check()
    bar = page.get_by_role("toolbar", name="Selected items")
    expect(bar).to_contain_text("2 selected")
    bar.get_by_role("button", name="Deny").click()
    expect(page.locator("#toasts")).to_contain_text("2 decided.")
    states = [site.get(f"/v1/attention/{item}")["state"] for item in items]
    assert sorted(states[:2]) == ["denied", "denied"]
    assert states[2] in ("open", "notified")


@pytest.mark.rows("R4.4-11")
def test_two_browsers_and_the_command_line_decide_the_same(
    make_desk: Callable[..., Desk], site: Site
) -> None:
    one, other = make_desk().sign_in(), make_desk().sign_in()
    (item,) = _raise(site, "race-arc", "Who is first?")
    for desk in (one, other):
        desk.open("/inbox")
        expect(desk.page.locator(f"[data-key='{item}']")).to_be_visible()
    other.page.route("**/v1/events*", lambda route: route.abort())  # it does not hear of it
    site.shell.say("approve", item)
    first = one.page.locator(f"[data-key='{item}']")
    expect(first).to_have_attribute("data-gone", "")  # it stays, and says so
    expect(first.locator(".item-foot")).to_contain_text("approved")
    expect(first.locator(".item-foot")).to_contain_text("by /me/direct")
    expect(first.get_by_role("button")).to_have_count(0)
    late = other.page.locator(f"[data-key='{item}']").get_by_role("button", name="Deny: Who is first?")
    if late.is_visible():
        late.click()
        expect(other.page.get_by_role("alert").first).to_be_visible()
    assert site.get(f"/v1/attention/{item}")["state"] == "resolved"
    page = one.open("/inbox?all=1")
    expect(page.locator(f"[data-key='{item}'] .item-foot")).to_contain_text("by")


def test_an_item_appears_without_a_reload_and_is_counted_in_the_title(desk: Desk, site: Site) -> None:
    page = desk.open("/inbox")
    (item,) = _raise(site, "title-arc", "Suddenly?")
    expect(page.locator(f"[data-key='{item}']")).to_be_visible()
    needs = sum(one["open"] for one in site.get("/v1/attention")["agents"])
    assert needs >= 1
    expect(page).to_have_title(f"({needs}) Inbox · Scout")
