"""HTML as values. Text is escaped here and nowhere else, so no view can send markup of an agent."""

import html
from collections.abc import Iterable

from scout.base.visible import make_lines_visible, make_visible


class Html(str):
    """Markup that is safe to send."""

    __slots__ = ()


class Element(Html):
    """Markup of exactly one element."""

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


def tag(name: str, /, *children: Child, **attributes: Attribute) -> Element:
    """Return an element. `cls` is its class; an underscore in an attribute's name is a hyphen.

    True writes the attribute without a value; False and None leave it out.
    """
    written = "".join(_write_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Element(f"<{name}{written}>")
    return Element(f"<{name}{written}>{''.join(_flatten(children))}</{name}>")


def extend(element: Element, cls: str, **attributes: Attribute) -> Element:
    """Return an element with another class in front of its own, and more attributes."""
    end = element.index(">")  # values are escaped, so this ends the opening tag
    name, _, rest = element[:end].partition(" ")
    own, marked = (f" {rest}" if rest else ""), ' class="'
    own = own.replace(marked, f"{marked}{cls} ", 1) if marked in own else f'{marked}{cls}"{own}'
    written = "".join(_write_attribute(key, value) for key, value in attributes.items())
    return Element(f"{name}{own}{written}{element[end:]}")


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
