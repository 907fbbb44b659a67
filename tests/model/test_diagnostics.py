import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.base.codec import decode, encode, render
from scout.base.refusal import Candidate, Diagnostic, Family, Refused, Remedy, get_code, get_status
from scout.base.time import Time
from scout.model.problems import diagnostics as listed
from scout.model.problems.diagnostics import ALL, explain, find_diagnostic
from scout.model.problems.request import (
    Busy,
    Forbidden,
    KeyReused,
    NotFound,
    NotOwner,
    PortInUse,
    RateLimited,
    StoreDamaged,
    StoreFull,
    TooLarge,
    Unauthenticated,
)
from scout.model.problems.session import (
    AskLoop,
    DirectoryNotAllowed,
    EmptyReply,
    HarnessUnavailable,
    Layer,
    Missing,
    NoSession,
    Paused,
    SessionBusy,
    SessionFailed,
    SessionNotAttachable,
    WakeBudget,
    WakeFailed,
)
from scout.model.problems.target import (
    AliasBroken,
    AliasShadows,
    AmbiguousEndpoint,
    AmbiguousTarget,
    ExpiredCard,
    HarnessMismatch,
    ModelMismatch,
    NameTaken,
    PeerUnreachable,
    RetiredTarget,
    TargetOffline,
    UnknownTarget,
)
from tests.model.generate import records

T = Time.parse("2026-11-15T12:00:00Z")
ONE, TWO = Candidate(address="@arc"), Candidate(address="@ark")

# code, exit code, HTTP status
CODES = """
malformed_address       2  400
reserved_name           7  409
depth_cap               8  409
unknown_target          3  404
ambiguous_target        4  409
ambiguous_endpoint      4  409
alias_broken            4  409
alias_shadows           7  409
no_session              5  409
harness_mismatch        7  409
model_mismatch          7  409
harness_unavailable     5  503
directory_not_allowed   6  403
peer_unreachable        5  503
remote_target           7  409
no_mesh                 7  409
not_founder             7  409
target_offline          5  503
session_not_attachable  7  409
session_failed          9  502
session_busy            7  409
wake_failed             5  503
wake_budget             8  429
paused                  7  409
ask_loop                8  409
retired_target          3  410
malformed_cron          2  400
expired_card            3  410
name_taken              7  409
unauthenticated         6  401
forbidden               6  403
not_owner               6  403
not_found               3  404
wrong_state             7  409
wrong_revision          7  409
key_reused              7  409
empty_reply             9  422
too_large               2  413
rate_limited            8  429
busy                    8  503
bad_request             2  400
not_published           3  404
no_such_moment          3  404
history_behind          8  503
history_purged          3  410
port_in_use             9  409
store_damaged           9  500
store_full              9  507
not_a_repository        7  409
no_commit               7  409
bare_repository         7  409
uncommitted_changes     7  409
branch_exists           7  409
disk_space              9  507
setup_failed            9  500
merge_conflict          7  409
check_failed            7  409
connector_failed        5  503
retired_user            3  410
work_would_be_lost      7  409
unfinished_work         7  409
git_failed              9  500
mesh_not_installed      5  503
server_missing          5  503
server_too_old          5  503
server_failed           9  500
mesh_unreachable        5  503
agent_busy              7  409
move_refused            7  409
mesh_login_refused      6  403
certificate_mismatch    6  403
invitation_invalid      6  403
"""


def test_every_code_is_listed_once_with_its_class() -> None:
    expected = {line.split()[0]: tuple(map(int, line.split()[1:])) for line in CODES.strip().splitlines()}
    assert {get_code(kind): (kind.family.exit_code, get_status(kind)) for kind in ALL} == expected
    assert len(ALL) == len(expected)


def test_every_diagnostic_that_is_declared_is_listed() -> None:
    declared = {kind for kind in Diagnostic.__subclasses__() if kind.__module__.startswith("scout.")}
    assert declared == set(ALL)


@pytest.mark.parametrize("kind", ALL, ids=get_code)
def test_each_is_explained_in_a_few_lines(kind: type[Diagnostic]) -> None:
    text = explain(get_code(kind))
    lines = text.splitlines()
    assert 2 <= len([line for line in lines if line]) <= 12
    assert lines[1:2] in ([""], [])
    assert text == text.strip()
    assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize("kind", ALL, ids=get_code)
@settings(max_examples=25)
@given(data=st.data())
def test_each_has_words_and_comes_back_from_the_wire(kind: type[Diagnostic], data: st.DataObject) -> None:
    one: Diagnostic = data.draw(records(kind))
    assert decode(encode(one), kind) == one
    assert decode(encode(one), listed.AnyDiagnostic) == one  # pyright: ignore[reportArgumentType] (a union)
    shown = render(one)
    assert (shown["code"], shown["message"]) == (get_code(kind), one.message)
    assert {"candidates", "remedies"} <= set(shown)
    assert json.loads(encode(one))["code"] == one.code


@pytest.mark.parametrize("kind", ALL, ids=get_code)
def test_the_code_finds_its_class(kind: type[Diagnostic]) -> None:
    assert find_diagnostic(get_code(kind)) is kind


def test_an_unknown_code_is_refused_with_the_nearest() -> None:
    with pytest.raises(Refused) as refused:
        explain("unknown_targets")
    every = Remedy(operation="explain", parameters={}, why="every code")
    assert refused.value.diagnostic == NotFound(
        noun="diagnostic",
        id="unknown_targets",
        candidates=(Candidate(address="unknown_target"),),
        remedies=(Remedy(operation="explain", parameters={"code": "unknown_target"}), every),
    )
    with pytest.raises(Refused) as far:
        find_diagnostic("zzzzzz" * 20)
    assert far.value.diagnostic == NotFound(noun="diagnostic", id="zzzzzz" * 10, remedies=(every,))


def test_every_class_of_refusals_is_used() -> None:
    assert {kind.family for kind in ALL} == set(Family)


@pytest.mark.parametrize(
    ("diagnostic", "message"),
    [
        (UnknownTarget(address="@arx"), "no agent has the address '@arx'"),
        (
            UnknownTarget(address="@arx", reason="no such workspace", candidates=(ONE, TWO)),
            "no agent has the address '@arx' (no such workspace); nearest: @arc, @ark",
        ),
        (AmbiguousTarget(address="@a", count=2), "'@a' matches 2 agents"),
        (
            AmbiguousTarget(address="@a", count=21, candidates=(ONE, TWO)),
            "'@a' matches 21 agents; choose one: @arc, @ark",
        ),
        (
            AmbiguousEndpoint(address="@a", harnesses=("claude", "codex")),
            "@a can be reached through claude or codex; choose one",
        ),
        (
            AmbiguousEndpoint(address="@a", harnesses=()),
            "@a has no default harness, and no harness is ready",
        ),
        (
            AliasBroken(alias="boss", reason="its target is gone", candidates=(ONE,)),
            "the alias 'boss' is broken: its target is gone; readings: @arc",
        ),
        (
            AliasShadows(alias="arc", definition="arc"),
            "'arc' is already the name of the agent arc: choose another alias",
        ),
        (NoSession(address="@a"), "@a has no session: start or attach one"),
        (NoSession(address="@a", harness="codex"), "@a has no session in codex: start or attach one"),
        (NoSession(address="@a", session="ses_1"), "@a has no session ses_1: start or attach one"),
        (NoSession(address="ses_1", session="ses_1"), "Scout knows no session ses_1: start or attach one"),
        (
            HarnessMismatch(address="@a", requested="codex", attached=("claude",)),
            "@a has no codex endpoint (attached: claude)",
        ),
        (
            HarnessMismatch(address="@a", requested="codex", attached=()),
            "@a has no codex endpoint (attached: none)",
        ),
        (
            ModelMismatch(address="@a", requested="opus", attached=("sonnet", "haiku")),
            "@a has no endpoint with model opus (attached: sonnet, haiku)",
        ),
        (
            ModelMismatch(address="@a", requested="opus", attached=()),
            "@a has no endpoint with model opus (attached: none)",
        ),
        (
            HarnessUnavailable(harness="codex", missing=Missing.BINARY, hint="npm i -g codex"),
            "codex is not available: its binary is missing: npm i -g codex",
        ),
        (
            HarnessUnavailable(harness="codex", missing=Missing.LOGIN),
            "codex is not available: its login is missing",
        ),
        (DirectoryNotAllowed(directory="/x"), "/x is outside the allowed roots (none configured)"),
        (
            DirectoryNotAllowed(directory="/x", roots=("/a", "/b")),
            "/x is outside the allowed roots (/a, /b)",
        ),
        (PeerUnreachable(node="mini"), "node mini is unreachable (never seen)"),
        (
            PeerUnreachable(node="mini", last_seen=T, attempts=3),
            "node mini is unreachable after 3 attempts (last seen 2026-11-15T12:00:00.000Z)",
        ),
        (TargetOffline(address="@a"), "@a is offline (never seen)"),
        (
            TargetOffline(address="@a", last_seen=T, reason="silent", unreachable=True),
            "@a is unreachable (last seen 2026-11-15T12:00:00.000Z): silent",
        ),
        (
            TargetOffline(address="@a", last_seen=T, reason="manual"),
            "@a is offline (last seen 2026-11-15T12:00:00.000Z): manual",
        ),
        (
            SessionNotAttachable(session_id="ses_1", layer=Layer.HARNESS, reason="over"),
            "session ses_1 cannot be attached (harness): over",
        ),
        (
            SessionFailed(session_id="ses_1", layer=Layer.PROCESS, reason="exit 1"),
            "session ses_1 failed in the process: exit 1",
        ),
        (
            SessionFailed(session_id="ses_1", layer=Layer.PROCESS, reason="exit 1", log="err"),
            "session ses_1 failed in the process: exit 1 (output in err)",
        ),
        (SessionBusy(session_id="ses_1"), "session ses_1 is busy: a turn is running"),
        (
            SessionBusy(session_id="ses_1", flight_id="flt_1"),
            "session ses_1 is busy: a turn is running (flight flt_1)",
        ),
        (
            WakeFailed(target="@a", attempts=8, layer=Layer.ADAPTER, reason="no pane"),
            "waking @a failed 8 times, last in the adapter: no pane",
        ),
        (
            WakeBudget(conversation_id="cnv_1", used=30, limit=30),
            "agents used 30 of 30 wakes per hour in cnv_1: none left",
        ),
        (
            WakeBudget(conversation_id="cnv_1", used=30, limit=30, resets_at=T),
            "agents used 30 of 30 wakes per hour in cnv_1: none left until 2026-11-15T12:00:00.000Z",
        ),
        (Paused(since=T), "Scout has been paused since 2026-11-15T12:00:00.000Z: nothing starts"),
        (
            Paused(since=T, reason="battery"),
            "Scout has been paused since 2026-11-15T12:00:00.000Z (battery): nothing starts",
        ),
        (
            AskLoop(chain=("@a", "@b", "@a"), limit=6),
            "this ask would loop or exceed the chain @a → @b → @a (maximum 6)",
        ),
        (RetiredTarget(address="@a", agent_id="agt_1"), "@a was retired: revive it or address another agent"),
        (
            RetiredTarget(address="@a", agent_id="agt_1", retired_at=T),
            "@a was retired at 2026-11-15T12:00:00.000Z: revive it or address another agent",
        ),
        (ExpiredCard(card_id="crd_1", state="used", uses=1), "card crd_1 is used after 1 uses"),
        (
            ExpiredCard(card_id="crd_1", state="revoked", uses=0, reason="leaked"),
            "card crd_1 is revoked after 0 uses: leaked",
        ),
        (NameTaken(noun="agent", name="arc"), "the name 'arc' belongs to another agent"),
        (
            NameTaken(noun="agent", name="arc", holder_state="retired"),
            "the name 'arc' belongs to a retired agent",
        ),
        (Unauthenticated(reason="no token"), "not authenticated: no token"),
        (
            Unauthenticated(reason="no token", needs=("an operator token", "an agent token")),
            "not authenticated: no token; required: an operator token or an agent token",
        ),
        (
            Forbidden(action="ask", subject="/u2/agent/x", needs=("a grant",)),
            "ask on /u2/agent/x is not allowed; required: a grant",
        ),
        (NotOwner(noun="work item", id="wrk_1", owner_id="agt_1"), "work item wrk_1 belongs to agt_1"),
        (
            NotFound(noun="flight", id="flt_9", candidates=(ONE,), needs=("a read grant",)),
            "no flight 'flt_9'; nearest: @arc; required: a read grant",
        ),
        (KeyReused(key="k1", operation="send"), "the key 'k1' was already used for another send"),
        (EmptyReply(flight_id="flt_1"), "flight flt_1 ended without a reply"),
        (TooLarge(what="body", size=5, limit=4), "the body has 5 bytes; the maximum is 4"),
        (RateLimited(what="asks", limit=120), "too many asks: the limit is 120"),
        (
            RateLimited(what="asks", limit=120, retry_after=2.5),
            "too many asks: the limit is 120; retry in 2.5 s",
        ),
        (Busy(reason="starting"), "busy (starting): retry in 1 s"),
        (PortInUse(port=7432), "port 7432 is used by another program"),
        (PortInUse(port=7432, pid=5, process="nginx"), "port 7432 is used by nginx (pid 5)"),
        (
            StoreDamaged(path="/d/scout.db", problems=("page 3 is odd",), readable=1, lost=2),
            (
                "/d/scout.db is damaged: page 3 is odd. 1 event can be read, 2 events known to be lost; "
                "nothing was changed or deleted"
            ),
        ),
        (
            StoreDamaged(path="/d/scout.db"),
            (
                "/d/scout.db is damaged: it cannot be read. 0 events can be read, 0 events known to be lost; "
                "nothing was changed or deleted"
            ),
        ),
        (StoreFull(path="/d/scout.db", free=9), "no space to write /d/scout.db (9 bytes free)"),
    ],
)
def test_the_sentence_is_made_from_the_facts(diagnostic: Diagnostic, message: str) -> None:
    assert diagnostic.message == message


def test_several_records_and_no_id_are_told_without_the_word_that_stands_for_it() -> None:
    several = AmbiguousTarget(address="only", count=2, noun="flight")
    assert several.message == "you gave no id, and there are 2 flights"
    assert AmbiguousTarget(address="only", count=2).message == "'only' matches 2 agents"
