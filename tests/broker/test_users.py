"""Users, groups and sub-users: what belongs to them, who controls it, and what retiring one does."""

import asyncio
from collections.abc import Awaitable
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from scout.base.time import Time
from scout.broker.local import LocalScout
from scout.broker.people import accounts, links
from scout.broker.people.chat_places import find_binding
from scout.broker.people.links import ChatAccount
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.access.grant import Action
from scout.model.agent import Agent, Lifecycle, create_agent
from scout.model.ask import IfUnreachable
from scout.model.events.presence import AgentRegistered
from scout.model.flight import FlightState
from scout.model.people.binding import Binding
from scout.model.people.chat import ChatPlace
from scout.model.people.user import ConnectorKey, KeyState, QuietHours, UserKind, UserState
from scout.model.waiting import WaitingKind
from scout.policy.people.quiet_hours import find_quiet_end
from scout.ports import Notice
from scout.protocol.access import AddGrant, CreateToken, SetAlias, ShowAlias
from scout.protocol.agents import ConfigureAgent, RetireAgent, ReviveAgent, ShowAgent, Who
from scout.protocol.asks import CancelFlight, GetFlight, MakeAsk
from scout.protocol.attention import AnswerAttention, Consult, GetAttention, ListAttention, Notify
from scout.protocol.channels import CreateChannel
from scout.protocol.log import ReadFeed
from scout.protocol.overview import ShowNow
from scout.protocol.people.bindings import AddBinding, CloseBinding, ListBindings, ReopenBinding, ShowBinding
from scout.protocol.people.schedules import AddSchedule
from scout.protocol.people.users import (
    AddUser,
    LinkUser,
    ListKeys,
    ListUsers,
    RenameUser,
    RetireUser,
    ReviveUser,
    SetQuietHours,
    ShowKey,
    ShowTarget,
    ShowUser,
    UnlinkUser,
)
from scout.protocol.talk import ListMessages, Send
from scout.protocol.work import CreateWork, GetWork, WaitWork
from tests.broker.neighbours import draw_requests
from tests.broker.rig import Rig, as_test, expect_refusal, open_rig, run_scene, wait_until


async def seat_of(rig: Rig, user: str) -> LocalScout:
    """Scout as a user sees it in person."""
    return await rig.scout((await rig.operator(CreateToken(user=user))).secret)


async def add(rig: Rig, user: str, **more: Any) -> LocalScout:
    await rig.operator(AddUser(user=user, **more))
    return await seat_of(rig, user)


async def make_agent(rig: Rig, path: str) -> LocalScout:
    """An agent at a path, created by its user in person."""
    person = await seat_of(rig, path.split("/")[1])
    await person.call(Send(to=path, body="be", create={}))
    return await rig.scout((await rig.operator(CreateToken(agent=path))).secret)


async def link(rig: Rig, user: str, account: str = "77", connector: str = "telegram") -> ConnectorKey:
    code = (await rig.operator(LinkUser(user=user, connector=connector))).code
    chat = ChatAccount(connector=connector, external_id=account, chat_id=f"c{account}", label=f"N{account}")
    done = await rig.broker.as_system(lambda tx: links.redeem(tx, chat, code))
    assert isinstance(done, links.Linked), done
    return done.key


# -- users ------------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.users-1", "R9.users-2", "R2.1-34")
@as_test
async def test_each_user_is_there_in_person_from_the_beginning(rig: Rig) -> None:
    for name, kind in (("bob", UserKind.PERSON), ("club", UserKind.GROUP)):
        made = await rig.operator(AddUser(user=name, kind=kind, display_name="Shown"))
        assert (made.kind, made.address, made.display_name) == (kind, f"/{name}/direct", "Shown")
        person = await rig.operator(ShowAgent(address=f"/{name}/direct"))
        assert (person.owner, person.kind) == (name, "connector")
    listed = (await rig.operator(ListUsers())).items
    assert [(one.name, one.operator) for one in listed] == [("club", False), ("bob", False), ("ada", True)]


@pytest.mark.rows("R9.users-3", "R9.users-4")
@as_test
async def test_a_sub_user_has_a_gateway_and_is_controlled_by_its_owner_in_person(rig: Rig) -> None:
    await add(rig, "bob")
    made = await rig.operator(AddUser(user="kid", owner="bob"))
    bob = await seat_of(rig, "bob")
    assert (made.owner, made.gateway) == ("bob", "/bob/subuser/kid")
    gateway = await rig.operator(ShowAgent(address="/bob/subuser/kid"))
    assert (gateway.kind, gateway.model_role, gateway.owner) == ("subuser", "user", "bob")
    await make_agent(rig, "/kid/agent/toy")
    changed = await bob.call(ConfigureAgent(address="/kid/agent/toy", config={"description": "a toy"}))
    assert changed.config.description == "a toy"
    assert {one.path for one in (await bob.call(Who())).items} == {"/kid/agent/toy", "/bob/subuser/kid"}
    program = await make_agent(rig, "/bob/agent/tool")
    refused = await expect_refusal(program.call(ShowAgent(address="/kid/agent/toy")))
    assert refused.code == "unknown_target"
    kid = await seat_of(rig, "kid")
    assert {one.path for one in (await kid.call(Who())).items} == {"/kid/agent/toy"}


@as_test
async def test_a_person_controls_their_own_agents_and_a_program_does_not(rig: Rig) -> None:
    bob = await add(rig, "bob")
    one, _ = await make_agent(rig, "/bob/agent/one"), await make_agent(rig, "/bob/agent/two")
    other = (await rig.operator(CreateToken(agent="/bob/agent/two"))).secret
    sent = await one.call(MakeAsk(to="/bob/agent/two", body="work", if_unreachable=IfUnreachable.QUEUE))
    assert (await bob.call(GetFlight(flight_id=sent.flight_id))).body == "work"
    assert (await bob.call(ReadFeed(address="/bob/agent/two"))).items
    refused = await expect_refusal(one.call(RetireAgent(address="/bob/agent/two")))
    assert refused.code == "forbidden"
    assert (await expect_refusal(one.call(ReadFeed(address="/bob/agent/two")))).code == "forbidden"
    assert (await bob.call(CancelFlight(flight_id=sent.flight_id))).state is FlightState.CANCELLED
    assert (await bob.call(RetireAgent(address="/bob/agent/two"))).lifecycle is Lifecycle.RETIRED
    assert (await expect_refusal(rig.scout(other))).code == "unauthenticated"


@pytest.mark.rows("R9.users-5")
@as_test
async def test_users_are_added_by_the_operator_and_a_name_is_given_once(rig: Rig) -> None:
    bob = await add(rig, "bob")
    assert (await expect_refusal(bob.call(AddUser(user="eve")))).code == "forbidden"
    taken = await expect_refusal(rig.operator(AddUser(user="bob")))
    assert (taken.code, taken.remedies[0].operation) == ("name_taken", "user.show")
    for name in ("", "a b", "agent", "system", ".."):
        assert (await expect_refusal(rig.operator(AddUser(user=name)))).code == "bad_request"
    nobody = await expect_refusal(rig.operator(AddUser(user="kid", owner="bop")))
    assert (nobody.code, [one.address for one in nobody.candidates]) == ("not_found", ["bob"])


@as_test
async def test_a_user_is_known_to_themselves_their_owner_and_the_operator(rig: Rig) -> None:
    await add(rig, "bob")
    eve = await add(rig, "eve")
    await add(rig, "kid", owner="bob")
    bob = await seat_of(rig, "bob")
    assert [one.name for one in (await bob.call(ListUsers())).items] == ["kid", "bob"]
    assert [one.name for one in (await eve.call(ListUsers())).items] == ["eve"]
    assert [one.name for one in (await bob.call(ListUsers(owner="bob"))).items] == ["kid"]
    assert (await bob.call(ShowUser(user="kid"))).name == "kid"
    for name in ("bob", "kid", "ada", "nobody"):
        problem = await expect_refusal(eve.call(ShowUser(user=name)))
        assert (problem.code, problem.candidates) == ("not_found", ())
    program = await make_agent(rig, "/bob/agent/tool")
    assert [(one.name, one.keys) for one in (await program.call(ListUsers())).items] == [("bob", 0)]
    assert (await expect_refusal(program.call(ShowUser(user="bob")))).code == "not_found"


@as_test
async def test_the_display_name_changes_and_the_id_does_not(rig: Rig) -> None:
    bob = await add(rig, "bob")
    shown = await bob.call(RenameUser(user="bob", display_name="Bob B.", revision=1))
    assert (shown.name, shown.display_name, shown.revision) == ("bob", "Bob B.", 2)
    assert (await bob.call(RenameUser(user="bob", display_name=" "))).display_name is None
    stale = await expect_refusal(bob.call(RenameUser(user="bob", display_name="x", revision=1)))
    assert stale.code == "wrong_revision"


@as_test
async def test_a_user_is_made_with_the_first_agent_of_its_path(rig: Rig) -> None:
    await rig.operator(Send(to="/new/agent/x", body="be", create={}))
    made = await rig.operator(ShowUser(user="new"))
    assert (made.agents, made.address) == (1, "/new/direct")
    assert (await rig.operator(ShowAgent(address="/new/direct"))).owner == "new"


def test_owners_in_an_older_store_become_users(tmp_path: Path) -> None:
    async def older(rig: Rig) -> None:
        """An older Scout created agents below a user without a record of the user."""

        def enter(tx: Transaction) -> None:
            path = AgentPath.parse("/old/agent/x")
            agent = create_agent(tx.mint("agt"), path, tx.now, node="mini", by=tx.sender)
            tx.record(AgentRegistered, agent, move="register")

        await rig.broker.as_system(enter)

    async def newer(rig: Rig) -> None:
        assert (await rig.operator(ShowUser(user="old"))).agents == 1

    run_scene(older, tmp_path)
    run_scene(newer, tmp_path)


# -- retiring -----------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.users-6")
@as_test
async def test_retiring_a_user_frees_its_keys_and_can_be_undone(rig: Rig) -> None:
    bob = await add(rig, "bob")
    await add(rig, "kid", owner="bob")
    await make_agent(rig, "/bob/agent/tool")
    await make_agent(rig, "/kid/agent/toy")
    key, token = await link(rig, "bob"), (await rig.operator(CreateToken(user="bob"))).secret
    await bob.call(CreateChannel(name="den"))
    bound = await bob.call(AddBinding(connector="telegram", chat="c77", channel="den"))
    await rig.operator(LinkUser(user="bob", connector="matrix"))
    ask = await rig.operator(MakeAsk(to="/bob/agent/tool", body="work", if_unreachable=IfUnreachable.QUEUE))

    gone = await rig.operator(RetireUser(user="bob", reason="left"))
    assert (gone.state, gone.reason, gone.keys, gone.codes, gone.agents) == (
        UserState.RETIRED,
        "left",
        (),
        (),
        0,
    )
    assert gone.notes == (
        "4 agents retired; asks to them fail, mail is returned to its senders",
        "1 chat account unlinked",
        "1 binding closed",
        "sub-user kid retired",
        "kid: 2 agents retired; asks to them fail, mail is returned to its senders",
    )
    assert (await rig.operator(ShowKey(key_id=key.id))).state is KeyState.FREED
    assert (await rig.operator(ShowBinding(binding_id=bound.id))).state == "closed"
    assert (await rig.operator(GetFlight(flight_id=ask.flight_id))).state is FlightState.FAILED
    assert (await expect_refusal(rig.scout(token))).code == "unauthenticated"
    assert (await expect_refusal(rig.operator(Send(to="/bob/agent/tool", body="x")))).code == "retired_target"
    for request in draw_requests(
        LinkUser(user="bob", connector="matrix"), ReviveAgent(address="/bob/agent/tool")
    ):
        problem = await expect_refusal(rig.operator(request))
        assert (problem.code, problem.remedies[0].operation) == ("retired_user", "user.revive")
    born = await expect_refusal(rig.operator(Send(to="/bob/agent/new", body="x", create={})))
    assert born.code == "retired_user"
    again = await expect_refusal(rig.operator(AddUser(user="bob")))
    assert (again.code, again.remedies[0].operation) == ("name_taken", "user.revive")
    assert (await expect_refusal(rig.operator(ReviveUser(user="kid")))).code == "retired_user"
    assert [one.name for one in (await rig.operator(ListUsers())).items] == ["ada"]
    assert len((await rig.operator(ListUsers(all=True))).items) == 3

    back = await rig.operator(ReviveUser(user="bob"))
    assert (back.state, back.agents, back.subusers) == (UserState.ACTIVE, 3, ("kid",))
    assert back.notes[:4] == (
        "4 agents revived",
        "sub-user kid revived",
        "kid: 2 agents revived",
        back.notes[3],
    )
    assert (await rig.operator(ShowAgent(address="/kid/agent/toy"))).lifecycle is Lifecycle.ACTIVE
    assert (await link(rig, "bob")).id != key.id


@as_test
async def test_an_agent_that_was_retired_before_stays_so(rig: Rig) -> None:
    bob = await add(rig, "bob")
    await make_agent(rig, "/bob/agent/old")
    await bob.call(RetireAgent(address="/bob/agent/old"))
    await rig.operator(RetireUser(user="bob"))
    await rig.operator(ReviveUser(user="bob"))
    assert (await rig.operator(ShowAgent(address="/bob/agent/old"))).lifecycle is Lifecycle.RETIRED


@as_test
async def test_who_may_retire_whom(rig: Rig) -> None:
    await add(rig, "bob")
    kid = await add(rig, "kid", owner="bob")
    bob = await seat_of(rig, "bob")
    assert (await expect_refusal(bob.call(RetireUser(user="bob")))).code == "forbidden"
    assert (await expect_refusal(kid.call(RetireUser(user="kid")))).code == "forbidden"
    assert (await expect_refusal(kid.call(RetireUser(user="bob")))).code == "not_found"
    assert (await expect_refusal(rig.operator(RetireUser(user="ada")))).code == "bad_request"
    person = await expect_refusal(rig.operator(RetireAgent(address="/bob/direct")))
    assert (person.code, person.remedies[0].operation) == ("bad_request", "user.retire")
    assert (await bob.call(RetireUser(user="kid"))).state is UserState.RETIRED
    assert (await bob.call(ReviveUser(user="kid"))).state is UserState.ACTIVE
    assert (await expect_refusal(bob.call(ReviveUser(user="kid")))).code == "wrong_state"


# -- chat accounts ------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.keys-1", "R9.keys-5")
@as_test
async def test_accounts_are_listed_with_their_last_use_and_revoked_one_by_one(rig: Rig) -> None:
    bob = await add(rig, "bob")
    first, second = await link(rig, "bob"), await link(rig, "bob", "78")
    shown = await bob.call(ShowUser(user="bob"))
    assert {one.id for one in shown.keys} == {first.id, second.id}
    assert all(one.last_used_at is not None for one in shown.keys)
    several = await expect_refusal(bob.call(UnlinkUser(user="bob", connector="telegram")))
    assert (several.code, several.count) == ("ambiguous_target", 2)
    assert [one.parameters["keyId"] for one in several.remedies] == [
        one.address for one in several.candidates
    ]
    assert (await bob.call(UnlinkUser(user="bob", key_id=first.id))).state is KeyState.FREED
    assert (await bob.call(UnlinkUser(user="bob", connector="telegram"))).id == second.id
    none = await expect_refusal(bob.call(UnlinkUser(user="bob", connector="telegram")))
    assert none.message == "there is no telegram account of bob"
    assert (await bob.call(ListKeys())).items == ()
    assert len((await bob.call(ListKeys(user="bob", all=True))).items) == 2
    assert (await bob.call(ListKeys(all=True, connector="matrix"))).items == ()


@as_test
async def test_accounts_are_private(rig: Rig) -> None:
    await add(rig, "bob")
    eve = await add(rig, "eve")
    key = await link(rig, "bob")
    assert (await eve.call(ListKeys())).items == ()
    for request in draw_requests(
        ShowKey(key_id=key.id), ListKeys(user="bob"), LinkUser(user="bob", connector="matrix")
    ):
        assert (await expect_refusal(eve.call(request))).code == "not_found"
    assert [one.id for one in (await rig.operator(ListKeys())).items] == [key.id]
    program = await make_agent(rig, "/bob/agent/tool")
    assert (await program.call(ListKeys())).items == ()


@pytest.mark.rows("R1.4-36", "R1.4-38", "R1.4-39")
@as_test
async def test_where_a_message_to_a_user_goes(rig: Rig) -> None:
    bob = await add(rig, "bob")
    nowhere = await expect_refusal(bob.call(ShowTarget(user="bob", connector="telegram")))
    assert (nowhere.code, nowhere.remedies[0].operation) == ("not_found", "user.link")
    key = await link(rig, "bob")
    found = await bob.call(ShowTarget(user="bob", connector="telegram"))
    assert (found.connector, found.target_id, found.key_id, found.rule) == (
        "telegram",
        "77",
        key.id,
        "only key",
    )
    other = await link(rig, "bob", "78")
    assert (await expect_refusal(bob.call(ShowTarget(user="bob", connector="telegram")))).code == "not_found"
    agent = await rig.operator(ShowAgent(address="/bob/telegram"))
    spoke = await rig.broker.as_system(lambda tx: accounts.find_outlet(tx, agent.path, other.id))
    assert (spoke.key_id, spoke.rule) == (other.id, "last spoke in this conversation")


@pytest.mark.rows("R9.keys-6")
@as_test
async def test_quiet_hours_of_an_account(rig: Rig) -> None:
    bob = await add(rig, "bob")
    await link(rig, "bob")
    quiet = SetQuietHours(user="bob", connector="telegram", hours="22:00-07:00", time_zone="Europe/Berlin")
    assert str((await bob.call(quiet)).quiet) == "22:00-07:00 Europe/Berlin"
    later = await bob.call(SetQuietHours(user="bob", connector="telegram", hours="23:00-06:30"))
    assert str(later.quiet) == "23:00-06:30 Europe/Berlin"
    assert (await bob.call(SetQuietHours(user="bob", connector="telegram", hours="off"))).quiet is None
    first = await bob.call(SetQuietHours(user="bob", connector="telegram", hours="1:00-2:00"))
    assert str(first.quiet) == "01:00-02:00 UTC"
    for hours, zone, code in (
        ("late", "UTC", "bad_request"),
        ("1:00-2:00", "../../etc/passwd", "not_found"),
    ):
        wish = SetQuietHours(user="bob", connector="telegram", hours=hours, time_zone=zone)
        assert (await expect_refusal(bob.call(wish))).code == code
    near = SetQuietHours(user="bob", connector="telegram", hours="1:00-2:00", time_zone="Europe/Berlinn")
    problem = await expect_refusal(bob.call(near))
    assert problem.remedies[0].parameters["timeZone"] == "Europe/Berlin"


def at(text: str, zone: str) -> Time:
    return Time(round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1_000_000)


@pytest.mark.parametrize(
    ("now", "end"),
    [
        ("2026-07-01T23:30", "2026-07-02T07:00"),
        ("2026-07-02T06:59", "2026-07-02T07:00"),
        ("2026-07-02T07:00", None),
        ("2026-07-02T21:59", None),
        ("2026-03-28T23:00", "2026-03-29T07:00"),  # the clocks go forward in this night
        ("2026-10-24T23:00", "2026-10-25T07:00"),  # and back in this one
    ],
)
def test_quiet_hours_end_by_the_wall_clock_of_their_zone(now: str, end: str | None) -> None:
    quiet = QuietHours(start=22 * 60, end=7 * 60, time_zone="Europe/Berlin")
    ends = find_quiet_end(quiet, ZoneInfo("Europe/Berlin"), at(now, "Europe/Berlin"))
    assert ends == (at(end, "Europe/Berlin") if end else None)


# -- schedules ----------------------------------------------------------------------------------------------


@as_test
async def test_a_channel_that_one_may_only_read_gets_no_answers_of_schedules(rig: Rig) -> None:
    bob = await add(rig, "bob")
    channel = await rig.operator(CreateChannel(name="dev"))
    await make_agent(rig, "/bob/agent/tool")
    await rig.operator(AddGrant(action=Action.READ, holder="bob", channel=channel.id))
    assert (await bob.call(ListMessages(channel=channel.id))).items == ()
    wish = AddSchedule(cron="@daily", to="/bob/agent/tool", body="news", channel=channel.id)
    assert (await expect_refusal(bob.call(wish))).code == "not_found"
    await rig.operator(AddGrant(action=Action.ADDRESS, holder="bob", channel=channel.id))
    assert (await bob.call(wish)).channel == "dev"


# -- bindings -----------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.bindings-1", "R9.bindings-2", "R2.1-23")
@as_test
async def test_a_chat_is_bound_to_a_channel_or_an_agent(rig: Rig) -> None:
    bob = await add(rig, "bob")
    await link(rig, "bob")
    await bob.call(CreateChannel(name="den"))
    await make_agent(rig, "/bob/agent/tool")
    room = await bob.call(AddBinding(connector="telegram", chat="c77", channel="den"))
    assert (room.user, room.target, room.external_id) == ("bob", "#den", "c77")
    thread = AddBinding(connector="telegram", chat="c77", topic_id="9", agent="/bob/agent/tool")
    assert (await bob.call(thread)).target == "/bob/agent/tool"

    def find(topic: str) -> Awaitable[Binding | None]:
        place = ChatPlace(chat_id="c77", thread_id=topic)
        return rig.broker.as_system(lambda tx: find_binding(tx, "telegram", place))

    bound = [await find(topic) for topic in ("9", "10")]
    assert [one.topic_id for one in bound if one] == ["9", None]
    taken = await expect_refusal(bob.call(AddBinding(connector="telegram", chat="c77", channel="den")))
    assert (taken.code, taken.remedies[0].parameters) == ("name_taken", {"bindingId": room.id})
    assert (await bob.call(CloseBinding(binding_id=room.id))).state == "closed"
    assert len((await bob.call(ListBindings())).items) == 1
    assert len((await bob.call(ListBindings(all=True))).items) == 2
    assert (await bob.call(ReopenBinding(binding_id=room.id))).state == "active"
    assert (await expect_refusal(bob.call(ReopenBinding(binding_id=room.id)))).code == "wrong_state"


@as_test
async def test_only_own_chats_are_bound_and_only_to_own_places(rig: Rig) -> None:
    bob, eve = await add(rig, "bob"), await add(rig, "eve")
    await link(rig, "bob")
    await link(rig, "eve", "88")
    den = await bob.call(CreateChannel(name="den"))
    bound = await bob.call(AddBinding(connector="telegram", chat="c77", channel="den"))
    await eve.call(CreateChannel(name="den"))
    await make_agent(rig, "/bob/agent/tool")
    foreign = await expect_refusal(eve.call(AddBinding(connector="telegram", chat="c99", channel="den")))
    assert foreign.code == "forbidden"
    for target in ({"conversation_id": den.id}, {"agent": "/bob/agent/tool"}):
        wish = AddBinding(connector="telegram", chat="c88", **target)
        assert (await expect_refusal(eve.call(wish))).code in ("not_found", "unknown_target")
    for request in draw_requests(ShowBinding(binding_id=bound.id), CloseBinding(binding_id=bound.id)):
        assert (await expect_refusal(eve.call(request))).code == "not_found"
    assert (await eve.call(ListBindings())).items == ()
    assert [one.id for one in (await rig.operator(ListBindings())).items] == [bound.id]
    two = AddBinding(connector="telegram", chat="c1", channel="den", agent="@x")
    assert (await expect_refusal(rig.operator(two))).code == "bad_request"
    odd = AddBinding(connector="irc", chat="c1", channel="den")
    assert (await expect_refusal(rig.operator(odd))).code == "bad_request"


# -- attention ----------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.users-8")
@as_test
async def test_attention_is_for_the_user_of_the_agent_and_their_owner(rig: Rig) -> None:
    await add(rig, "bob")
    eve = await add(rig, "eve")
    kid = await add(rig, "kid", owner="bob")
    bob = await seat_of(rig, "bob")
    toy = await make_agent(rig, "/kid/agent/toy")
    item = await toy.call(Consult(question="May I?", default_action="no"))
    assert [one.id for one in (await kid.call(ListAttention())).items] == [item.id]
    assert [one.id for one in (await bob.call(ListAttention(user="kid"))).items] == [item.id]
    assert (await bob.call(ListAttention())).items == ()
    assert (await bob.call(ShowNow())).needs_me == ()
    assert len((await kid.call(ShowNow())).needs_me) == 1
    assert (await rig.operator(ShowNow())).needs_me == ()
    assert [one.id for one in (await rig.operator(ListAttention(user="kid"))).items] == [item.id]
    for request in draw_requests(ListAttention(user="kid"), GetAttention(attention_id=item.id)):
        assert (await expect_refusal(eve.call(request))).code == "not_found"
    decided = await bob.call(AnswerAttention(attention_id=item.id, answer="yes"))
    assert decided.decided_by_address == "/bob/direct"


@as_test
async def test_a_person_with_control_by_a_grant_may_decide_and_a_program_may_not(rig: Rig) -> None:
    await add(rig, "bob")
    eve = await add(rig, "eve")
    tool = await make_agent(rig, "/bob/agent/tool")
    helper = await make_agent(rig, "/eve/agent/helper")
    item = await tool.call(Consult(question="May I?", default_action="no"))
    await rig.operator(AddGrant(action=Action.CONTROL, holder="eve", path="/bob/agent/tool"))
    refused = await expect_refusal(helper.call(AnswerAttention(attention_id=item.id, answer="yes")))
    assert refused.code == "not_found"
    assert (await eve.call(AnswerAttention(attention_id=item.id, answer="yes"))).answer == "yes"


@as_test
async def test_what_waits_for_a_person_waits_for_the_user_of_the_agent(rig: Rig) -> None:
    bob = await add(rig, "bob")
    tool = await make_agent(rig, "/bob/agent/tool")
    work = await tool.call(CreateWork(title="paint"))
    waiting = await tool.call(WaitWork(work_item_id=work.id, on=WaitingKind.APPROVAL))
    assert waiting.next_move_address == "/bob/direct"
    assert [one.title for one in (await bob.call(ListAttention())).items] == ["approve: paint"]
    assert (await rig.operator(ListAttention())).items == ()
    assert (await bob.call(GetWork(work_item_id=work.id))).title == "paint"


class Told:
    """A sink that keeps what it is told."""

    name = "told"

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    async def tell(self, notice: Notice) -> None:
        self.notices.append(notice)


def test_the_operator_is_notified_for_a_sub_user_without_a_chat(tmp_path: Path) -> None:
    sink = Told()

    async def scene(rig: Rig) -> None:
        pet, bob = await add(rig, "pet", owner="ada"), await add(rig, "bob")
        await bob.call(Notify(message="not for the operator"))
        await pet.call(Notify(message="hungry"))
        await wait_until(lambda: sink.notices)
        await link(rig, "pet")
        await pet.call(Notify(message="told in the chat"))
        await rig.operator(Notify(message="the end"))
        await wait_until(lambda: [one for one in sink.notices if "the end" in one.title + one.text])
        told = " ".join(one.title + one.text for one in sink.notices)
        assert "pet: hungry" in told
        assert "not for the operator" not in told
        assert "told in the chat" not in told

    run_scene(scene, tmp_path, sinks=(sink,))


# -- names --------------------------------------------------------------------------------------------------


@as_test
async def test_aliases_are_each_users_own(rig: Rig) -> None:
    bob = await add(rig, "bob")
    await make_agent(rig, "/bob/agent/tool")
    await rig.register("arc")
    # An agent of the operator that bob does not see takes no name from him.
    await bob.call(SetAlias(name="arc", target="/bob/agent/tool"))
    assert (await bob.call(ShowAlias(name="arc"))).means == "/bob/agent/tool"
    assert (await bob.call(Send(to="@arc", body="hello"))).deliveries[0].address == "/bob/agent/tool"
    program = await make_agent(rig, "/bob/agent/other")
    assert (
        await expect_refusal(program.call(SetAlias(name="x", target="/bob/agent/tool")))
    ).code == "forbidden"
    assert (await expect_refusal(rig.operator(ShowAlias(name="arc")))).code == "not_found"


@as_test
async def test_folders_of_the_machine_are_the_operators(rig: Rig) -> None:
    bob = await add(rig, "bob")
    folder = rig.home / "project"
    folder.mkdir()
    for request in draw_requests(
        MakeAsk(project_path=str(folder), body="read this"),
        MakeAsk(project_path=str(rig.home / "missing"), body="read this"),
        Send(to="/bob/agent/x", body="be", create={"workspaceDir": str(folder)}),
        Who(project_root=str(folder)),
    ):
        problem = await expect_refusal(bob.call(request))
        assert (problem.code, problem.remedies[0].operation) == ("directory_not_allowed", "grant.add")
    await rig.operator(AddGrant(action=Action.SPAWN, holder="bob", project=str(folder)))
    asked = await bob.call(MakeAsk(project_path=str(folder), body="read this", harness="echo"))
    owner = await rig.broker.as_system(lambda tx: tx.need(Agent, "agent", asked.target))
    assert owner.owner == "bob"
    again = await rig.operator(MakeAsk(project_path=str(folder), body="read this", harness="echo"))
    mine = await rig.broker.as_system(lambda tx: tx.need(Agent, "agent", again.target))
    assert (mine.owner, mine.project_root) == ("ada", owner.project_root)
    link_out = folder / "out"
    link_out.symlink_to(rig.home)
    refused = await expect_refusal(bob.call(Who(project_root=str(link_out))))
    assert refused.code == "directory_not_allowed"


@as_test
async def test_messages_between_users_need_a_grant(rig: Rig) -> None:
    bob, eve = await add(rig, "bob"), await add(rig, "eve")
    assert (await expect_refusal(bob.call(Send(to="/eve/direct", body="hi")))).code == "forbidden"
    assert (await expect_refusal(bob.call(Send(to="/nobody/direct", body="hi")))).code == "forbidden"
    await rig.operator(AddGrant(action=Action.ADDRESS, holder="bob", user="eve"))
    sent = await bob.call(Send(to="/eve/direct", body="hi"))
    assert (await eve.call(ListMessages(conversation=sent.conversation_id))).items[0].body == "hi"


def test_a_persons_reach_is_up_to_date_when_a_sub_user_is_added(tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_rig(tmp_path) as rig:
            bob = await add(rig, "bob")
            token = (await rig.operator(CreateToken(user="bob"))).secret
            await rig.scout(token)  # admitted before the sub-user is there
            await add(rig, "kid", owner="bob")
            late = await rig.scout(token)
            assert (await late.call(ShowUser(user="kid"))).owner == "bob"
            assert bob.who.actor.subusers == ()

    asyncio.run(scene())
