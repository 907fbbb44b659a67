"""What an ask is addressed to (3.1): an address, exactly one session, or a project's base agent."""

from typing import Any

import pytest

from scout.base.codec import decode, to_plain
from scout.base.refusal import BadRequest, Refused
from scout.identity.path import AgentPath
from scout.model.agent import Agent, create_agent
from scout.model.ask import Ask, SessionPolicy, check_ask
from scout.model.endpoint import EndpointState
from scout.model.flight import create_flight
from scout.model.problems.session import NoSession
from scout.model.problems.target import UnknownTarget
from scout.policy.choose import ChoiceAction, Demand, choose
from scout.policy.directory import OUTSIDE
from scout.policy.resolver.fleet import Fleet
from scout.policy.resolver.resolve import Resolution, resolve
from scout.protocol.operations import build_command_line
from tests.model.samples import T0, an_ask, ident
from tests.policy.fleets import NOW, agent, endpoint, fleet, session

E = EndpointState


def find(text: str, directory: Fleet) -> Resolution:
    return resolve(text, directory, OUTSIDE, NOW)


def refusal(change: Any, *arguments: Any, **named: Any) -> Any:
    with pytest.raises(Refused) as caught:
        change(*arguments, **named)
    return caught.value.diagnostic


@pytest.mark.rows("R3.1-11")
def test_an_address_a_session_or_a_project_is_a_target() -> None:
    arc = agent("arc", project_root="/src/arc")
    directory = fleet((arc, [endpoint(arc, session_id="ses_1")]))
    directory.add_session(session(arc, "ses_1"))
    for text in ("@arc", "session:ses_1", "project:/src/arc", str(arc.path)):
        assert find(text, directory).agent.id == arc.id
    stored = to_plain(an_ask())
    address = decode({**stored, "target": arc.id, "resolved": "@arc"}, Ask)
    exact = decode({**stored, "sessionPolicy": "existing", "targetSessionId": "ses_1"}, Ask)
    project = decode({**stored, "projectPath": "/src/arc"}, Ask)
    assert [check_ask(one) for one in (address, exact, project)] == [address, exact, project]
    assert (exact.target_session_id, project.project_path) == ("ses_1", "/src/arc")


@pytest.mark.rows("R3.1-12")
@pytest.mark.parametrize(
    ("state", "action"),
    [
        (E.IDLE, ChoiceAction.DELIVER),
        (E.WORKING, ChoiceAction.DELIVER),
        (E.REGISTERED, ChoiceAction.WAKE),
        (E.UNREACHABLE, ChoiceAction.WAKE),
        (E.STALE, ChoiceAction.WAKE),
        (E.FAILED, ChoiceAction.WAKE),
    ],
)
def test_an_ask_for_a_session_goes_on_there(state: EndpointState, action: ChoiceAction) -> None:
    arc = agent("arc")
    wanted = endpoint(arc, id="ept_1", session_id="ses_1", state=state)
    better = endpoint(arc, id="ept_2", session_id="ses_2", preferred=True)
    choice = choose(arc, lambda: "@arc", [better, wanted], Demand(session_id="ses_1"), now=NOW)
    assert choice.endpoint is not None
    assert (choice.endpoint.id, choice.action) == ("ept_1", action)


@pytest.mark.rows("R3.1-12")
@pytest.mark.parametrize("policy", [SessionPolicy.EXISTING, SessionPolicy.REUSE])
def test_an_ask_for_a_session_that_is_over_fails(policy: SessionPolicy) -> None:
    arc = agent("arc")
    stopped = endpoint(arc, session_id="ses_1", state=E.STOPPED)
    other = endpoint(arc, "codex", session_id="ses_2", preferred=True)
    for there in ([other], [other, stopped], [stopped], []):
        told = refusal(choose, arc, lambda: "@arc", there, Demand(session_id="ses_1"), now=NOW)
        assert isinstance(told, NoSession)
    ask = an_ask(session_policy=policy, target_session_id="ses_1")
    if policy is SessionPolicy.EXISTING:
        assert create_flight(ident("flt"), check_ask(ask), T0).session_id == "ses_1"
    else:
        assert isinstance(refusal(check_ask, ask), BadRequest), "any session and that session contradict"


def place_agent(path: str, **more: Any) -> Agent:
    """An agent of the project in /src/hudson; its path says what sort of agent it is."""
    fields: dict[str, Any] = {"project_root": "/src/hudson", **more}
    return create_agent(f"id of {path}", AgentPath.parse(path), NOW, node="mini", by="test", **fields)


HUDSON = place_agent("/me/agent/hudson", definition_id="hudson")
OTHERS = {
    "sub": place_agent(
        "/me/agent/hudson/sub/0", definition_id="hudson", workspace="w-0", parent_id=HUDSON.id
    ),
    "memory": place_agent("/me/agent/hudson/memory", parent_id=HUDSON.id),
    "search": place_agent("/me/agent/hudson/search/0", parent_id=HUDSON.id),
    "cron": place_agent("/me/cron/nightly"),
}


@pytest.mark.rows("R3.1-13")
def test_a_project_path_means_the_base_agent_of_that_directory() -> None:
    profile = place_agent("/me/agent/hudson.qa", definition_id="hudson", profile="qa")
    tree = place_agent(
        "/me/agent/hudson.fix", definition_id="hudson", workspace="fix", working_dir="/src/hudson-fix"
    )
    for order in ([HUDSON, tree, profile], [profile, tree, HUDSON]):
        directory = fleet(*order)
        base = find("project:/src/hudson", directory)
        assert (base.agent.id, base.rule) == (HUDSON.id, "base agent of the project")
        assert find("project:/src/hudson-fix", directory).agent.workspace == "fix"
    only = refusal(find, "project:/src/hudson", fleet(profile, tree))
    assert isinstance(only, UnknownTarget)


@pytest.mark.rows("R3.1-14")
@pytest.mark.parametrize("kind", OTHERS)
def test_a_project_path_means_no_helper(kind: str) -> None:
    other = OTHERS[kind]
    assert other.kind.value == kind
    assert find("project:/src/hudson", fleet(other, HUDSON)).agent.id == HUDSON.id
    told = refusal(find, "project:/src/hudson", fleet(other))
    assert isinstance(told, UnknownTarget)
    assert [build_command_line(one) for one in told.remedies] == ["scout ask --project /src/hudson '…'"]


@pytest.mark.rows("R3.1-25")
def test_a_return_address_is_a_live_session_or_an_agent() -> None:
    wire = {**to_plain(an_ask()), "replyTo": "@arc", "replyToSessionId": "ses_1"}
    ask = check_ask(decode(wire, Ask))
    assert (to_plain(ask)["replyTo"], to_plain(ask)["replyToSessionId"]) == ("@arc", "ses_1")
    arc = agent("arc")
    live = endpoint(arc, id="ept_1", session_id="ses_1")
    directory = fleet((arc, [endpoint(arc, id="ept_0", session_id="ses_0", preferred=True), live]))
    directory.add_session(session(arc, "ses_1"))
    assert find(f"session:{ask.reply_to_session_id}", directory).endpoint_id == "ept_1"
    assert find(str(ask.reply_to), directory).agent.id == arc.id
    gone = fleet((arc, [endpoint(arc, id="ept_0", session_id="ses_0")]))
    gone.add_session(session(arc, "ses_1"))
    for directory in (gone, fleet(arc)):
        assert isinstance(refusal(find, "session:ses_1", directory), NoSession)
