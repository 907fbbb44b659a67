"""Chats: what goes out and what comes in, where a platform does what platforms seldom do."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from scout.broker.people import accounts, links
from scout.broker.routing import posts as routing_posts
from scout.model.agent import Agent
from scout.model.attention import AttentionState
from scout.model.conversation import Message
from scout.model.events.chats import ChatReceived
from scout.model.people.chat import ChatPlace
from scout.model.people.chat_post import ChatPost, PostState
from scout.model.people.user import QuietHours
from scout.policy.limits import Chats, Periods
from scout.ports.connector import (
    ConnectorError,
    ExternalSender,
    FailureKind,
    InboundFailure,
    RemoteFile,
)
from scout.protocol.access import AddGrant, CreateToken
from scout.protocol.attention import AnswerAttention, GetAttention, Need
from scout.protocol.channels import CreateChannel
from scout.protocol.overview import ShowStatus
from scout.protocol.people.connectors import (
    AddConnector,
    ListConnectors,
    ListPosts,
    PostToUser,
    ProveConnector,
    RemoveConnector,
    ShowConnector,
)
from scout.protocol.talk import PutBlob, RedactMessage, Send
from tests.broker.puppet_chat import ABLE, PuppetChat, PuppetKits, link, play_chat
from tests.broker.rig import (
    Rig,
    advance_clock,
    expect_refusal,
    inbox_bodies,
    open_rig,
    read_log,
    run_scene,
    wait_until,
)

RETRY = ConnectorError(FailureKind.RETRY, "telegram: out of reach")
UNSURE = ConnectorError(FailureKind.RETRY, "telegram: no answer", uncertain=True)
REFUSED = ConnectorError(FailureKind.REFUSED, "telegram: blocked")
QUICK = Periods(back_off_first=0.02, back_off_most=0.05)


async def posts(rig: Rig, **more: Any) -> list[ChatPost]:
    return list((await rig.operator(ListPosts(**more))).items)


async def settle(rig: Rig) -> None:
    """Nothing waits to be sent."""

    async def look() -> bool:
        return not [one for one in await posts(rig) if one.state in (PostState.QUEUED, PostState.SENDING)]

    await wait_until(look)


# -- out ---------------------------------------------------------------------------------------------


def test_a_message_without_an_answer_is_repeated_and_says_so(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        chat.fails = [UNSURE]
        await rig.operator(PostToUser(user="ada", body="first"))
        assert (await chat.shows("first")).text.startswith("(may be a repeat)\n")
        chat.fails = [RETRY]
        await rig.operator(PostToUser(user="ada", body="second"))
        assert "repeat" not in (await chat.shows("second")).text

    play_chat(tmp_path, scene, periods=QUICK)


def test_where_a_repeated_message_is_shown_once_it_is_repeated_as_it_is(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        chat.fails = [UNSURE]
        await rig.operator(PostToUser(user="ada", body="first"))
        shown = await chat.shows("first")
        assert "repeat" not in shown.text
        (post, _) = await posts(rig)
        assert shown.id == f"{post.id}.0"
        assert post.attempts == 2

    play_chat(tmp_path, scene, replace(ABLE, repeats_safely=True), periods=QUICK)


def test_what_was_being_sent_at_a_crash_is_sent_again(tmp_path: Path) -> None:
    chat = PuppetChat()

    async def first() -> None:
        async with open_rig(tmp_path, kits=PuppetKits(chat)) as rig:
            await link(rig, chat)
            await settle(rig)
            reached = asyncio.Event()

            async def hang(_: object) -> None:
                reached.set()
                await asyncio.Event().wait()

            chat.before_send = hang
            await rig.operator(PostToUser(user="ada", body="three parts", attachments=()))
            await reached.wait()
            rig.broker.connectors._lanes["telegram"].task.cancel()  # pyright: ignore[reportOptionalMemberAccess] (it runs)

    async def second() -> None:
        chat.before_send = None
        async with open_rig(tmp_path, kits=PuppetKits(chat)) as rig:
            assert (await chat.shows("three parts")).text.startswith("(may be a repeat)")
            await settle(rig)

    asyncio.run(first())
    asyncio.run(second())


def test_a_long_text_continues_where_it_stopped(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        async def fail_once(message: Any) -> None:
            if message.id.endswith(".1") and not chat.fails:
                chat.before_send = None
                raise RETRY

        chat.before_send = fail_once
        await rig.operator(PostToUser(user="ada", body="\n\n".join(f"{n} " + "x " * 150 for n in range(3))))
        await chat.shows("2 x")
        numbers = [text.split()[0] for text in chat.texts if "x x" in text]
        assert numbers[1:] == ["1", "2"]
        assert len(numbers) == 3

    play_chat(tmp_path, scene, replace(ABLE, text_limit=400), periods=QUICK)


def test_quiet_hours_delay_everything_but_high_risk(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        def be_quiet(tx: Any) -> None:
            (key,) = accounts.list_keys(tx, "ada")
            now = int(str(tx.now)[11:13]) * 60 + int(str(tx.now)[14:16])
            quiet = QuietHours(start=(now - 60) % 1440, end=(now + 60) % 1440, time_zone="UTC")
            accounts.change_quiet_hours(tx, key, quiet)

        await rig.broker.as_system(be_quiet)
        arc = await rig.agent("arc")
        await arc.call(Need(question="Which colour?"))
        await rig.operator(PostToUser(user="ada", body="good night"))
        await arc.call(Need(question="Drop the table?", risk="high"))  # pyright: ignore[reportArgumentType] (a word of the wire)
        await chat.shows("Drop the table?")
        assert "good night" not in str(chat.texts)
        await advance_clock(rig, 3700)
        await chat.shows("good night")
        await chat.shows("Which colour?")

    play_chat(tmp_path, scene)


def test_what_cannot_be_sent_for_a_day_goes_back(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        arc = await rig.agent("arc")
        chat.fails = [RETRY] * 1000
        await arc.call(PostToUser(user="ada", body="are you there?"))
        await wait_until(lambda: len(chat.fails) < 1000)
        await advance_clock(rig, 86_500)

        async def bounced() -> bool:
            return any(
                "not shown in the telegram chat of ada" in one for one in await inbox_bodies(rig, "arc")
            )

        await wait_until(bounced)
        (post, *_) = await posts(rig, user="ada")
        assert (post.state, post.problem) == (PostState.FAILED, "telegram: out of reach")

    play_chat(tmp_path, scene, periods=QUICK)


def test_a_failure_that_is_reported_later_goes_back_too(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        arc = await rig.agent("arc")
        await arc.call(PostToUser(user="ada", body="are you there?"))
        await chat.shows("are you there?")
        await settle(rig)
        sender, place = ExternalSender(id="7"), ChatPlace(chat_id="7")
        ident = f"sent-{len(chat.sent)}"
        for _ in range(2):
            failure = InboundFailure(
                id="f1", place=place, sender=sender, message_id=ident, reason="no such number"
            )
            chat.push(failure)

        async def bounced() -> list[str]:
            return [one for one in await inbox_bodies(rig, "arc") if "no such number" in one]

        assert len(await wait_until(bounced)) == 1

    play_chat(tmp_path, scene)


def test_a_redacted_message_is_not_sent_any_more(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        chat.fails = [ConnectorError(FailureKind.RETRY, "wait", retry_after=0.5)]
        posted = await rig.operator(PostToUser(user="ada", body="the password is x"))
        await wait_until(lambda: not chat.fails)
        await rig.operator(RedactMessage(message_id=posted.message_id))
        await settle(rig)
        assert "password" not in str(chat.texts)
        assert "the password" not in str(await read_log(rig))
        (post, *_) = await posts(rig)
        assert post.state is PostState.FAILED

    play_chat(tmp_path, scene)


def test_files_that_a_chat_does_not_take_are_named(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        small = await rig.operator(PutBlob(name="small.txt", data=b"x"))
        large = await rig.operator(PutBlob(name="large.bin", data=b"x" * 2000))
        named = (f"{small.sha256}:small.txt", f"{large.sha256}:large.bin")
        await rig.operator(PostToUser(user="ada", body="two files", attachments=named))
        await chat.shows("the file large.bin is too large for this chat")
        assert [one.files[0].name for one in chat.sent if one.files] == ["small.txt"]

    play_chat(tmp_path, scene)


def test_where_nothing_can_be_edited_the_buttons_stay_and_are_answered(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        arc = await rig.agent("arc")
        item = await arc.call(Need(question="Which colour?", options=("red", "blue")))
        shown = await chat.shows("Which colour?")
        await rig.operator(AnswerAttention(attention_id=item.id, answer="red"))
        await settle(rig)
        assert chat.edited == []
        chat.press("sent-2", shown.buttons[0].value)
        await wait_until(lambda: chat.notes)
        assert chat.notes[0].startswith("Too late: it was answered 'red'")

    play_chat(tmp_path, scene, replace(ABLE, edits=False))


def test_a_decision_before_it_is_shown_means_that_it_is_not_shown(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        arc = await rig.agent("arc")
        chat.fails = [ConnectorError(FailureKind.RETRY, "wait", retry_after=0.3)]
        item = await arc.call(Need(question="Which colour?"))
        await wait_until(lambda: not chat.fails)
        await rig.operator(AnswerAttention(attention_id=item.id, answer="red"))
        await settle(rig)
        assert "Which colour?" not in str(chat.texts)
        assert (await posts(rig))[0].state is PostState.REPLACED

    play_chat(tmp_path, scene)


def test_a_long_item_is_replaced_below_its_text(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        arc = await rig.agent("arc")
        words = " ".join(f"word{number}" for number in range(90))
        item = await arc.call(Need(question=f"Which?\n\n{words}", options=("a" * 29, "b" * 29)))
        await chat.shows("word89")
        await settle(rig)
        await rig.operator(AnswerAttention(attention_id=item.id, answer="red"))
        await wait_until(lambda: chat.edited)
        ident, message = chat.edited[0]
        assert ident == f"sent-{len(chat.sent)}"
        assert "Answered by" in message.text

    play_chat(tmp_path, scene, replace(ABLE, text_limit=400))


@pytest.mark.parametrize("shown", [True, False])
def test_high_risk_in_groups_is_a_setting(tmp_path: Path, shown: bool) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        def link_group(tx: Any) -> str:
            from scout.broker.routing import users
            from scout.model.people.user import UserKind

            crew = users.create_user(tx, "crew", kind=UserKind.GROUP)
            return links.issue_code(tx, crew, "telegram")[1]

        code = await rig.broker.as_system(link_group)
        chat.say(code, chat="-100", addressed=True)
        await chat.shows("This group is linked to crew")
        await rig.operator(Send(to="/crew/agent/helper", body="hi", create={"description": "helps"}))
        token = await rig.operator(CreateToken(agent="/crew/agent/helper"))
        helper = await rig.scout(token.secret)
        await helper.call(Need(question="Drop the table?", risk="high"))  # pyright: ignore[reportArgumentType] (a word of the wire)
        await helper.call(Need(question="Which colour?"))
        await chat.shows("Which colour?")
        assert any("Drop the table?" in text for text in chat.texts) is shown

    play_chat(tmp_path, scene, chats=Chats(high_risk_in_groups=shown))


def test_a_message_of_a_background_agent_reaches_the_chat_that_is_in_front(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        arc = await rig.agent("arc")
        sent = await arc.call(Send(to="/ada/direct", body="the nightly run is done"))

        def pass_on(tx: Any) -> None:
            message = tx.get(Message, sent.message_id)
            front = tx.ledger.one(Agent, "agent_at_path", path="/ada/telegram")
            for rule in ("named", "foreground"):
                routing_posts.create_delivery(tx, message, front.id, rule=rule)
            person = tx.ledger.one(Agent, "agent_at_path", path="/ada/direct")
            routing_posts.create_delivery(tx, message, person.id, rule="foreground")

        await rig.broker.as_system(pass_on)
        shown = await chat.shows("the nightly run is done")
        assert shown.text.startswith("@arc\n")
        await settle(rig)
        assert len([text for text in chat.texts if "nightly" in text]) == 1

    play_chat(tmp_path, scene)


# -- in ----------------------------------------------------------------------------------------------


def test_a_person_who_controls_the_agent_may_decide(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        await link(rig, chat, "bob", "8")
        arc = await rig.agent("arc")
        item = await arc.call(Need(question="Merge it?", options=("yes", "no")))
        shown = await chat.shows("Merge it?")
        post = (await posts(rig))[0]
        value, place = shown.buttons[0].value, ChatPlace(chat_id="7", group=True)
        chat.press("sent-9", value, person="8", place=place)
        await wait_until(lambda: chat.notes)
        assert chat.notes == ["You may not decide this."]
        arc_path = str((await rig.operator(GetAttention(attention_id=item.id))).agent_address)
        detail = await rig.operator(AddGrant(action="control", agent="/bob/direct", path="/ada/agent/arc"))  # pyright: ignore[reportArgumentType] (a word of the wire)
        assert detail.action == "control", arc_path
        chat.press("sent-9", value, person="8", place=place)
        await wait_until(lambda: len(chat.notes) == 2)
        assert chat.notes[1] == "Answered by you: yes"
        decided = await rig.operator(GetAttention(attention_id=item.id))
        assert (decided.state, decided.decided_by_address) == (AttentionState.ANSWERED, "/bob/direct")
        assert post.attention_id == item.id

    play_chat(tmp_path, scene)


def test_a_press_elsewhere_or_of_nothing_does_nothing(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        arc = await rig.agent("arc")
        item = await arc.call(Need(question="Merge it?", options=("yes", "no")))
        shown = await chat.shows("Merge it?")
        await settle(rig)
        post_id = shown.buttons[0].value.partition(":")[0]
        for value in (f"{post_id}:9", "pst_nothing:0", "👍", "", f"{post_id}:x"):
            chat.press(f"sent-{len(chat.sent)}", value)
        chat.press("sent-1", "👍")
        chat.press(f"sent-{len(chat.sent)}", shown.buttons[0].value, place=ChatPlace(chat_id="elsewhere"))
        chat.say("!say after")
        await chat.shows("after")
        assert (await rig.operator(GetAttention(attention_id=item.id))).state is not AttentionState.ANSWERED
        assert set(chat.notes) <= {"This is no longer open."}

    play_chat(tmp_path, scene)


def test_a_file_that_cannot_be_fetched_is_left_out_after_some_attempts(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        chat.files = {"f": b"content"}
        good = RemoteFile(reference="f", name="a/../b.txt")
        chat.fails = [RETRY]
        chat.say("!say one", files=(good,))
        await chat.shows("one")
        assert "a_.._b.txt" in str(await read_log(rig))
        chat.fails = [REFUSED]
        chat.say("", files=(good,))
        await chat.shows("See the attached file: a_.._b.txt")
        chat.fails = [RETRY] * 3
        chat.say("!say three", files=(good,))
        await chat.shows("three")

    play_chat(tmp_path, scene, periods=QUICK)


def test_a_bound_channel_and_its_chat_see_the_same_talk(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        from scout.model.events.directory import BindingCreated
        from scout.model.people.binding import Binding, Surface

        made = await rig.operator(CreateChannel(name="dev"))

        def bind(tx: Any) -> None:
            binding = Binding(
                id=tx.mint("bnd"),
                created_at=tx.now,
                updated_at=tx.now,
                surface=Surface.CONNECTOR,
                name="telegram",
                external_id="-200",
                conversation_id=made.id,
                user="ada",
                created_by=tx.sender,
            )
            tx.record(BindingCreated, binding, move="create")

        await rig.broker.as_system(bind)
        arc = await rig.agent("arc", harness="echo")
        await arc.call(Send(channel="dev", body="the build is red"))
        shown = await chat.shows("the build is red")
        assert (shown.place.chat_id, shown.text.split("\n")[0]) == ("-200", "@arc")
        before = len(chat.sent)
        chat.say("I look at it", chat="-200")
        chat.say("nobody knows me", chat="-200", person="99")

        async def taken() -> bool:
            return "I look at it" in str(await read_log(rig))

        await wait_until(taken)
        chat.say(">> arc !say at work", chat="-200")
        await chat.shows("at work")
        await settle(rig)
        assert len(chat.sent) == before + 1  # what came from the chat is not shown there again

    play_chat(tmp_path, scene)


def test_a_chat_that_is_bound_to_an_agent_speaks_to_it(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        from scout.model.events.directory import BindingCreated
        from scout.model.people.binding import Binding, Surface

        arc = await rig.register("arc", harness="echo")

        def bind(tx: Any) -> None:
            binding = Binding(
                id=tx.mint("bnd"),
                created_at=tx.now,
                updated_at=tx.now,
                surface=Surface.CONNECTOR,
                name="telegram",
                external_id="7",
                agent_id=arc.agent.id,
                user="ada",
                created_by=tx.sender,
            )
            tx.record(BindingCreated, binding, move="create")

        await rig.broker.as_system(bind)
        chat.say("!say I am arc")
        assert (await chat.shows("I am arc")).text.startswith("@arc\n")

    play_chat(tmp_path, scene)


def test_an_account_that_changes_hands_meanwhile_is_looked_up_again(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        chat.files = {"f": b"content"}
        fetching, released = asyncio.Event(), asyncio.Event()

        async def fetch(file: RemoteFile, limit: int) -> bytes:
            fetching.set()
            await released.wait()
            return b"content"

        chat.fetch = fetch
        chat.say("!say whose?", files=(RemoteFile(reference="f", name="f"),))
        await fetching.wait()

        def unlink(tx: Any) -> None:
            (key,) = accounts.list_keys(tx, "ada")
            links.unlink(tx, key, "lost phone")

        await rig.broker.as_system(unlink)
        released.set()
        await chat.shows("does not know this account")
        assert "whose?" not in str(await read_log(rig))

    play_chat(tmp_path, scene)


def test_a_private_chat_that_moved_is_where_the_person_is_reached(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        chat.say("!say moved", place=ChatPlace(chat_id="new"), addressed=True)
        await chat.shows("moved")
        await rig.operator(PostToUser(user="ada", body="found you"))
        assert (await chat.shows("found you")).place.chat_id == "new"

    play_chat(tmp_path, scene)


def test_what_is_taken_is_in_the_log_with_the_key(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        chat.say("@nobody hello")
        await chat.shows("No agent has the address")
        taken = [one for one in await read_log(rig) if isinstance(one, ChatReceived)]
        assert [one.payload.meaning for one in taken] == ["link", "mention"]
        assert taken[1].payload.refused == "unknown_target"
        assert taken[1].metadata.token_id == taken[1].payload.key_id

    play_chat(tmp_path, scene)


# -- connectors --------------------------------------------------------------------------------------


def test_a_connector_is_added_proved_and_removed(tmp_path: Path) -> None:
    chat = PuppetChat()
    kits = PuppetKits(chat, stored=False)

    async def scene(rig: Rig) -> None:
        assert (await rig.operator(ListConnectors())).items == ()
        (known,) = (await rig.operator(ListConnectors(all=True))).items
        assert known.state == "off"
        added = await rig.operator(AddConnector(connector="telegram", values={"token": "hush-hush"}))
        assert (added.state, added.account) == ("running", "@puppet")
        assert kits.stored["telegram"].values == {"token": "hush-hush", "prepared": "yes"}
        assert "hush-hush" not in str(added)
        assert (await rig.operator(ShowStatus())).connectors == {"telegram": "running"}
        problem = await expect_refusal(rig.operator(ProveConnector(connector="telegram")))
        assert problem.remedies[0].operation == "user.link"
        await link(rig, chat, "ada")
        await rig.operator(ProveConnector(connector="telegram"))
        await chat.shows("Scout is connected.")
        shown = await rig.operator(ShowConnector(connector="telegram"))
        assert [(one.name, one.value) for one in shown.fields] == [("token", None), ("baseUrl", None)]
        removed = await rig.operator(RemoveConnector(connector="telegram"))
        assert (removed.state, kits.stored) == ("off", {})
        assert (await rig.operator(ShowStatus())).connectors == {}
        assert (await expect_refusal(rig.operator(ProveConnector(connector="telegram")))).code == "not_found"

    run_scene(scene, tmp_path, kits=kits)


def test_what_cannot_be_added_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    chat = PuppetChat()
    kits = PuppetKits(chat, stored=False)

    async def scene(rig: Rig) -> None:
        async def refused(**values: str) -> Any:
            return await expect_refusal(rig.operator(AddConnector(connector="telegram", values=values)))

        assert "needs token" in (await refused()).message
        assert "has no 'colour'" in (await refused(token="t", colour="red")).message
        chat.check_fails = [ConnectorError(FailureKind.CREDENTIALS, "telegram: Unauthorized")]
        problem = await refused(token="wrong")
        assert (problem.code, problem.kind) == ("connector_failed", "credentials")
        unknown = await expect_refusal(rig.operator(ShowConnector(connector="telegrem")))
        assert [one.address for one in unknown.candidates] == ["telegram"]
        assert kits.stored == {}
        arc = await rig.agent("arc")
        for request in (AddConnector(connector="telegram"), RemoveConnector(connector="telegram")):
            assert (await expect_refusal(arc.call(request))).code == "forbidden"

    run_scene(scene, tmp_path, kits=kits)


def test_without_a_daemon_there_are_no_connectors(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        assert (await rig.operator(ListConnectors(all=True))).items == ()
        problem = await expect_refusal(rig.operator(ShowConnector(connector="telegram")))
        assert problem.code == "forbidden"

    run_scene(scene, tmp_path)


def test_a_connector_that_breaks_is_started_again(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        chat.push("nonsense")  # pyright: ignore[reportArgumentType] (a connector with a fault)

        async def state(wanted: str) -> bool:
            (view,) = (await rig.operator(ListConnectors())).items
            return view.state == wanted

        await wait_until(lambda: state("retrying"))
        chat.check_fails = [RETRY, RETRY]
        await wait_until(lambda: not chat.check_fails)
        await wait_until(lambda: state("running"))
        chat.say("!say alive")
        await chat.shows("alive")

    play_chat(tmp_path, scene, periods=Periods(back_off_first=0.2, back_off_most=0.2))


def test_posts_are_listed_for_those_they_are_for(tmp_path: Path) -> None:
    async def scene(rig: Rig, chat: PuppetChat) -> None:
        await link(rig, chat, "bob", "8")
        arc = await rig.agent("arc")
        assert (await expect_refusal(arc.call(PostToUser(user="bob", body="hello")))).code == "forbidden"
        posted = await arc.call(PostToUser(user="ada", body="hello"))
        assert [one.connector for one in posted.posts] == ["telegram"]
        await rig.operator(PostToUser(user="bob", body="hi bob"))
        assert {one.user for one in await posts(rig)} == {"ada", "bob"}
        assert {one.user for one in await posts(rig, user="bob")} == {"bob"}
        assert (await expect_refusal(arc.call(ListPosts()))).code == "forbidden"
        page = await rig.operator(ListPosts(limit=1))
        assert len(page.items) == 1
        assert page.next is not None
        assert (await expect_refusal(rig.operator(PostToUser(user="nobody", body="x")))).code == "not_found"

    play_chat(tmp_path, scene)
