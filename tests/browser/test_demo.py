"""`scout demo --web`: a fleet that works by itself, and leaves nothing behind."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.browsing import SECONDS
from tests.cli.running import a_shell

expect.set_options(timeout=SECONDS)
ROW = "main .row[data-key]"
ALIVE = {
    "/inbox": "main .item",
    "/agents": ROW,
    "/flights": ROW,
    "/conversations": ROW,
    "/work": "main .card[data-key]",
    "/log": ROW,
    "/sessions": ROW,
    "/tree": "main svg.tree-picture a",
    "/schedules": ROW,
    "/usage": "main svg",
}


@pytest.mark.slow
@pytest.mark.rows("R4.4-16")
def test_every_view_of_the_fleet_has_something_alive(browser: Browser) -> None:
    with a_shell() as shell:
        words = [sys.executable, "-m", "scout", "demo", "--web", "--no-open", "--json"]
        fleet = subprocess.Popen(
            words, env=shell.environ, cwd=shell.folder, stdout=subprocess.PIPE, text=True
        )
        with fleet:
            try:
                assert fleet.stdout is not None
                told = json.loads(fleet.stdout.readline())
                page = browser.new_page()
                page.goto(told["url"])
                expect(page.locator("main .item").first).to_be_visible()
                expect(page.locator("main .state[data-state=running]").first).to_be_visible()
                for path, alive in ALIVE.items():
                    page.goto(f"{told['url'].partition('/enter/')[0]}{path}")
                    expect(page.locator(alive).first).to_be_visible()
                page.close()
            finally:
                fleet.send_signal(signal.SIGTERM)
                code = fleet.wait(timeout=60)
    assert code == 0
    assert not Path(told["home"]).parent.exists()
