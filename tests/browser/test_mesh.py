"""The view of the mesh in a browser: two real machines, drawn and listed, live, with its actions in place."""

import re
from collections.abc import Callable, Generator

import pytest
from playwright.sync_api import Browser, Dialog, expect

from scout.daemon.start import find_running
from tests.browser.browsing import PICTURES, SECONDS, THEMES, WIDTHS, Desk, a_desk, find_violations
from tests.daemon.daemons import Daemon
from tests.stories.mesh_machines import Machine, two_machines
from tests.surface.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
HOSTILE = "</script><b>bold</b>\u202eevil\x1b[31m"


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Machine, Machine]]:
    with two_machines(tmp_path_factory.mktemp("mesh")) as pair:
        pair[1].say("agent", "register", "hudson", "--harness", "echo", "--config", f"description={HOSTILE}")
        pair[0].knows("@hudson")
        yield pair


@pytest.fixture
def desk(browser: Browser, machines: tuple[Machine, Machine]) -> Generator[Desk]:
    one = machines[0]
    running = find_running(str(one.home))
    assert running is not None
    with a_desk(browser, Site(one, Daemon(one.home, running))) as made:
        yield made.sign_in()


@pytest.mark.rows("R8.v-3")
def test_the_mesh_in_both_themes_and_three_widths(desk: Desk) -> None:
    PICTURES.mkdir(exist_ok=True)
    for theme in THEMES:
        desk.page.emulate_media(color_scheme=theme)
        page = desk.open("/mesh")
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            page.screenshot(path=PICTURES / f"mesh-two-{theme}-{width}.png", full_page=True)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (theme, width)
        assert find_violations(page) == []
    picture = desk.page.get_by_role(
        "img", name="2 machines and their server. The list below has the same facts."
    )
    expect(picture).to_be_visible()
    table = desk.page.get_by_role("table", name="Machines of the mesh")
    expect(table.get_by_role("row")).to_have_count(3)
    expect(table.get_by_role("row").nth(2)).to_contain_text("online")
    desk.open("/agents/@hudson")
    expect(desk.page.locator("b")).to_have_count(0)
    assert desk.complaints == []


@pytest.mark.rows("R8.j-3", "R8.v-3")
def test_a_machine_is_invited_by_keys_alone(desk: Desk) -> None:
    page = desk.open("/agents")
    page.keyboard.press("0")
    page.wait_for_url(re.compile("/mesh$"))
    desk.wait_until_live()
    page.keyboard.press("+")
    page.keyboard.type("third")
    page.keyboard.press("Enter")
    told = page.locator("#toasts .toast")
    told.get_by_text("Run this on the other machine.").wait_for(timeout=SECONDS)
    expect(told.locator("code")).to_contain_text("scout mesh join '")
    expect(told.get_by_role("button", name="Copy")).to_be_visible()
    told.get_by_role("button", name="Close").click()
    expect(told).to_have_count(0)
    page.keyboard.press("+")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    refused = page.locator(".refused")
    refused.wait_for(timeout=SECONDS)
    expect(refused).to_contain_text("two-2")
    assert [one for one in desk.complaints if "409" not in one] == []


@pytest.mark.rows("R8.v-3")
def test_a_machine_that_goes_away_is_shown_live_and_removed(
    desk: Desk, machines: tuple[Machine, Machine]
) -> None:
    page = desk.open("/mesh")
    row = page.get_by_role("table", name="Machines of the mesh").get_by_role("row").nth(2)
    machines[1].stop()
    expect(row).to_contain_text("unreachable since", timeout=SECONDS)
    expect(page.locator("svg .broken")).to_have_count(1)
    machines[1].start()
    expect(row).not_to_contain_text("unreachable", timeout=SECONDS)
    page.goto(f"{desk.base}/mesh?at=2026-01-01T00:00:00Z")
    expect(page.get_by_text("the past of this view is not kept")).to_be_visible()
    desk.open("/mesh")
    asked = list[str]()

    def agree(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept()

    page.once("dialog", agree)
    page.get_by_role("button", name="Remove two").click()
    expect(page.get_by_text("No other machine has joined yet.")).to_be_visible(timeout=SECONDS)
    assert asked[0].startswith("Remove two from the mesh?")


def test_a_machine_without_a_mesh_is_told_how_to_begin(make_desk: Callable[..., Desk]) -> None:
    page = make_desk().sign_in().open("/mesh")
    for command in ("scout mesh up", "scout mesh invite --name mini", "scout mesh join"):
        expect(page.locator("code", has_text=command).first).to_be_visible()
    expect(page.get_by_role("button", name="Found a mesh here")).to_be_visible()
