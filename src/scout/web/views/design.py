"""The design system: every token, state, icon and component, in one view."""

from scout.base.refusal import Remedy
from scout.web.drawing import Part, draw_progress, draw_strip
from scout.web.html import Child, Html, tag
from scout.web.icons import NAMES, draw_icon
from scout.web.layout import PageBody
from scout.web.mesh_picture import draw_mesh
from scout.web.parts import (
    Column,
    build_button,
    build_copy,
    build_list,
    build_pager,
    build_panel,
    build_remedy,
    cut,
    link_conversation,
    link_flight,
    quote_text,
    shorten,
    show_address,
    show_command,
    show_empty,
    show_facts,
    show_problem,
    show_remedy,
    show_risk,
    show_state,
    show_time,
)
from scout.web.past import build_notice
from scout.web.slider import PastPlace, build_slider
from scout.web.timeline import draw_timeline, list_segments
from scout.web.tree_picture import draw_tree
from scout.web.views import design_samples as samples
from scout.web.views.agents import show_settings_form
from scout.web.views.flight import show_patch
from scout.web.views.inbox import build_bulk
from scout.web.views.items import show_item
from scout.web.views.mesh import show_steps
from scout.web.views.request import PageRequest
from scout.web.views.session import build_transcript
from scout.web.views.talk import build_ask_box, show_post
from scout.web.views.usage import show_days, show_group, show_table, show_totals
from scout.web.views.why import list_decisions
from scout.web.views.work import build_new, show_board

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
_FILLS = ("quiet", "accent", "warn", "review", "good", "bad", "rest")
_SIZES = ("1", "2", "3", "4", "5", "6")


async def show_design(_: PageRequest) -> PageBody:
    """Return the page that shows each component."""
    return PageBody("Design", tag("div", *_list_panels(), cls="columns"))


def _list_panels() -> tuple[Html, ...]:
    shown: tuple[tuple[str, Child], ...] = (
        ("Colours", _show_colours()),
        ("Spacing", [tag("span", size, cls=f"space space-{size}") for size in _SIZES]),
        ("Type", _show_type()),
        ("States", [show_state(one, one) for one in _STATES]),
        ("Risk", [show_risk(one) for one in ("low", "medium", "high")]),
        ("Icons", [_show_icon(name) for name in NAMES]),
        ("Buttons", _show_buttons()),
        ("Words", _show_words()),
        ("List", _show_list()),
        ("Empty", show_empty("Nothing is here.", "What to do first:", "scout ask @NAME 'Hello.'")),
        ("Text of agents", quote_text("two lines,\n\u202eone of them reversed <b>and marked up</b>")),
        ("Problems of the machine", _show_problems()),
        ("Items that need a person", _show_items()),
        ("Work", _show_work()),
        (
            "Conversation",
            [tag("div", show_post(samples.MESSAGE, samples.SEEN), cls="thread"), build_ask_box("@arc")],
        ),
        ("Output", build_transcript(samples.TAIL, live=False)),
        ("Changes", show_patch(samples.PATCH)),
        ("Timeline", draw_timeline(list_segments(samples.WHY.steps, samples.WHEN.plus(80)))),
        ("Why", list_decisions(samples.WHY)),
        ("Bars", _show_bars()),
        ("Usage plots", _show_usage()),
        ("Agent tree", tag("div", draw_tree(samples.TREE), _show_indents(), cls="tree-box")),
        ("Mesh", tag("div", draw_mesh(samples.MESH, samples.NODES), cls="tree-box")),
        ("First steps", show_steps()),
        ("Moments", _show_time()),
        ("Forms", _show_forms()),
        ("Dialogs and messages", _show_dialog()),
    )
    return tuple(build_panel(title, tag("div", body, cls="samples"), cls="wide") for title, body in shown)


def _show_problems() -> Html:
    fold = tag("details", tag("summary", "1 hint"), show_problem(samples.HINT), cls="hints", open=True)
    return tag("div", show_problem(samples.PROBLEM), fold, cls="panel wide problems")


def _show_items() -> Html:
    title = tag("h3", "@arc", cls="group-title")
    return tag(
        "div",
        build_bulk(shown=True),
        title,
        [show_item(one, selectable=True) for one in samples.ITEMS],
        cls="group",
    )


def _show_work() -> Html:
    moves = tag("div", build_button("Start", "status", {}), cls="card-foot card item-moves")
    return tag("div", tag("div", build_new(), cls="toolbar"), moves, show_board(samples.WORK, filtered=False))


def _show_bars() -> Html:
    parts = [Part(number, name, f"{name}: {number}") for number, name in enumerate((*_FILLS, "none"), 1)]
    dots = [tag("span", tag("span", cls=f"dot dot-{name}"), name, cls="legend-mark") for name in _FILLS]
    progress = tag("div", draw_progress(40, "Progress: 40 %"), cls="progress")
    return tag("div", draw_strip("Every colour", parts), tag("p", dots, cls="legend"), progress)


def _show_usage() -> Html:
    return tag(
        "div",
        show_totals(samples.USAGE),
        show_days(samples.USAGE),
        show_group("Harness", samples.USAGE),
        show_table("Day", samples.USAGE.trend),
    )


def _show_indents() -> Html:
    return tag("div", [tag("p", f"level {one}", cls=f"indent-{one}") for one in range(1, 6)])


def _show_time() -> Html:
    place = PastPlace("/", {})
    moments = tag("ol", tag("li", show_time(samples.WHEN, ago=False)), cls="times")
    past = tag("fieldset", tag("button", "Approve", cls="button"), disabled=True, cls="past")
    notice = build_notice("You see Scout as it was.", place)
    return tag("div", notice, build_slider(samples.ACTIVITY, place, samples.WHEN), past, moments)


def _show_forms() -> Html:
    tabs = tag("nav", tag("a", "Chosen", href="#forms", aria_current="true"), cls="tabs", aria_label="Tabs")
    option = tag("div", tag("p", tag("strong", "Merge: "), "one choice of several"), cls="option")
    settings = show_settings_form("agt_1", {})
    warning = tag("p", "What is wrong with it.", cls="warning")
    columns = tag("div", tag("div", cls="panel third"), tag("div", cls="panel two-thirds"), cls="columns")
    return tag("div", tabs, build_pager("/design", {}, "x"), option, settings, warning, columns)


def _show_dialog() -> Html:
    """Return what the page's modules build: the same classes, standing still."""
    close = tag("button", "✕", type="button", cls="icon-button", aria_label="Close")
    head = tag("div", tag("strong", "Keys"), close, cls="dialog-head")
    keys = tag("dl", tag("dt", tag("kbd", "?")), tag("dd", "List the keys"), cls="key-list")
    field = tag("input", cls="input palette-input", placeholder="An agent, a flight", aria_label="Find")
    option = tag("li", tag("span", "@arc"), tag("span", "agent, online", cls="hint"))
    found = tag("div", field, tag("ul", option, cls="options"), cls="complete")
    toast = tag("div", "Approved.", cls="toast")
    kept = tag("div", "Run this on the other machine.", show_command("scout mesh join"), cls="toast")
    remedies = tag("div", tag("button", "scout up", type="button", cls="button primary"), cls="remedies")
    refused = tag("div", tag("p", "The daemon does not answer.", cls="refusal"), remedies, cls="refused")
    announced = tag("button", "3 new, show", type="button", cls="announce")
    return tag("div", head, tag("div", keys, found, toast, kept, refused, announced, cls="dialog-body"))


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
    restart = samples.PROBLEM.remedies[0]
    return show_facts(
        (
            ("Address", show_address("@arc")),
            ("Path", tag("span", "/me/agent/arc", cls="path")),
            ("Name", tag("span", "@arc", cls="mono")),
            ("Time ago", show_time(samples.WHEN)),
            ("Time", show_time(samples.WHEN, ago=False)),
            ("Command", show_command("scout ask @arc 'Review this.'")),
            ("Copy", build_copy("scout up")),
            ("Remedy", show_remedy(restart)),
            (
                "Remedy to press",
                build_remedy(Remedy(operation="resume", parameters={}, why="start turns again")),
            ),
            ("Flight", link_flight("flt_01m7pfr5ase0680agefkqnv0gv")),
            ("Conversation", link_conversation("cnv_01m7pfr5ase0680agefkqnv0gv", "with @arc")),
            ("Id", shorten("flt_01m7pfr5ase0680agefkqnv0gv")),
            ("Cut", cut("A long text is cut at the end.", 20)),
            ("Badge", tag("span", "3", cls="badge")),
            ("Plain link", tag("a", "opens a record", href="#words", cls="plain")),
        )
    )


def _show_list() -> Html:
    columns = (
        Column("State", "c-state"),
        Column("Agent", "c-agent"),
        Column("What", "c-what"),
        Column("Why", "c-why c-wide"),
        Column("Number", "c-number"),
        Column("When", "c-when"),
        Column("Actions", "c-act"),
    )
    rows = [
        (
            f"row {state}",
            None,
            (
                show_state(state, state),
                show_address(f"@{name}"),
                tag("a", words, cls="main-link", href="#list"),
                "a reason",
                "42",
                show_time(samples.WHEN),
                build_button("Stop", "status", {}),
            ),
        )
        for state, name, words in (
            ("running", "arc", "Review the last commit."),
            (
                "waiting",
                "talkie",
                "A long text is cut at the end of its cell and shown whole where it is opened.",
            ),
        )
    ]
    listed = tag("div", build_list("design", "A list", columns, rows), cls="sheet")
    nothing = tag(
        "div", build_list("nothing", "Empty", columns, (), empty=show_empty("None.", "")), cls="sheet"
    )
    return tag("div", listed, tag("p", "j and k move, Enter opens.", cls="quiet"), nothing)
