"""The frame around every view: head, top bar, navigation, and the headers of a document."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from scout.model.moment import Moment
from scout.web.html import Child, Html, join, tag
from scout.web.icons import draw_icon
from scout.web.parts import build_button, show_command

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)

HEADERS = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", POLICY.encode()),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
)


class NavLink(NamedTuple):
    """One view in the navigation. `key` opens it after `g`. `query`: the moment that is kept, if any.

    Views of one `group` stand together, under its name.
    """

    path: str
    title: str
    icon: str
    key: str
    group: str = ""
    query: str = ""


class PageBody(NamedTuple):
    """What a view returns. `families`: the event types that change it, by their beginnings.

    `moment`: it shows the past. `read_only`: nothing in it changes anything, so nothing is disabled then.
    """

    title: str
    main: Html
    families: Sequence[str] = ()
    heading: Child = None
    actions: Child = None
    status: int = 200
    moment: Moment | None = None
    read_only: bool = False


class Frame(NamedTuple):
    """What every document shows besides its view. `secret` is sent once, to the first document.

    `banner`: a notice above the view, if it shows the past.
    """

    path: str
    needs: int
    seq: int
    paused: str | None
    who: str
    token_id: str
    secret: str | None = None
    banner: Html | None = None


def build_document(links: Sequence[NavLink], frame: Frame, body: PageBody) -> bytes:
    """Return the whole document of a view."""
    count = f"({frame.needs}) " if frame.needs else ""
    head = join(
        *_list_head(f"{count}{body.title} · Scout"),
        tag("meta", name="scout-page", content=frame.secret) if frame.secret else None,
        tag("script", type="module", src="/assets/main.js"),
    )
    main = tag(
        "main",
        tag(
            "div", tag("h1", body.heading or body.title), tag("div", body.actions, cls="actions"), cls="title"
        ),
        _show_pause(frame.paused) if frame.paused is not None else None,
        frame.banner,
        _freeze(body.main) if body.moment is not None and not body.read_only else body.main,
        id="main",
        tabindex=-1,
        data_families=" ".join(body.families),
        data_seq=frame.seq,
        data_title=body.title,
        data_needs=frame.needs,
        data_past=str(body.moment.at) if body.moment is not None else None,
    )
    noscript = tag(
        "noscript",
        tag("p", "Scripts are off: this page can be read. Use the command line to act.", cls="banner"),
    )
    shell = join(
        tag("a", "Skip to content", cls="skip", href="#main"),
        _build_top(links, frame),
        _build_nav(links, frame),
        tag("div", noscript, main, cls="content"),
        tag("div", id="toasts", role="status", aria_live="polite"),
    )
    return _write(head, tag("body", shell, data_token=frame.token_id))


def _show_pause(reason: str) -> Html:
    resume = build_button("Resume", "resume", {}, done="Resumed.")
    return tag(
        "div", tag("span", f"Paused: {reason}"), resume, cls="banner", role="status", data_key="paused"
    )


def _freeze(main: Html) -> Html:
    """Return a view whose buttons and fields do nothing: the past is read-only. Links still work."""
    return tag("fieldset", main, disabled=True, cls="past")


def build_way_in() -> bytes:
    """Return the only document that a browser sees which is not signed in."""
    main = tag(
        "main",
        tag("h1", "Scout"),
        tag("p", "This browser is not signed in. Run this in a terminal on the same machine:"),
        show_command("scout web"),
        tag("p", "It opens the page with a link that works once, within a minute.", cls="quiet"),
        cls="way-in",
        id="main",
    )
    return _write(join(*_list_head("Sign in · Scout")), tag("body", main, cls="alone"))


def build_hop() -> bytes:
    """Return a document that loads its own address again.

    A link on another site never carries the cookie. The same request made by this document does.
    """
    again = tag("meta", http_equiv="refresh", content="0")
    main = tag("main", tag("h1", "Scout"), tag("p", "Opening…"), cls="way-in", id="main")
    return _write(join(*_list_head("Scout"), again), tag("body", main, cls="alone"))


def _list_head(title: str) -> tuple[Html, ...]:
    return (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", type="image/svg+xml", href="/assets/favicon.svg"),
        tag("link", rel="stylesheet", href="/assets/page.css"),
        tag("link", rel="stylesheet", href="/assets/views.css"),
    )


def _build_top(links: Sequence[NavLink], frame: Frame) -> Html:
    here = next((link.title for link in links if _is_here(link, frame)), "Views")
    # On a narrow screen the views are behind this button. A popover needs no script.
    menu = tag(
        "button",
        draw_icon("menu"),
        tag("span", "Views: ", cls="unseen"),
        tag("span", here),
        _build_badge(frame),
        type="button",
        cls="button menu-button",
        popovertarget="views",
    )
    find = tag(
        "button",
        draw_icon("search"),
        tag("span", "Find an agent, flight or command", cls="wide"),
        tag("kbd", "Ctrl K", cls="wide"),
        type="button",
        cls="find",
        data_open="palette",
    )
    ask = tag(
        "button",
        draw_icon("ask"),
        tag("span", "Ask"),
        type="button",
        cls="button primary",
        data_open="composer",
    )
    return tag(
        "header",
        tag(
            "a",
            tag("img", src="/assets/favicon.svg", alt="", width=20, height=20),
            tag("span", "Scout"),
            cls="brand",
            href="/",
        ),
        menu,
        find,
        ask,
        tag("span", "", id="live", cls="live", data_live="connecting", role="status"),
        cls="top",
    )


def _build_nav(links: Sequence[NavLink], frame: Frame) -> Html:
    named = groupby(links, key=lambda link: link.group)
    groups = [_build_nav_group(name, list(group), frame) for name, group in named]
    out = tag(
        "button",
        draw_icon("sign-out"),
        tag("span", "Sign out"),
        type="button",
        cls="nav-link",
        data_sign_out=True,
    )
    bell = tag(
        "button",
        draw_icon("bell"),
        tag("span", "Notify me"),
        type="button",
        cls="nav-link",
        data_notify=True,
        hidden=True,
    )
    keys = tag(
        "button", draw_icon("keys"), tag("span", "Keys"), type="button", cls="nav-link", data_open="keys"
    )
    foot = tag("div", tag("p", frame.who, cls="who"), bell, keys, out, cls="nav-foot")
    return tag("nav", groups, foot, cls="nav", id="views", popover="auto", aria_label="Views")


def _build_nav_group(name: str, links: Sequence[NavLink], frame: Frame) -> Html:
    ident = f"views-{name.lower().replace(' ', '-')}" if name else None
    heading = tag("p", name, cls="nav-group", id=ident) if name else None
    return join(heading, tag("ul", [_build_nav_link(link, frame) for link in links], aria_labelledby=ident))


def _is_here(link: NavLink, frame: Frame) -> bool:
    return frame.path == link.path or (link.path != "/" and frame.path.startswith(f"{link.path}/"))


def _build_badge(frame: Frame) -> Html:
    """Return the number of items that need the person."""
    return tag("span", frame.needs or "", cls="badge", data_count="needs", hidden=not frame.needs)


def _build_nav_link(link: NavLink, frame: Frame) -> Html:
    anchor = tag(
        "a",
        draw_icon(link.icon),
        tag("span", link.title),
        _build_badge(frame) if link.path == "/inbox" else None,
        cls="nav-link",
        href=link.path + link.query,
        aria_current="page" if _is_here(link, frame) else None,
        data_go=link.key,
    )
    return tag("li", anchor)


def _write(head: Html, body: Html) -> bytes:
    return f"<!doctype html>\n{tag('html', tag('head', head), body, lang='en')}\n".encode("utf-8", "replace")
