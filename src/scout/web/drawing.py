"""Pictures as SVG. Each has a name for those who cannot see it, and the numbers of a part on hover."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from scout.web.html import Child, Html, tag


class Part(NamedTuple):
    """One part of a bar: its amount, the class that colours it, and its words on hover."""

    amount: float
    cls: str
    words: str


def draw(
    label: str, size: tuple[int, int], *children: Child, cls: str = "", scale: bool = True, role: str = "img"
) -> Html:
    """Return a picture with a name. It takes the width of its place, unless `scale` is false."""
    width, height = size
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {width} {height}",
        width=None if scale else width,
        height=None if scale else height,
        cls=f"picture {cls}".strip(),
        role=role,
        aria_label=label,
        focusable="false",
        preserveAspectRatio="none" if cls == "strip" else None,
    )


def draw_strip(label: str, parts: Iterable[Part]) -> Html:
    """Return one bar whose parts share its width by their amounts."""
    given = [part for part in parts if part.amount > 0]
    whole = sum(part.amount for part in given) or 1
    drawn = list[Html]()
    left = 0.0
    for part in given:
        wide = 1000 * part.amount / whole
        drawn.append(draw_rect((left, 0, max(wide - 2, 1), 8), f"fill-{part.cls}", part.words))
        left += wide
    return draw(label, (1000, 8), drawn, cls="strip")


def draw_progress(percent: float, words: str) -> Html:
    """Return how much of something is done."""
    done = min(max(percent, 0), 100)
    return draw_strip(words, (Part(done, "good", words), Part(100 - done, "rest", words)))


def draw_rect(box: tuple[float, float, float, float], cls: str, words: str | None = None) -> Html:
    """Return a rectangle: x, y, width and height."""
    x, y, width, height = box
    return tag(
        "rect",
        tag("title", words) if words else None,
        x=show_number(x),
        y=show_number(y),
        width=show_number(width),
        height=show_number(height),
        cls=cls,
    )


def draw_words(x: float, y: float, words: str, cls: str = "") -> Html:
    return tag("text", words, x=show_number(x), y=show_number(y), cls=cls or None)


def show_number(value: float) -> str:
    """Return a coordinate with at most one digit behind the point."""
    return f"{value:.1f}".removesuffix(".0")


def show_amount(value: float) -> str:
    """Return an amount as people write it: 950, 12.5k, 3.2M."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            shown = f"{value / size:.1f}" if value < size * 100 else f"{value / size:.0f}"
            return f"{shown.removesuffix('.0')}{unit}"
    return f"{value:.0f}"


def choose_top(values: Sequence[float]) -> float:
    """Return a round number at or above the largest value, for the top of an axis."""
    largest = max([*values, 1])
    size = 10 ** (len(str(int(largest))) - 1)
    return next(size * step for step in (1, 2, 5, 10) if size * step >= largest)
