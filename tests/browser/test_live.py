"""The page stays true: without a reload, over a restart of the daemon, and without moving under the pointer."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, expect

from scout.daemon.start import start, stop
from tests.browser.browsing import SECONDS, Desk, a_desk
from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.surface.site import Site

expect.set_options(timeout=SECONDS)


def test_a_flight_changes_its_state_in_place(desk: Desk, site: Site) -> None:
    worker = site.puller("live-worker")
    flight = site.ask(worker.address, "Watch this line.")["flightId"]
    page = desk.open("/flights")
    row = page.locator(f"[data-key='{flight}']")
    expect(row.locator(".state")).to_have_attribute("data-state", "queued")
    page.evaluate("window.mark = 'the same document'")
    worker.post(f"/v1/flights/{flight}/start")
    expect(row.locator(".state")).to_have_attribute("data-state", "running")
    worker.post(f"/v1/flights/{flight}/complete", output="Seen.")
    expect(row.locator(".state")).to_have_attribute("data-state", "completed")
    expect(row).to_contain_text("Seen.")
    assert page.evaluate("window.mark") == "the same document"


@pytest.mark.rows("R4.4-13")
def test_new_rows_are_announced_and_not_pushed_under_the_pointer(desk: Desk, site: Site) -> None:
    worker = site.puller("calm-worker")
    first = site.ask(worker.address, "The first.")["flightId"]
    page = desk.open("/flights")
    row = page.locator(f"[data-key='{first}']")
    row.hover()
    before = row.bounding_box()
    second = site.ask(worker.address, "The second.")["flightId"]
    bar = page.locator(".announce")
    expect(bar).to_contain_text("new")
    assert page.locator(f"[data-key='{second}']").count() == 0
    assert before is not None
    bar.click()
    expect(page.locator(f"[data-key='{second}']")).to_be_visible()


@pytest.mark.slow
@pytest.mark.rows("R4.4-12")
def test_a_restart_of_the_daemon_leaves_no_gap(browser: Browser) -> None:
    with a_shell() as shell:
        (shell.home / "config.toml").write_text(f"roots = ['{shell.folder}/work']\n")
        daemon = Daemon(shell.home, start_daemon(shell))
        site = Site(shell, daemon)
        worker = site.puller("restart-worker")
        flight = site.ask(worker.address, "Survive this.")["flightId"]
        with a_desk(browser, site) as desk:
            desk.sign_in()
            page = desk.open("/flights")
            page.evaluate("window.mark = 'the same document'")
            stop(str(shell.home), timeout=60)
            expect(page.locator("#live")).to_have_attribute("data-live", "lost")
            environ = {**shell.environ, "SCOUT_PORT": str(daemon.port)}
            site.daemon = Daemon(shell.home, start(str(shell.home), environ=environ, timeout=60)[0])
            worker.post(f"/v1/flights/{flight}/start")
            expect(page.locator(f"[data-key='{flight}'] .state")).to_have_attribute("data-state", "running")
            expect(page.locator("#live")).to_have_attribute("data-live", "live")
            assert page.evaluate("window.mark") == "the same document"


def test_signing_out_ends_every_tab(make_desk: Callable[..., Desk]) -> None:
    desk = make_desk().sign_in()
    second = desk.context.new_page()
    second.goto(f"{desk.base}/log")
    expect(second.locator("#live")).to_have_attribute(
        "data-live", "live"
    )  # it got the secret from the first tab
    second.get_by_role("button", name="Sign out").click()
    for page in (second, desk.page):
        expect(page.get_by_text("This browser is not signed in.")).to_be_visible()


def test_a_revoked_session_shows_the_way_in(desk: Desk, site: Site) -> None:
    page = desk.open("/inbox")
    site.post(f"/v1/tokens/{page.evaluate('document.body.dataset.token')}/revoke")
    expect(page.get_by_text("This browser is not signed in.")).to_be_visible()
