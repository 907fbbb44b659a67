"""Which endpoint takes this: nothing demanded is relaxed, and each rung is tried in order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.agent import PermissionProfile
from scout.model.endpoint import BROKEN, Endpoint, EndpointState, Transport
from scout.model.problems.session import NoSession
from scout.model.problems.target import AmbiguousEndpoint, HarnessMismatch, ModelMismatch, PeerUnreachable
from scout.policy.choose import Choice, ChoiceAction, Demand, choose, choose_default_harness
from scout.policy.directory import OUTSIDE, Viewpoint
from tests.policy.fleets import NOW, agent, endpoint

ARC = agent("arc")
LATER = NOW.plus(5)


def pick(
    *endpoints: Endpoint, caller: Viewpoint = OUTSIDE, projects: dict[str, str] | None = None, **demand: Any
) -> Choice:
    wish = Demand(caller=caller, **demand)
    return choose(ARC, lambda: "@arc", list(endpoints), wish, now=NOW, projects=projects)


def refusal(*endpoints: Endpoint, **demand: Any):
    with pytest.raises(Refused) as caught:
        pick(*endpoints, **demand)
    return caught.value.diagnostic


def one(name: str, harness: str | None = "claude", model: str | None = None, **fields: Any) -> Endpoint:
    return endpoint(ARC, harness, model, id=name, **fields)


def test_the_only_endpoint_is_taken() -> None:
    choice = pick(one("a"))
    assert choice == Choice(
        action=ChoiceAction.DELIVER, rule="only endpoint", endpoint=one("a"), harness="claude"
    )


@pytest.mark.rows("R3.2-1", "R3.2-2", "R3.2-11", "R1.3-33")
def test_a_harness_is_never_relaxed() -> None:
    assert pick(one("a"), one("b", "codex"), harness="codex").endpoint == one("b", "codex")
    told = refusal(one("a"), one("c"), harness="codex")
    assert isinstance(told, HarnessMismatch)
    assert (told.address, told.requested, told.attached) == ("@arc", "codex", ("claude",))
    assert [remedy.parameters for remedy in told.remedies] == [{"agent": "@arc", "harness": "codex"}]


def test_a_harness_that_can_be_started_is_started_beside_the_others() -> None:
    fresh = pick(one("a"), one("c"), harness="codex", model="gpt-6", may_start=True)
    assert (fresh.action, fresh.harness, fresh.endpoint) == (ChoiceAction.START, "codex", None)
    there = one("b", "codex")
    assert pick(one("a"), there, harness="codex", may_start=True).endpoint == there
    exact = refusal(one("a", session_id="ses_1"), session_id="ses_1", harness="codex", may_start=True)
    assert isinstance(exact, HarnessMismatch)


@pytest.mark.rows("R3.2-1", "R3.2-2")
def test_a_model_is_never_relaxed() -> None:
    small, large = one("a", "codex", "gpt-5"), one("b", "codex", "gpt-5.5")
    assert pick(small, large, model="5-5").endpoint == large
    assert pick(small, large, model="5").endpoint == small
    told = refusal(small, one("c", "codex"), harness="codex", model="sonnet")
    assert isinstance(told, ModelMismatch)
    assert (told.requested, told.attached) == ("sonnet", ("gpt-5",))
    assert told.remedies[0].parameters == {"agent": "@arc", "harness": "codex", "model": "sonnet"}


def test_endpoints_that_name_no_harness_take_any() -> None:
    assert pick(one("a", None), harness="codex", model="gpt").rule == "only endpoint"
    assert isinstance(refusal(one("a", None), one("b"), harness="codex"), HarnessMismatch)
    assert isinstance(refusal(one("a", None), one("b", None, "gpt-5"), model="sonnet"), ModelMismatch)


@pytest.mark.rows("R3.2-1")
def test_a_node_is_never_relaxed() -> None:
    assert pick(one("a"), one("b", node="book"), node="book").endpoint == one("b", node="book")
    told = refusal(one("a"), node="book")
    assert isinstance(told, PeerUnreachable)
    assert (told.node, told.remedies[0].parameters) == ("book", {"agent": "@arc", "node": "book"})


@pytest.mark.rows("R3.2-1")
def test_a_permission_profile_is_never_relaxed() -> None:
    review, default = one("a", permission_profile=PermissionProfile.REVIEW), one("b")
    assert pick(review, default, permission=PermissionProfile.REVIEW).endpoint == review
    assert pick(review, default, permission=PermissionProfile.WORKSPACE_WRITE).endpoint == default
    told = refusal(review, default, permission=PermissionProfile.OBSERVE)
    assert isinstance(told, NoSession)
    assert told.remedies[0].parameters == {"agent": "@arc", "permission": "observe"}


@pytest.mark.rows("R3.2-5")
def test_an_exact_session_comes_before_everything_else() -> None:
    wanted = one("a", session_id="ses_1", state=EndpointState.REGISTERED)
    choice = pick(wanted, one("b", preferred=True, session_id="ses_2"), session_id="ses_1")
    assert (choice.endpoint, choice.rule, choice.action) == (wanted, "exact session", ChoiceAction.WAKE)
    assert [(passed.endpoint_id, passed.why) for passed in choice.passed_over] == [("b", "another session")]


@pytest.mark.rows("R3.5-15", "R3.2-11")
def test_a_session_that_is_not_there_is_not_replaced() -> None:
    told = refusal(one("a", session_id="ses_2"), session_id="ses_1", harness="codex")
    assert isinstance(told, NoSession)
    assert (told.address, told.harness, told.session) == ("@arc", "codex", "ses_1")
    assert [(remedy.operation, remedy.parameters) for remedy in told.remedies] == [
        ("session.attach", {"agent": "@arc", "session": "ses_1"}),
        ("session.start", {"agent": "@arc", "harness": "codex"}),
    ]
    assert isinstance(refusal(session_id="ses_1"), NoSession)
    assert isinstance(
        refusal(one("a", session_id="ses_1"), session_id="ses_1", harness="codex"), HarnessMismatch
    )
    stopped = one("a", session_id="ses_1", state=EndpointState.STOPPED)
    assert isinstance(refusal(stopped, session_id="ses_1"), NoSession)


@pytest.mark.rows("R3.2-3")
@pytest.mark.parametrize("state", sorted(BROKEN))
def test_broken_endpoints_are_left_out_while_another_remains(state: EndpointState) -> None:
    waiting = one("b", state=EndpointState.REGISTERED)
    choice = pick(one("a", state=state, preferred=True), waiting)
    assert (choice.endpoint, choice.action) == (waiting, ChoiceAction.WAKE)
    assert choice.passed_over[0].why == "it is stopped, failed, stale or unreachable"


@pytest.mark.rows("R3.2-4")
def test_when_only_broken_ones_remain_one_is_woken_or_a_session_started() -> None:
    failed, stopped = one("a", state=EndpointState.FAILED), one("b", state=EndpointState.STOPPED)
    choice = pick(failed, stopped)
    assert (choice.endpoint, choice.action) == (failed, ChoiceAction.WAKE)
    assert [(passed.endpoint_id, passed.why) for passed in choice.passed_over] == [
        ("b", "it has been stopped")
    ]
    fresh = pick(stopped)
    assert (fresh.endpoint, fresh.action, fresh.rule, fresh.harness) == (
        None,
        ChoiceAction.START,
        "new session",
        "claude",
    )
    assert [(passed.endpoint_id, passed.why) for passed in fresh.passed_over] == [
        ("b", "it has been stopped")
    ]
    told = refusal(stopped, one("c", "codex", state=EndpointState.STOPPED))
    assert isinstance(told, AmbiguousEndpoint)
    assert told.harnesses == ("claude", "codex")


def test_who_once_pulled_says_nothing_of_what_is_started() -> None:
    gone = one("a", transport=Transport.PULL, state=EndpointState.STOPPED)
    choice = pick(gone, one("b", "codex", transport=Transport.PULL, state=EndpointState.STOPPED))
    assert (choice.endpoint, choice.action, choice.harness) == (None, ChoiceAction.START, None)
    lost = [one(name, name, transport=Transport.PULL, state=EndpointState.STALE) for name in ("a", "b")]
    assert pick(*lost).action is ChoiceAction.WAKE
    there = one("c", "codex", transport=Transport.PULL)
    assert pick(gone, there).endpoint == there


def test_with_nothing_attached_a_session_is_started_as_demanded() -> None:
    assert pick(harness="codex", model="gpt-5") == Choice(
        action=ChoiceAction.START, rule="new session", harness="codex"
    )
    assert pick() == Choice(action=ChoiceAction.START, rule="new session")


@pytest.mark.rows("R3.2-6")
def test_active_comes_before_wakeable() -> None:
    idle, registered = one("a"), one("b", state=EndpointState.REGISTERED, preferred=True)
    choice = pick(registered, idle)
    assert (choice.endpoint, choice.rule, choice.action) == (idle, "active", ChoiceAction.DELIVER)
    assert choice.passed_over[0].why == "not active"
    silent = one("c", last_seen=Time(NOW - 91_000_000))
    assert pick(silent, idle).rule == "active"
    assert pick(silent).action is ChoiceAction.WAKE


@pytest.mark.rows("R3.2-7")
def test_then_preferred() -> None:
    preferred = one("a", "codex", preferred=True)
    assert (pick(one("b"), preferred).endpoint, pick(one("b"), preferred).rule) == (preferred, "preferred")


@pytest.mark.rows("R3.2-8")
def test_then_the_callers_project_then_its_node() -> None:
    here, there = one("a", session_id="ses_1"), one("b", "codex", session_id="ses_2", node="book")
    projects = {"ses_1": "/src/arc", "ses_2": "/src/bow"}
    caller = Viewpoint(project_root="/src/arc", node="book")
    choice = pick(here, there, caller=caller, projects=projects)
    assert (choice.endpoint, choice.rule) == (here, "same project")
    choice = pick(here, there, caller=caller)
    assert (choice.endpoint, choice.rule) == (there, "same node")
    bare = one("c", "codex")
    assert isinstance(refusal(here, bare, caller=Viewpoint(), projects=projects), AmbiguousEndpoint)


@pytest.mark.rows("R3.2-9")
def test_of_one_harness_the_most_recently_seen_is_taken() -> None:
    old, new, never = one("a"), one("b", last_seen=LATER), one("c", last_seen=None, held=True)
    choice = pick(old, new, never)
    assert (choice.endpoint, choice.rule) == (new, "most recently seen")
    assert {passed.endpoint_id: passed.why for passed in choice.passed_over} == {
        "a": "seen less recently",
        "c": "seen less recently",
    }
    twins = pick(one("a"), one("b"))
    assert twins.endpoint == one("b")


@pytest.mark.rows("R3.2-10", "R3.5-13")
def test_of_several_harnesses_none_is_guessed() -> None:
    told = refusal(one("a"), one("b", "codex"), one("c", "codex"))
    assert isinstance(told, AmbiguousEndpoint)
    assert (told.address, told.harnesses) == ("@arc", ("claude", "codex"))
    assert told.retry == "@arc.harness:claude"
    assert [candidate.address for candidate in told.candidates] == [
        "@arc.harness:claude",
        "@arc.harness:codex",
    ]
    assert [remedy.parameters for remedy in told.remedies] == [
        {"to": "@arc", "body": "…", "harness": "claude"},
        {"to": "@arc", "body": "…", "harness": "codex"},
    ]


def test_an_agent_known_by_its_path_is_asked_with_a_harness() -> None:
    with pytest.raises(Refused) as caught:
        choose(ARC, lambda: "/me/telegram", [one("a"), one("b", "codex")], Demand(), now=NOW)
    told = caught.value.diagnostic
    assert isinstance(told, AmbiguousEndpoint)
    assert (told.retry, told.candidates) == ("", ())
    assert told.remedies[0].parameters == {"to": "/me/telegram", "body": "…", "harness": "claude"}


@pytest.mark.rows("R3.2-12")
def test_an_isolated_session_is_a_route_for_its_caller_alone() -> None:
    isolated = one("a", isolated_for="bow@mini")
    assert pick(isolated, caller=Viewpoint(agent_id="bow@mini")).endpoint == isolated
    choice = pick(isolated, caller=Viewpoint(agent_id="cat@mini"))
    assert (choice.action, choice.endpoint) == (ChoiceAction.START, None)
    assert [(passed.endpoint_id, passed.why) for passed in choice.passed_over] == [
        ("a", "made for another caller")
    ]


@pytest.mark.rows("R0-61", "R0-63")
@pytest.mark.parametrize(
    ("told", "ready", "expected"),
    [
        (("codex", "claude", "acp"), [], "codex"),
        ((None, "claude", "acp"), [], "claude"),
        ((None, None, "acp"), ["claude", "codex"], "acp"),
        ((None, None, None), ["claude"], "claude"),
        (("echo", None, None), ["claude"], "echo"),
    ],
)
def test_the_default_harness(
    told: tuple[str | None, str | None, str | None], ready: list[str], expected: str
) -> None:
    assert choose_default_harness(*told, ready=ready, address="@arc") == expected


@pytest.mark.rows("R0-62", "R0-63")
@pytest.mark.parametrize(("ready", "harnesses"), [(["codex", "claude"], ("claude", "codex")), ([], ())])
def test_no_default_harness_is_guessed(ready: list[str], harnesses: tuple[str, ...]) -> None:
    with pytest.raises(Refused) as caught:
        choose_default_harness(None, None, None, ready, "@arc")
    told = caught.value.diagnostic
    assert isinstance(told, AmbiguousEndpoint)
    assert told.harnesses == harnesses
    assert told.remedies[0].operation == ("ask" if harnesses else "runtimes")


STATES = st.sampled_from(EndpointState)
ENDPOINTS = st.lists(
    st.builds(
        one,
        st.sampled_from("abcdef"),
        st.sampled_from([None, "claude", "codex"]),
        st.sampled_from([None, "gpt-5", "claude-sonnet-4-6"]),
        state=STATES,
        preferred=st.booleans(),
        node=st.sampled_from(["mini", "book"]),
    ),
    max_size=5,
    unique_by=lambda made: made.id,
)


@pytest.mark.rows("R3.2-2", "R3-3")
@given(ENDPOINTS, st.sampled_from([None, "claude", "codex"]))
def test_a_choice_never_breaks_a_demand_and_accounts_for_everyone(
    endpoints: list[Endpoint], harness: str | None
) -> None:
    try:
        choice = pick(*endpoints, harness=harness)
    except Refused as refused:
        assert refused.diagnostic.remedies
        return
    chosen = [choice.endpoint.id] if choice.endpoint else []
    assert sorted([*chosen, *(passed.endpoint_id for passed in choice.passed_over)]) == sorted(
        made.id for made in endpoints
    )
    if choice.endpoint and harness and choice.endpoint.harness:
        assert choice.endpoint.harness == harness
    assert choice == pick(*endpoints, harness=harness)
