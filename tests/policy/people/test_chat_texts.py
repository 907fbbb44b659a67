"""The words of Scout in a chat: whole, plain, and with nothing of others that could pass for Scout's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import BadRequest, Candidate
from scout.model.access.permission import build_request
from scout.model.attention import AttentionKind, AttentionState, Risk, list_actions
from scout.model.people.chat import Markup
from scout.model.problems.target import UnknownTarget
from scout.model.status import AgentStatus
from scout.policy.people import chat_texts
from scout.policy.people.markdown import BlockKind, parse_markdown
from scout.policy.people.text_parts import format_text
from tests.model.samples import a_flight, an_attention


def read(text: str) -> str:
    """What a person reads."""
    return "\n".join(part.plain for part in format_text(text, Markup.PLAIN, 100_000))


def test_a_permission_shows_the_exact_command_and_everything_beside_it() -> None:
    wish = build_request("Bash", {"command": "rm -rf `x`\x1b[8m", "timeout": 9}, "tidy *up*")
    item = an_attention(kind=AttentionKind.PERMISSION, permission=wish, risk=Risk.HIGH)
    text = chat_texts.describe_item(item, "@arc", ["Reply yes: Approve"])
    assert read(text) == (
        "⚠️ High risk. @arc asks for permission:\n\nBash:\n\nrm -rf `x`\\x1b[8m\n\n"
        '{\n  "timeout": 9\n}\n\nIt has hidden characters, which are shown as codes.\n\nIt says: tidy *up*\n\n'
        "Reply yes: Approve"
    )


@given(st.text(min_size=1))
def test_any_command_is_one_code_block(command: str) -> None:
    (block,) = parse_markdown(chat_texts.fence_text(command))
    assert block.kind is BlockKind.CODE


@given(st.text())
def test_quoted_text_is_no_formatting(text: str) -> None:
    shown = read(f"x{chat_texts.quote_text(text)}")
    assert shown.strip() == f"x{chat_texts.make_visible(text)}".strip()


def test_other_requests() -> None:
    write = build_request("Write", {"file_path": "/w/a", "content": "x" * 300_000})
    text = chat_texts.describe_item(an_attention(kind=AttentionKind.PERMISSION, permission=write), "")
    assert "**Scout** asks for permission" in text
    assert "/w/a" in text
    assert "more characters are not shown" in text
    assert "It has 4 lines and" in text
    gap = build_request("Bash", {"command": f"ls{' ' * 60}; rm -rf ~"})
    shown = chat_texts.describe_item(an_attention(kind=AttentionKind.PERMISSION, permission=gap), "@arc")
    assert f"ls{' ' * 60}; rm -rf ~" in shown
    assert "read it to its end" in shown
    bare = build_request("", "go")
    assert "```\ngo\n```" in chat_texts.describe_item(
        an_attention(kind=AttentionKind.PERMISSION, permission=bare), "@arc"
    )


@pytest.mark.parametrize("kind", [one for one in AttentionKind if one is not AttentionKind.PERMISSION])
def test_each_kind_says_who_and_what(kind: AttentionKind) -> None:
    item = an_attention(
        kind=kind, title="Which port?", body="", default_action="8080", actions=list_actions(kind)
    )
    shown = read(chat_texts.describe_item(item, "@arc"))
    assert shown.startswith("@arc ")
    assert shown.count("Which port?") == 1
    assert shown.endswith("Without an answer: 8080")


def test_a_title_that_is_the_beginning_of_the_text_is_not_repeated() -> None:
    cut = an_attention(kind=AttentionKind.QUESTION, title="Which po…", body="Which port?\nSay it.")
    assert read(chat_texts.describe_item(cut, "@arc")) == "@arc asks:\n\nWhich port?\nSay it."
    both = an_attention(kind=AttentionKind.QUESTION, title="Port", body="Which?")
    assert read(chat_texts.describe_item(both, "@arc")) == "@arc asks:\n\nPort\nWhich?"


def test_outcomes() -> None:
    def told(state: AttentionState, by: str = "/ada/direct", **more: Any) -> str:
        return read(chat_texts.describe_outcome(an_attention(state=state, **more), by))

    assert told(AttentionState.RESOLVED) == "Approved by /ada/direct"
    always = told(AttentionState.RESOLVED, allowance_id="alw_1")
    assert always == "Approved by /ada/direct, and the same from now on"
    assert told(AttentionState.DENIED, reason="too risky") == "Denied by /ada/direct (too risky)"
    assert told(AttentionState.ANSWERED, answer="8080") == "Answered by /ada/direct: 8080"
    assert told(AttentionState.EXPIRED, answer="8080") == "Expired: 8080"
    assert told(AttentionState.DISMISSED, by="") == "Dismissed"
    assert told(AttentionState.OPEN, by="") == "Closed"


def test_refusals_name_what_was_probably_meant() -> None:
    near = (Candidate(address="@arc"), Candidate(address="@ark"))
    assert read(chat_texts.describe_refusal(UnknownTarget(address="@arx", candidates=near), "scout who")) == (
        "No agent has the address '@arx'; nearest: @arc, @ark.\n\n"
        "Try @arc or @ark at the beginning of your message."
    )
    assert read(chat_texts.describe_refusal(BadRequest(problem="what?"), "scout who")) == (
        "What?\n\nOn the machine: scout who"
    )


def test_people_are_told_how_to_be_linked_and_that_they_are() -> None:
    assert "scout user link USER telegram" in read(chat_texts.describe_pairing("telegram"))
    assert "This account is linked to ada" in read(
        chat_texts.describe_link("ada", "/ada/telegram", group=False)
    )
    assert "This group is linked to crew" in read(
        chat_texts.describe_link("crew", "/crew/telegram", group=True)
    )


def test_commands() -> None:
    rows = [("@arc", AgentStatus.ONLINE, "reviews *code*"), ("/u/task/1", AgentStatus.OFFLINE, "")]
    assert read(chat_texts.describe_agents(rows, True)) == (
        "• @arc online: reviews *code*\n• /u/task/1 offline\n\n… and more"
    )
    assert read(chat_texts.describe_agents([], False)) == "There are no agents that you can see."
    running = a_flight(reason="in line")
    assert read(chat_texts.describe_status([("@arc", running)], ["Which port?"])) == (
        "Running:\n\n• @arc queued (in line)\n\nNeeds you:\n\n• Which port?"
    )
    assert read(chat_texts.describe_status([("@arc", a_flight(reason=""))], [])).endswith(
        "• @arc queued\n\nNothing needs you."
    )
    assert read(chat_texts.describe_group_status([("@arc", running)])) == (
        "Running:\n\n• @arc queued (in line)\n\nWhat needs you is shown in your private chat."
    )
    assert read(chat_texts.describe_status([], [])) == "Nothing is running.\n\nNothing needs you."
    assert chat_texts.describe_stop([]) == "Nothing that you asked for here is running."
    assert read(chat_texts.describe_stop(["@arc", "@bow"])) == "Stopped: @arc, @bow."
    assert read(chat_texts.name_author("hi", "@arc")) == "@arc\n\nhi"
    assert chat_texts.name_author("hi", "") == "hi"
