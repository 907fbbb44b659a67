"""The design system: every token, state, icon and component, in one view."""

from scout.base.time import Time
from scout.web.html import Html, join, tag
from scout.web.icons import NAMES, draw_icon
from scout.web.layout import PageBody
from scout.web.parts import (
    Column,
    build_button,
    build_list,
    build_panel,
    quote_text,
    show_address,
    show_command,
    show_empty,
    show_facts,
    show_risk,
    show_state,
    show_time,
)
from scout.web.views.request import PageRequest

_STATES = (
    "queued",
    "running",
    "waiting",
    "completed",
    "failed",
    "cancelled",
    "online",
    "needs_attention",
    "offline",
)
_COLOURS = ("ground", "surface", "raised", "line", "text", "quiet", "accent", "good", "warn", "bad")
_SIZES = ("1", "2", "3", "4", "5", "6")
_WHEN = Time.parse("2026-01-02T08:41:00Z")


async def show_design(_: PageRequest) -> PageBody:
    """Return the page that shows each component."""
    return PageBody("Design", tag("div", *_list_panels(), cls="columns"))


def _list_panels() -> tuple[Html, ...]:
    return (
        build_panel("Colours", _show_colours(), cls="wide"),
        build_panel(
            "Spacing",
            tag("div", [tag("span", size, cls=f"space space-{size}") for size in _SIZES], cls="samples"),
            cls="wide",
        ),
        build_panel("Type", _show_type(), cls="wide"),
        build_panel(
            "States", tag("div", [show_state(one, one) for one in _STATES], cls="samples"), cls="wide"
        ),
        build_panel(
            "Risk",
            tag("div", [show_risk(one) for one in ("low", "medium", "high")], cls="samples"),
            cls="wide",
        ),
        build_panel("Icons", tag("div", [_show_icon(name) for name in NAMES], cls="samples"), cls="wide"),
        build_panel("Buttons", _show_buttons(), cls="wide"),
        build_panel("Words", _show_words(), cls="wide"),
        build_panel("List", _show_list(), cls="wide"),
        build_panel(
            "Empty",
            show_empty("Nothing is here.", "What to do first:", "scout ask @NAME 'Hello.'"),
            cls="wide",
        ),
        build_panel(
            "Text of agents",
            quote_text("two lines,\n\u202eone of them reversed <b>and marked up</b>"),
            cls="wide",
        ),
    )


def _show_colours() -> Html:
    return tag("div", [tag("span", name, cls=f"swatch swatch-{name}") for name in _COLOURS], cls="samples")


def _show_type() -> Html:
    sizes = ("large", "title", "body", "small", "mono")
    return tag(
        "div", [tag("p", f"{name}: Scout tells who works at what", cls=f"type-{name}") for name in sizes]
    )


def _show_icon(name: str) -> Html:
    return tag("span", draw_icon(name), name, cls="sample")


def _show_buttons() -> Html:
    # Reading the status changes nothing, so these can be pressed.
    shown = [
        build_button(label, "status", {}, cls=cls, icon=icon)
        for label, cls, icon in (
            ("Primary", "primary", ""),
            ("Plain", "", ""),
            ("With icon", "", "retry"),
            ("Danger", "danger", "stop"),
        )
    ]
    return tag("div", *shown, tag("button", "Disabled", cls="button", disabled=True), cls="samples")


def _show_words() -> Html:
    return show_facts(
        (
            ("Address", show_address("@arc")),
            ("Time ago", show_time(_WHEN)),
            ("Time", show_time(_WHEN, ago=False)),
            ("Command", show_command("scout ask @arc 'Review this.'")),
        )
    )


def _show_list() -> Html:
    columns = (Column("State", "c-state"), Column("Agent", "c-agent"), Column("What", "c-what"))
    rows = [
        (f"row {state}", None, (show_state(state, state), show_address(f"@{name}"), words))
        for state, name, words in (
            ("running", "arc", "Review the last commit."),
            (
                "waiting",
                "talkie",
                "A long text is cut at the end of its cell and shown whole where it is opened.",
            ),
        )
    ]
    return join(
        build_list("design", "A list", columns, rows), tag("p", "j and k move, Enter opens.", cls="quiet")
    )
