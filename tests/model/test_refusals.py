"""What each check of this room says when it declines: the whole diagnostic, field and all."""

from collections.abc import Callable

import pytest

from scout.base.refusal import BadRequest, Candidate, Diagnostic, Refused, Remedy, WrongState
from scout.identity.path import AgentPath
from scout.model.access.grant import GrantScope, check_grant
from scout.model.access.token import TokenKind, TokenState, check_token, require_valid
from scout.model.agent import read_config, update_agent
from scout.model.alias import AliasTarget, check_target
from scout.model.ask import SessionPolicy, check_ask
from scout.model.attention import AttentionKind, AttentionMove, check_attention, decide_attention
from scout.model.card import CardState, check_card, use_card
from scout.model.conversation import ConversationKind, check_body, check_kind
from scout.model.delivery import DeliveryState, ack, check_origin, lease, nack
from scout.model.endpoint import update_endpoint
from scout.model.flight import FlightPhase, FlightState, hold_flight, note_flight, retry_flight
from scout.model.people.binding import Surface, check_binding
from scout.model.people.schedule import check_schedule
from scout.model.people.user import check_user
from scout.model.problems.diagnostics import find_diagnostic
from scout.model.problems.request import NotFound, NotOwner, TooLarge, Unauthenticated
from scout.model.problems.session import Layer, SessionNotAttachable
from scout.model.problems.target import ExpiredCard
from scout.model.question import answer_question, create_question
from scout.model.ref import Ref
from scout.model.session import SessionClass, SessionState, resume_session
from scout.model.usage import check_usage
from scout.model.waiting import WaitingKind, WaitingOn, check_waiting
from scout.model.work_item import (
    Progress,
    RelationKind,
    WorkState,
    create_work,
    give_next_move,
    hand_over_work,
    relate_work,
    update_progress,
    update_work,
    wait_work,
)
from tests.model.samples import (
    ALICE,
    BACK_OFF,
    BOB,
    OPERATOR,
    T0,
    T1,
    a_binding,
    a_card,
    a_conversation,
    a_delivery,
    a_flight,
    a_grant,
    a_question,
    a_schedule,
    a_session,
    a_token,
    a_usage,
    a_user,
    a_work_item,
    an_agent,
    an_ask,
    an_attention,
    an_endpoint,
    ident,
)

ON = WaitingOn(kind=WaitingKind.ACTOR)
ATTACH = Remedy(
    operation="send",
    parameters={"body": "see the attachment", "attachments": "…"},
    why="attach it as a file",
)
NEAR = ("no_session", "session_busy", "session_failed")
CONFIG = (
    "name, username, description, systemPrompt, workspaceDir, appId, harness, model, command, wakePolicy, "
    "permissionProfile, effort, url, credentialFile"
)


def bad(problem: str, field: str = "") -> BadRequest:
    return BadRequest(problem=problem, field=field)


TOLD: dict[str, tuple[Callable[[], object], Diagnostic]] = {
    "agent": (
        lambda: update_agent(an_agent(), T1, path="/x"),
        bad(
            "an agent's path cannot be changed; these can: config, model_role, project_root, tool_role, working_dir",
            "path",
        ),
    ),
    "config key": (
        lambda: read_config({"wakepolice": 1}),
        BadRequest(
            problem=f"unknown config key 'wakepolice'; known keys: {CONFIG}",
            field="wakepolice",
            candidates=(Candidate(address="wakePolicy"),),
        ),
    ),
    "connector id in config": (
        lambda: read_config({"connectorUserId": "5"}),
        bad(
            "connectorUserId does not belong in a config: a connector key holds the external id",
            "connectorUserId",
        ),
    ),
    "endpoint": (
        lambda: update_endpoint(an_endpoint(), T1, node="maxi"),
        bad("an endpoint's node cannot be changed: register a new endpoint", "node"),
    ),
    "session": (
        lambda: resume_session(
            a_session(state=SessionState.ENDED, session_class=SessionClass.TERMINAL, reason="deleted"), T1
        ),
        SessionNotAttachable(
            session_id=ident("ses"),
            layer=Layer.HARNESS,
            reason="it is terminal; deleted",
            remedies=(
                Remedy(
                    operation="session.start",
                    parameters={"agent": ALICE, "harness": "claude"},
                    why="a new session",
                ),
            ),
        ),
    ),
    "alias": (
        lambda: check_target(AliasTarget()),
        bad("an alias names either an agent or a session", "target"),
    ),
    "alias of a session": (
        lambda: check_target(AliasTarget(session_id="s", harness="codex")),
        bad("a session already has its harness, model and node: name the session alone", "target"),
    ),
    "surrogate": (
        lambda: check_body("a\ud800"),
        BadRequest(
            problem="a lone surrogate at character 1: the body must be valid Unicode",
            field="body",
            remedies=(ATTACH,),
        ),
    ),
    "NUL": (
        lambda: check_body("a\0b\0"),
        BadRequest(problem="a NUL at character 1: the body must be text", field="body", remedies=(ATTACH,)),
    ),
    "large body": (
        lambda: check_body("x" * 262_145),
        TooLarge(what="body", size=262_145, limit=262_144, remedies=(ATTACH,)),
    ),
    "channel": (
        lambda: check_kind(a_conversation(kind=ConversationKind.CHANNEL)),
        bad("a channel needs a name and an owner", "kind"),
    ),
    "thread": (
        lambda: check_kind(a_conversation(kind=ConversationKind.THREAD)),
        bad("a thread needs its parent conversation", "kind"),
    ),
    "ask": (
        lambda: check_ask(an_ask(session_policy=SessionPolicy.FORK)),
        bad("existing and fork need a session; new and reuse take none", "targetSessionId"),
    ),
    "waiting": (
        lambda: check_waiting(ON, None),
        bad(
            "waiting needs a next move owner (nextMoveOwnerId) or an end time (until)",
            "nextMoveOwnerId",
        ),
    ),
    "retry": (
        lambda: retry_flight(a_flight(state=FlightState.RUNNING), an_ask(), ident("flt"), T1),
        WrongState(
            noun="flight",
            state="running",
            move="retry",
            accepts=("wait", "complete", "fail", "cancel"),
            terminal=False,
        ),
    ),
    "hold": (
        lambda: hold_flight(a_flight(state=FlightState.FAILED), ON, T1, next_move_owner_id=BOB),
        WrongState(noun="flight", state="failed", move="hold", accepts=(), terminal=True),
    ),
    "note": (
        lambda: note_flight(a_flight(state=FlightState.CANCELLED), FlightPhase.STEERING, T1),
        WrongState(noun="flight", state="cancelled", move="steering", accepts=(), terminal=True),
    ),
    "origin": (
        lambda: check_origin(a_delivery(message_id=None)),
        bad("a delivery derives from a message, an ask or a work item"),
    ),
    "holder": (
        lambda: ack(lease(a_delivery(), "one", T0), "other", T1),
        NotOwner(noun="delivery", id=ident("dlv"), owner_id="one", needs=("the lease",)),
    ),
    "nobody's lease": (
        lambda: ack(a_delivery(state=DeliveryState.LEASED), "other", T1),
        NotOwner(noun="delivery", id=ident("dlv"), owner_id="", needs=("the lease",)),
    ),
    "retryAfter": (
        lambda: nack(lease(a_delivery(), "d", T0), "d", T1, retry_after=-1, rule=BACK_OFF),
        bad("retryAfter is 0 to 86400 seconds", "retryAfter"),
    ),
    "question": (
        lambda: create_question("q", "", T1, asker_id=ALICE, responder_id=BOB),
        bad("a question needs a text, an asker and a responder"),
    ),
    "answer": (
        lambda: answer_question(a_question(), " ", T1),
        bad("an answer needs a text; to say no, decline", "answer"),
    ),
    "work": (
        lambda: create_work("w", "x", T1, requester_id=ALICE, owner_id=""),
        bad("a work item needs a title, a requester and an owner"),
    ),
    "work waits": (
        lambda: wait_work(a_work_item(), ON, "", T1),
        bad("a waiting work item needs a next-move owner", "nextMoveOwnerId"),
    ),
    "hand over": (
        lambda: hand_over_work(a_work_item(), "", T1),
        bad("handing over needs the new owner", "ownerId"),
    ),
    "next move": (
        lambda: give_next_move(a_work_item(state=WorkState.DONE), BOB, "", T1),
        bad("an open work item needs a next-move owner", "nextMoveOwnerId"),
    ),
    "relation": (
        lambda: relate_work(a_work_item(), RelationKind.BLOCKS, ident("wrk"), T1),
        bad("a work item cannot be related to itself", "workItemId"),
    ),
    "work update": (
        lambda: update_work(a_work_item(), T1, state="done"),
        bad(
            "a work item's state changes by a move; editable: conversation_id, description, due_at, labels, "
            "priority, reviewer_id, title",
            "state",
        ),
    ),
    "progress": (
        lambda: update_progress(a_work_item(state=WorkState.WORKING), Progress(percent=101), T1),
        bad("progress is 0 to total steps and 0 to 100 percent", "progress"),
    ),
    "consult": (
        lambda: check_attention(an_attention(AttentionKind.CONSULT)),
        bad("a consult continues without an answer, so it needs a default action", "defaultAction"),
    ),
    "action": (
        lambda: decide_attention(an_attention(AttentionKind.NOTIFY), AttentionMove.DENY, OPERATOR, T1),
        bad("a notify takes dismiss, not deny", "move"),
    ),
    "attention answer": (
        lambda: decide_attention(an_attention(AttentionKind.QUESTION), AttentionMove.ANSWER, OPERATOR, T1),
        bad("an answer needs a text", "answer"),
    ),
    "binding": (
        lambda: check_binding(a_binding(agent_id=ALICE)),
        bad("a binding leads to either a conversation or an agent"),
    ),
    "harness binding": (
        lambda: check_binding(a_binding(surface=Surface.HARNESS)),
        bad(
            "a harness thread is bound by its session's id; the provider's own stays in the session",
            "externalId",
        ),
    ),
    "card": (lambda: check_card(a_card(max_uses=0)), bad("a card has at least one use", "maxUses")),
    "used card": (
        lambda: use_card(a_card(state=CardState.USED, uses=2, max_uses=2, cleanup_reason="used up"), T1),
        ExpiredCard(card_id=ident("crd"), state="used", uses=2, max_uses=2, reason="used up"),
    ),
    "late card": (
        lambda: use_card(a_card(expires_at=T0), T1),
        ExpiredCard(card_id=ident("crd"), state="expired", uses=0, max_uses=1, reason=""),
    ),
    "usage": (
        lambda: check_usage(a_usage(prompt_tokens=-1)),
        bad("token counts are from 0 to 10^12, and the total is not below its parts", "totalTokens"),
    ),
    "user": (
        lambda: check_user(a_user(name="a b")),
        bad("'a b' cannot be a user id: letters, digits and . _ ~ - and not a path word", "name"),
    ),
    "token": (
        lambda: check_token(a_token(kind=TokenKind.NODE)),
        bad("a token of kind node needs its node", "node"),
    ),
    "revoked token": (
        lambda: require_valid(a_token(state=TokenState.REVOKED), T1),
        Unauthenticated(reason="the token is revoked", needs=("another agent token",)),
    ),
    "grant scope": (
        lambda: check_grant(a_grant(scope=GrantScope(path=AgentPath.parse("/u1/telegram"), user="u1"))),
        bad("a grant is for one path, one user, one project or one channel", "scope"),
    ),
    "grant holder": (
        lambda: check_grant(a_grant(agent_id=None)),
        bad("a grant is held by either an agent or a user"),
    ),
    "schedule": (
        lambda: check_schedule(a_schedule(body=" ")),
        bad("a schedule needs a text: what to ask for", "body"),
    ),
    "reference": (
        lambda: Ref.parse("agent:bob"),
        bad("expected a reference such as agent:agt_…, got 'agent:bob'"),
    ),
    "id": (lambda: Ref.to("bob"), bad("'bob' is not the id of a record")),
    "code": (
        lambda: find_diagnostic("session"),
        NotFound(
            noun="diagnostic",
            id="session",
            candidates=tuple(Candidate(address=code) for code in NEAR),
            remedies=(
                *(Remedy(operation="explain", parameters={"code": code}) for code in NEAR),
                Remedy(operation="explain", parameters={}, why="every code"),
            ),
        ),
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_a_check_tells_the_whole_story(name: str) -> None:
    check, told = TOLD[name]
    with pytest.raises(Refused) as refused:
        check()
    assert refused.value.diagnostic == told


@pytest.mark.parametrize(
    ("noun", "ident", "says"),
    [
        ("attention item", "only", "nothing needs you"),
        ("attention item", "@arc", "nothing from @arc needs you"),
        ("flight", "only", "you have no open flight"),
        ("flight", "@arc", "@arc has no open flight"),
        ("flight", "last", "there is no flight yet"),
        ("card", "only", "there is no card"),
        ("alias", "@arc", "no alias '@arc'"),
        ("flight", "flt_1", "no flight 'flt_1'"),
    ],
)
def test_what_was_not_named_by_an_id_is_missed_in_words(noun: str, ident: str, says: str) -> None:
    assert NotFound(noun=noun, id=ident).message == says
