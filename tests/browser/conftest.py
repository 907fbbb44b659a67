"""One daemon for each worker, and one browser for each module: Playwright occupies the event loop of the thread."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.browsing import Desk, a_browser, a_desk
from tests.surface.conftest import site as site  # noqa: PLC0414 (a fixture under its own name)
from tests.surface.site import Site


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with a_browser() as made:
        yield made


@pytest.fixture
def make_desk(browser: Browser, site: Site) -> Generator[Callable[..., Desk]]:
    """Makes browser profiles that are closed after the test."""
    with ExitStack() as stack:

        def make(**how: Any) -> Desk:
            return stack.enter_context(a_desk(browser, site, **how))

        yield make


@pytest.fixture
def desk(make_desk: Callable[..., Desk]) -> Desk:
    """A browser that is signed in."""
    return make_desk().sign_in()
