"""No text takes the parsers more than linear time: 100 kB at most 20 times as long as 10 kB."""

import time
from collections.abc import Callable
from contextlib import suppress
from statistics import median

import pytest

from scout.base.refusal import Refused
from scout.identity.address import fold
from scout.identity.branch import BirthBranch, check_slug
from scout.identity.code_span import CodeSpans
from scout.identity.grammar import parse_dimensions, parse_handle
from scout.identity.lexer import lex
from scout.identity.mention import find_mentions
from scout.identity.path import AgentPath
from scout.identity.route import find_route

SMALL, LARGE = 10_000, 100_000
FLOOR = 0.001  # seconds; below it the clock and the machine say more than the code


def runs_of_backticks(size: int) -> str:
    """Runs of many different lengths, none of which closes another."""
    return " ".join("`" * length for length in range(1, int((2 * size) ** 0.5)))


def repeat(unit: str, start: str = "") -> Callable[[int], str]:
    return lambda size: (start + unit * size)[:size]


TEXTS: dict[str, Callable[[int], str]] = {
    "words": repeat("word "),
    "accents": lambda size: "\u0301" * (size // 2) + "\u0323" * (size // 2),
    "accented mention": lambda size: "@a" + "\u0301\u0323" * (size // 2),
    "right to left": repeat("\u202e\u05d0"),
    "surrogates": repeat("\ud800"),
    "runs of backticks": runs_of_backticks,
    "backticks": repeat("`"),
    "backtick pairs": repeat("` `` ``` "),
    "ats": repeat("@"),
    "mentions": repeat("@hudson.main "),
    "bad mentions": repeat("@hudson.a.b "),
    "mention with dots": repeat("a.", "@"),
    "quotes": repeat('"'),
    "open quotes": repeat('@hudson:"open '),
    "colons and quotes": repeat(':"', "@a"),
    "dots": repeat("."),
    "branches": repeat(".a", "main"),
    "locks": repeat(".lock"),
    "slashes": repeat("/"),
    "suffixes": repeat("/sub/0", "/u/t"),
    "relative suffixes": repeat("/sub/0", "."),
    "zeros": repeat("0", "/u/t/sub/"),
    "arrows": repeat(">"),
    "operators": repeat(">> "),
    "prompts": repeat(">>> "),
    "operator and spaces": repeat(" ", ">>"),
    "brackets": repeat("("),
    "brackets and a mention": lambda size: "([" * (size // 2) + "@a",
    "newlines": repeat("\n"),
    "blank lines": repeat("\n \t"),
    "spaces": repeat(" "),
    "fences": repeat("```\n"),
    "open fences": repeat("~~~~\n~~~\n"),
    "lists": repeat("- "),
    "braces": repeat("{"),
    "objects": repeat('{"a":'),
    "number": lambda size: '{"definitionId":' + "1" * size + "}",
    "definition": lambda size: '{"definitionId":"' + "é" * size + '"}',
}

READS_ALL = ["words", "right to left", "surrogates"]
MARKDOWN = [
    *["runs of backticks", "backticks", "backtick pairs", "newlines", "blank lines", "fences", "open fences"],
    *["lists", "spaces"],
]
TYPED = [
    *["words", "ats", "quotes", "dots", "slashes", "arrows", "operator and spaces", "colons and quotes"],
    *["accented mention", "mention with dots"],
]

CASES: list[tuple[Callable[[str], object], list[str]]] = [
    (fold, [*READS_ALL, "accents", "quotes", "mentions"]),
    (check_slug, [*READS_ALL, "accents"]),
    (lambda text: parse_dimensions({"definitionId": text}), [*READS_ALL, "accents", "dots"]),
    (lex, [*TYPED, "relative suffixes", "suffixes", "braces", "objects", "number", "definition"]),
    (lambda text: lex(f"project:{text}"), [*READS_ALL, "slashes"]),
    (lambda text: lex(f"alias:{text}"), [*READS_ALL, "accents"]),
    (lambda text: lex(text, "main"), ["branches", "locks", "dots"]),
    (parse_handle, TYPED),
    (AgentPath.parse, ["slashes", "suffixes", "zeros", "dots", "words", "accents"]),
    (lambda text: BirthBranch.parse(text, "main"), ["branches", "locks", "dots", "words", "accents", "ats"]),
    (CodeSpans, MARKDOWN),
    (
        find_mentions,
        [
            *["ats", "mentions", "bad mentions", "mention with dots", "quotes", "open quotes"],
            *["colons and quotes", "brackets", "brackets and a mention", "accented mention"],
            *["runs of backticks", "right to left"],
        ],
    ),
    (find_route, ["arrows", "operators", "prompts", "operator and spaces", "backtick pairs"]),
]


def seconds(function: Callable[[str], object], text: str) -> float:
    """The median of five, in this process's own time: a busy machine interrupts long runs more often."""
    taken: list[float] = []
    for _ in range(5):
        begin = time.process_time()
        with suppress(Refused):
            function(text)
        taken.append(time.process_time() - begin)
    return median(taken)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "name"),
    [(function, name) for function, names in CASES for name in names],
    ids=[f"{index}-{name}" for index, (_, names) in enumerate(CASES) for name in names],
)
def test_ten_times_the_text_takes_at_most_twenty_times_as_long(
    function: Callable[[str], object], name: str
) -> None:
    small, large = TEXTS[name](SMALL), TEXTS[name](LARGE)
    assert len(large) >= 9 * len(small)
    # A busy machine may spoil one measurement; a parser that is not linear spoils all of them.
    assert any(seconds(function, large) <= 20 * max(seconds(function, small), FLOOR) for _ in range(3)), name
