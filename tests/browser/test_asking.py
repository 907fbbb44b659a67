"""Asking from anywhere: completion, the receipt and the live line, refusals with their remedies as buttons."""

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import SECONDS, Desk
from tests.surface.site import Site

expect.set_options(timeout=SECONDS)


@pytest.mark.rows("R3.2-15", "R4.4-14")
def test_an_ask_with_completion_and_its_answer(desk: Desk, site: Site) -> None:
    site.agent("compose-echo", harness="echo")
    page = desk.open("/log")
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog", name="Ask")
    to = dialog.get_by_role("combobox", name="To:")
    to.press_sequentially("compose-e")
    dialog.get_by_role("option").filter(has_text="@compose-echo").wait_for()
    to.press("Enter")
    expect(to).to_have_value("@compose-echo")
    dialog.get_by_label("What should be done?").fill("Say it back.")
    dialog.get_by_role("button", name="Ask").click()
    expect(dialog.get_by_role("status")).to_contain_text("completed")
    expect(dialog.get_by_role("status")).to_contain_text("Say it back.")
    assert desk.complaints == []


@pytest.mark.rows("R4.4-14")
def test_a_draft_survives_a_reload(desk: Desk) -> None:
    page = desk.open("/")
    page.keyboard.press("c")
    page.get_by_label("What should be done?").fill("A long thought.")
    page.reload()
    desk.wait_until_live()
    page.keyboard.press("c")
    expect(page.get_by_label("What should be done?")).to_have_value("A long thought.")


@pytest.mark.rows("R0-97", "R3.5-7")
def test_a_refusal_shows_its_remedies_as_buttons(desk: Desk, site: Site) -> None:
    site.agent("remedy-echo", harness="echo")
    page = desk.open("/")
    page.keyboard.press("c")
    dialog = page.get_by_role("dialog", name="Ask")
    dialog.get_by_role("combobox", name="To:").fill("@remedy-ech")
    dialog.get_by_label("What should be done?").fill("Hello?")
    dialog.get_by_label("What should be done?").press("Control+Enter")
    alert = dialog.get_by_role("alert")
    problem = site.refused("POST", "/v1/asks", to="@remedy-ech", body="Hello?")
    expect(alert).to_contain_text(problem["message"])
    alert.get_by_role("button").filter(has_text="@remedy-echo").first.click()
    expect(page.locator("#toasts")).to_contain_text("Done: scout ask @remedy-echo")


def test_the_palette_finds_an_agent_a_view_and_a_command(desk: Desk, site: Site) -> None:
    site.agent("palette-one")
    page = desk.open("/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Find an agent, flight or command")
    field.press_sequentially("palette-o")
    page.get_by_role("option").filter(has_text="@palette-one").wait_for()
    field.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("@palette-one")
    desk.wait_until_live()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Find an agent, flight or command").press_sequentially("flights")
    page.get_by_role("option").filter(has_text="Flights").first.wait_for()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Flights")


def test_a_message_with_a_mention_and_a_file(desk: Desk, site: Site) -> None:
    other = site.puller("thread-one")
    sent = site.post("/v1/messages", to=other.address, body="Begin.")
    page = desk.open(f"/conversations/{sent['conversationId']}")
    box = page.get_by_role("textbox", name="Write")
    box.press_sequentially("Look, @thread-o")
    page.get_by_role("option").filter(has_text="@thread-one").wait_for()
    box.press("Enter")
    expect(box).to_have_value("Look, @thread-one ")
    page.get_by_label("Attachments").set_input_files(
        {"name": "a.txt", "mimeType": "text/plain", "buffer": b"abc"}
    )
    box.press("Control+Enter")
    post = page.locator(".post").filter(has_text="Look, @thread-one")
    expect(post).to_contain_text("a.txt (3 bytes)")
    expect(post.get_by_label("Deliveries")).to_contain_text("@thread-one")
    post.get_by_role("link", name="why").click()  # why was it woken, or not?
    expect(page.get_by_role("heading", name="Decisions")).to_be_visible()
