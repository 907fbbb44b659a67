"""Sessions, usage, the tree and schedules on the page: their facts, their empty states, and hostile text."""

import re
from urllib.parse import quote

import pytest

from scout.model.agent import Lifecycle, ToolRole
from scout.model.status import AgentStatus
from scout.protocol.tree.view import TreeAgent, TreeFacts
from scout.web.drawing import choose_top, draw_strip, show_amount
from scout.web.tree_picture import draw_tree
from scout.web.views.sessions import show_tokens
from tests.browser.fleet import make_repository, spawn, wait_for_session
from tests.surface.site import Site
from tests.web.visitor import Visitor

HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m\"'& 🦊"
SHOWN = "&lt;img src=x onerror=alert(1)&gt;\\u202e\\x1b[31m"


@pytest.fixture(scope="module")
def visitor(site: Site) -> Visitor:
    made = Visitor(site)
    made.enter()
    return made


def _read(visitor: Visitor, path: str) -> str:
    reply = visitor.get(path)
    assert reply.status == 200, reply.body
    return reply.body.decode()


def _check_hostile(document: str) -> None:
    assert "<img src=x" not in document
    assert "\u202e" not in document
    assert "\x1b" not in document
    assert SHOWN in document


def _row(document: str, key: str) -> str:
    return document.partition(f'data-key="{key}"')[2].partition('role="row"')[0]


@pytest.mark.slow
@pytest.mark.rows("R4.4-19")
def test_a_session_shows_what_it_uses_and_writes(site: Site, visitor: Visitor) -> None:
    agent = site.agent("websession-arc", command=["sh", "-c", "cat >/dev/null; echo begun >&2; sleep 600"])
    site.ask(agent.address, HOSTILE)
    ident = wait_for_session(site, agent.address)
    row = _row(_read(visitor, "/sessions"), ident)
    assert agent.address in row
    assert re.search(r"title=\"[\d.]+ % of one processor, \d process", row)
    assert re.search(r"[\d.]+MB</span>", row)
    assert 'data-operation="session.stop"' in row
    shown = _read(visitor, f"/sessions/{ident}")
    assert f"scout open {ident}" in shown
    assert f'data-tail="{ident}"' in shown
    assert "<dt>Memory</dt>" in shown
    _check_hostile(shown)
    (load,) = [one["load"] for one in site.get("/v1/sessions", live="true")["items"] if one["id"] == ident]
    assert load["memoryBytes"] > 0
    assert load["processes"] >= 1
    assert site.get(f"/v1/sessions/{ident}")["load"]["processes"] >= 1
    assert "the harness tells none" in row
    agent.post("/v1/usage", sessionId=ident, promptTokens=12_000, completionTokens=500)
    assert "12,500 tokens used" in _row(_read(visitor, "/sessions"), ident)
    site.post(f"/v1/sessions/{ident}/stop")
    assert ident not in _read(visitor, "/sessions")
    assert "session.stop" not in _row(_read(visitor, "/sessions?all=1"), ident)


@pytest.mark.slow
@pytest.mark.rows("R3.7-10", "R4.4-22")
def test_usage_is_drawn_and_told_as_numbers(site: Site, visitor: Visitor) -> None:
    spender = site.puller("webusage-arc")
    spender.post("/v1/usage", promptTokens=123_000, completionTokens=456, harness=HOSTILE, model=HOSTILE)
    spender.post("/v1/usage", category="protocol_overhead", promptTokens=789)
    shown = _read(visitor, f"/usage?agent={spender.address}")
    assert ": 123,456 execution, 789 overhead</title>" in shown
    assert "<td>123,456</td><td>123,000</td><td>456</td><td>123,456</td><td>789</td>" in shown
    assert "No daily cap is set." in shown
    _check_hostile(shown)
    assert "No tokens were used in the last 30 days." in _read(
        visitor, f"/usage?days=30&agent={site.puller('webusage-poor').address}"
    )
    assert "14 days" in _read(visitor, "/usage?days=9999999999")


@pytest.mark.slow
def test_the_daily_caps_of_the_report(site: Site) -> None:
    spender = site.puller("webcaps-arc")
    spender.post("/v1/usage", promptTokens=77)
    caps = site.get("/v1/usage", agent=spender.address)["caps"]
    assert caps["highest"] == spender.address
    assert caps["highestToday"] == 77
    assert caps["spentToday"] >= 77
    assert caps["tokensPerDay"] is None


@pytest.mark.slow
@pytest.mark.rows("R4.4-20")
def test_the_tree_is_drawn_and_listed_with_a_finish_preview(site: Site, visitor: Visitor) -> None:
    root = make_repository(site, "webtree")
    (auth,) = spawn(site, root, "webauth", role="tl")
    (child,) = spawn(site, root, "webchild", **{"from": auth["address"]})
    agent = site.post("/v1/tokens", agent=child["agent"]["id"])["secret"]
    site.post(
        "/v1/reservations", token=agent, globs=["src/**"], why="<img src=x> 🦊", folder=child["workingDir"]
    )
    shown = _read(visitor, f"/tree?project={quote(root, safe='')}")
    picture = shown.partition("<svg viewBox")[2].partition("</svg>")[0]
    assert 'class="tree-edge"' in picture
    assert child["birthBranch"] in picture
    row = _row(shown, child["agent"]["id"])
    assert "1 reserved" in row
    assert "src/**" in shown
    assert "&lt;img src=x&gt; 🦊" in shown
    assert "<img src=x" not in shown
    preview = _read(visitor, f"/tree/{quote(child['address'], safe='@')}")
    for choice in ("merge", "keep"):
        assert f"&quot;{choice}&quot;:true" in preview
    assert "Why is it not needed?" in preview
    assert site.show(child["address"])["lifecycle"] == "active"


def _agent(number: int, parent: int | None, **more: object) -> TreeAgent:
    facts = TreeFacts(branch=f"b{number}", ahead=number, uncommitted=2)
    return TreeAgent(
        id=str(number),
        address=f"@a{number}",
        path=f"/a{number}",
        parent_id=None if parent is None else str(parent),
        depth=0 if parent is None else 1,
        role=ToolRole.DEV,
        lifecycle=Lifecycle.ACTIVE,
        status=AgentStatus.ONLINE,
        facts=facts,
        name=str(more.get("name", f"a{number}")),
    )


def test_a_parent_is_drawn_in_the_middle_of_its_children() -> None:
    drawn = draw_tree([_agent(0, None), _agent(1, 0, name=HOSTILE), _agent(2, 0), _agent(3, 99)])
    tops = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', drawn)
    assert tops == [("2", "34"), ("256", "2"), ("256", "66"), ("256", "130")]
    assert drawn.count('class="tree-edge"') == 2
    assert "↑2 ●2" in drawn
    assert "<img" not in drawn


@pytest.mark.slow
@pytest.mark.rows("R4.4-21")
def test_a_schedule_shows_its_times_and_runs(site: Site, visitor: Visitor) -> None:
    target = site.agent("webcron-arc", harness="echo")
    made = site.post(
        "/v1/schedules", cron="0 9 * * *", body=HOSTILE, to=target.address, timeZone="Europe/Berlin"
    )
    row = _row(_read(visitor, "/schedules"), made["id"])
    assert "not run yet" in row
    assert 'data-operation="cron.run"' in row
    assert 'data-operation="cron.pause"' in row
    shown = _read(visitor, f"/schedules/{made['id']}")
    assert shown.count("Europe/Berlin, <time") == 5
    assert "It has not run yet." in shown
    _check_hostile(shown)
    ran = site.post(f"/v1/schedules/{made['id']}/run")
    site.finished(ran["last"]["flightId"])
    shown = _read(visitor, f"/schedules/{made['id']}")
    assert "by hand" in shown
    assert f"/flights/{ran['last']['flightId']}" in shown
    site.post(f"/v1/schedules/{made['id']}/pause")
    assert 'data-operation="cron.resume"' in _row(_read(visitor, "/schedules"), made["id"])


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (999, "999"), (1000, "1k"), (12_345, "12.3k"), (3.2e9, "3.2G"), (456e6, "456M")],
)
def test_amounts_are_short(value: float, shown: str) -> None:
    assert show_amount(value) == shown


@pytest.mark.parametrize(
    ("values", "top"), [([], 1), ([7], 10), ([101, 3], 200), ([50], 50), ([999_999], 1_000_000)]
)
def test_the_top_of_an_axis_is_round(values: list[float], top: float) -> None:
    assert choose_top(values) == top


def test_a_strip_of_nothing_is_empty() -> None:
    assert "<rect" not in draw_strip("nothing", [])


def test_a_session_shows_how_full_its_context_is() -> None:
    assert ">12.5k · 25 %<" in show_tokens(12_500, 50_000, 200_000)
    assert ">25 %<" in show_tokens(0, 50_000, 200_000)
    assert ">12.5k<" in show_tokens(12_500, 50_000, None)
