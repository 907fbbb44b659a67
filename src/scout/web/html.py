"""HTML as values. Text is escaped here and nowhere else, so no view can send markup of an agent."""

import html
from collections.abc import Iterable

from scout.base.visible import make_lines_visible, make_visible


class Html(str):
    """Markup that is safe to send."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]
Attribute = str | int | bool | None

EMPTY = Html("")
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})
# Attributes that people read or hear: what could hide in them is visible, as in text.
_READ = frozenset({"aria-label", "title", "alt", "placeholder", "data-confirm", "data-done", "data-title"})


def text(value: object) -> Html:
    """Return a text on one line, with every character visible that could reorder it or hide in it."""
    return value if isinstance(value, Html) else Html(html.escape(make_visible(str(value)), quote=False))


def lines(value: str) -> Html:
    """Return a text in its own lines, each with such characters visible."""
    return Html(html.escape(make_lines_visible(value.expandtabs(4)), quote=False))


def join(*children: Child) -> Html:
    """Return children one after the other. Texts are escaped, `None` is left out."""
    return Html("".join(_flatten(children)))


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """Return an element. `cls` is its class; an underscore in an attribute's name is a hyphen.

    True writes the attribute without a value; False and None leave it out.
    """
    written = "".join(_write_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{''.join(_flatten(children))}</{name}>")


def _flatten(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if child is None:
            continue
        if isinstance(child, str | int):
            yield text(child)
        else:
            yield from _flatten(child)


def _write_attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = "class" if key == "cls" else key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    words = make_visible(str(value)) if name in _READ else str(value)
    return f' {name}="{html.escape(words)}"'
