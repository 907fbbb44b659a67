"""A person acts in the views of sessions, schedules, the tree and usage."""

from urllib.parse import quote

import pytest

from tests.browser.browsing import Desk
from tests.browser.fleet import make_repository, spawn, wait_for_session
from tests.surface.site import Site


@pytest.mark.slow
@pytest.mark.rows("R4.4-19")
def test_a_session_is_watched_and_stopped(desk: Desk, site: Site) -> None:
    script = "cat >/dev/null; echo 'first <b>words</b>' >&2; while ! [ -e more ]; do sleep 0.1; done; echo then these >&2; sleep 600"
    folder = site.shell.project("watchme")
    agent = site.agent("watchme", command=["sh", "-c", script], projectRoot=str(folder))
    flight = site.ask(agent.address, "Begin.")["flightId"]
    ident = wait_for_session(site, agent.address)
    page = desk.open("/sessions")
    page.locator(f"[data-key={ident}] a[href='/sessions/{ident}']").click()
    desk.wait_until_live()
    desk.shown("first <b>words</b>")
    (folder / "more").touch()
    desk.shown("then these")
    assert page.get_by_role("log").get_by_text("then these").count() == 1
    page.get_by_text(f"scout open {ident}").wait_for()
    page.on("dialog", lambda dialog: dialog.accept())
    page.keyboard.press("x")
    page.locator(f"[data-key={ident}] .state[data-state=ended]").wait_for()
    assert site.finished(flight)["state"] == "failed"
    assert desk.complaints == []


@pytest.mark.slow
@pytest.mark.rows("R4.4-21")
def test_a_schedule_is_made_run_and_paused_by_keys(desk: Desk, site: Site) -> None:
    target = site.agent("keycron", harness="echo")
    page = desk.open("/schedules")
    page.keyboard.press("+")
    for number, words in enumerate(("keycron: say hello", "0 3 * * *", target.address)):
        if number:
            page.keyboard.press("Tab")
        page.keyboard.type(words)
    page.keyboard.press("Enter")
    row = page.locator(".list-schedules .row", has_text="keycron: say hello")
    row.wait_for()
    row.focus()
    page.keyboard.press("s")
    row.locator(".state[data-state=completed]").wait_for()
    row.focus()
    page.keyboard.press("p")
    row.locator(".state[data-state=paused]").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url("**/schedules/sch_*")
    desk.shown("by hand")
    assert desk.complaints == []


@pytest.mark.slow
@pytest.mark.rows("R4.4-20")
def test_an_agent_of_the_tree_is_finished_after_its_preview(desk: Desk, site: Site) -> None:
    root = make_repository(site, "finishme")
    (child,) = spawn(site, root, "finished-here")
    page = desk.open(f"/tree?project={quote(root, safe='')}")
    page.locator("svg a", has_text="finished-here").first.click()
    page.wait_for_url("**/tree/*")
    desk.wait_until_live()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Keep the work of").click()
    desk.shown("Finished.")
    assert site.show(child["agent"]["id"])["lifecycle"] == "retired"
    assert desk.complaints == []


@pytest.mark.slow
@pytest.mark.rows("R3.7-10", "R4.4-22")
def test_usage_grows_while_it_is_looked_at(desk: Desk, site: Site) -> None:
    spender = site.puller("growing-usage")
    spender.post("/v1/usage", promptTokens=1000)
    page = desk.open(f"/usage?days=7&agent={spender.address}")
    page.get_by_text("Numbers").first.click()
    page.locator("td", has_text="1,000").first.wait_for()
    spender.post("/v1/usage", promptTokens=234)
    page.locator("td", has_text="1,234").first.wait_for()
    assert page.locator("details[open]").count() == 1
    assert desk.complaints == []
