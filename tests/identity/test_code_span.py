"""Where Markdown text is code."""

import pytest

from scout.identity.code_span import CodeSpans


def code_in(text: str) -> str:
    """The characters of a text that are code."""
    spans = CodeSpans(text)
    return "".join(letter for position, letter in enumerate(text) if position in spans)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", ""),
        ("plain", ""),
        ("a `b` c", "`b`"),
        ("`b`", "`b`"),
        ("a `b` c `d` e", "`b``d`"),
        ("a ``b ` c`` d", "``b ` c``"),
        ("a `b`` c ` d", "`b`` c `"),
        ("a ``b` c", ""),
        ("a ` b", ""),
        ("a `b\nc` d", "`b\nc`"),
        ("a `b\n\nc` d", ""),
        ("a `b\n \t\r\nc` d", ""),
        ("a `b` c\n\nd `e` f", "`b``e`"),
        ("a ` b\n\nc ` d ` e", "` d `"),
        ("a ```b``` c", "```b```"),
        ("`` ` ` ``", "`` ` ` ``"),
        ("` `` `", "` `` `"),
    ],
)
def test_inline_code(text: str, code: str) -> None:
    assert code_in(text) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```\na\n```\nb", "```\na\n```\n"),
        ("~~~\na\n~~~\nb", "~~~\na\n~~~\n"),
        ("x\n```py\na\n```", "```py\na\n```"),
        ("```\na", "```\na"),  # never closed
        ("```\n", "```\n"),
        ("````\na\n```\nb\n````\nc", "````\na\n```\nb\n````\n"),
        ("```\na\n`````\nb", "```\na\n`````\n"),
        ("```\na\n~~~\nb\n```\nc", "```\na\n~~~\nb\n```\n"),
        ("~~~\na\n```\nb\n~~~~\nc", "~~~\na\n```\nb\n~~~~\n"),
        ("```\na\n``` x\nb\n```\nc", "```\na\n``` x\nb\n```\n"),
        ("```\na\n```  \t\nb", "```\na\n```  \t\n"),
        ("```\r\na\r\n```\r\nb", "```\r\na\r\n```\r\n"),
        ("``` a ` b\nc", ""),  # a backtick in the info string: no fence
        ("~~~ a ` b\nc\n~~~", "~~~ a ` b\nc\n~~~"),
        ("   ```\n   a\n   ```\nb", "   ```\n   a\n   ```\n"),
        ("\t```\n\n\ta\n\t```\nb", "\t```\n\n\ta\n\t```\n"),
        ("- ```py\n  a\n\n  b\n  ```\nc", "- ```py\n  a\n\n  b\n  ```\n"),
        ("* + 10) ~~~\na\n~~~\nc", "* + 10) ~~~\na\n~~~\n"),
        ("1. ```\na\n```\nc", "1. ```\na\n```\n"),
        ("x ```\na\n", ""),  # not at the beginning of a line
        ("``\na\n``", "``\na\n``"),  # two are inline
        ("~~\na\n~~", ""),
        ("a\n```\nb\n```\nc `d` e", "```\nb\n```\n`d`"),
        ("a ` b\n```\nc\n```\nd ` e", "```\nc\n```\n"),
        ("```\na\n```\n\n```\nb\n```", "```\na\n```\n```\nb\n```"),
        ("> ```\n> a\n> ```\nb", "```\n> a\n> ```"),
    ],
)
def test_fences(text: str, code: str) -> None:
    assert code_in(text) == code


def test_positions_outside_the_text() -> None:
    spans = CodeSpans("a `b` c")
    assert [position in spans for position in (-1, 0, 2, 4, 5, 7, 100)] == [
        False,
        False,
        True,
        True,
        False,
        False,
        False,
    ]
