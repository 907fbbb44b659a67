"""Text of agents is text: markup, escapes, overrides and great length, in every field that is shown."""

import pytest

from tests.tui.stage import Fleet, Stage, play

MARKUP = "[bold red]not bold[/] [@click=app.quit]click[/] [link=x]"
BIDI = "admin\u202e\u2066 // if safe\u2069 \u2067txt.exe\u200f\u061c"
ESCAPES = "\x1b[2J\x1b[31mred\x07\r\x9b5mover \u202egnp.exe\u200b\ttab"
CORPUS = {
    "markup": MARKUP,
    "escapes": ESCAPES,
    "bidi": BIDI,
    "wide": "漢字" * 60 + " 👩‍👩‍👧‍👦 e\u0301 \U0001f1e9\U0001f1ea",
    "long": "x" * 100_000,
    "lines": "\n".join(f"line {number}" for number in range(3000)),
    "broken": "[/] [[ ]] [not closed [red",
}
_CONTROL = {*map(chr, range(32)), *map(chr, range(127, 160)), *BIDI, "\u200b"} - {
    "\n",
    *map(chr, range(32, 127)),
}


def _check(screen: str) -> None:
    assert not _CONTROL & set(screen), screen


@pytest.mark.rows("R4.4t-12", "R7-13")
@pytest.mark.parametrize("kind", CORPUS)
def test_hostile_text_is_shown_as_text_in_every_view(fleet: Fleet, kind: str) -> None:
    text, name = CORPUS[kind], f"hostile-{kind}"
    fleet.register(name, harness="echo", config={"description": text[:2000]})
    asked = fleet.ask(f"@{name}", f"begin {text}")
    token = fleet.register(f"{name}-self")
    item = fleet.raise_item(token, f"title {text[:200]}", body=text, kind="approval", risk="high")
    wanted = fleet.want(f"hostile-{kind}-want", f"run {text}")
    work = {"title": f"work {text[:200]}", "description": text, "ownerId": f"@{name}", "labels": [text[:20]]}
    made = fleet.call("POST", "/v1/work", work)["id"]

    async def scene(stage: Stage) -> None:
        for key in "1234567":
            await stage.press(key)
            await stage.settle()
            _check(stage.screen)
        for ident, told in ((item, "title"), (wanted, "run"), (asked["flightId"], "Timeline")):
            stage.app.show_record(ident)
            _check(await stage.shows(told))
            await stage.settle()
        stage.app.show_record(asked["conversationId"])
        await stage.shows("Enter sends an ask")
        _check(stage.screen)
        await stage.press("tab", "w")
        _check(await stage.shows("Why"))
        await stage.press("escape")
        stage.app.show_record(made)
        _check(await stage.shows("Work · wrk_", "│ work"))
        stage.app.show_diff(asked["flightId"])
        await stage.shows("Diff · flt_")
        await stage.settle()
        _check(stage.screen)
        stage.app.show_record(f"@{name}")
        _check(await stage.shows("Feed"))
        await stage.press("ctrl+k")
        await stage.type(name)
        _check(await stage.shows(f"@{name}"))

    play(fleet.shell, scene)


@pytest.mark.rows("R4.4t-12")
def test_markup_and_escapes_are_readable_on_the_screen(fleet: Fleet) -> None:
    item = fleet.want("hostile-readable", f"echo {MARKUP} {ESCAPES}")

    async def scene(stage: Stage) -> None:
        stage.app.show_record(item)
        screen = await stage.shows("│ echo [bold red]not bold[/] [@click=app.quit]click[/]")
        assert "\\x1b[2J\\x1b[31mred\\x07\\r\\u009b5mover \\u202egnp.exe\\u200b\\ttab" in screen
        assert "hidden characters" in screen
        assert "high risk" in screen

    play(fleet.shell, scene, size=(160, 40))
