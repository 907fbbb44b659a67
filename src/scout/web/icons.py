"""Icons of our own: 16 by 16, drawn with the colour of the text beside them."""

from scout.web.html import Html, tag

_DRAWN = {
    "now": "M8 3v5l3 2M14 8a6 6 0 1 1-12 0 6 6 0 0 1 12 0Z",
    "inbox": "M2 9l2-6h8l2 6v4H2V9Zm0 0h3.5c0 1.4 1 2.5 2.5 2.5s2.5-1.1 2.5-2.5H14",
    "agents": "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Zm-5 5.5c0-2.5 2.2-3.5 5-3.5s5 1 5 3.5",
    "flights": "M2 8h8M7 4.5 10.5 8 7 11.5M13.5 3v10",
    "work": "M2.5 3h3v10h-3zM6.5 3h3v6h-3zM10.5 3h3v8h-3z",
    "sessions": "M2 3h12v10H2zM4.5 6l2 2-2 2M8 10.5h3.5",
    "tree": "M8 2.5v4M8 6.5H4v3M8 6.5h4v3M6.7 2.5h2.6M2.7 9.5h2.6v3H2.7zM10.7 9.5h2.6v3h-2.6z",
    "mesh": "M3.5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM12.5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3Z"
    "M8 13.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3ZM5 4h6M4.3 5.3l2.9 5.3M11.7 5.3l-2.9 5.3",
    "schedules": "M2.5 4h11v9.5h-11zM2.5 7h11M5.5 2.5V5M10.5 2.5V5",
    "usage": "M2.5 13.5h11M4 11V8M7 11V4M10 11V6.5M13 11V9.5",
    "log": "M3 4h10M3 8h10M3 12h6",
    "design": "M8 2.5 13.5 8 8 13.5 2.5 8Z",
    "ask": "M2.5 3h11v8H8l-3 2.5V11H2.5Z",
    "menu": "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
    "search": "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9Zm3.3-1.2 3.2 3.2",
    "approve": "M3 8.5 6.5 12 13 4.5",
    "deny": "M4 4l8 8M12 4l-8 8",
    "warning": "M8 2.5 14 13H2ZM8 6.5v3M8 11.3v.2",
    "copy": "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
    "stop": "M4 4h8v8H4z",
    "retry": "M13 8a5 5 0 1 1-1.6-3.7M13 2.5V5h-2.5",
    "attach": "M11.5 6.5 7 11a2 2 0 0 1-2.8-2.8l5-5a3 3 0 0 1 4.2 4.3l-5 5a4 4 0 0 1-5.7-5.7L7 2.5",
    "conversation": "M2.5 3h8v6h-4l-2 2V9h-2zM12 6h1.5v6H12v2l-2-2H6.5",
    "sign-out": "M6 2.5H2.5v11H6M6.5 8h7M11 5l3 3-3 3",
    "keys": "M2 4.5h12v7H2zM4.5 7h.1M7 7h.1M9.5 7h.1M12 7h.1M5 9.5h6",
    "bell": "M4 11V7.5a4 4 0 0 1 8 0V11l1.2 1.5H2.8ZM6.8 14h2.4",
}

NAMES = tuple(_DRAWN)


def draw_icon(name: str) -> Html:
    """Return an icon. It is decoration: the words beside it say the same."""
    return tag(
        "svg",
        tag("path", d=_DRAWN[name]),
        cls="icon",
        viewBox="0 0 16 16",
        width=16,
        height=16,
        aria_hidden="true",
        focusable="false",
    )
