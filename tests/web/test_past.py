"""Views of the past: marked, read-only, and true to the moment."""

import re
from urllib.parse import quote

import pytest

from tests.surface.site import Site
from tests.web.visitor import Visitor


@pytest.fixture
def visitor(site: Site) -> Visitor:
    made = Visitor(site)
    made.enter()
    return made


def read(visitor: Visitor, path: str) -> str:
    reply = visitor.get(path)
    assert reply.status == 200, reply
    return reply.body.decode()


@pytest.mark.rows("R4.4-17")
def test_a_view_shows_the_moment_that_the_address_names(site: Site, visitor: Visitor) -> None:
    pull = site.puller("slider-hud")
    flight = site.ask(pull.address, "Look at the slider.")["flightId"]
    before = site.get("/v1/log?newest=1&limit=1")["items"][-1]["seq"]
    site.post(f"/v1/flights/{flight}/cancel", reason="enough")
    for path in ("/", "/flights", "/agents", "/work", "/inbox"):
        shown = read(visitor, f"{path}?at={before}")
        assert "You see Scout as it was at" in shown
        assert re.search(r"<main[^>]* data-past>", shown)
        assert "<fieldset disabled" in shown
        assert f'href="{path}" class="button" data-back' in shown
    then = read(visitor, f"/flights?at={before}")
    row = then[then.index(f'data-key="{flight}"') :][:600]
    assert 'data-state="queued"' in row
    now = read(visitor, "/flights")
    assert 'data-state="cancelled"' in now[now.index(f'data-key="{flight}"') :][:600]
    assert "data-past" not in now


@pytest.mark.rows("R4.4-17")
def test_the_log_has_the_slider_and_every_part_of_it_leads_to_its_moment(visitor: Visitor) -> None:
    shown = read(visitor, "/log")
    links = re.findall(r'<a href="(/\?at=[^"]+)" aria-label="Scout at', shown)
    assert links
    assert "You see Scout as it was" in read(visitor, links[-1])
    assert 'type="range"' in shown


@pytest.mark.parametrize("at", ["tomorrow at tea", "2001-01-01", "<script>alert(1)</script>"])
def test_a_moment_that_there_is_not_is_refused_with_words(visitor: Visitor, at: str) -> None:
    reply = visitor.get(f"/?at={quote(at)}")
    text = reply.body.decode()
    assert 400 <= reply.status < 500
    assert "<script>alert" not in text
    assert "data-past" not in text


def test_the_navigation_keeps_the_moment_where_a_view_can_show_it(site: Site, visitor: Visitor) -> None:
    seq = site.get("/v1/log?newest=1&limit=1")["items"][-1]["seq"]
    shown = read(visitor, f"/agents?at={seq}")
    navigation = shown[shown.index("<nav") : shown.index("</nav>")]
    assert 'href="/flights?at=' in navigation
    assert 'href="/log"' in navigation
