"""One event, one sentence: the command line, the terminal application and the page use the same words."""

import html
import re

import pytest

from tests.surface.site import Site
from tests.tui.stage import Fleet, Stage, play
from tests.web.visitor import Visitor


@pytest.mark.rows("R4.4t-19")
def test_the_log_has_the_same_sentences_on_every_surface(fleet: Fleet) -> None:
    fleet.register("samewords", harness="echo")
    fleet.ask("@samewords", "the same words")
    fleet.call("POST", "/v1/work", {"title": "Say the same", "ownerId": "@samewords"})
    fleet.raise_item(fleet.register("samewords-self"), "May I?", kind="approval")
    wanted = [
        "you asked @samewords",
        "you → @samewords: the same words",
        "you → @samewords: delivery acked",
        "@samewords: flight completed",
        "@samewords → you: the same words",
        "you: work create, open: Say the same",
        "@samewords-self → the person: May I?",
    ]
    typed = fleet.shell.say("log", "--newest", "--limit", "200", COLUMNS="200")
    assert [one for one in wanted if one not in typed] == []
    visitor = Visitor(Site(fleet.shell, fleet.daemon), fleet.call("POST", "/v1/web/links")["url"])
    visitor.enter()
    page = "".join(visitor.get(f"/log?noun={noun}").body.decode() for noun in ("", "flight", "message"))
    words = html.unescape(re.sub(r"<[^>]*>", "", page))
    assert [one for one in wanted if one not in words] == []
    shown: list[str] = []

    async def scene(stage: Stage) -> None:
        await stage.press("7")
        shown.append(await stage.shows(*wanted))

    play(fleet.shell, scene, size=(160, 200))
    assert shown
