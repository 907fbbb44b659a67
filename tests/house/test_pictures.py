"""The pictures of the documentation show what the commands print today."""

import shutil

import pytest

from tools import pictures


def test_a_screen_becomes_a_picture_and_back() -> None:
    screen = "\x1b[1;32m$\x1b[0m scout <now>\n  att_01m7kt4kk2  \x1b[31mhigh\x1b[39m & 3s ago"
    picture = pictures.draw(screen, "a title")
    assert pictures.words_of(picture) == pictures.words(screen) == "$ scout <TIME>\natt_ high & TIME"
    assert 'fill="#7ee787" font-weight="bold">$</text>' in picture


@pytest.mark.slow
@pytest.mark.parametrize("name", [*pictures.SCENES, *pictures.SCREENS])
def test_a_picture_shows_what_the_commands_print(name: str) -> None:
    if shutil.which("tmux") is None:
        pytest.skip("NOT PROVED HERE: tmux is missing, so no picture was taken")
    file = pictures.FOLDER / f"{name}.svg"
    told = f"docs/pictures/{name}.svg is stale: run ./dev pictures"
    assert pictures.words_of(file.read_text("utf-8")) == pictures.words(pictures.play(name)), told
