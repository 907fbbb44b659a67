"""One flight: what a person sees of it and does with it; and the log that leads to it."""

from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import SECONDS, Desk
from tests.browser.fleet import make_repository
from tests.daemon.daemons import eventually
from tests.surface.site import Site

expect.set_options(timeout=SECONDS)


def _wait_for_state(site: Site, flight: str, state: str) -> Any:
    def look() -> Any:
        found = site.get(f"/v1/flights/{flight}")
        return found if found["state"] == state else None

    return eventually(look)


@pytest.mark.slow
@pytest.mark.rows("R4.4-27")
def test_a_flight_is_watched_cancelled_retried_and_asked_back(desk: Desk, site: Site) -> None:
    root = make_repository(site, "watched-flight")
    script = "cat >/dev/null; echo changed > readme; echo 'I write' >&2; while ! [ -e more ]; do sleep 0.1; done; echo 'and this' >&2; sleep 600"
    agent = site.agent("watched-flight", command=["sh", "-c", script], projectRoot=root)
    flight = site.ask(agent.address, "Change the readme.")["flightId"]
    _wait_for_state(site, flight, "running")
    page = desk.open(f"/flights/{flight}")
    expect(page.locator(".timeline rect[data-state=running]")).to_be_visible()
    expect(page.locator("#asked")).to_contain_text("Change the readme.")
    expect(page.locator("#asked")).to_contain_text("Doing")
    expect(page.get_by_role("log")).to_contain_text("I write")
    (site.shell.folder / "work" / "watched-flight" / "more").touch()
    expect(page.get_by_role("log")).to_contain_text("and this")
    expect(page.get_by_role("log").get_by_text("and this")).to_have_count(1)  # followed once

    page.get_by_role("link", name="Show what changed in the work tree").click()
    desk.wait_until_live()
    expect(page.locator(".patch .added", has_text="+changed")).to_be_visible()
    page.keyboard.press("x")
    expect(page.locator("#toasts")).to_contain_text("Cancelled.")
    expect(page.locator("#asked .state")).to_have_attribute("data-state", "cancelled")
    expect(page.get_by_role("button", name="Retry")).to_be_visible()
    page.keyboard.press("t")
    expect(page.locator("#toasts")).to_contain_text("Asked again.")
    box = page.get_by_role("textbox", name="Ask back")
    box.fill("And the second line?")
    box.press("Control+Enter")
    expect(page.locator("#toasts")).to_contain_text("Asked.")
    for one in site.get("/v1/flights", agent=agent.address, open="true")["items"]:
        site.post(f"/v1/flights/{one['id']}/cancel", reason="seen")
    assert desk.complaints == []


@pytest.mark.rows("R4.4-25")
def test_the_log_leads_to_why_and_is_paged_by_links(desk: Desk, site: Site) -> None:
    worker = site.puller("logged-worker")
    flight = site.ask(worker.address, "Log this.")["flightId"]
    for number in range(30):
        site.post("/v1/messages", to=worker.address, body=f"line {number}")
    page = desk.open("/log")
    agent = page.get_by_role("searchbox", name="Agent")
    agent.fill(worker.address)
    page.get_by_role("button", name="Filter").click()
    desk.wait_until_live()
    newest = page.locator(".row[data-key]").first.get_attribute("data-key")
    page.get_by_role("link", name="Older").click()
    desk.wait_until_live()
    assert agent.input_value() == worker.address
    assert page.locator(f"[data-key='{newest}']").count() == 0
    page.get_by_role("link", name="Newest").click()
    desk.wait_until_live()
    assert page.locator(".row[data-key]").first.get_attribute("data-key") == newest
    page = desk.open(f"/log?about={flight}")
    page.keyboard.press("j")
    page.keyboard.press("w")
    page.wait_for_url("**/why/*")
    desk.shown("Decisions")
    assert desk.complaints == []


@pytest.mark.rows("R7-14")
def test_a_standing_decision_is_made_in_place(desk: Desk, site: Site) -> None:
    """A session that a person opened reports what it wants to do, as its hook does."""
    host = site.post("/v1/tokens", kind="host")["secret"]
    wish = {"cwd": str(site.shell.project("standing")), "harness": "claude", "nativeSessionId": "standing"}
    session = site.post("/v1/sessions/enrol", token=host, **wish)["session"]["id"]
    asks = {"event": "permission_request", "tool": "Bash", "expiresIn": 600}
    command = "make standing \x1b[8m\u202e"
    where = f"/v1/sessions/{session}/hook"
    item = site.post(where, token=host, arguments={"command": command}, **asks)["attentionId"]
    page = desk.open("/inbox")
    card = page.locator(f"[data-key='{item}']")
    expect(card.locator(".exact")).to_have_text("make standing \\x1b[8m\\u202e")
    assert card.locator(".item-body > *").nth(1).get_attribute("class") == "quote exact"  # the command first
    expect(card).to_contain_text("You approve exactly that.")
    card.get_by_text("Always…").click()
    card.get_by_role("button", name="Approve and always allow for this agent").click()
    expect(page.locator("#toasts")).to_contain_text("allowed from now on")
    assert site.get(f"/v1/attention/{item}")["allowanceId"]
    assert desk.complaints == []
