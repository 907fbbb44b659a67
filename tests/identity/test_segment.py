"""Folding a segment."""

import pytest

from scout.identity.address import fold, fold_segment, is_folded
from tests.identity.refusals import NO_READING, describe, expect_malformed

FOLDED = [
    ("Super Refactor", "super-refactor"),
    ("Mini.local", "mini-local"),
    ("GPT-5.5", "gpt-5-5"),
    ("--a__b--", "a-b"),
    ("feature/X", "feature-x"),
    ("arc", "arc"),
    ("a-b-c", "a-b-c"),
    ("0", "0"),
    ("A1-Z9", "a1-z9"),
    ("azAZ09", "azaz09"),
    ("\t a \n\n b \x00", "a-b"),
    ("@arc", "arc"),
    ("", ""),
    ("---", ""),
    (" ", ""),
]

NOT_ASCII = [
    ("Héllo", "hello"),
    ("he\u0301llo", "hello"),
    ("ÀÉÎÕÜ", "aeiou"),
    ("İstanbul", "istanbul"),
    ("ﬁx", "fix"),  # a ligature is two letters
    ("ＡＢ１", "ab1"),  # full width
    ("x²", "x2"),
    ("½", "12"),  # the fraction slash is not ASCII and goes
    ("㎓", "ghz"),
    ("a日b", "ab"),
    ("日本", ""),
    ("ß", ""),
    ("a\u00a0b", "a-b"),  # NFKD makes a space of it
    ("a\u202eb\u200f", "ab"),
    ("\ud800x", "x"),
    ("😀", ""),
    ("é" * 200, "e" * 200),
    ("xe\u0301" * 70, "xe" * 70),
    ("a\u0301\u0323 " * 60, "-".join("a" * 60)),
]


@pytest.mark.rows("R1.2-6", "R1.2-7", "R1.2-8", "R1.2-10")
@pytest.mark.parametrize(("text", "folded"), FOLDED)
def test_fold_lowers_and_joins(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.rows("R1.2-5")
@pytest.mark.parametrize(("text", "folded"), NOT_ASCII)
def test_fold_decomposes_and_drops_what_is_not_ascii(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(("text", "folded"), [case for case in FOLDED + NOT_ASCII if case[1]])
def test_a_segment_is_the_folded_text(text: str, folded: str) -> None:
    assert fold_segment(text) == folded
    assert fold_segment(text.encode("utf-8", "ignore")) == folded


@pytest.mark.rows("R1.2-9")
@pytest.mark.parametrize("text", [case[0] for case in FOLDED + NOT_ASCII if not case[1]])
def test_a_segment_that_folds_to_nothing_is_refused(text: str) -> None:
    assert describe(expect_malformed(fold_segment, text)) == (
        0,
        "no letter or digit in the name",
        "a letter or a digit",
        NO_READING,
    )
    assert expect_malformed(fold_segment, text).text == text


@pytest.mark.parametrize("text", ["a", "0", "arc", "a-b", "a1-2b-c", "9-9"])
def test_folded_text_is_recognised(text: str) -> None:
    assert is_folded(text)
    assert fold(text) == text


@pytest.mark.parametrize("text", ["", "-", "-a", "a-", "a--b", "A", "a.b", "a b", "a_b", "é", "a\n", "１"])
def test_text_that_is_not_folded_is_recognised(text: str) -> None:
    assert not is_folded(text)
