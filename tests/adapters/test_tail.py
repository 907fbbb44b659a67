"""A file that grows is read whole: no line twice, none lost, no character torn."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.adapters.process.run import FileTail, read_last_line


@given(
    lines=st.lists(st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=9), max_size=9),
    cuts=st.lists(st.integers(0, 200), max_size=9),
)
def test_however_it_is_cut_the_lines_are_the_same(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], cuts: list[int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "growing"
    data = "\n".join(lines).encode()
    path.write_bytes(b"")
    tail, seen, at = FileTail(path), list[str](), 0
    for cut in [*sorted(cuts), len(data)]:
        with path.open("ab") as file:
            file.write(data[at:cut])
        at = max(at, cut)
        seen += tail.lines()
    assert seen + tail.rest() == lines


def test_a_flood_is_thinned_and_a_long_line_cut(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"{number}\n" for number in range(1000)) + "x" * 200_000)
    tail = FileTail(path)
    assert tail.lines() == [str(number) for number in range(950, 1000)]
    assert tail.rest() == ["x" * 2000]


@pytest.mark.parametrize(
    ("text", "line"),
    [("", ""), ("\n \n", ""), ("one", "one"), ("one\ntwo\n\n", "two"), ("x" * 9000, "x" * 300)],
)
def test_the_last_line_that_says_something(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "log"
    path.write_text(text)
    assert read_last_line(path) == line
