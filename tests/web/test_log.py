"""The log on the page: page by page in both directions, filtered, and up to a moment."""

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


def _read(visitor: Visitor, path: str) -> str:
    reply = visitor.get(path)
    assert reply.status == 200, reply.body
    return reply.body.decode()


def _list_numbers(document: str) -> list[int]:
    return [int(one) for one in re.findall(r'data-key="event (\d+)"', document)]


def _follow(document: str, label: str) -> str:
    found = re.search(rf'href="(/log[^"]*)" data-page="{label}"', document)
    assert found, label
    return found[1].replace("&amp;", "&")


@pytest.mark.rows("R4.4-25")
def test_every_event_is_reached_page_by_page_and_back(site: Site, visitor: Visitor) -> None:
    one = site.puller("logpage-arc")
    for number in range(60):
        site.post("/v1/messages", to=one.address, body=f"number {number}")
    path = f"/log?agent={quote(one.address)}"
    pages = [_list_numbers(first := _read(visitor, path))]
    while 'data-page="Older"' in first:
        first = _read(visitor, _follow(first, "Older"))
        pages.append(_list_numbers(first))
    seen = [seq for page in pages for seq in page]
    assert seen == sorted(seen, reverse=True)
    assert len(set(seen)) == len(seen)
    everything = [event["seq"] for event in site.get("/v1/log", agent=one.address, limit=200)["items"]]
    assert sorted(seen)[:150] == everything[:150]

    back = _read(visitor, _follow(first, "Newer"))
    assert _list_numbers(back) == pages[-2][: len(_list_numbers(back))] or set(pages[-2]) <= set(
        _list_numbers(back)
    )
    newest = _read(visitor, _follow(back, "Newest"))
    assert _list_numbers(newest) == pages[0]


@pytest.mark.rows("R4.4-25")
def test_the_log_is_filtered_by_kind_and_record(site: Site, visitor: Visitor) -> None:
    one = site.puller("logfilter-arc")
    asked = site.ask(one.address, "Filter this.")
    flight, conversation = asked["flightId"], asked["conversationId"]
    work = site.post("/v1/work", title="logfilter", ownerId=one.address)["id"]
    for ident, kind in ((flight, "flight."), (work, "work_item."), (conversation, "message.posted")):
        shown = _read(visitor, f"/log?about={ident}")
        assert kind in shown
        assert f'value="{ident}"' in shown
        assert "token.created" not in shown
    only = _read(visitor, "/log?noun=flight")
    assert set(re.findall(r">(\w+)\.\w+</span><span role=\"cell\" class=\"c-when\"", only)) == {"flight"}
    assert "Why was this woken?" in only
    assert f'href="/why/{flight}"' in _read(visitor, f"/log?about={flight}")
    assert visitor.get("/log?about=flt_nothere").status < 500


@pytest.mark.rows("R4.4-25", "R4.4-17")
def test_the_log_ends_at_the_moment_that_is_chosen(site: Site, visitor: Visitor) -> None:
    seq = site.get("/v1/log?newest=1&limit=1")["items"][-1]["seq"]
    site.puller("logmoment-arc")
    shown = _read(visitor, f"/log?at={seq}")
    assert max(_list_numbers(shown)) == seq
    assert "You see Scout as it was at" in shown
    assert "<fieldset" not in shown  # filters work in the past, too
    assert max(_list_numbers(_read(visitor, "/log"))) > seq


def test_the_log_backwards_on_the_command_line(site: Site) -> None:
    newest = site.get("/v1/log", newest="true", limit=5)
    before = site.get("/v1/log", before=newest["next"], limit=5)
    numbers = [event["seq"] for event in (*before["items"], *newest["items"])]
    assert numbers == list(range(numbers[0], numbers[0] + 10))
    assert len(site.shell.say("log", "--before", "4").splitlines()) == 3
    assert site.get("/v1/log", before=1)["items"] == []
    assert site.refused("GET", "/v1/log?before=-1")["code"] == "bad_request"
