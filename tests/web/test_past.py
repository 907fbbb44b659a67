"""Views of the past: marked, read-only, and true to the moment."""

import re
from urllib.parse import quote

import pytest

from scout.web.views.table import NAV
from tests.browser.fleet import make_repository, spawn, wait_for_session
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
        assert re.search(r"<main[^>]* data-past=", shown)
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


def test_the_navigation_keeps_the_moment(site: Site, visitor: Visitor) -> None:
    seq = site.get("/v1/log?newest=1&limit=1")["items"][-1]["seq"]
    shown = read(visitor, f"/agents?at={seq}")
    navigation = shown[shown.index("<nav") : shown.index("</nav>")]
    links = re.findall(r'href="([^"]+)"', navigation)
    assert len(links) == len(NAV)
    assert all("?at=" in link for link in links)


@pytest.mark.rows("R4.4-17")
def test_sessions_tree_and_usage_are_shown_as_they_were(site: Site, visitor: Visitor) -> None:
    root = make_repository(site, "past-tree")
    (child,) = spawn(site, root, "past-child")
    spender = site.puller("past-spender")
    spender.post("/v1/usage", promptTokens=1000)
    agent = site.agent("past-session", command=["sh", "-c", "cat >/dev/null; sleep 600"])
    site.ask(agent.address, "Wait.")
    session = wait_for_session(site, agent.address)
    seq = site.get("/v1/log?newest=1&limit=1")["items"][-1]["seq"]
    spender.post("/v1/usage", promptTokens=500)
    site.post(f"/v1/sessions/{session}/stop")
    site.post(f"/v1/agents/{quote(child['address'], safe='')}/finish", keep=True)

    assert ">1,000</td>" in read(visitor, f"/usage?agent={spender.address}&at={seq}")
    assert ">1,500</td>" in read(visitor, f"/usage?agent={spender.address}")
    assert session in read(visitor, f"/sessions?at={seq}")
    assert session not in read(visitor, "/sessions")
    then = read(visitor, f"/tree?project={quote(root, safe='')}&at={seq}")
    assert child["address"] in then
    assert "Not known for the past." in then
    assert "Finish…" not in then
    assert child["address"] not in read(visitor, f"/tree?project={quote(root, safe='')}")
    assert site.get("/v1/tree", all="true", at=seq)["moment"]["seq"] == seq
    assert site.get("/v1/usage", at=seq)["moment"]["seq"] == seq
    assert "As it was at" in site.shell.say("usage", "--at", str(seq))
    assert child["address"] in site.shell.say("tree", "--all", "--at", str(seq))


@pytest.mark.rows("R4.4-17")
def test_single_records_are_shown_as_they_were(site: Site, visitor: Visitor) -> None:
    pull = site.puller("past-record")
    flight = site.ask(pull.address, "Be cancelled.")["flightId"]
    work = site.post("/v1/work", title="past work", ownerId=pull.address)["id"]
    seq = site.get("/v1/log?newest=1&limit=1")["items"][-1]["seq"]
    site.post(f"/v1/flights/{flight}/cancel", reason="enough")
    pull.post(f"/v1/work/{work}/start")
    for path, state in ((f"/flights/{flight}", "queued"), (f"/work/{work}", "open")):
        shown = read(visitor, f"{path}?at={seq}")
        assert "You see Scout as it was at" in shown
        assert f'data-state="{state}"' in shown
        assert "data-operation" not in shown.partition("<fieldset")[2]
    assert "You see Scout as it was at" in read(visitor, f"/agents/{pull.address}?at={seq}")


@pytest.mark.rows("R4.4-17")
def test_a_view_without_a_past_says_so(site: Site, visitor: Visitor) -> None:
    seq = site.get("/v1/log?newest=1&limit=1")["items"][-1]["seq"]
    for path, title in (("/conversations", "Conversations"), ("/schedules", "Schedules")):
        shown = read(visitor, f"{path}?at={seq}")
        assert f"{title}: the past of this view is not kept. You see the present." in shown
        assert "data-past" not in shown
        assert f'href="{path}" class="button" data-back' in shown
