"""What events of Matrix say: mentions, replies, arrivals, and events of any form."""

from typing import Any

import pytest

from scout.connectors.matrix.events import (
    Content,
    Mentioned,
    list_since_arrival,
    read_events,
    read_files,
    read_text,
)

BOT = "@scout:example.org"
NAMED = Mentioned(user_id=BOT, display_name="Scout")


def message(body: str, **more: Any) -> Content:
    event = {"type": "m.room.message", "sender": "@ada:example.org", "event_id": "$1"}
    (read,) = read_events([{**event, "content": {"msgtype": "m.text", "body": body, **more}}])
    return read.content


@pytest.mark.parametrize(
    ("body", "more", "text"),
    [
        ("@scout:example.org hello", {}, "hello"),
        ("Scout: hello", {}, "hello"),
        ("scout, hello", {}, "hello"),
        ("@Scout hello", {"m.mentions": {"user_ids": [BOT]}}, "hello"),
        ("@scout: @arc review", {"m.mentions": {"user_ids": [BOT]}}, "@arc review"),
        ("hello", {"m.mentions": {"user_ids": [BOT]}}, "hello"),
        ("hello @scout:example.org", {}, "hello"),
        ("Scout", {"formatted_body": '<a href="https://matrix.to/#/@scout:example.org">Scout</a>'}, ""),
    ],
)
def test_a_mention_is_found_and_removed(body: str, more: dict[str, Any], text: str) -> None:
    content = message(body, **more)
    assert NAMED.is_in(content)
    assert NAMED.remove_from(content.body) == text


@pytest.mark.parametrize("body", ["Scouts: hello", "ask Scout about it", "a scout", "Scout is nice", ""])
def test_the_name_alone_is_no_mention(body: str) -> None:
    assert not NAMED.is_in(message(body, **{"m.mentions": {"user_ids": ["@bob:example.org"]}}))


def test_without_a_display_name_only_the_id_counts() -> None:
    assert not Mentioned(user_id=BOT).is_in(message(": hello"))


def test_the_quote_of_a_reply_is_left_out() -> None:
    content = message("> <@ada:example.org> first\n> second\n\nthe answer\n\n> a quote of mine")
    assert read_text(content, is_reply=True) == "the answer\n\n> a quote of mine"
    assert read_text(content, is_reply=False) == content.body


def test_a_file_with_and_without_a_caption() -> None:
    plain = message("a.txt", msgtype="m.file", url="mxc://example.org/1", info={"size": 3})
    captioned = message("look", msgtype="m.image", filename="a.png", url="mxc://example.org/2")
    assert [(read_text(one, is_reply=False), read_files(one)[0].name) for one in (plain, captioned)] == [
        ("", "a.txt"),
        ("look", "a.png"),
    ]
    encrypted = message("a.txt", msgtype="m.file", file={"url": "mxc://example.org/1"})
    assert read_files(encrypted) == ()


def member(user: str, membership: str, before: str | None = None) -> dict[str, Any]:
    unsigned = {"prev_content": {"membership": before}} if before else {}
    event = {"type": "m.room.member", "sender": "@ada:example.org", "state_key": user, "unsigned": unsigned}
    return {**event, "content": {"membership": membership}}


def said(number: int) -> dict[str, Any]:
    content = {"msgtype": "m.text", "body": str(number)}
    return {
        "type": "m.room.message",
        "sender": "@ada:example.org",
        "event_id": f"${number}",
        "content": content,
    }


@pytest.mark.parametrize(
    ("events", "bodies"),
    [
        ([said(1), member(BOT, "invite"), said(2), member(BOT, "join", "invite"), said(3)], ["2", "3"]),
        ([said(1), member(BOT, "join"), said(2)], ["2"]),
        ([said(1), member(BOT, "join", "leave"), said(2)], ["2"]),
        ([said(1), member(BOT, "join", "join"), said(2)], ["1", "2"]),
        ([said(1), member("@bob:example.org", "join"), said(2)], ["1", "2"]),
        ([said(1), member(BOT, "invite"), said(2), member(BOT, "invite", "leave"), said(3)], ["3"]),
    ],
)
def test_messages_from_before_the_arrival_are_left_alone(events: list[Any], bodies: list[str]) -> None:
    found = list_since_arrival(read_events(events), BOT)
    assert [one.content.body for one in found if one.type == "m.room.message"] == bodies


_BASE = {"type": "m.room.message", "sender": "@a:b", "event_id": "$1"}


@pytest.mark.parametrize(
    "event",
    [
        None,
        7,
        "x",
        [],
        {},
        {**_BASE},
        {**_BASE, "content": []},
        {**_BASE, "content": {"body": 7}},
        {**_BASE, "content": {"msgtype": "m.text", "body": None}},
        {**_BASE, "content": {"m.relates_to": 7}},
        {**_BASE, "content": {"m.relates_to": {"m.in_reply_to": "x"}}},
        {**_BASE, "content": {"info": {"size": "large"}}},
        {**_BASE, "content": {}, "type": 7},
    ],
)
def test_an_event_of_another_form_is_none(event: Any) -> None:
    assert read_events([event]) == []
