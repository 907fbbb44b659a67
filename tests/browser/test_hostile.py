"""Text of agents is text: markup, escapes, reordering, very long texts and emoji change nothing but the words."""

import pytest
from playwright.sync_api import expect

from tests.browser.browsing import SECONDS, Desk
from tests.surface.site import Site

expect.set_options(timeout=SECONDS)

CORPUS = (
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "</title></textarea></pre></main><svg onload=window.hacked=3>",
    "'\"><a href=javascript:window.hacked=4>x</a>",
    "{{7*7}} ${window.hacked=5} <!-- -->",
    "\u202egpj.exe\u202c \u2066hidden\u2069 a\u200bb",
    "\x1b[31mred\x1b[0m \x07\x08 \r\nafter",
    "👩‍👩‍👧‍👦 🏴‍☠️ ｆｕｌｌ  ̷̛z̸a̶l̷g̵o̶",
    "%s %n ../../etc/passwd file:///etc/passwd data:text/html,x",
)
LONG = "<b>long</b> " * 8000  # 96 kB


@pytest.mark.rows("R4.4-8")
def test_hostile_text_in_every_field_is_shown_as_text(desk: Desk, site: Site) -> None:
    text = "\n".join(CORPUS)
    line = " ".join(CORPUS[:5])
    agent = site.puller("hostile-arc", config={"description": line, "name": CORPUS[0]})
    flight = site.ask(agent.address, text)["flightId"]
    agent.post(f"/v1/flights/{flight}/start")
    agent.post("/v1/attention", title=line[:200], body=text, risk="high")
    agent.post("/v1/attention/need", question=text, options=[CORPUS[0], CORPUS[1]])
    agent.post(f"/v1/flights/{flight}/complete", output=text + LONG)
    other = site.ask(agent.address, LONG)["flightId"]
    agent.post(f"/v1/flights/{other}/start")
    agent.post(f"/v1/flights/{other}/fail", reason=line[:1000])
    sent = site.post("/v1/messages", to=agent.address, body=text)
    site.post("/v1/messages", to=agent.address, body=LONG)
    site.post("/v1/work", title=line[:200], ownerId=agent.address)
    paths = (
        "/",
        "/inbox",
        "/inbox?all=1",
        "/agents",
        f"/agents/{agent.id}",
        "/flights",
        f"/flights/{flight}",
        f"/flights/{other}",
        f"/why/{flight}",
        "/conversations",
        f"/conversations/{sent['conversationId']}",
        "/log",
        f"/log?agent={agent.id}",
        "/log?agent=%3Cscript%3Ewindow.hacked%3D6%3C%2Fscript%3E",
        "/agents?q=%22%3E%3Cscript%3Ewindow.hacked%3D7%3C%2Fscript%3E",
        "/why/%3Cscript%3E",
    )
    for path in paths:
        page = desk.open(path)
        assert page.evaluate("window.hacked") is None, path
        assert page.locator("main script, main img, main svg[onload]").count() == 0, path
        shown = page.locator("main").inner_text()
        assert not set("\u202e\u2066\u200b\x1b") & set(shown), path
    page = desk.open(f"/conversations/{sent['conversationId']}")
    post = page.locator(".post").filter(has_text=CORPUS[0]).first
    for piece in (CORPUS[0], CORPUS[1], "\\u202egpj.exe\\u202c", "\\x1b[31mred"):
        expect(post).to_contain_text(piece)
    site.post("/v1/messages", to=agent.address, body=f"live {CORPUS[1]}")
    expect(page.locator(".post").filter(has_text=f"live {CORPUS[1]}")).to_be_visible()
    assert page.evaluate("window.hacked") is None
    # A query that is refused is an answer with an error status, which the browser logs.
    assert [one for one in desk.complaints if "status of 4" not in one] == []


def test_a_very_long_message_is_cut_and_one_click_shows_all_of_it(desk: Desk, site: Site) -> None:
    agent = site.puller("lengthy-arc")
    sent = site.post("/v1/messages", to=agent.address, body="x" * 25_000 + " the end")
    page = desk.open(f"/conversations/{sent['conversationId']}")
    assert "the end" not in page.locator(".post-text").first.inner_text()
    page.get_by_text("5,008 more characters: show long messages in full").click()
    expect(page.locator(".post-text").first).to_contain_text("the end")
    assert page.get_by_text("more characters").count() == 0
