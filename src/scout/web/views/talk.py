"""Conversations: the list, one thread with its receipts, and the boxes to write in."""

import json
from urllib.parse import urlencode

from scout.base.codec import to_plain
from scout.base.refusal import Refused
from scout.model.conversation import Attachment, ConversationKind
from scout.policy.sentences import add_node, describe_receipt
from scout.protocol.channels import ConversationView, GetConversation
from scout.protocol.scout import Scout
from scout.protocol.talk import GetMessage, Latest, LatestItem, ListMessages, MessageLine, MessageView
from scout.web.html import Html, join, lines, tag
from scout.web.icons import draw_icon
from scout.web.layout import PageBody
from scout.web.parts import (
    Column,
    build_list,
    build_pager,
    build_panel,
    cut,
    link_flight,
    shorten,
    show_address,
    show_empty,
    show_facts,
    show_state,
    show_time,
)
from scout.web.views.request import PageRequest

_COLUMNS = (
    Column("Conversation", "c-agent"),
    Column("Newest message", "c-what"),
    Column("Unread", "c-number"),
    Column("When", "c-when"),
)
_FAMILIES = ("collab.message", "collab.delivery", "collab.conversation", "collab.flight", "collab.envelope")
_POSTS = 40
_RECEIPTS = 20  # newest messages whose deliveries are shown
_LONG = 20_000  # characters of one message; the rest is shown on request


async def show_conversations(request: PageRequest) -> PageBody:
    """Return your conversations with their newest messages."""
    found = await request.scout.call(Latest(limit=50, cursor=request.query.get("cursor") or None))
    rows = [
        (one.conversation_id, f"/conversations/{one.conversation_id}", _list_cells(one))
        for one in found.items
    ]
    empty = show_empty("No conversations yet.", "Send a message:", "scout send @NAME 'The build is green.'")
    body = tag("div", build_list("conversations", "Conversations", _COLUMNS, rows, empty=empty), cls="sheet")
    main = join(body, build_pager("/conversations", {}, found.next))
    return PageBody("Conversations", main, ("collab.message", "collab.conversation"))


def _list_cells(one: LatestItem) -> tuple[Html, Html, str, Html]:
    name = tag("a", one.name or one.kind, cls="address", href=f"/conversations/{one.conversation_id}")
    said = tag("span", cut(one.message.body, 160) if one.message else "", cls="main-link")
    at = show_time(one.message.created_at) if one.message else tag("span")
    return name, said, str(one.unread or ""), at


async def show_conversation(request: PageRequest) -> PageBody:
    """Return one thread: its newest messages, oldest first, with receipts."""
    scout, ident = request.scout, request.segments[0]
    conversation = await scout.call(GetConversation(conversation_id=ident))
    found = await scout.call(
        ListMessages(
            conversation=ident, newest=True, limit=_POSTS, cursor=request.query.get("cursor") or None
        )
    )
    seen = await _read_receipts(scout, found.items[-_RECEIPTS:])
    more = None if request.query.get("whole") else _build_whole_link(request)
    posts = [show_post(one, seen.get(one.id), more) for one in found.items]
    thread = (
        tag("div", posts, cls="thread", data_list="thread")
        if posts
        else show_empty("No messages yet.", "Write the first one below.")
    )
    main = join(
        _show_members(conversation),
        build_pager(f"/conversations/{ident}", {}, found.next),
        tag("div", thread, cls="panel wide"),
        build_panel("Write", _build_reply_box(conversation), cls="wide"),
    )
    title = conversation.name or _name_dm(conversation)
    return PageBody(title, tag("div", main, cls="columns"), _FAMILIES)


async def _read_receipts(scout: Scout, messages: tuple[MessageLine, ...]) -> dict[str, MessageView]:
    found = dict[str, MessageView]()
    for one in messages:
        try:
            found[one.id] = await scout.call(GetMessage(message_id=one.id))
        except Refused:
            continue
    return found


def _name_dm(conversation: ConversationView) -> str:
    names = [add_node(one.address, one.node) for one in conversation.members[:4]]
    return " and ".join(names) or shorten(conversation.id)


def _show_members(conversation: ConversationView) -> Html:
    members = [join(show_address(one.address, one.node), " ") for one in conversation.members[:30]]
    facts = (
        ("Kind", conversation.kind),
        ("Members", join(*members) if members else None),
        ("Wakes", "nobody" if conversation.quiet else None),
    )
    return build_panel("About", show_facts(facts), cls="wide")


def _build_whole_link(request: PageRequest) -> str:
    """Return the address of the same page with long messages in full."""
    kept = {name: value for name, value in request.query.items() if name in ("cursor", "at")}
    return f"/conversations/{request.segments[0]}?{urlencode({**kept, 'whole': '1'})}"


def show_post(message: MessageLine, seen: MessageView | None, more: str | None = None) -> Html:
    """Return one message with its files, and what became of it.

    With `more`, a very long text is cut, and that is the link to all of it.
    """
    head = tag(
        "header",
        show_address(message.sender_address, message.sender_node),
        tag("span", message.kind, cls="quiet") if message.kind != "chat" else None,
        link_flight(message.flight_id, "flight") if message.flight_id else None,
        show_time(message.created_at),
        tag("a", "why", href=f"/why/{message.id}", cls="quiet", data_why=True),
        cls="post-head",
    )
    text = (
        tag("p", "(redacted)", cls="quiet")
        if message.redacted_at
        else tag("div", lines(message.body if more is None else message.body[:_LONG]), cls="post-text")
    )
    rest = len(message.body) - _LONG
    files = [_show_attachment(one) for one in message.attachments]
    return tag(
        "article",
        head,
        text,
        tag("a", f"{rest:,} more characters: show long messages in full", href=more)
        if more is not None and rest > 0
        else None,
        tag("div", files, cls="files") if files else None,
        _show_receipt(seen) if seen is not None else None,
        cls="post",
        data_key=message.id,
        tabindex=-1,
        aria_label=f"Message from {message.sender_address}",
    )


def _show_attachment(one: Attachment) -> Html:
    return tag(
        "button",
        draw_icon("attach"),
        tag("span", f"{one.name} ({one.size} bytes)"),
        type="button",
        cls="button",
        data_download=one.sha256,
        data_name=one.name,
    )


def _show_receipt(seen: MessageView) -> Html | None:
    """Return what became of a message at each of its targets."""
    if not seen.deliveries:
        return None
    rows = [
        tag(
            "li",
            show_address(one.address, one.mesh.node if one.mesh else None),
            " ",
            show_state(one.state, one.state),
            tag("span", one.reason, cls="quiet"),
            tag("span", f" The message {describe_receipt(to_plain(one.mesh))}.") if one.mesh else None,
        )
        for one in seen.deliveries
    ]
    return tag("ul", rows, cls="receipts", aria_label="Deliveries")


# -- boxes to write in ---------------------------------------------------------------------------------


def _build_reply_box(conversation: ConversationView) -> Html:
    place: dict[str, object] = {"conversationId": conversation.id}
    if conversation.kind is ConversationKind.CHANNEL and conversation.name:
        place = {"channel": conversation.name}
    return _build_box("send", place, "Write", f"talk {conversation.id}", "Send")


def build_ask_box(address: str, *, conversation_id: str | None = None, label: str = "Ask") -> Html:
    """Return a box that asks one agent."""
    parameters: dict[str, object] = {"to": address}
    if conversation_id is not None:
        parameters["conversationId"] = conversation_id
    return _build_box("ask", parameters, label, f"ask {address}", "Ask")


def _build_box(operation: str, parameters: dict[str, object], label: str, draft: str, button: str) -> Html:
    field = tag(
        "textarea",
        name="body",
        required=True,
        placeholder="Text. @ completes addresses, Ctrl-Enter sends.",
        aria_label=label,
        data_draft=draft,
        data_mentions=True,
        rows=3,
    )
    files = tag("input", type="file", multiple=True, aria_label="Attachments", data_files=True)
    send = tag("button", button, type="submit", cls="button primary")
    return tag(
        "form",
        tag("div", field, cls="complete"),
        tag("div", files, send, cls="box-foot"),
        cls="box",
        data_form=operation,
        data_parameters=json.dumps(parameters),
        data_done="Asked." if operation == "ask" else "Sent.",
        data_key=f"box {draft}",
    )
