"""Events as sentences."""

from typing import Any

import pytest

from scout.policy.sentences import build_parts, build_sentence, find_subject, rephrase

_ID = "flt_01m7kt4kk2"


class _Names:
    def agent(self, ident: str) -> str:
        return {"agt_me": "you", "agt_a": "@arc", "agt_b": "@hudson"}[ident]

    def conversation(self, ident: str) -> str:
        return {"cnv_ops": "#ops"}.get(ident, "")

    def node(self, ident: str) -> str:
        return {"nod_m": "mini"}[ident]


def _say(kind: str, record: dict[str, Any], **more: Any) -> tuple[str, str]:
    event = {"type": f"collab.{kind}", "source": "agent:agt_me", "payload": {"record": record}, **more}
    return build_sentence(event, _Names())


@pytest.mark.parametrize(
    ("kind", "record", "sentence"),
    [
        ("ask.created", {"target": "agt_a"}, "you asked @arc"),
        ("ask.created", {"target": "agt_a", "title": "Review\n this."}, "you asked @arc: Review this."),
        ("flight.completed", {"id": _ID, "target": "agt_a", "reason": "completed"}, "@arc: flight completed"),
        ("flight.failed", {"id": _ID, "target": "agt_a", "reason": "no"}, "@arc: flight failed: no"),
        (
            "delivery.acked",
            {"id": _ID, "sender": "agt_b", "target": "agt_a"},
            "@hudson → @arc: delivery acked",
        ),
        (
            "session.started",
            {"id": _ID, "agentId": "agt_a", "harness": "echo"},
            "@arc: session started (echo)",
        ),
        ("endpoint.changed", {"id": _ID, "harness": "echo"}, ": endpoint changed (echo)"),
        (
            "attention.created",
            {"id": _ID, "agentId": "agt_a", "title": "May I?"},
            "@arc → the person: May I?",
        ),
        ("attention.created", {"id": _ID, "title": "Log in."}, "scout → the person: Log in."),
        ("attention.answered", {"id": _ID, "title": "May I?"}, "you answered “May I?”"),
        ("work_item.changed", {"id": _ID, "state": "open", "title": "Fix"}, "you: work changed, open: Fix"),
        ("reservation.created", {"id": _ID, "agentId": "agt_a", "globs": ["a", "b"]}, "@arc reserved a b"),
        (
            "reservation.ended",
            {"id": _ID, "agentId": "agt_a", "globs": ["a"], "reason": "done"},
            "@arc: reservation ended of a: done",
        ),
        ("schedule.changed", {"id": _ID, "body": "Say hello."}, "you: schedule changed: Say hello."),
        ("node.lost", {"name": "mini"}, "mini is unreachable"),
        ("node.key_rotated", {"name": "mini"}, "mini has another key"),
        ("node.updated", {"name": "mini"}, "mini was updated"),
        ("node.created", {"name": "mini"}, "mini joined the mesh"),
        ("node.created", {"name": "mini", "local": True}, "this machine is called mini"),
        ("envelope.accepted", {"nodeId": "nod_m", "kind": "ask"}, "ask was accepted by node mini"),
        (
            "envelope.received",
            {"nodeId": "nod_m", "kind": "ask", "outcome": "refused", "problem": {"message": "too\nlong"}},
            "ask from node mini refused: too long",
        ),
        (
            "envelope.received",
            {"nodeId": "nod_m", "kind": "ask", "outcome": "accepted"},
            "ask from node mini accepted",
        ),
    ],
)
def test_an_event_is_a_sentence(kind: str, record: dict[str, Any], sentence: str) -> None:
    assert _say(kind, record) == (sentence, str(record.get("id") or ""))


@pytest.mark.parametrize(
    ("kind", "record", "sentence"),
    [
        ("agent.online", {"agentId": "agt_a"}, "@arc is online"),
        ("agent.registered", {"id": "agt_a"}, "you registered @arc"),
        ("node.paused", {"reason": "lunch"}, "you: node paused: lunch"),
        ("token.issued", {"id": _ID, "kind": "host", "label": "web"}, "you: host token issued (web)"),
        ("token.revoked", {"id": _ID, "kind": "agent"}, "you: agent token revoked"),
        ("some_thing.made_so", {}, "you: some thing made so"),
        ("conversation.member", {"agentId": "agt_a", "conversationId": "cnv_ops"}, "@arc joined #ops"),
        ("conversation.member", {"agentId": "agt_a", "leftAt": "now"}, "@arc left a conversation"),
    ],
)
def test_some_events_name_no_record(kind: str, record: dict[str, Any], sentence: str) -> None:
    assert _say(kind, record) == (sentence, "")


def test_a_post_names_its_channel_or_its_targets() -> None:
    body = {"body": "hello all"}
    assert _say("message.posted", body, target="conversation:cnv_ops")[0] == "you → #ops: hello all"
    targets = {"targetAgents": ["agt_a", "agt_b"]}
    told = _say("message.posted", body, target="conversation:cnv_dm", metadata=targets)
    assert told[0] == "you → @arc, @hudson: hello all"
    assert _say("message.posted", body, source="", target="agent:agt_a")[0] == "scout: hello all"


def test_a_reason_and_a_move_come_from_the_payload() -> None:
    retired = {"record": {"id": "agt_a"}, "reason": "it is done"}
    assert _say("agent.retired", {}, payload=retired)[0] == "you retired @arc: it is done"
    moved = {"record": {"id": _ID, "state": "review", "title": "Fix"}, "move": "submit"}
    assert _say("work_item.changed", {}, payload=moved)[0] == "you: work submit, review: Fix"
    due = {"record": {"id": _ID, "body": "Say hello."}, "reason": "busy"}
    assert _say("schedule.skipped", {}, payload=due)[0] == "you: schedule skipped (busy): Say hello."
    assert build_sentence({"type": "collab.node.resumed", "source": "system:"}, _Names())[0] == (
        "system: node resumed"
    )


def test_the_reader_is_you() -> None:
    assert rephrase("/u1/direct has cancelled it.", "/u1/direct") == "you have cancelled it."
    assert rephrase("cancelled by /u1/direct.", "/u1/direct") == "cancelled by you."
    assert rephrase("/u1/direct/x is another", "/u1/direct") == "/u1/direct/x is another"


def test_parts_stand_for_records_so_that_the_page_can_link_them() -> None:
    posted = {
        "type": "collab.message.posted",
        "source": "agent:agt_me",
        "target": "conversation:cnv_ops",
        "payload": {"record": {"body": "hello all"}},
    }
    assert build_parts(posted, _Names()) == [
        ("you", "agent", "agt_me"),
        (" → ", "", ""),
        ("#ops", "conversation", "cnv_ops"),
        (": ", "", ""),
        ("hello all", "conversation", "cnv_ops"),
    ]
    flown = {"type": "collab.flight.failed", "payload": {"record": {"id": _ID, "target": "agt_a"}}}
    assert ("flight", "flight", _ID) in build_parts(flown, _Names())


def test_why_is_asked_about_the_record_or_else_the_event() -> None:
    def find(record: dict[str, Any]) -> str:
        return find_subject({"id": "evt_1", "payload": {"record": record}})

    assert find({"id": _ID}) == _ID
    assert find({"messageId": "msg_1"}) == "msg_1"
    assert find({"id": "agt_a"}) == find({}) == "evt_1"
