"""Refusals that help (3.5): typed facts, words made from them, and what to do next."""

import re
from typing import Any

import pytest

from scout.base.codec import decode, encode, render
from scout.base.refusal import (
    PLACEHOLDER,
    BadRequest,
    Candidate,
    Diagnostic,
    Refused,
    Remedy,
    WrongRevision,
    WrongState,
    get_code,
)
from scout.base.time import Time
from scout.identity.branch import BirthBranch
from scout.identity.reserved import check_name
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import check_ask
from scout.model.conversation import check_body
from scout.model.flight import FlightState, complete_flight, start_flight
from scout.model.problems.diagnostics import ALL, explain
from scout.model.problems.request import Busy, KeyReused, PortInUse, RateLimited, TooLarge
from scout.model.problems.session import (
    HarnessUnavailable,
    Layer,
    Missing,
    SessionBusy,
    SessionFailed,
    SessionNotAttachable,
)
from scout.model.session import SessionClass, SessionState, resume_session
from scout.policy.limits import Limits, check_ask_rate, check_attachment, check_open_flights
from scout.policy.registration import RegistrationWish, decide_registration
from scout.protocol.operations import build_command_line, check_remedy
from tests.model.samples import T0, T1, a_flight, a_session, an_ask
from tests.policy.fleets import agent, fleet


def refusal(change: Any, *arguments: Any, **named: Any) -> Any:
    with pytest.raises(Refused) as caught:
        change(*arguments, **named)
    return caught.value.diagnostic


def commands(told: Diagnostic) -> list[str]:
    """The remedies as they can be pasted; each is an operation that exists."""
    assert [fault for remedy in told.remedies for fault in check_remedy(remedy)] == []
    return [build_command_line(remedy) for remedy in told.remedies]


@pytest.mark.rows("R3.5-1")
@pytest.mark.parametrize("kind", ALL, ids=get_code)
def test_a_diagnostic_is_typed_data(kind: type[Diagnostic]) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", get_code(kind))
    facts = [name for name in kind.__struct_fields__ if name not in {"candidates", "remedies"}]
    assert facts, "a code alone helps nobody"
    assert {"candidates", "remedies"} <= set(kind.__struct_fields__)
    with pytest.raises(Refused):
        decode({"code": get_code(kind), **dict.fromkeys(facts, object)}, kind)


@pytest.mark.rows("R3.5-1", "R3.5-3")
def test_it_is_shown_whole() -> None:
    told = PortInUse(
        port=7432,
        pid=811,
        process="nginx",
        candidates=(Candidate(address="7433"),),
        remedies=(Remedy(operation="whoami", parameters={}, why="look"),),
    )
    assert render(told) == {
        "code": "port_in_use",
        "message": "port 7432 is used by nginx (pid 811)",
        "port": 7432,
        "pid": 811,
        "process": "nginx",
        "candidates": ({"address": "7433"},),
        "remedies": ({"operation": "whoami", "parameters": {}, "why": "look"},),
    }


@pytest.mark.rows("R3.5-3")
@pytest.mark.parametrize("kind", ALL, ids=get_code)
def test_no_diagnostic_carries_text_of_its_own(kind: type[Diagnostic]) -> None:
    assert not {"message", "title", "detail", "description"} & set(kind.__struct_fields__)
    assert isinstance(vars(kind)["message"], property)


@pytest.mark.rows("R3.5-3")
@pytest.mark.parametrize(
    ("told", "words"),
    [
        (TooLarge(what="body", size=5, limit=4), "the body has 5 bytes; the maximum is 4"),
        (TooLarge(what="file", size=9, limit=8), "the file has 9 bytes; the maximum is 8"),
        (
            WrongRevision(noun="flight", id="flt_1", seen=2, current=3),
            "flight flt_1 is at revision 3; you read 2",
        ),
        (
            WrongState(noun="flight", state="failed", move="start", accepts=(), terminal=True),
            "a flight that is failed does not allow 'start': failed is final",
        ),
        (
            RateLimited(what="asks", limit=120, retry_after=2),
            "too many asks: the limit is 120; retry in 2 s",
        ),
    ],
)
def test_the_words_are_made_from_the_facts(told: Diagnostic, words: str) -> None:
    assert told.message == words
    assert decode(encode(told), type(told)).message == words


@pytest.mark.rows("R0-29")
def test_port_in_use_names_the_port_and_the_process() -> None:
    told = PortInUse(port=7432, pid=811, process="nginx")
    assert {name: render(told)[name] for name in ("code", "port", "pid", "process")} == {
        "code": "port_in_use",
        "port": 7432,
        "pid": 811,
        "process": "nginx",
    }
    assert "SCOUT_PORT" in explain("port_in_use")


@pytest.mark.rows("R3.5-17")
@pytest.mark.parametrize("missing", ["binary", "login"])
def test_harness_unavailable_names_what_is_missing_and_how_to_get_it(missing: str) -> None:
    told = HarnessUnavailable(harness="codex", missing=Missing(missing), hint="npm i -g @openai/codex")
    shown = render(told)
    assert (shown["harness"], shown["missing"], shown["hint"]) == ("codex", missing, "npm i -g @openai/codex")
    assert told.message == f"codex is not available: its {missing} is missing: npm i -g @openai/codex"
    with pytest.raises(Refused):
        decode({"code": "harness_unavailable", "harness": "codex"}, HarnessUnavailable)


@pytest.mark.rows("R3.5-21")
@pytest.mark.parametrize("kind", [SessionNotAttachable, SessionFailed, SessionBusy])
def test_a_session_that_cannot_be_used_says_where_why_and_where_its_output_is(kind: Any) -> None:
    told = kind(session_id="ses_1", layer=Layer.PROCESS, reason="exit 1", log="sessions/ses_1/err")
    shown = render(told)
    assert {name: shown[name] for name in ("sessionId", "layer", "reason", "log")} == {
        "sessionId": "ses_1",
        "layer": "process",
        "reason": "exit 1",
        "log": "sessions/ses_1/err",
    }
    assert "exit 1" in told.message


@pytest.mark.rows("R3.5-21")
def test_a_session_that_cannot_be_resumed_offers_a_new_one() -> None:
    over = a_session(state=SessionState.ENDED, session_class=SessionClass.TERMINAL, reason="logged out")
    told = refusal(resume_session, over, T1)
    assert (told.code, told.layer.value) == ("session_not_attachable", "harness")
    assert "logged out" in told.reason
    assert commands(told) == [f"scout session start --agent {over.agent_id} --harness claude"]


@pytest.mark.rows("R3.5-24")
def test_depth_cap_says_from_where_it_could_be_spawned() -> None:
    told = refusal(BirthBranch.parse("main.feature.auth", "main").child, "tests")
    assert (told.code, told.depth, told.cap) == ("depth_cap", 2, 2)
    assert commands(told) == [
        "scout spawn --from branch:main.feature.auth --role worker tests",
        "scout spawn --from branch:main.feature tests",
    ]


@pytest.mark.rows("R3.5-24")
def test_reserved_name_teaches_the_syntax_and_offers_a_free_name() -> None:
    told = refusal(check_name, "codex")
    assert (told.code, told.word) == ("reserved_name", "codex")
    assert "#codex" in told.teaches
    assert commands(told) == ["scout parse '@name#codex'", "scout parse @my-codex"]


@pytest.mark.rows("R3.5-24")
@pytest.mark.parametrize(
    ("lifecycle", "command"),
    [
        (Lifecycle.RETIRED, "scout agent revive /me/agent/arc"),
        (Lifecycle.ACTIVE, "scout show /me/agent/arc"),
    ],
)
def test_name_taken_says_who_has_it(lifecycle: Lifecycle, command: str) -> None:
    holder: Agent = agent("other", path="/me/agent/arc", lifecycle=lifecycle)
    wish = RegistrationWish(owner="me", definition="arc", node="mini", project_root="/src/arc")
    told = refusal(decide_registration, wish, fleet((holder, [])))
    assert (told.code, told.name, told.holder_id) == ("name_taken", "/me/agent/arc", holder.id)
    assert told.holder_state == str(lifecycle)
    assert commands(told) == [command]


@pytest.mark.rows("R3.5-26")
def test_a_conflict_says_what_would_be_taken_instead() -> None:
    state = refusal(start_flight, a_flight(state=FlightState.RUNNING), T1)
    assert (state.code, state.state, state.move) == ("wrong_state", "running", "start")
    assert set(state.accepts) == {"wait", "complete", "fail", "cancel"}
    revision = refusal(start_flight, a_flight(revision=4), T1, seen=3)
    assert (revision.code, revision.seen, revision.current) == ("wrong_revision", 3, 4)
    assert revision.id == a_flight().id
    key = render(KeyReused(key="k1", operation="send"))
    assert (key["code"], key["key"], key["operation"]) == ("key_reused", "k1", "send")
    error = complete_flight(a_flight(state=FlightState.RUNNING), " ", T1).error
    assert error is not None
    assert (error.code, a_flight().id in error.message) == ("empty_reply", True)
    assert [build_command_line(one) for one in error.remedies] == [f"scout flight retry {a_flight().id}"]


@pytest.mark.rows("R3.5-27")
def test_a_limit_says_how_much_there_was_and_may_be() -> None:
    body = refusal(check_body, "x" * 262_145)
    assert (body.code, body.what, body.size, body.limit) == ("too_large", "body", 262_145, 262_144)
    (attach,) = body.remedies
    assert (attach.operation, attach.parameters["attachments"]) == ("send", PLACEHOLDER)
    file = refusal(check_attachment, "log.txt", 11, Limits(attachment=10))
    assert (file.code, file.size, file.limit) == ("too_large", 11, 10)
    asks = [Time(T0 + second * 1_000_000) for second in range(3)]
    rate = refusal(check_ask_rate, "@arc", asks, Limits(asks_per_minute=3), T0.plus(10))
    assert (rate.code, rate.limit, rate.retry_after) == ("rate_limited", 3, 50)
    assert commands(rate) == ["scout config set limits.asksPerMinute 6"]
    full = refusal(check_open_flights, "@arc", 32, Limits())
    assert (full.code, full.limit) == ("rate_limited", 32)
    busy = render(Busy(reason="starting", retry_after=2))
    assert (busy["code"], busy["reason"], busy["retryAfter"]) == ("busy", "starting", 2)


@pytest.mark.rows("R3.5-27")
def test_a_bad_request_names_the_field() -> None:
    wrong = refusal(decode, {"code": "busy", "reason": 5}, Busy)
    assert isinstance(wrong, BadRequest)
    assert (wrong.code, wrong.field) == ("bad_request", "reason")
    assert wrong.problem == "Expected `str`, got `int`"
    assert refusal(check_ask, an_ask(target_session_id="ses_1")).field == "targetSessionId"
