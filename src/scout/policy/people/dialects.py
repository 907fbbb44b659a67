"""Blocks of text as each platform formats them.

Everything that an agent wrote is escaped where the platform has an escape. Where it has none (WhatsApp), a
mark in the text may change how a word looks, never what it says.
"""

import html
import re
from collections.abc import Callable, Iterable, Mapping

from scout.base.record import Record
from scout.model.people.chat import Markup
from scout.policy.people.markdown import Block, BlockKind, Span, Style

# An address in escaped text. Slack is told where one is, because it looks for none, nor for mentions.
_URL = re.compile(r"https?://[^\s|<>]*[\w/#=]")
_APART = "\u200b"  # between backticks, which would end a code block


class _Dialect(Record):
    """How one platform writes things. `marks` stand around a style, as its beginning and its end."""

    escape: Callable[[str], str]
    marks: Mapping[Style, tuple[str, str]]
    link: Callable[[str, str], str]
    code: Callable[[str, str], str]
    quote: Callable[[str], str]
    newline: str = "\n"
    mark_urls: Callable[[str], str] = lambda text: text


def _leave(text: str) -> str:
    return text


def _escape_html(text: str) -> str:
    return html.escape(text, quote=False)


def _name_link(text: str, url: str) -> str:
    return url if text == url else f"{text} ({url})"


def _link_html(text: str, url: str) -> str:
    return f'<a href="{html.escape(url)}">{text}</a>'


def _code_html(text: str, language: str) -> str:
    inner = f'<code class="language-{html.escape(language)}">{text}</code>' if language else text
    return f"<pre>{inner}</pre>"


def _code_matrix(text: str, language: str) -> str:
    named = f' class="language-{html.escape(language)}"' if language else ""
    return f"<pre><code{named}>{text}</code></pre>"


def _fence(text: str, _: str) -> str:
    return f"```\n{text}\n```"


def _quote_lines(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


def _quote_html(text: str) -> str:
    return f"<blockquote>{text}</blockquote>"


def _tags(**names: str) -> dict[Style, tuple[str, str]]:
    return {Style(style): (f"<{name}>", f"</{name}>") for style, name in names.items()}


_SIGNS = {
    Style.BOLD: ("*", "*"),
    Style.ITALIC: ("_", "_"),
    Style.STRIKE: ("~", "~"),
    Style.CODE: ("`", "`"),
}
_DIALECTS = {
    Markup.PLAIN: _Dialect(
        escape=_leave, marks={}, link=_name_link, code=lambda text, _: text, quote=_quote_lines
    ),
    Markup.TELEGRAM: _Dialect(
        escape=_escape_html,
        marks=_tags(bold="b", italic="i", strike="s", code="code"),
        link=_link_html,
        code=_code_html,
        quote=_quote_html,
    ),
    Markup.MATRIX: _Dialect(
        escape=_escape_html,
        marks=_tags(bold="strong", italic="em", strike="del", code="code"),
        link=_link_html,
        code=_code_matrix,
        quote=_quote_html,
        newline="<br>",
    ),
    Markup.SLACK: _Dialect(
        escape=_escape_html,
        marks=_SIGNS,
        link=lambda text, url: f"<{_escape_html(url)}|{text}>",
        code=_fence,
        quote=_quote_lines,
        mark_urls=lambda text: _URL.sub(r"<\g<0>>", text),
    ),
    Markup.WHATSAPP: _Dialect(escape=_leave, marks=_SIGNS, link=_name_link, code=_fence, quote=_quote_lines),
}


def render_blocks(blocks: Iterable[Block], markup: Markup) -> str:
    """Return blocks in the markup of a platform."""
    dialect = _DIALECTS[markup]
    pieces: list[str] = []
    before: Block | None = None
    for block in blocks:
        if before is not None:
            pieces.append(_separate(before, block, dialect))
        pieces.append(_render_block(block, dialect))
        before = block
    return "".join(pieces)


def _separate(before: Block, block: Block, dialect: _Dialect) -> str:
    is_list = before.kind is block.kind is BlockKind.ITEM
    return dialect.newline if is_list else dialect.newline * 2


def _render_block(block: Block, dialect: _Dialect) -> str:
    if block.kind is BlockKind.CODE:
        return dialect.code(_write_code(block.spans[0].text, dialect), block.language)
    text = "".join(_render_span(span, dialect) for span in block.spans)
    return dialect.quote(text) if block.kind is BlockKind.QUOTE else text


def _render_span(span: Span, dialect: _Dialect) -> str:
    is_code = Style.CODE in span.styles
    text = _write_code(span.text, dialect) if is_code else dialect.escape(span.text)
    if not is_code and not span.link:
        text = dialect.mark_urls(text)
    text = text.replace("\n", dialect.newline)
    for style in Style:
        if style in span.styles and style in dialect.marks:
            text = _wrap(text, *dialect.marks[style])
    return dialect.link(text, span.link) if span.link else text


def _wrap(text: str, begin: str, end: str) -> str:
    """Put marks around the words; at the edges of a text, signs are no marks beside a space."""
    if begin.startswith("<"):
        return f"{begin}{text}{end}"
    bare = text.strip()
    if not bare or "\n" in bare:
        return text
    left = text[: len(text) - len(text.lstrip())]
    right = text[len(text.rstrip()) :]
    return f"{left}{begin}{bare}{end}{right}"


def _write_code(text: str, dialect: _Dialect) -> str:
    """Return code as text; backticks that would end it are taken apart."""
    if dialect.code is _fence:
        text = text.replace("``", f"`{_APART}`").replace("``", f"`{_APART}`")
    return dialect.escape(text)
