"""Take the pictures of the web page: `./dev pictures`. They show the fleet of `scout demo --web`."""

import json
import shutil
import signal
import subprocess
import sys

from playwright.sync_api import Page, sync_playwright

from tools.pictures import FOLDER

VIEWS = {"page-now": "/", "page-flight": "/flights"}


def take_pages() -> None:
    """Start the fleet, wait until something has happened, and take each picture."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("docs/pictures/page-*.png: not taken, chromium is missing")
        return
    fleet = subprocess.Popen(
        [sys.executable, "-m", "scout", "demo", "--web", "--no-open", "--json"],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert fleet.stdout is not None
        url = json.loads(fleet.stdout.readline())["url"]
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1200, "height": 760}, color_scheme="light")
            page.goto(url)
            for name, path in VIEWS.items():
                _take(page, name, f"{page.url.split('/', 3)[0]}//{page.url.split('/', 3)[2]}{path}")
            browser.close()
    finally:
        fleet.send_signal(signal.SIGTERM)
        fleet.wait(timeout=60)


def _take(page: Page, name: str, url: str) -> None:
    page.goto(url)
    page.locator("#live[data-live=live]").wait_for()
    done = page.locator(".state[data-state=completed]").first
    done.wait_for(timeout=60_000)
    if name == "page-flight":
        row = page.locator(".row", has=page.locator(".state[data-state=completed]")).filter(has_text="Review")
        row.first.locator("a.main-link").click()
        page.locator("#live[data-live=live]").wait_for()
    page.screenshot(path=FOLDER / f"{name}.png")
    print(f"docs/pictures/{name}.png")


if __name__ == "__main__":
    take_pages()
