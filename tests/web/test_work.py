"""Work on the page: the board, one item, and nothing of an agent's text as markup."""

import pytest

from tests.surface.site import Site
from tests.web.visitor import Visitor

HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m\"'& 🦊"


@pytest.fixture(scope="module")
def visitor(site: Site) -> Visitor:
    made = Visitor(site)
    made.enter()
    return made


def _read(visitor: Visitor, path: str) -> str:
    reply = visitor.get(path)
    assert reply.status == 200, reply.body
    return reply.body.decode()


def _lane(document: str, state: str) -> str:
    """The part of the board that holds one state."""
    return document.partition(f'data-key="work-{state}"')[2].partition("</section>")[0]


@pytest.mark.slow
@pytest.mark.rows("R4.4-18")
def test_the_board_has_each_item_in_the_lane_of_its_state(site: Site, visitor: Visitor) -> None:
    arc = site.puller("webwork-arc")
    made = [site.post("/v1/work", title=f"webwork {name}", ownerId=arc.address) for name in ("a", "b", "c")]
    arc.post(f"/v1/work/{made[1]['id']}/start")
    arc.post(f"/v1/work/{made[1]['id']}/progress", done=1, total=4, summary="one of four")
    arc.post(f"/v1/work/{made[2]['id']}/submit", summary="all done")
    board = _read(visitor, "/work")
    for state, item in zip(("open", "working", "review"), made, strict=True):
        assert f'data-key="{item["id"]}"' in _lane(board, state)
    assert "25 %, 1 of 4 steps: one of four" in _lane(board, "working")
    assert "Progress: 25 %, 1 of 4 steps" in _lane(board, "working")
    assert "Next move" in _lane(board, "review")
    assert 'data-operation="work.accept"' in _lane(board, "review")
    assert 'data-operation="work.accept"' not in _lane(board, "open")


@pytest.mark.slow
def test_filters_of_the_board(site: Site, visitor: Visitor) -> None:
    arc, hud = site.puller("webworkf-arc"), site.puller("webworkf-hud")
    one = site.post("/v1/work", title="with label", ownerId=arc.address, labels=["a b&c"])
    two = site.post("/v1/work", title="of another", ownerId=hud.address)
    by_owner = _read(visitor, f"/work?owner={hud.address}")
    assert two["id"] in by_owner
    assert one["id"] not in by_owner
    by_label = _read(visitor, "/work?label=a%20b%26c")
    assert one["id"] in by_label
    assert two["id"] not in by_label
    assert "No work item matches." in _read(visitor, "/work?label=nothing-has-this")
    site.post(f"/v1/work/{two['id']}/cancel", reason="no longer needed")
    assert two["id"] in _lane(_read(visitor, "/work?all=1"), "cancelled")
    assert two["id"] not in _read(visitor, "/work")


@pytest.mark.slow
def test_one_item_with_its_moves_and_history(site: Site, visitor: Visitor) -> None:
    arc = site.puller("webworki-arc")
    item = site.post("/v1/work", title="Ship it", ownerId=arc.address, description="Line 1\nLine 2")
    arc.post(f"/v1/work/{item['id']}/wait", on="condition", ref="the build is green")
    shown = _read(visitor, f"/work/{item['id']}")
    assert "Line 1\nLine 2" in shown
    assert "Waits for condition the build is green" in shown
    for operation in ("work.resume", "work.progress", "work.hand-over", "work.cancel"):
        assert operation in shown
    assert "work.accept" not in shown
    assert shown.count('data-key="step ') == 2
    assert visitor.get("/work/wrk_00000000000000000000000000").status == 404


@pytest.mark.slow
def test_hostile_text_is_text(site: Site, visitor: Visitor) -> None:
    arc = site.puller("webworkh-arc")
    item = site.post(
        "/v1/work", title=HOSTILE, ownerId=arc.address, description=HOSTILE * 3, labels=[HOSTILE]
    )
    arc.post(f"/v1/work/{item['id']}/start")
    arc.post(f"/v1/work/{item['id']}/progress", summary=HOSTILE)
    for path in ("/work", f"/work/{item['id']}"):
        shown = _read(visitor, path)
        assert "<img src=x" not in shown
        assert "\u202e" not in shown
        assert "\x1b" not in shown
        assert "&lt;img src=x onerror=alert(1)&gt;\\u202e\\x1b[31m" in shown
