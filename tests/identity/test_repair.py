"""Readings of malformed handles, before the unreadable ones are dropped."""

import pytest

from scout.identity import repair


@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("@arc@mini", 4, ("@arc.node:mini", "@arc")),
        ("arc@mini", 3, ("arc.node:mini", "arc")),
        ("@@arc", 1, ("@arc",)),
        ("@arc@", 4, ("@arc.node:", "@arc")),
    ],
)
def test_second_at(text: str, position: int, readings: tuple[str, ...]) -> None:
    assert repair.repair_second_at(text, position) == readings


@pytest.mark.parametrize(
    ("text", "position", "readings"),
    [
        ("@arc.dev.mini", 9, ("@arc.dev.node:mini", "branch:arc.dev.mini", "@arc.dev-mini")),
        ("arc.dev.mini", 8, ("arc.dev.node:mini", "branch:arc.dev.mini", "arc.dev-mini")),
        ("@arc.dev.mini:x", 9, ("@arc.dev.node:mini:x", "@arc.dev-mini:x")),
        ("@arc.dev.mini#x", 9, ("@arc.dev.node:mini#x", "@arc.dev-mini#x")),
        ("@arc.dev.mini?x", 9, ("@arc.dev.node:mini?x", "@arc.dev-mini?x")),
        ('@arc.dev."x"', 9, ('@arc.dev.node:"x"', '@arc.dev-"x"')),
    ],
)
def test_two_workspaces(text: str, position: int, readings: tuple[str, ...]) -> None:
    assert repair.repair_two_workspaces(text, position) == readings


@pytest.mark.parametrize(
    ("text", "position", "reading"),
    [
        ("@arc.node:a.node:b", 17, "@arc.node:a"),
        ("@arc.node:a.node:b.main", 17, "@arc.node:a.main"),
        ("@arc.node:a.node:b#x", 17, "@arc.node:a#x"),
        ("@arc.node:a.node:b?x", 17, "@arc.node:a?x"),
        ('@arc.node:a.node:"b.c#d"?x', 18, "@arc.node:a?x"),
        ("@arc#x?5.5", 7, "@arc#x"),
        ("@arc#x?5.5", 5, "@arc?5.5"),
        ("@arc..main", 5, "@arc.main"),
        ("@arc.", 5, "@arc"),
    ],
)
def test_left_out(text: str, position: int, reading: str) -> None:
    assert repair.leave_out(text, position) == (reading,)


@pytest.mark.parametrize(
    ("text", "start", "readings"),
    [
        ("@arc?a#b", 4, ("@arc.harness:b.model:a", "@arc.harness:b.model:a")),
        ("@arc#a.b.c", 4, ("@arc.b.c.harness:a", "@arc.harness:a")),
        ("@arc.w#a#b?c?d", 6, ("@arc.w.harness:a.model:c", "@arc.w.harness:a.model:c")),
        ("@arc?5.5.node:n", 4, ("@arc.node:n.model:5-5", "@arc.model:5-5")),
        ("@arc?a.b", 4, ("@arc.model:a-b", "@arc.model:a-b")),
        ("@arc?.x:y", 4, ("@arc.x:y", "@arc")),
        ("@arc##", 4, ("@arc", "@arc")),
        ('@arc#"x"', 4, ("@arc.harness:x", "@arc.harness:x")),
        ("@arc#x.main?y.node:n", 4, ("@arc.main.node:n.harness:x.model:y", "@arc.harness:x.model:y")),
    ],
)
def test_long_forms(text: str, start: int, readings: tuple[str, ...]) -> None:
    assert repair.write_long_forms(text, start) == readings
