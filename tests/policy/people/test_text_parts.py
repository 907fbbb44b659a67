"""Texts for chats: whatever an agent writes arrives whole and in order, and nothing of it steers the platform."""

import re
import time
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.model.people.chat import Markup
from scout.policy.people.markdown import Block, BlockKind, Span, Style, parse_markdown
from scout.policy.people.text_parts import FormattedPart, add_tail, format_text, measure

# Everything that can be a mark, and what a mark is shown as.
_MARKS = re.compile(r"[\s*_~`#>|\-+\[\]()\\•\u200b]|\d+[.)]|js")
PIECES = st.sampled_from(
    [
        "**", "*", "_", "__", "~~", "`", "``", "```\n", "\n```\n", "\n~~~\n", "# ", "\n## ", "\n- ", "\n1. ", "> ",
        "\n> ", "\n\n", "\n", " ", "\\", "[", "](https://a.example/x?a=1&b=2)", "](javascript:x)", "|a|b|\n|-|-|\n",
        "<b>", "</b>", "<script>", "&amp;", "&", "<!channel>", "<@U1>", "snake_case", "word", "a", "é", "語",
        "👩\u200d💻", "\n```js title=1\n",
    ]
)  # fmt: skip
URL = re.compile(r"https://a\.example/x\?a=1&b=")
TEXTS = st.lists(PIECES, max_size=60).map("".join)
HTML_TAGS = {
    Markup.TELEGRAM: {"b", "i", "s", "code", "pre", "a", "blockquote"},
    Markup.MATRIX: {"strong", "em", "del", "code", "pre", "a", "blockquote", "br"},
}


class Page(HTMLParser):
    """What a browser would read: tags that match, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        allowed = {"a": "href", "code": "class"}.get(tag)
        assert {name for name, _ in attrs} <= {allowed}
        assert all((value or "").startswith(("http", "language-")) for _, value in attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def essence(text: str) -> str:
    """The characters that carry meaning, in order."""
    return _MARKS.sub("", text)


def joined(parts: tuple[FormattedPart, ...]) -> str:
    return "".join(part.plain for part in parts)


@given(TEXTS, st.sampled_from(list(Markup)), st.integers(64, 400))
def test_nothing_is_lost_or_reordered_and_every_part_fits(text: str, markup: Markup, limit: int) -> None:
    parts = format_text(text, markup, limit)
    assert essence(joined(parts)) == essence(text)
    assert all(part.text and part.plain for part in parts)
    assert all(measure(part.text) <= limit and measure(part.plain) <= limit for part in parts)


@given(st.text(), st.sampled_from([Markup.TELEGRAM, Markup.MATRIX]), st.integers(64, 400))
def test_any_text_becomes_html_that_says_the_same(text: str, markup: Markup, limit: int) -> None:
    for part in format_text(text, markup, limit):
        page = Page(part.text)
        assert page.tags <= HTML_TAGS[markup]
        assert essence(page.text) == essence(part.plain)


@given(TEXTS, st.sampled_from([Markup.TELEGRAM, Markup.MATRIX]), st.integers(64, 400))
def test_hostile_marks_become_html_that_says_the_same(text: str, markup: Markup, limit: int) -> None:
    for part in format_text(text, markup, limit):
        page = Page(part.text)
        assert page.tags <= HTML_TAGS[markup]
        assert URL.sub("", essence(page.text)) == URL.sub("", essence(part.plain))  # it may be an attribute


@given(TEXTS)
def test_slack_is_told_of_nobody(text: str) -> None:
    for part in format_text(text, Markup.SLACK, 400):
        told = re.sub(r"<https://a\.example/x\?a=1&amp;b=2\|", "", part.text)
        assert not re.search(r"<[!@#]|<(?!https)", told)


MARKDOWN = """\
# Done: *three* things

It **works** with `a_b` and _some_ ~~noise~~, see [the log](https://a.example/x?a=1&b=2).

- first
  - second & <third>
1. one

> said
> before

```python
if a < b:
    print("**no**")
```

| a | b |
|---|---|
| 1 | 2 |
"""

RENDERED = {
    Markup.PLAIN: """\
Done: three things

It works with a_b and some noise, see the log (https://a.example/x?a=1&b=2).

• first
  • second & <third>
1. one

> said
> before

if a < b:
    print("**no**")

| a | b |
|---|---|
| 1 | 2 |""",
    Markup.TELEGRAM: """\
<b>Done: </b><i><b>three</b></i><b> things</b>

It <b>works</b> with <code>a_b</code> and <i>some</i> <s>noise</s>, see \
<a href="https://a.example/x?a=1&amp;b=2">the log</a>.

• first
  • second &amp; &lt;third&gt;
1. one

<blockquote>said
before</blockquote>

<pre><code class="language-python">if a &lt; b:
    print("**no**")</code></pre>

<pre>| a | b |
|---|---|
| 1 | 2 |</pre>""",
    Markup.MATRIX: """\
<strong>Done: </strong><em><strong>three</strong></em><strong> things</strong><br><br>\
It <strong>works</strong> with <code>a_b</code> and <em>some</em> <del>noise</del>, see \
<a href="https://a.example/x?a=1&amp;b=2">the log</a>.<br><br>• first<br>  • second &amp; &lt;third&gt;<br>1. one\
<br><br><blockquote>said<br>before</blockquote><br><br>\
<pre><code class="language-python">if a &lt; b:
    print("**no**")</code></pre><br><br><pre><code>| a | b |
|---|---|
| 1 | 2 |</code></pre>""",
    Markup.SLACK: """\
*Done:* _*three*_ *things*

It *works* with `a_b` and _some_ ~noise~, see <https://a.example/x?a=1&amp;b=2|the log>.

• first
  • second &amp; &lt;third&gt;
1. one

> said
> before

```
if a &lt; b:
    print("**no**")
```

```
| a | b |
|---|---|
| 1 | 2 |
```""",
    Markup.WHATSAPP: """\
*Done:* _*three*_ *things*

It *works* with `a_b` and _some_ ~noise~, see the log (https://a.example/x?a=1&b=2).

• first
  • second & <third>
1. one

> said
> before

```
if a < b:
    print("**no**")
```

```
| a | b |
|---|---|
| 1 | 2 |
```""",
}


@pytest.mark.parametrize("markup", list(Markup))
def test_each_platform_gets_its_markup(markup: Markup) -> None:
    (part,) = format_text(MARKDOWN, markup, 4096)
    assert part.text == RENDERED[markup]
    assert part.plain == RENDERED[Markup.PLAIN]


def test_what_is_no_mark_stays_as_it_was_typed() -> None:
    for text in (
        "2 * 3 * 4",
        "snake_case_name",
        "a ** b",
        "`open",
        "**open",
        "[x](javascript:alert)",
        "~",
        "\\n",
    ):
        (part,) = format_text(text, Markup.TELEGRAM, 4096)
        assert part.text == text
    assert format_text(r"\*as is\*", Markup.TELEGRAM, 4096)[0].text == "*as is*"
    assert format_text("***both***", Markup.TELEGRAM, 4096)[0].text == "<i><b>both</b></i>"
    assert format_text("**a *b** c*", Markup.TELEGRAM, 4096)[0].text == "<b>a *b</b> c*"
    assert (
        format_text("[https://a.example](https://a.example)", Markup.PLAIN, 99)[0].text == "https://a.example"
    )


def test_signs_do_not_mark_several_lines() -> None:
    assert format_text("**a\nb**", Markup.SLACK, 99)[0].text == "a\nb"


def test_an_empty_text_is_no_message() -> None:
    assert format_text("\n \n", Markup.TELEGRAM, 4096) == ()


def test_code_is_one_span_without_styles() -> None:
    assert parse_markdown("~~~\n**x**\n```\n~~~~") == (
        Block(kind=BlockKind.CODE, spans=(Span(text="**x**\n```"),)),
    )
    (block,) = parse_markdown("**a `b` c**")
    assert [one.styles for one in block.spans] == [{Style.BOLD}, {Style.CODE}, {Style.BOLD}]


def test_backticks_do_not_end_a_code_block() -> None:
    (part,) = format_text("~~~\na ``` b\n~~~", Markup.SLACK, 400)
    assert part.text == "```\na `\u200b`\u200b` b\n```"


def test_a_text_is_split_between_paragraphs() -> None:
    first, second = "one " * 10, "two " * 10
    parts = format_text(f"{first}\n\n{second}\n\nthree", Markup.PLAIN, 64)
    assert [part.text for part in parts] == [first, f"{second}\n\nthree"]


def test_long_code_is_closed_and_opened_again() -> None:
    lines = [f"line {number:03}" for number in range(30)]
    text = "\n".join(["```sh", *lines, "```"])
    parts = format_text(text, Markup.TELEGRAM, 100)
    assert len(parts) > 2
    assert all(part.text.startswith('<pre><code class="language-sh">line') for part in parts)
    assert all(part.text.endswith("</code></pre>") for part in parts)
    assert "\n".join(part.plain for part in parts).split("\n") == lines


def test_a_long_paragraph_is_cut_at_lines_then_sentences_then_words_then_anywhere() -> None:
    def cut(text: str) -> list[str]:
        return [part.plain for part in format_text(text, Markup.PLAIN, 64)]

    assert cut("a" * 40 + ". b\n" + "c" * 40) == ["a" * 40 + ". b\n", "c" * 40]
    assert cut("a" * 40 + ". b " + "c" * 40) == ["a" * 40 + ". ", "b " + "c" * 40]
    assert cut("a" * 40 + " " + "c" * 40) == ["a" * 40 + " ", "c" * 40]
    assert cut("a" * 100) == ["a" * 64, "a" * 36]
    assert cut("a" * 63 + "e\u0301" + "b" * 9) == ["a" * 63, "e\u0301" + "b" * 9]
    assert cut("👩\u200d💻" * 20)[0] == "👩\u200d💻" * 12  # two units each, and the joiner
    styled = format_text("**" + "a" * 100 + "**", Markup.TELEGRAM, 64)
    assert [part.text for part in styled] == [f"<b>{'a' * 57}</b>", f"<b>{'a' * 43}</b>"]


HOSTILE = [
    "**", "`", "` ``", "[", "*a", "- x\n", "a", "> a\n", "```\n", "_a _b", "***a", "|a|\n", "**a\n", "[a](https://b) ",
]  # fmt: skip


def cost(text: str) -> float:
    """The processor time of the faster of two runs."""
    times: list[float] = []
    for _ in range(2):
        began = time.process_time()
        parts = format_text(text, Markup.TELEGRAM, 4096)
        times.append(time.process_time() - began)
        assert URL.sub("", essence(joined(parts))) == URL.sub("", essence(text))
    return min(times)


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_texts_cost_no_more_than_their_length(piece: str) -> None:
    short = cost(piece * (8000 // len(piece)))
    assert cost(piece * (32_000 // len(piece))) < 10 * short + 0.1  # by the square it would be 16 times


@pytest.mark.parametrize("markup", Markup)
def test_a_tail_stands_below_the_last_message_if_it_fits(markup: Markup) -> None:
    parts = format_text("One.", markup, 4000)
    (joined,) = add_tail(parts, "Two.", markup, 4000)
    assert joined.plain == "One.\n\nTwo."
    assert add_tail((), "Two.", markup, 4000) == format_text("Two.", markup, 4000)
    assert add_tail(parts, "", markup, 4000) == parts
    long = format_text("x" * 3990, markup, 4000)
    assert [part.plain for part in add_tail(long, "A longer tail.", markup, 4000)][-1] == "A longer tail."


def test_slack_is_told_where_an_address_is() -> None:
    text = "see https://example.org/a?b=1&c=2. `https://code` [https://x.org](https://y.org)"
    (part,) = format_text(text, Markup.SLACK, 400)
    assert part.text == (
        "see <https://example.org/a?b=1&amp;c=2>. `https://code` <https://y.org|https://x.org>"
    )
