"""Who may do what: defaults per credential, grants by segments, directories by segments."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.refusal import BadRequest, Diagnostic, Refused, Remedy
from scout.identity.path import AgentPath
from scout.model.access.grant import Action, Grant, GrantScope, GrantState
from scout.model.access.token import TokenKind, TokenState
from scout.model.problems.request import Forbidden, NotOwner, Unauthenticated
from scout.model.problems.session import DirectoryNotAllowed
from scout.policy.permit import (
    Actor,
    Allowed,
    Deed,
    Permission,
    Subject,
    check_directory,
    check_granted_directory,
    check_operation,
    check_project,
    identify_actor,
    permit,
)
from tests.model.samples import ALICE, T0, T1, a_grant, a_token, an_agent

ARC = AgentPath.parse("/u1/agent/arc")
AGENT = Actor(kind=TokenKind.AGENT, token_id="tok_arc", user="u1", agent_id="arc", path=ARC)
OPERATOR = Actor(kind=TokenKind.OPERATOR, token_id="tok_op", user="u1")
GUEST = Actor(kind=TokenKind.GUEST, token_id="tok_guest", user="u1")
HOST = Actor(kind=TokenKind.HOST, token_id="tok_host", user="u1")
NODE = Actor(kind=TokenKind.NODE, token_id="tok_node", node="mini")
TELEGRAM = Actor(kind=TokenKind.CONNECTOR, token_id="tok_tg", connector="telegram")
WHOAMI = Remedy(operation="whoami", parameters={}, why="see whose token this is")
THE_OPERATOR = "the operator's token"


def at(path: str, **facts: Any) -> Subject:
    """The agent at a path; its id is the path's last word."""
    base = Subject(name=path, path=AgentPath.parse(path), agent_id=path.rpartition("/")[2])
    return msgspec.structs.replace(base, **facts)


def thing(**facts: Any) -> Subject:
    return msgspec.structs.replace(Subject(name="it"), **facts)


def grant(
    action: Action, scope: GrantScope | str, held_by: str | None = "arc", user: str | None = None
) -> Grant:
    """A grant on a scope, or on a path and what is below it."""
    covered = GrantScope(path=AgentPath.parse(scope)) if isinstance(scope, str) else scope
    return a_grant(action=action, agent_id=held_by, user=user, scope=covered)


def rule(actor: Actor, deed: Deed, subject: Subject, *grants: Grant) -> str:
    """The rule of the permission, or nothing when it is refused."""
    try:
        return permit(actor, deed, subject, grants, T0).rule
    except Refused:
        return ""


def refusal(actor: Actor, deed: Deed, subject: Subject, *grants: Grant) -> Diagnostic:
    with pytest.raises(Refused) as caught:
        permit(actor, deed, subject, grants, T0)
    return caught.value.diagnostic


# --------------------------------------------------------------------------------------- defaults


def test_a_permission_carries_its_rule_and_facts() -> None:
    subject = at("/u1/agent/hudson")
    assert permit(AGENT, Deed.ASK, subject, (), T0) == Permission(
        deed=Deed.ASK, rule="of the same user", actor=AGENT, subject=subject
    )


@pytest.mark.parametrize(
    ("deed", "subject", "expected"),
    [
        (Deed.SEE, at("/u1/agent/hudson"), "of the same user"),
        (Deed.SEE, at("/u2/agent/hudson"), ""),
        (Deed.ADDRESS, at("/u1/agent/hudson"), "of the same user"),
        (Deed.ADDRESS, at("/u2/agent/hudson"), ""),
        (Deed.ADDRESS, at("/system/sweeper"), ""),
        (Deed.ADDRESS, thing(members=("arc",)), "a conversation it takes part in"),
        (Deed.ASK, at("/u1/telegram"), "of the same user"),
        (Deed.ASK, at("/u2/agent/arc"), ""),
        (Deed.ASK, thing(members=("arc",)), ""),
        (Deed.SPAWN, at("/u1/agent/arc"), "itself or a descendant"),
        (Deed.SPAWN, at("/u1/agent/arc/sub/0"), "itself or a descendant"),
        (Deed.SPAWN, at("/u1/agent/hudson"), ""),
        (Deed.READ, thing(members=("arc", "b")), "a conversation it takes part in"),
        (Deed.READ, thing(members=("b",)), ""),
        (Deed.READ, at("/u1/agent/arc/memory"), "itself or a descendant"),
        (Deed.READ, at("/u1/agent/hudson"), ""),
        (Deed.CONTROL, at("/u1/agent/arc"), "itself or a descendant"),
        (Deed.CONTROL, at("/u1/agent/arc/sub/0/sub/1"), "itself or a descendant"),
        (Deed.CONTROL, at("/u1/agent/arcade"), ""),
        (Deed.CONTROL, at("/u1/agent/hudson"), ""),
        (Deed.APPROVE, at("/u1/agent/arc/sub/0", user="u1"), ""),
        (Deed.APPROVE, at("/u1/agent/hudson"), ""),
        (Deed.ACT_AS, at("/u1/agent/arc"), "itself"),
        (Deed.ACT_AS, at("/u1/agent/arc/sub/0"), ""),
        (Deed.COMPLETE_FLIGHT, at("/u1/agent/arc"), "itself"),
        (Deed.COMPLETE_FLIGHT, at("/u1/agent/hudson"), ""),
        (Deed.FETCH_MAIL, at("/u1/agent/arc"), "itself"),
        (Deed.FETCH_MAIL, at("/u1/agent/hudson"), ""),
        (Deed.SET_ALIAS, thing(user="u1"), ""),
        (Deed.ADMINISTER, thing(user="u1"), ""),
        (Deed.ENROL, thing(), ""),
        (Deed.REPORT_HOOK, at("/u1/agent/arc"), ""),
    ],
)
def test_what_an_agent_may_do(deed: Deed, subject: Subject, expected: str) -> None:
    assert rule(AGENT, deed, subject) == expected


@pytest.mark.parametrize(
    ("deed", "subject", "expected"),
    [
        *((deed, at("/u2/agent/x"), "by its kind of token") for deed in Deed if deed not in ("act_as", "complete_flight")),
        (Deed.ACT_AS, at("/u1/agent/arc"), "of the same user"),
        (Deed.ACT_AS, at("/u2/agent/arc"), ""),
        (Deed.COMPLETE_FLIGHT, at("/u1/agent/arc"), ""),
    ],
)  # fmt: skip
def test_what_the_operator_may_do(deed: Deed, subject: Subject, expected: str) -> None:
    assert rule(OPERATOR, deed, subject) == expected


def test_the_operator_as_an_agent_of_its_own() -> None:
    direct = msgspec.structs.replace(OPERATOR, agent_id="direct", path=AgentPath.parse("/u1/direct"))
    assert rule(direct, Deed.ACT_AS, at("/u1/direct")) == "itself"
    assert rule(direct, Deed.COMPLETE_FLIGHT, at("/u1/direct")) == "itself"


@pytest.mark.parametrize("kind", [AGENT, OPERATOR])
def test_a_token_may_act_for_those_it_names(kind: Actor) -> None:
    actor = msgspec.structs.replace(kind, acts_for=("kid",))
    assert rule(actor, Deed.ACT_AS, at("/u9/agent/kid")) == "its token may act for it"
    assert rule(actor, Deed.ACT_AS, at("/u9/agent/other")) == ""
    assert rule(actor, Deed.ACT_AS, thing()) == ""


PERSON = msgspec.structs.replace(
    AGENT, agent_id="direct", path=AgentPath.parse("/u1/direct"), subusers=("kid",)
)
OWNED = (Deed.SEE, Deed.ADDRESS, Deed.ASK, Deed.SPAWN, Deed.READ, Deed.CONTROL, Deed.APPROVE)


@pytest.mark.rows("R9.users-4")
@pytest.mark.parametrize("deed", OWNED)
def test_a_person_controls_what_is_theirs_and_their_sub_users(deed: Deed) -> None:
    assert rule(PERSON, deed, at("/u1/agent/arc"))
    assert rule(PERSON, deed, at("/kid/agent/toy")) == "the person's own"
    assert rule(PERSON, deed, thing(user="kid")) == "the person's own"
    assert rule(PERSON, deed, at("/u2/agent/arc")) == ""
    assert rule(PERSON, deed, thing()) == ""
    program = msgspec.structs.replace(AGENT, subusers=("kid",))
    assert rule(program, deed, at("/kid/agent/toy")) == ""


def test_a_person_sets_their_own_aliases_only() -> None:
    assert rule(PERSON, Deed.SET_ALIAS, thing(user="u1")) == "the person it is for"
    assert rule(PERSON, Deed.SET_ALIAS, thing(user="kid")) == ""


@pytest.mark.parametrize("deed", [Deed.ADMINISTER, Deed.ENROL, Deed.REPORT_HOOK])
def test_a_person_is_not_the_operator(deed: Deed) -> None:
    assert rule(PERSON, deed, at("/u1/agent/arc")) == ""


def test_a_person_with_control_decides_and_a_program_does_not() -> None:
    theirs = at("/u2/agent/arc")
    control = grant(Action.CONTROL, "/u2/agent/arc", None, "u1")
    assert rule(PERSON, Deed.APPROVE, theirs, control) == "grant"
    assert rule(AGENT, Deed.APPROVE, theirs, control) == ""
    assert rule(PERSON, Deed.APPROVE, theirs, grant(Action.READ, "/u2/agent/arc", None, "u1")) == ""
    assert rule(PERSON, Deed.APPROVE, msgspec.structs.replace(theirs, agent_id="direct"), control) == ""


def test_only_a_person_has_users_of_their_own() -> None:
    assert (PERSON.is_person, PERSON.own_users) == (True, ("u1", "kid"))
    assert (AGENT.is_person, AGENT.own_users) == (False, ())
    assert (GUEST.is_person, GUEST.own_users) == (False, ())


def test_another_user_reaches_the_folders_that_were_granted() -> None:
    assert check_granted_directory("/w/app/src", ("/w/lib", "/w/app"), "u2") == "/w/app/src"
    for folder in ("/w", "/w/application", "/home"):
        with pytest.raises(Refused) as caught:
            check_granted_directory(folder, ("/w/app",), "u2")
        parameters = {"action": "spawn", "holder": "u2", "project": folder}
        assert caught.value.diagnostic == DirectoryNotAllowed(
            directory=folder,
            roots=("/w/app",),
            remedies=(Remedy(operation="grant.add", parameters=parameters, why="for the operator"),),
        )


@pytest.mark.parametrize("deed", list(Deed))
def test_a_guest_only_reads(deed: Deed) -> None:
    expected = "of the same user" if deed in (Deed.SEE, Deed.READ) else ""
    assert rule(GUEST, deed, at("/u1/agent/arc")) == expected
    assert rule(GUEST, deed, at("/u2/agent/arc")) == ""
    nobody = Actor(kind=TokenKind.GUEST, token_id="t")
    assert rule(nobody, deed, thing()) == ""


@pytest.mark.parametrize("deed", list(Deed))
def test_a_host_only_enrols_reports_and_fetches(deed: Deed) -> None:
    mine = at("/u1/agent/arc", enrolled_by="tok_host")
    expected = {
        Deed.ENROL: "by its kind of token",
        Deed.REPORT_HOOK: "a session that it enrolled",
        Deed.FETCH_MAIL: "a session that it enrolled",
    }
    assert rule(HOST, deed, mine) == expected.get(deed, "")
    others = at("/u1/agent/arc", enrolled_by="tok_host2")
    assert rule(HOST, deed, others) == ("by its kind of token" if deed is Deed.ENROL else "")


@pytest.mark.parametrize("deed", list(Deed))
def test_a_node_speaks_for_its_own_agents_only(deed: Deed) -> None:
    expected = "of its node" if deed is Deed.ACT_AS else ""
    assert rule(NODE, deed, at("/u1/agent/arc", node="mini")) == expected
    assert rule(NODE, deed, at("/u1/agent/arc", node="mini2")) == ""
    assert rule(NODE, deed, thing()) == ""


@pytest.mark.parametrize("deed", list(Deed))
def test_a_connector_serves_its_own_agents_and_the_person_who_spoke(deed: Deed) -> None:
    agents = {Deed.SEE, Deed.ADDRESS, Deed.READ, Deed.ACT_AS}
    assert rule(TELEGRAM, deed, at("/u1/telegram")) == ("of its connector" if deed in agents else "")
    assert rule(TELEGRAM, deed, at("/u1/whatsapp")) == ""
    assert rule(TELEGRAM, deed, thing()) == ""
    speaker = msgspec.structs.replace(TELEGRAM, user="u1")
    persons = {Deed.SEE, Deed.APPROVE, Deed.SET_ALIAS}
    assert rule(speaker, deed, thing(user="u1")) == ("of the same user" if deed in persons else "")
    assert rule(speaker, deed, thing(user="u2")) == ""


@pytest.mark.rows("R1.3-6")
def test_agents_read_aliases_and_only_people_set_them() -> None:
    mine = thing(name="alias huddy", user="u1", path=None)
    assert rule(OPERATOR, Deed.SET_ALIAS, mine)
    assert rule(msgspec.structs.replace(TELEGRAM, user="u1"), Deed.SET_ALIAS, mine)
    for actor in (AGENT, GUEST, HOST, NODE):
        assert rule(actor, Deed.SET_ALIAS, mine) == ""
    assert refusal(AGENT, Deed.SET_ALIAS, mine) == Forbidden(
        action="set_alias",
        subject="alias huddy",
        needs=(THE_OPERATOR,),
        remedies=(
            Remedy(
                operation="need",
                parameters={"question": "please set alias: alias huddy"},
                why="a person may do it",
            ),
        ),
    )
    assert rule(AGENT, Deed.SEE, mine) == "of the same user"
    assert rule(AGENT, Deed.SEE, thing(user="u2")) == ""


@pytest.mark.rows("R2.2-57", "R3.5-25")
def test_only_the_target_completes_a_flight() -> None:
    flight = at("/u1/agent/hudson", name="flt_1")
    for actor in (OPERATOR, AGENT, GUEST, HOST, NODE, TELEGRAM):
        assert refusal(actor, Deed.COMPLETE_FLIGHT, flight) == NotOwner(
            noun="flight",
            id="flt_1",
            owner_id="hudson",
            needs=("the token of /u1/agent/hudson",),
            remedies=(WHOAMI,),
        )
    told = refusal(AGENT, Deed.COMPLETE_FLIGHT, thing(name="flt_2", agent_id="x"))
    assert isinstance(told, NotOwner)
    assert (told.owner_id, told.needs) == ("x", ("the token of x",))
    told = refusal(AGENT, Deed.COMPLETE_FLIGHT, thing(name="flt_2"))
    assert isinstance(told, NotOwner)
    assert told.owner_id == ""


def test_approving_needs_a_credential_that_is_not_the_requesters() -> None:
    asked = at("/u1/agent/arc", name="att_1", requester_token_id="tok_arc")
    other_session = msgspec.structs.replace(AGENT, token_id="tok_arc2")
    child = at("/u1/agent/arc/sub/0", name="att_2", user="u1", requester_token_id="tok_child")
    assert rule(OPERATOR, Deed.APPROVE, asked) == "by its kind of token"
    for path, expected in (("/u1/direct", "the person it is for"), ("/u2/direct", ""), ("/u1/agent/arc", "")):
        one = AgentPath.parse(path)
        actor = Actor(kind=TokenKind.AGENT, token_id="t", user=one.user, agent_id="p", path=one)
        assert rule(actor, Deed.APPROVE, child) == expected
    for actor in (AGENT, other_session):
        told = refusal(actor, Deed.APPROVE, asked)
        assert isinstance(told, Forbidden)
        assert told.needs == ("a credential that is not the requester's", THE_OPERATOR)
        assert told.remedies[0].parameters == {"question": "please approve: att_1"}
    own = at("/u1/agent/arc", name="att_3", requester_token_id="tok_op")
    told = refusal(OPERATOR, Deed.APPROVE, own)
    assert isinstance(told, Forbidden)
    assert (told.needs[0], told.remedies) == ("a credential that is not the requester's", (WHOAMI,))


def test_a_credential_may_do_other_things_to_its_own_request() -> None:
    asked = at("/u1/agent/arc", requester_token_id="tok_arc")
    assert rule(AGENT, Deed.CONTROL, asked) == "itself or a descendant"


@pytest.mark.parametrize(
    ("actor", "deed", "needs"),
    [
        (GUEST, Deed.ASK, (THE_OPERATOR,)),
        (AGENT, Deed.ADMINISTER, (THE_OPERATOR,)),
        (AGENT, Deed.ACT_AS, ("the token of that agent",)),
        (AGENT, Deed.ENROL, ("a host token",)),
        (AGENT, Deed.REPORT_HOOK, ("the host token that enrolled the session",)),
        (
            HOST,
            Deed.FETCH_MAIL,
            ("the token of that agent", "the host token that enrolled the session"),
        ),
        (HOST, Deed.READ, (THE_OPERATOR,)),
    ],
)
def test_a_refusal_says_which_credential_would_do(actor: Actor, deed: Deed, needs: tuple[str, ...]) -> None:
    told = refusal(actor, deed, at("/u2/agent/x"))
    assert isinstance(told, Forbidden)
    assert (told.action, told.subject, told.needs) == (deed, "/u2/agent/x", needs)
    question = {"question": f"please {deed.replace('_', ' ')}: /u2/agent/x"}
    need = Remedy(operation="need", parameters=question, why="a person may do it")
    assert told.remedies == ((need,) if actor is AGENT else (WHOAMI,))


# ----------------------------------------------------------------------------------------- grants


@pytest.mark.rows("R1.4-33", "R3.5-25")
def test_another_users_subtree_needs_a_grant_and_the_refusal_has_the_command() -> None:
    subject = at("/u2/agent/hudson")
    assert refusal(AGENT, Deed.ADDRESS, subject) == Forbidden(
        action="address",
        subject="/u2/agent/hudson",
        needs=("the grant address", THE_OPERATOR),
        remedies=(
            Remedy(
                operation="grant.add",
                parameters={"action": "address", "agent": "/u1/agent/arc", "path": "/u2/agent/hudson"},
                why="for the operator",
            ),
        ),
    )
    given_it = grant(Action.ADDRESS, "/u2/agent/hudson")
    assert permit(AGENT, Deed.ADDRESS, subject, (given_it,), T0) == Permission(
        deed=Deed.ADDRESS, rule="grant", actor=AGENT, subject=subject, grant_id=given_it.id
    )


def test_to_see_an_agent_the_grant_to_read_is_offered() -> None:
    told = refusal(AGENT, Deed.SEE, at("/u2/agent/x"))
    assert isinstance(told, Forbidden)
    assert (told.action, told.needs) == ("see", ("the grant read", THE_OPERATOR))
    assert told.remedies[0].parameters["action"] == "read"


@pytest.mark.parametrize(
    ("facts", "scope"),
    [
        ({"conversation_id": "cnv_1", "project_root": "/p", "user": "u2"}, {"channel": "cnv_1"}),
        ({"project_root": "/p", "user": "u2"}, {"project": "/p"}),
        ({"user": "u2"}, {"user": "u2"}),
        ({}, {}),
    ],
)
def test_the_grant_offered_is_as_narrow_as_can_be(facts: dict[str, str], scope: dict[str, str]) -> None:
    nameless = msgspec.structs.replace(AGENT, path=None)
    told = refusal(nameless, Deed.READ, thing(**facts))
    assert told.remedies[0].parameters == {"action": "read", "agent": "arc", **scope}


_A = GrantScope(path=AgentPath.parse("/u2/agent/a"))
_SUB = GrantScope(path=AgentPath.parse("/u2/agent/a/sub/1"))


@pytest.mark.parametrize(
    ("scope", "subject", "covered"),
    [
        (_A, at("/u2/agent/a"), True),
        (_A, at("/u2/agent/a/sub/0/memory"), True),
        (_A, at("/u2/agent/ab"), False),
        (_SUB, at("/u2/agent/a/sub/10"), False),
        (_SUB, at("/u2/agent/a"), False),
        (_A, thing(user="u2"), False),
        (GrantScope(user="u2"), at("/u2/agent/a"), True),
        (GrantScope(user="u2"), at("/u22/agent/a"), False),
        (GrantScope(user="u2"), at("/u3/agent/a", user="u2"), False),
        (GrantScope(user="u2"), thing(user="u2"), True),
        (GrantScope(project_root="/p/x"), thing(project_root="/p/x"), True),
        (GrantScope(project_root="/p/x"), thing(project_root="/p/xy"), False),
        (GrantScope(project_root="/p/x"), thing(), False),
        (GrantScope(conversation_id="cnv_1"), thing(conversation_id="cnv_1"), True),
        (GrantScope(conversation_id="cnv_1"), thing(conversation_id="cnv_2"), False),
        (GrantScope(), thing(), False),
    ],
)
def test_what_a_grant_covers(scope: GrantScope, subject: Subject, covered: bool) -> None:
    assert rule(AGENT, Deed.READ, subject, grant(Action.READ, scope)) == ("grant" if covered else "")


@pytest.mark.parametrize(
    ("action", "deeds"),
    [
        (Action.ADDRESS, {Deed.SEE, Deed.ADDRESS}),
        (Action.ASK, {Deed.SEE, Deed.ADDRESS, Deed.ASK}),
        (Action.SPAWN, {Deed.SEE, Deed.SPAWN}),
        (Action.READ, {Deed.SEE, Deed.READ}),
        (Action.CONTROL, {Deed.SEE, Deed.ADDRESS, Deed.ASK, Deed.SPAWN, Deed.READ, Deed.CONTROL}),
    ],
)
def test_what_a_grant_allows(action: Action, deeds: set[Deed]) -> None:
    given_it = grant(action, "/u2/agent/x")
    assert {deed for deed in Deed if rule(AGENT, deed, at("/u2/agent/x"), given_it)} == deeds


@pytest.mark.parametrize(
    ("holder", "user", "actor", "held"),
    [
        ("arc", None, AGENT, True),
        ("other", None, AGENT, False),
        (None, "u1", AGENT, True),
        (None, "u2", AGENT, False),
        (None, None, AGENT, False),
        (None, "u1", GUEST, True),
        (None, "u1", HOST, False),
        (None, "u1", msgspec.structs.replace(NODE, user="u1"), False),
        (None, "u1", msgspec.structs.replace(TELEGRAM, user="u1"), False),
    ],
)
def test_who_holds_a_grant(holder: str | None, user: str | None, actor: Actor, held: bool) -> None:
    given_it = grant(Action.READ, "/u2/agent/x", holder, user)
    assert rule(actor, Deed.READ, at("/u2/agent/x"), given_it) == ("grant" if held else "")


def test_a_guest_stays_read_only_whatever_its_user_was_granted() -> None:
    everything = grant(Action.CONTROL, "/u2/agent/x", None, "u1")
    allowed = [deed for deed in Deed if rule(GUEST, deed, at("/u2/agent/x"), everything)]
    assert allowed == [Deed.SEE, Deed.READ]


def test_a_grant_that_is_over_gives_nothing() -> None:
    good = msgspec.structs.replace(grant(Action.READ, "/u2/agent/x"), id="grt_good", expires_at=T1)
    over = msgspec.structs.replace(good, id="grt_over", expires_at=T0)
    revoked = msgspec.structs.replace(good, id="grt_revoked", state=GrantState.REVOKED)
    assert rule(AGENT, Deed.READ, at("/u2/agent/x"), over, revoked) == ""
    found = permit(AGENT, Deed.READ, at("/u2/agent/x"), (over, revoked, good), T0)
    assert found.grant_id == "grt_good"


_segments = st.text("abc01.", min_size=1, max_size=4).filter(lambda text: text not in (".", ".."))


@given(_segments, _segments, st.sampled_from(list(Action)), st.sampled_from(list(Deed)))
def test_a_longer_name_is_never_below_a_shorter_one(name: str, more: str, action: Action, deed: Deed) -> None:
    """Neither a default nor a grant is fooled by a name that begins with another name."""
    path, trick = AgentPath.parse(f"/u2/agent/{name}"), AgentPath.parse(f"/u2/agent/{name}{more}")
    given_it = grant(action, str(path))
    assert rule(AGENT, deed, Subject(name="x", path=trick), given_it) == ""
    inside = msgspec.structs.replace(AGENT, path=path, user=None)
    assert rule(inside, deed, Subject(name="x", path=trick)) == ""


# ------------------------------------------------------------------------------------- credentials


@pytest.mark.rows("R3.5-25")
def test_without_a_credential_nobody_acts() -> None:
    with pytest.raises(Refused) as caught:
        identify_actor(None, T0)
    new = Remedy(operation="token.create", parameters={"kind": "agent"}, why="for the operator")
    assert caught.value.diagnostic == Unauthenticated(
        reason="no credential", needs=("an agent's token", THE_OPERATOR), remedies=(new,)
    )


def test_a_token_stands_for_its_agent() -> None:
    agent = an_agent()
    token = a_token(kind=TokenKind.AGENT, agent_id=ALICE, session_id="ses_1", user="elsewhere")
    assert identify_actor(token, T0, agent) == Actor(
        kind=TokenKind.AGENT,
        token_id=token.id,
        user="u1",
        agent_id=ALICE,
        path=agent.path,
        session_id="ses_1",
    )


def test_other_tokens_stand_for_themselves() -> None:
    token = a_token(kind=TokenKind.CONNECTOR, connector="telegram", user="u7", node="mini", agent_id=None)
    assert identify_actor(token, T0) == Actor(
        kind=TokenKind.CONNECTOR, token_id=token.id, user="u7", node="mini", connector="telegram"
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": TokenState.REVOKED}, "the token is revoked"),
        ({"state": TokenState.EXPIRED}, "the token is expired"),
        ({"expires_at": T0}, f"the token expired at {T0}"),
    ],
)
def test_a_token_that_is_over_is_no_credential(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Refused) as caught:
        identify_actor(a_token(**changes), T0)
    assert isinstance(caught.value.diagnostic, Unauthenticated)
    assert caught.value.diagnostic.reason == reason


def test_a_token_of_another_agent_is_refused() -> None:
    token = a_token(kind=TokenKind.AGENT, agent_id="other")
    with pytest.raises(Refused) as caught:
        identify_actor(token, T0, an_agent())
    assert caught.value.diagnostic == Unauthenticated(
        reason="the token is not bound to /u1/agent/arc",
        needs=("the token of /u1/agent/arc",),
        remedies=(WHOAMI,),
    )


# ------------------------------------------------------------------------------------- directories

HOME = "/data/me"


def test_the_folder_that_was_asked_for_is_offered_not_a_repository_elsewhere() -> None:
    told = not_allowed("/etc", "/p/talkie", repository="/p/talkie")
    assert [remedy.parameters for remedy in told.remedies] == [{"add": "/etc"}]


def not_allowed(
    directory: str, *roots: str, actor: Actor = AGENT, repository: str | None = None
) -> Diagnostic:
    with pytest.raises(Refused) as caught:
        check_directory(directory, roots, actor, HOME, repository)
    return caught.value.diagnostic


@pytest.mark.parametrize(
    ("root", "directory", "inside"),
    [
        ("/p/talkie", "/p/talkie", True),
        ("/p/talkie", "/p/talkie/src/a", True),
        ("/p/talkie/", "/p/talkie", True),
        ("/p/talkie", "/p//talkie/", True),
        ("/p/talkie", "/p/talkie2", False),
        ("/p/talkie", "/p", False),
        ("/p/talkie", "/q/talkie", False),
        ("/", "/p", True),
    ],
)
def test_a_program_starts_below_an_allowed_root_only(root: str, directory: str, inside: bool) -> None:
    if inside:
        assert check_directory(directory, ("/z", root), AGENT, HOME) == Allowed(
            directory=directory, rule="allowed root", root=root
        )
    else:
        assert isinstance(not_allowed(directory, "/z", root), DirectoryNotAllowed)


@pytest.mark.rows("R3.5-18")
def test_the_refusal_of_a_directory_has_the_command_that_allows_it() -> None:
    def allow(directory: str) -> Remedy:
        return Remedy(operation="config.roots", parameters={"add": directory}, why="for the operator")

    assert not_allowed("/p/x", "/q") == DirectoryNotAllowed(
        directory="/p/x", roots=("/q",), remedies=(allow("/p/x"),)
    )
    assert not_allowed("/p/x", repository="/p").remedies == (allow("/p"),)


def test_a_repository_below_home_becomes_a_root_when_the_operator_names_it() -> None:
    directory, repository = f"{HOME}/dev/talkie/src", f"{HOME}/dev/talkie"
    assert check_directory(directory, (), OPERATOR, HOME, repository) == Allowed(
        directory=directory, rule="the operator's own repository", root=repository, adds_root=True
    )
    for actor in (AGENT, GUEST, HOST, NODE, TELEGRAM):
        assert isinstance(not_allowed(directory, actor=actor, repository=repository), DirectoryNotAllowed)


@pytest.mark.parametrize(
    ("directory", "repository"),
    [
        (f"{HOME}/dev/talkie", None),
        (f"{HOME}/dev/talkie", HOME),
        (f"{HOME}/dev/talkie", "/data"),
        (f"{HOME}2/talkie", f"{HOME}2/talkie"),
        (f"{HOME}/dev/other", f"{HOME}/dev/talkie"),
    ],
)
def test_nothing_else_becomes_a_root_by_itself(directory: str, repository: str | None) -> None:
    told = not_allowed(directory, actor=OPERATOR, repository=repository)
    assert isinstance(told, DirectoryNotAllowed)


@pytest.mark.parametrize("path", ["p", "", "./p", "/p/../q", "/p/./q", "/.."])
def test_a_path_that_could_lead_elsewhere_is_not_interpreted(path: str) -> None:
    problem = BadRequest(problem=f"expected a real absolute path, got {path}", field="directory")
    assert not_allowed(path, "/p") == problem
    assert not_allowed("/p", path) == problem
    with pytest.raises(Refused) as caught:
        check_project(path, HOME)
    assert caught.value.diagnostic == problem


@pytest.mark.parametrize("directory", ["/", "//", HOME, f"{HOME}/", "/tmp", "/var/tmp"])
def test_the_root_home_and_temporary_roots_are_no_projects(directory: str) -> None:
    with pytest.raises(Refused) as caught:
        check_project(directory, HOME, ("/tmp", "/var/tmp"))
    remedy = Remedy(operation="who", parameters={}, why="list agents and their projects")
    problem = f"{directory} is not a project: use a project folder"
    assert caught.value.diagnostic == BadRequest(problem=problem, field="directory", remedies=(remedy,))


@pytest.mark.parametrize("directory", [f"{HOME}/dev", "/tmp/x", "/srv"])
def test_other_directories_may_be_projects(directory: str) -> None:
    assert check_project(directory, HOME, ("/tmp", "/var/tmp")) == directory


def test_a_host_opens_two_doors_and_no_other() -> None:
    for operation in ("session.enrol", "session.hook"):
        check_operation(HOST, operation)
    with pytest.raises(Refused) as caught:
        check_operation(HOST, "whoami")
    assert caught.value.diagnostic.code == "forbidden"
    check_operation(AGENT, "whoami")


def test_a_browser_session_is_the_operator() -> None:
    token = a_token(kind=TokenKind.BROWSER, agent_id=None, user="u1")
    assert identify_actor(token, T0).kind is TokenKind.OPERATOR


def test_a_sign_in_link_is_only_exchanged() -> None:
    link = Actor(kind=TokenKind.LINK, token_id="tok_link", user="u1")
    check_operation(link, "whoami")
    check_operation(link, "token.rotate")
    for operation in ("now", "ask", "token.create"):
        with pytest.raises(Refused):
            check_operation(link, operation)
    with pytest.raises(Refused):
        permit(link, Deed.SEE, Subject(name="x", user="u1"), (), T0)
