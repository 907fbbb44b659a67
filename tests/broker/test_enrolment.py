"""Sessions that people opened: they enrol with a host's credential, report, take mail, and end."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from scout.broker.local import LocalScout
from scout.model.access.token import TokenKind
from scout.model.attention import AttentionState
from scout.model.endpoint import EndpointState, Transport
from scout.model.session import SessionOrigin, SessionState
from scout.protocol.access import CreateToken, ListAliases
from scout.protocol.agents import RegisterAgent, Resolve, RetireAgent, ShowAgent, Who, WhoAmI
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.attention import ApproveAttention, GetAttention, ListAttention
from scout.protocol.endpoints import RegisterEndpoint
from scout.protocol.enrolment import Enrol, Enrolled, HookAnswer, HookEvent, ReportHook
from scout.protocol.inbox import ClaimInbox, GetDelivery, ListInbox
from scout.protocol.log import ReadLog, Watch
from scout.protocol.overview import PauseScout, ResumeScout, ShowNow, ShowStatus
from scout.protocol.sessions import GetSession, ListSessions
from scout.protocol.talk import Reply, Send
from tests.broker.rig import Rig, advance_clock, as_test, event_name, expect_refusal, read_log, run_scene


def folder(rig: Rig, name: str = "talkie") -> str:
    path = rig.home / name
    path.mkdir(exist_ok=True)
    return str(path)


async def host(rig: Rig) -> LocalScout:
    """A host's seat."""
    made = await rig.operator(CreateToken(kind=TokenKind.HOST, label="host"))
    return await rig.scout(made.secret)


async def enrol(rig: Rig, seat: LocalScout, name: str = "talkie", **more: Any) -> Enrolled:
    given: dict[str, Any] = {"native_session_id": "n-1", "parent_pid": 77, "parent_started": "5", **more}
    return await seat.call(Enrol(cwd=folder(rig, name), harness="claude", **given))


async def report_hook(seat: LocalScout, session: Enrolled, event: HookEvent, **more: Any) -> HookAnswer:
    return await seat.call(ReportHook(session_id=session.session.id, event=event, **more))


async def endpoint_state(rig: Rig, made: Enrolled) -> EndpointState:
    shown = await rig.operator(ShowAgent(address=made.agent_id))
    return next(one.state for one in shown.endpoints if one.id == made.endpoint_id)


@as_test
async def test_a_session_enrols_as_its_projects_agent(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat, model="opus")
    assert made.address.startswith("@talkie")
    session = made.session
    assert (session.origin, session.state) == (SessionOrigin.ENROLLED, SessionState.LIVE)
    assert (session.pid, session.pid_started, session.cwd) == (77, "5", folder(rig))
    assert session.native_ids == {"session": "n-1"}
    assert made.token is not None
    me = await (await rig.scout(made.token)).call(WhoAmI())
    assert (me.kind, me.agent_id, me.session_id) == ("agent", made.agent_id, session.id)
    assert (await rig.operator(ShowAgent(address="@talkie"))).id == made.agent_id
    assert await endpoint_state(rig, made) is EndpointState.IDLE
    assert (await rig.operator(Resolve(address="session:claude:n-1"))).agent_id == made.agent_id


@as_test
async def test_the_same_session_again_keeps_its_record_and_gets_a_fresh_token(rig: Rig) -> None:
    seat = await host(rig)
    first = await enrol(rig, seat)
    again = await enrol(rig, seat)
    assert (again.session.id, again.endpoint_id) == (first.session.id, first.endpoint_id)
    assert first.token is not None
    assert again.token not in (None, first.token)
    problem = await expect_refusal(rig.scout(first.token))
    assert problem.code == "unauthenticated"
    assert len((await rig.operator(ListSessions())).items) == 1


@as_test
async def test_a_relay_and_a_hook_of_one_process_find_the_same_session(rig: Rig) -> None:
    seat = await host(rig)
    relay = await enrol(rig, seat, native_session_id=None)
    hook = await enrol(rig, seat, native_session_id="n-9")
    assert hook.session.id == relay.session.id
    assert hook.session.native_ids == {"session": "n-9"}
    relay_again = await enrol(rig, seat, native_session_id=None)
    assert relay_again.session.id == relay.session.id
    another = await enrol(rig, seat, native_session_id="n-10")
    assert another.session.id != relay.session.id
    nameless = await enrol(rig, seat, native_session_id=None, parent_pid=None, parent_started=None)
    assert nameless.session.id not in (relay.session.id, another.session.id)


@as_test
async def test_another_process_of_the_same_session_is_another_endpoint(rig: Rig) -> None:
    seat = await host(rig)
    first = await enrol(rig, seat)
    second = await enrol(rig, seat, parent_pid=78, parent_started="9")
    assert second.session.id == first.session.id
    assert second.endpoint_id != first.endpoint_id
    assert await endpoint_state(rig, first) is EndpointState.STOPPED


@pytest.mark.rows("R1.1-51")
@as_test
async def test_a_second_live_session_has_a_name_of_its_own(rig: Rig) -> None:
    seat = await host(rig)
    first = await enrol(rig, seat)
    second = await enrol(rig, seat, native_session_id="n-2", parent_pid=78)
    assert second.agent_id == first.agent_id
    names = (await rig.operator(ListAliases())).items
    assert [(one.name, one.target.session_id) for one in names] == [("talkie-2", second.session.id)]
    third = await enrol(rig, seat, native_session_id="n-3", parent_pid=79)
    assert {one.name for one in (await rig.operator(ListAliases())).items} == {"talkie-2", "talkie-3"}
    await report_hook(seat, second, HookEvent.SESSION_END)
    await advance_clock(rig, 1)
    names = (await rig.operator(ListAliases())).items
    assert [(one.name, one.target.session_id) for one in names] == [("talkie-3", third.session.id)]


@as_test
async def test_the_end_of_a_session_ends_its_endpoint_and_its_token(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    assert made.token is not None
    await report_hook(seat, made, HookEvent.SESSION_END)
    await report_hook(seat, made, HookEvent.SESSION_END)
    session = await rig.operator(GetSession(session_id=made.session.id))
    assert (session.state, session.pid) == (SessionState.ENDED, None)
    assert await endpoint_state(rig, made) is EndpointState.STOPPED
    assert (await expect_refusal(rig.scout(made.token))).code == "unauthenticated"
    late = await expect_refusal(report_hook(seat, made, HookEvent.STOP))
    assert (late.code, late.accepts) == ("wrong_state", ("resume",))
    back = await enrol(rig, seat)
    assert (back.session.id, back.session.state) == (made.session.id, SessionState.LIVE)
    assert back.endpoint_id != made.endpoint_id


@as_test
async def test_a_host_token_opens_no_other_door(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    tried: list[Any] = [
        Who(),
        WhoAmI(),
        ShowStatus(),
        ShowNow(),
        ReadLog(),
        ListInbox(),
        ClaimInbox(),
        ListSessions(),
        ListAttention(),
        RegisterAgent(definition_id="evil"),
        RegisterEndpoint(agent_id=made.agent_id, transport=Transport.PULL),
        Send(to="@talkie", body="hi"),
        MakeAsk(to="@talkie", body="hi"),
        CreateToken(kind=TokenKind.OPERATOR),
        GetSession(session_id=made.session.id),
    ]
    for request in tried:
        assert (await expect_refusal(seat.call(request))).code == "forbidden", request
    with pytest.raises(Exception, match="watch"):
        await anext(seat.watch(Watch()))
    problem = await expect_refusal(
        rig.scout((await rig.operator(CreateToken(kind=TokenKind.HOST))).secret, "@talkie")
    )
    assert problem.code in ("forbidden", "unknown_target")


@as_test
async def test_a_host_reports_only_for_sessions_that_it_enrolled(rig: Rig) -> None:
    seat, other = await host(rig), await host(rig)
    made = await enrol(rig, seat)
    for event in HookEvent:
        problem = await expect_refusal(report_hook(other, made, event))
        assert problem.code == "forbidden"
        assert "the host token that enrolled the session" in problem.needs
    agent = await rig.agent("bow")
    assert (await expect_refusal(report_hook(agent, made, HookEvent.STOP))).code == "forbidden"
    assert (await expect_refusal(agent.call(Enrol(cwd=folder(rig), harness="claude")))).code == "forbidden"
    await enrol(rig, other)
    assert (await report_hook(other, made, HookEvent.STOP)).context == ""


@as_test
async def test_only_a_folder_of_its_own_is_a_project(rig: Rig) -> None:
    seat = await host(rig)
    (rig.home / "home").mkdir()
    for directory in ("/", str(rig.home / "home")):
        problem = await expect_refusal(
            seat.call(Enrol(cwd=directory, harness="claude", native_session_id="x"))
        )
        assert (problem.code, problem.field) == ("bad_request", "directory")
    assert (await rig.operator(ListSessions())).items == ()


@as_test
async def test_a_retired_agent_enrols_nobody(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    await rig.operator(RetireAgent(address=made.agent_id))
    assert (await expect_refusal(enrol(rig, seat))).code == "retired_target"


def test_a_work_tree_is_a_workspace_of_its_own(tmp_path: Path) -> None:
    main, tree = tmp_path / "arc", tmp_path / "arc-fix"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(main)]
    main.mkdir()
    for words in (["init", "-qb", "main"], ["commit", "-qm", "x", "--allow-empty"]):
        subprocess.run([*git, *words], check=True)
    subprocess.run([*git, "worktree", "add", "-q", "-b", "fix", str(tree)], check=True)

    async def scene(rig: Rig) -> None:
        seat = await host(rig)
        one = await enrol(rig, seat, "arc")
        other = await enrol(rig, seat, "arc-fix", native_session_id="n-2", parent_pid=78)
        assert one.agent_id != other.agent_id
        shown = await rig.operator(ShowAgent(address=other.agent_id))
        assert (shown.definition_id, shown.workspace) == ("arc", "fix")

    run_scene(scene, tmp_path)


@as_test
async def test_the_start_says_who_you_are_what_you_owe_and_how_to_reply(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    first = (await report_hook(seat, made, HookEvent.SESSION_START)).context.splitlines()
    assert first[0] == f"Scout: to other agents you are {made.minimal} in {folder(rig)}."
    assert first[1] == "You owe nothing."
    assert "`messages_reply " in first[2]
    await rig.operator(MakeAsk(to=made.address, body="review this"))
    again = (await report_hook(seat, made, HookEvent.SESSION_START)).context.splitlines()
    assert again[1].startswith("You owe: 1 ask, 1 unread message; ")


@as_test
async def test_mail_is_handed_over_at_the_stop_and_taken_with_the_next_prompt(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    assert (await report_hook(seat, made, HookEvent.PROMPT_SUBMIT)).context == ""
    assert await endpoint_state(rig, made) is EndpointState.WORKING
    asked = await rig.operator(MakeAsk(to=made.address, body="review this\nand that"))
    await (await rig.agent("bow")).call(Send(to=made.address, body="hi"))
    handed = await report_hook(seat, made, HookEvent.STOP)
    assert "> review this\n> and that\n" in handed.context
    assert "asks you and waits for the result" in handed.context
    assert "inReplyTo msg_" in handed.context
    assert len(handed.handed_over) == 2
    assert await endpoint_state(rig, made) is EndpointState.WORKING
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).state == "queued"
    assert (await report_hook(seat, made, HookEvent.PROMPT_SUBMIT)).context == ""
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).state == "running"
    states = [(await rig.operator(GetDelivery(delivery_id=one))).state for one in handed.handed_over]
    assert states == ["acked", "acked"]
    assert made.token is not None
    await (await rig.scout(made.token)).call(Reply(body="fine", in_reply_to=asked.flight_id))
    assert (await rig.operator(GetFlight(flight_id=asked.flight_id))).output == "fine"
    assert (await report_hook(seat, made, HookEvent.STOP)).context == ""
    assert await endpoint_state(rig, made) is EndpointState.IDLE


@as_test
async def test_while_scout_is_paused_a_stop_hands_nothing_over(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    await rig.operator(PauseScout())
    await rig.operator(Send(to=made.address, body="later, please"))
    assert (await report_hook(seat, made, HookEvent.STOP)).context == ""
    await rig.operator(ResumeScout())
    assert "later, please" in (await report_hook(seat, made, HookEvent.STOP)).context


@as_test
async def test_mail_that_nobody_confirms_comes_again_and_says_so(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    await (await rig.agent("bow")).call(Send(to=made.address, body="hi"))
    assert "may be a repeat" not in (await report_hook(seat, made, HookEvent.STOP)).context
    assert (await report_hook(seat, made, HookEvent.STOP)).context == ""
    await advance_clock(rig, 61)
    rig.clock.ahead += 10
    assert "may be a repeat" in (await report_hook(seat, made, HookEvent.STOP)).context


@as_test
async def test_what_an_ended_session_did_not_take_goes_to_the_next(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    await (await rig.agent("bow")).call(Send(to=made.address, body="hi"))
    assert (await report_hook(seat, made, HookEvent.STOP)).handed_over
    await report_hook(seat, made, HookEvent.SESSION_END)
    other = await enrol(rig, seat, native_session_id="n-2", parent_pid=78)
    assert "> hi" in (await report_hook(seat, other, HookEvent.STOP)).context


@as_test
async def test_what_waits_is_mentioned_at_a_prompt(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    bow = await rig.agent("bow")
    for number in (1, 2):
        await bow.call(Send(to=made.address, body=f"hi {number}"))
        text = (await report_hook(seat, made, HookEvent.PROMPT_SUBMIT)).context
        assert ("1 unread message;" if number == 1 else "2 unread messages;") in text


@as_test
async def test_a_permission_request_needs_the_person(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    asked = await report_hook(
        seat, made, HookEvent.PERMISSION_REQUEST, tool="Bash", arguments={"command": "rm -rf x"}
    )
    assert asked.attention_id is not None
    (item,) = (await rig.operator(ListAttention())).items
    assert (item.id, item.kind, item.title) == (asked.attention_id, "permission", "Bash: rm -rf x")
    assert item.return_path.session_id == made.session.id
    assert made.token is not None
    session = await rig.scout(made.token)
    assert (await expect_refusal(session.call(ApproveAttention(attention_id=item.id)))).code == "forbidden"
    await rig.operator(ApproveAttention(attention_id=item.id))
    decided = await session.call(GetAttention(attention_id=item.id))
    assert decided.state is AttentionState.RESOLVED


@as_test
async def test_a_permission_that_was_decided_at_the_terminal_needs_nobody_any_more(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    asked = await report_hook(seat, made, HookEvent.PERMISSION_REQUEST)
    assert asked.attention_id is not None
    await report_hook(seat, made, HookEvent.STOP)
    item = await rig.operator(GetAttention(attention_id=asked.attention_id))
    assert item.state is AttentionState.DISMISSED


@as_test
async def test_who_once_pulled_does_not_say_what_scout_starts(rig: Rig) -> None:
    seat = await host(rig)
    await rig.register("talkie", project_root=folder(rig), harness="echo")
    made = await enrol(rig, seat)
    await report_hook(seat, made, HookEvent.SESSION_END)
    asked = await rig.operator(MakeAsk(to=made.address, body="hello", wait=10))
    assert asked.output == "hello"


@as_test
async def test_every_fact_names_the_hosts_credential(rig: Rig) -> None:
    seat = await host(rig)
    made = await enrol(rig, seat)
    await report_hook(seat, made, HookEvent.SESSION_END)
    ours = [one for one in await read_log(rig) if one.metadata.token_id == seat.who.actor.token_id]
    names = {event_name(one) for one in ours}
    assert {"agent.registered", "session.started", "token.created", "session.ended", "token.revoked"} <= names
