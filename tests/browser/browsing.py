"""A real browser at a real daemon."""

import functools
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.live.programs import Program, require_program
from tests.surface.site import Site

PICTURES = Path(__file__).parent / "pictures"
WIDTHS = (360, 900, 1440)
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
AXE = Program("axe-core", "4.14.0", "axe-core/axe.min.js")
TYPESCRIPT = Program("typescript", "7.0.2", "typescript/bin/tsc")
SECONDS = 30_000  # milliseconds: a busy machine is no failure


@contextmanager
def a_browser() -> Generator[Browser]:
    """The system's Chromium; the tests are skipped where it is not installed."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("NOT PROVED HERE: chromium is missing")
    with sync_playwright() as driver:
        # As root there is no sandbox; nothing but the page of this daemon is loaded.
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Desk:
    """One browser profile, and what its page complained about."""

    site: Site
    context: BrowserContext
    page: Page
    complaints: list[str]

    @property
    def base(self) -> str:
        return self.page.url.split("/", 3)[0] + "//" + self.page.url.split("/", 3)[2]

    def sign_in(self) -> "Desk":
        """Follow a new link."""
        self.page.goto(self.site.post("/v1/web/links")["url"])
        self.wait_until_live()
        return self

    def open(self, path: str) -> Page:
        """A view, once it is live."""
        self.page.goto(f"{self.base}{path}")
        self.wait_until_live()
        return self.page

    def wait_until_live(self) -> None:
        self.page.locator("#live[data-live=live]").wait_for(timeout=SECONDS)

    def shown(self, text: str) -> Any:
        """The place that shows a text, waited for."""
        found = self.page.get_by_text(text).first
        found.wait_for(timeout=SECONDS)
        return found


@contextmanager
def a_desk(browser: Browser, site: Site, **how: Any) -> Generator[Desk]:
    """A new profile. What the page logs as an error, reports to its policy or throws is kept as a complaint."""
    context = browser.new_context(**how)
    context.set_default_timeout(SECONDS)
    page = context.new_page()
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(f"thrown: {error}"))
    page.on(
        "console",
        lambda said: complaints.append(f"{said.type}: {said.text}") if said.type == "error" else None,
    )
    page.add_init_script(
        "addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective, e.blockedURI))"
    )
    try:
        yield Desk(site, context, page, complaints)
    finally:
        context.close()


@functools.cache
def read_axe() -> str:
    return require_program(AXE).read_text()


def find_violations(page: Page) -> list[str]:
    """What axe-core finds wrong with a page, by rule and element."""
    page.evaluate(read_axe())
    found: Any = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then((r) => r.violations)")
    return [
        f"{one['id']}: {node['target']} {node['failureSummary'][:300]}"
        for one in found
        for node in one["nodes"]
    ]
