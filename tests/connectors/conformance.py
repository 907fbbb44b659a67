"""What every connector does, on its stage: one suite, run by a test file of each connector.

A test file makes a class of it and says which stage it plays on:

    class TestTelegram(ConnectorConformance):
        def stage(self) -> AbstractContextManager[Stage]:
            return telegram_stage()
"""

import asyncio
from collections.abc import Coroutine
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from scout.base.refusal import Refused
from scout.broker.people import accounts, links
from scout.model.ask import Ask
from scout.model.attention import AttentionState
from scout.model.events.asks import AskCreated
from scout.model.events.chats import ChatPostEvent, ChatReceived, ChatStranger
from scout.model.people.user import UserKind
from scout.policy.limits import Periods
from scout.protocol.access import CreateToken
from scout.protocol.agents import Who
from scout.protocol.allowances import ListAllowances
from scout.protocol.attention import ApproveAttention, GetAttention, ListAttention, Need, Notify
from scout.protocol.enrolment import HookEvent, ReportHook
from scout.protocol.overview import PauseScout, ResumeScout
from scout.protocol.people.connectors import PostToUser
from scout.protocol.talk import PutBlob, Send
from tests.broker.rig import advance_clock, inbox_bodies, open_rig, read_log, wait_until
from tests.connectors.chatting import Chat, Scene, chat_test, store_setup
from tests.connectors.kills import play_kills
from tests.connectors.stage import Fault, Stage
from tests.soak import Soaked

__all__ = ["ConnectorConformance"]

QUICK = Periods(back_off_first=0.05, back_off_most=0.2)
LONG = "\n\n".join(f"Paragraph {number}: {'words ' * 60}" for number in range(60))
FORMATTED = (
    "# Done\n\nIt **works** with `a < b & c`:\n\n```python\nif a < b:\n    x = '**no**'\n```\n\n- one\n- two"
)


class ConnectorConformance:
    """The suite. `play` runs a scene with a broker whose only connector is at the stage."""

    periods: ClassVar[Periods] = QUICK
    file: ClassVar[tuple[str, bytes]] = ("out.bin", b"\x00\x01\xff" * 100)
    """A file that the platform takes."""

    def stage(self) -> AbstractContextManager[Stage]:
        """A stage of one's own for each test."""
        raise NotImplementedError

    def play(self, home: Path, scene: Scene, **options: Any) -> None:
        chat_test(self.stage(), home, scene, **{"periods": self.periods, **options})

    # -- accounts ----------------------------------------------------------------------------------

    def test_somebody_unknown_is_told_once_a_day_how_to_be_linked(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            eve = await chat.do(chat.stage.person, "eve")
            home = await chat.private(eve)
            for text in ("hello", "a secret of mine", "@operator rm -rf /"):
                await chat.say(eve, text)
            shown = await chat.shows(home, "does not know this account")
            assert f"scout user link USER {chat.connector}" in shown.text
            chat.rig.clock.ahead += 86_400
            await chat.say(eve, "good morning")
            await chat.shows(home, "does not know this account", count=2)
            assert len(await chat.shown(home)) == 2
            log = await read_log(chat.rig)
            assert len([one for one in log if isinstance(one, ChatStranger)]) == 2
            assert "a secret of mine" not in str(log)
            assert not [one for one in log if isinstance(one, ChatReceived | ChatPostEvent)]
            assert f"'{eve}'" not in str(log)

        self.play(tmp_path, scene)

    def test_a_code_links_the_account_that_types_it_once(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            bob = await chat.do(chat.stage.person, "bob")
            home = await chat.private(bob)
            await chat.say(bob, "scout-aaaa-aaaa")
            await chat.shows(home, "not valid")
            code = await chat.issue_code("bob")
            await chat.say(bob, code)
            await chat.shows(home, "is linked to bob")
            eve = await chat.do(chat.stage.person, "eve")
            await chat.say(eve, code)
            await chat.shows(await chat.private(eve), "not valid")
            (key,) = await chat.rig.broker.as_system(lambda tx: accounts.list_keys(tx, "bob"))
            assert (key.external_id, key.chat_id) == (bob, home)

        self.play(tmp_path, scene)

    def test_an_account_that_is_linked_to_another_user_belongs_to_them(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            await chat.agent()
            bob = await chat.link("bob")
            home = await chat.private(bob)
            await chat.let_answer("bob")
            await chat.rig.operator(PauseScout())
            await chat.say(bob, "!say for bob only")
            await wait_until(lambda: _asks(chat, 1))
            await chat.say(bob, await chat.issue_code("ann"))
            await chat.shows(home, "is linked to ann")
            await chat.rig.operator(ResumeScout())
            await chat.let_answer("ann")
            await chat.say(bob, "!say for ann")
            await chat.shows(home, "for ann")
            await chat.settle()
            assert "for bob only" not in str(await chat.texts(home))

        self.play(tmp_path, scene)

    def test_an_unlinked_account_is_a_stranger_again(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            bob = await chat.link("bob")
            home = await chat.private(bob)

            def unlink(tx: Any) -> None:
                (key,) = accounts.list_keys(tx, "bob")
                links.unlink(tx, key, "lost phone")

            await chat.rig.broker.as_system(unlink)
            posted = await chat.rig.operator(PostToUser(user="bob", body="not any more"))
            assert posted.posts == ()
            await chat.say(bob, "hello?")
            await chat.shows(home, "does not know this account")
            assert "not any more" not in str(await chat.texts(home))

        self.play(tmp_path, scene)

    # -- asks and answers --------------------------------------------------------------------------

    def test_plain_text_asks_the_agent_of_the_chat(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.link("ada")
            await chat.let_answer("ada")
            said = await chat.say(ada, "!say Twelve <b>&</b> *more*")
            shown = await chat.shows(await chat.private(ada), "Twelve <b>&</b>")
            assert shown.reply_to in (said, None)
            (asked,) = await _asks(chat, 1)
            agents = {one.id: str(one.path) for one in await _agents(chat)}
            assert (agents[asked.sender], agents[asked.target]) == (
                "/ada/direct",
                f"/ada/{chat.connector}",
            )
            (created,) = [one for one in await read_log(chat.rig) if isinstance(one, AskCreated)]
            assert (created.metadata.token_id or "").startswith("key_")

        self.play(tmp_path, scene)

    def test_a_leading_mention_asks_that_agent_and_a_wrong_name_gets_candidates(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            await chat.agent("arc")
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.say(ada, "@arc review this")
            shown = await chat.shows(home, "review this")
            assert "@arc" in shown.text
            await chat.say(ada, "@arx review this")
            refused = await chat.shows(home, "No agent has the address '@arx'")
            assert "Try @arc" in refused.text
            await chat.say(ada, ">> arc !fail it broke")
            await chat.shows(home, "it broke")

        self.play(tmp_path, scene)

    def test_without_a_harness_the_answer_says_how_to_go_on(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.link("ada")
            await chat.say(ada, "hello")
            shown = await chat.shows(await chat.private(ada), "On the machine")
            assert f"/ada/{chat.connector}" in shown.text

        self.play(tmp_path, scene, harnesses={})

    def test_texts_before_the_ask_starts_come_with_it(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.let_answer("ada")
            await chat.rig.operator(PauseScout())
            await chat.say(ada, "!say first")
            await chat.say(ada, "and this")
            await chat.say(ada, "and that")
            await wait_until(lambda: _received(chat, 4))
            assert len(await _asks(chat, 1)) == 1
            await chat.rig.operator(ResumeScout())
            await chat.shows(home, "first")
            await chat.say(ada, "!say second")
            await chat.shows(home, "second")
            assert len(await _asks(chat, 2)) == 2

        self.play(tmp_path, scene)

    def test_formatting_and_long_text_arrive_whole_and_in_order(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            await chat.agent("arc")
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.rig.operator(PostToUser(user="ada", body=FORMATTED))
            shown = await chat.shows(home, "It works with")
            assert "a < b & c" in shown.text
            assert "x = '**no**'" in shown.text
            await chat.rig.operator(PostToUser(user="ada", body=LONG))
            await chat.shows(home, "Paragraph 59")
            texts = [one.text for one in await chat.shown(home) if "Paragraph" in one.text]
            assert len(texts) > 1
            found = [word for text in texts for word in text.split() if word.rstrip(":").isdecimal()]
            assert found == [f"{number}:" for number in range(60)]
            assert "".join(texts).count("words") == 60 * 60

        self.play(tmp_path, scene)

    def test_files_go_both_ways(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            if not chat.capabilities.file_limit:
                pytest.skip("the platform has no files")
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.let_answer("ada")
            await chat.say(ada, "!say thanks", file=("notes.txt", b"line one\nline two\n"))
            await chat.shows(home, "thanks")
            log = str(await read_log(chat.rig))
            assert "notes.txt" in log
            name, data = self.file
            stored = await chat.rig.operator(PutBlob(name=name, data=data))
            wish = PostToUser(user="ada", body="see this", attachments=(f"{stored.sha256}:{name}",))
            await chat.rig.operator(wish)

            async def look() -> Any:
                return [one for one in await chat.shown(home) if one.file == name]

            (shown,) = await wait_until(look)
            assert shown.data in (data, b"")

        self.play(tmp_path, scene)

    def test_a_thread_is_a_conversation(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.link("ada")
            group = await chat.link_group("crew", ada)
            thread = await chat.do(chat.stage.thread, group, "build")
            if thread is None:
                pytest.skip("the platform has no threads")
            await chat.let_answer("crew")
            await chat.say(ada, "!say in the thread", chat=group, thread=thread, mention=True)
            shown = await chat.shows(group, "in the thread")
            assert shown.thread == thread
            await chat.say(ada, "!say outside", chat=group, mention=True)
            outside = await chat.shows(group, "outside")
            assert outside.thread != thread
            one, two = await _asks(chat, 2)
            assert one.conversation_id != two.conversation_id

        self.play(tmp_path, scene)

    def test_an_edit_corrects_and_changes_nothing(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            if not chat.capabilities.edits:
                pytest.skip("the platform has no edits")
            ada = await chat.link("ada")
            await chat.let_answer("ada")
            said = await chat.say(ada, "!say six")
            await chat.shows(await chat.private(ada), "six")
            await chat.do(chat.stage.edit, ada, await chat.private(ada), said, "!say seven")

            async def corrected() -> bool:
                return "Correction of an earlier message:\\n\\n!say seven" in str(await read_log(chat.rig))

            await wait_until(corrected)
            assert "'!say six'" in str(await read_log(chat.rig))
            assert len(await _asks(chat, 1)) == 1

        self.play(tmp_path, scene)

    def test_commands_are_answered(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            await chat.agent("arc", config={"description": "reviews code"})
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.say(ada, "/who")
            assert "reviews code" in (await chat.shows(home, "@arc")).text
            await chat.say(ada, ">> arc !hang")
            await chat.say(ada, "/status")
            await chat.shows(home, "Running:")
            await chat.say(ada, "/stop")
            await chat.shows(home, "Stopped: @arc")
            await chat.say(ada, "/stop")
            await chat.shows(home, "Nothing that you asked for here is running")
            await chat.say(ada, "/help")
            await chat.shows(home, "asks an agent")

        self.play(tmp_path, scene)

    def test_it_shows_that_an_answer_is_written(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            if not chat.capabilities.typing:
                pytest.skip("the platform shows no typing")
            await chat.agent("arc")
            ada = await chat.link("ada")
            await chat.say(ada, ">> arc !hang")
            home = await chat.private(ada)

            async def typed() -> int:
                return await chat.do(chat.stage.typed, home)

            await wait_until(typed)
            await chat.say(ada, "/stop")
            await chat.shows(home, "Stopped: @arc")

        self.play(tmp_path, scene)

    # -- decisions ---------------------------------------------------------------------------------

    def test_a_permission_is_given_with_one_tap(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.link("ada")
            home = await chat.private(ada)
            item = await chat.wants("npm test -- --all <x> & `y`")
            shown = await chat.shows(home, "npm test -- --all <x> & `y`")
            assert "asks for permission" in shown.text
            await chat.press(ada, "Once", shown)
            assert item is not None
            decided = await _wait_decided(chat, item)
            assert decided.state is AttentionState.RESOLVED
            assert decided.decided_by_address == "/ada/direct"
            await chat.settle()
            if chat.capabilities.edits:
                after = await chat.shows(home, "Approved by /ada/direct")
                assert (after.message_id, after.buttons) == (shown.message_id, ())
                assert "npm test" in after.text
            assert (await chat.wants("npm test -- --all <x> & `y`")) is not None

        self.play(tmp_path, scene)

    def test_a_permission_for_the_session_ends_with_it_and_always_lasts(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.link("ada")
            home = await chat.private(ada)
            first = await chat.wants("make")
            await _choose(chat, ada, await chat.shows(home, "make"), "This session", "session")
            await _wait_decided(chat, str(first))
            second = await _wait_decided(chat, str(await chat.wants("make")))
            (made,) = (await chat.rig.operator(ListAllowances())).items
            assert (made.scope, second.allowance_id) == ("session", made.id)
            host, enrolled = await chat.session()
            await host.call(ReportHook(session_id=enrolled.session.id, event=HookEvent.SESSION_END))
            assert (await chat.rig.operator(ListAllowances())).items == ()
            other = await chat.wants("make", "another")
            await _choose(chat, ada, await chat.shows(home, "make", count=2), "Always", "always")
            await _wait_decided(chat, str(other))
            third = await _wait_decided(chat, str(await chat.wants("make", "another")))
            (lasting,) = (await chat.rig.operator(ListAllowances())).items
            assert (lasting.scope, third.allowance_id) == ("agent", lasting.id)

        self.play(tmp_path, scene)

    def test_a_question_is_answered_by_an_option_or_a_reply(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            arc = await chat.agent("arc", harness=None)
            ada = await chat.link("ada")
            home = await chat.private(ada)
            asked = await arc.call(Need(question="Which colour?", options=("red", "blue")))
            shown = await chat.shows(home, "Which colour?")
            await chat.press(ada, "blue", shown)
            assert (await _wait_decided(chat, asked.id)).answer == "blue"
            free = await arc.call(Need(question="Which port?"))
            shown = await chat.shows(home, "Which port?")
            await chat.say(ada, "8080, I think", reply_to=shown.message_id)
            assert (await _wait_decided(chat, free.id)).answer == "8080, I think"
            await arc.call(Notify(message="The build is green."))
            await chat.shows(home, "The build is green.")

        self.play(tmp_path, scene)

    def test_a_reply_decides_in_words_and_an_unclear_one_is_asked_again(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.link("ada")
            home = await chat.private(ada)
            item = await chat.wants("rm x")
            shown = await chat.shows(home, "rm x")
            await chat.say(ada, "perhaps", reply_to=shown.message_id)
            await chat.shows(home, "Reply with one of")
            await chat.say(ada, "no", reply_to=shown.message_id)
            assert item is not None
            assert (await _wait_decided(chat, item)).state is AttentionState.DENIED

        self.play(tmp_path, scene)

    def test_of_two_people_and_the_command_line_the_first_decides(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            phones = [await chat.link("ada", f"ada{number}") for number in range(2)]
            item = await chat.wants("deploy")
            assert item is not None
            shown = [await chat.shows(await chat.private(one), "deploy") for one in phones]
            await asyncio.gather(
                chat.press(phones[0], "Once", shown[0]),
                chat.press(phones[1], "Deny", shown[1]),
                _try(chat.rig.operator(ApproveAttention(attention_id=item))),
            )
            decided = await _wait_decided(chat, item)
            assert decided.state in (AttentionState.RESOLVED, AttentionState.DENIED)
            await wait_until(lambda: _outcomes(chat, phones, decided.state))
            log = [one for one in await read_log(chat.rig, "collab.attention") if one.target.id == item]
            ends = [one for one in log if type(one).__name__ in ("AttentionResolved", "AttentionDenied")]
            assert len(ends) == 1

        self.play(tmp_path, scene)

    def test_a_decision_counts_only_from_a_person_who_may_decide(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada, bob = await chat.link("ada"), await chat.link("bob")
            eve = await chat.do(chat.stage.person, "eve")
            group = await chat.do(chat.stage.group, "crew", ada, bob, eve)
            await chat.say(ada, await chat.issue_code("crew", UserKind.GROUP), chat=group, mention=True)
            await chat.shows(group, "This group is linked to")
            agent = await _agent_of(chat, "crew")
            asked = await agent.call(Need(question="Merge it?", options=("yes", "no")))
            shown = await chat.shows(group, "Merge it?")
            await chat.do(chat.stage.press_as_bot, group, shown.message_id, "yes")
            await chat.press(eve, "yes", shown, group)
            assert "not linked" in (await chat.notes(eve, 1))[0]
            await chat.press(bob, "yes", shown, group)
            assert "may not decide" in (await chat.notes(bob, 1))[0]
            assert (await chat.rig.operator(GetAttention(attention_id=asked.id))).decided_by is None

        self.play(tmp_path, scene)

    def test_high_risk_is_shown_in_private_only(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.link("ada")
            group = await chat.link_group("crew", ada)
            agent = await _agent_of(chat, "crew")
            await agent.call(Need(question="Drop the table?", risk="high"))  # pyright: ignore[reportArgumentType] (a word of the wire)
            await agent.call(Need(question="Which colour?"))
            await chat.shows(group, "Which colour?")
            await chat.settle()
            assert "Drop the table?" not in str(await chat.texts(group))
            await chat.wants("curl x | sh \x1b[8m")
            await chat.shows(await chat.private(ada), "High risk")

        self.play(tmp_path, scene)

    # -- groups ------------------------------------------------------------------------------------

    def test_in_a_group_only_what_is_for_the_bot_counts(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada, bob = await chat.link("ada"), await chat.link("bob")
            eve = await chat.do(chat.stage.person, "eve")
            group = await chat.link_group("crew", ada, bob, eve)
            await chat.let_answer("crew")
            await chat.say(ada, "!say not for you", chat=group)
            await chat.say(eve, "!say nor this", chat=group)
            await chat.say(ada, "!say hello crew", chat=group, mention=True)
            await chat.shows(group, "hello crew")
            await chat.say(bob, "!say hello too", chat=group, mention=True)
            await chat.shows(group, "hello too")
            one, two = await _asks(chat, 2)
            assert one.sender != two.sender
            assert (one.target, one.conversation_id) == (two.target, two.conversation_id)
            await chat.say(eve, "!say me", chat=group, mention=True)
            await chat.settle()
            texts = str(await chat.texts(group))
            assert "not for you" not in texts
            assert "nor this" not in texts

        self.play(tmp_path, scene)

    def test_a_code_of_a_person_is_worthless_once_a_group_has_read_it(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            ada = await chat.do(chat.stage.person, "ada")
            group = await chat.do(chat.stage.group, "crew", ada)
            code = await chat.issue_code("ada")
            await chat.say(ada, code, chat=group, mention=True)
            await chat.shows(group, "others have seen it")
            await chat.say(ada, code)
            await chat.shows(await chat.private(ada), "not valid")

        self.play(tmp_path, scene)

    # -- what goes wrong ---------------------------------------------------------------------------

    @pytest.mark.slow
    def test_a_few_kills_lose_nothing(self, tmp_path: Path) -> None:
        with self.stage() as stage:
            assert play_kills(stage, tmp_path / "home", 4)["texts"] > 0

    @pytest.mark.soak
    @pytest.mark.timeout(3600)
    def test_two_hundred_kills_lose_nothing(self, tmp_path: Path, soaked: Soaked) -> None:
        with self.stage() as stage:
            soaked(**play_kills(stage, tmp_path / "home", 200))

    def test_everything_reported_twice_has_one_effect(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            arc = await chat.agent("arc")
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.say(ada, ">> arc !say once")
            await chat.shows(home, "once")
            asked = await arc.call(Need(question="Which colour?", options=("red", "blue")))
            shown = await chat.shows(home, "Which colour?")
            await chat.press(ada, "red", shown)
            await _wait_decided(chat, asked.id)
            await chat.settle()
            before = [one.text for one in await chat.shown(home)]
            await chat.do(chat.stage.repeat)
            await chat.say(ada, ">> arc !say after")
            await chat.shows(home, "after")
            await chat.settle()
            texts = await chat.texts(home)
            assert [text for text in texts if "after" not in text] == before
            assert len(await _asks(chat, 2)) == 2

        self.play(tmp_path, scene)

    def test_a_restart_of_the_broker_loses_nothing(self, tmp_path: Path) -> None:
        with self.stage() as stage:
            kits = store_setup(tmp_path, stage)

            async def first() -> None:
                async with open_rig(tmp_path, kits=kits, periods=self.periods) as rig:
                    chat = Chat(rig, stage)
                    await chat.wait_for_state("running")
                    await chat.agent("arc")
                    ada = await chat.link("ada")
                    await chat.say(ada, ">> arc !say one")
                    await chat.shows(await chat.private(ada), "one")

            async def second() -> None:
                ada = stage.person("ada")
                async with open_rig(tmp_path, kits=kits, periods=self.periods) as rig:
                    chat = Chat(rig, stage)
                    home = await chat.private(ada)
                    await chat.shows(home, "two")
                    await chat.do(stage.restart)
                    await chat.say(ada, ">> arc !say three")
                    await chat.shows(home, "three")
                    await chat.settle()
                    said = [
                        text for text in await chat.texts(home) if "@arc" in text and "linked" not in text
                    ]
                    assert [text.split()[-1] for text in said] == ["one", "two", "three"]

            asyncio.run(first())
            stage.say(stage.person("ada"), stage.private(stage.person("ada")), ">> arc !say two")
            asyncio.run(second())
            assert stage.problems() == []

    def test_a_platform_that_is_down_for_an_hour_gets_everything_later(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            if Fault.DOWN not in chat.stage.faults:
                pytest.skip("this stage cannot be taken down")
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.settle()
            fault = chat.stage.fault(Fault.DOWN)
            await chat.do(fault.__enter__)
            try:
                for number in range(3):
                    await chat.rig.operator(PostToUser(user="ada", body=f"while down {number}"))
                await chat.wait_for_state("retrying")
                for _ in range(12):
                    await advance_clock(chat.rig, 300)
            finally:
                await chat.do(fault.__exit__, None, None, None)
            await chat.wait_for_state("running")
            await chat.shows(home, "while down 2")
            texts = [text.split()[-1] for text in await chat.texts(home) if "while down" in text]
            assert texts == ["0", "1", "2"]

        self.play(tmp_path, scene)

    def test_the_platform_says_how_long_to_wait(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            if Fault.RATE not in chat.stage.faults:
                pytest.skip("this stage has no limits")
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.settle()
            fault = chat.stage.fault(Fault.RATE)
            await chat.do(fault.__enter__)
            await chat.rig.operator(PostToUser(user="ada", body="patience 0"))
            await chat.rig.operator(PostToUser(user="ada", body="patience 1"))
            await chat.shows(home, "patience 1")
            await chat.do(fault.__exit__, None, None, None)
            texts = [text for text in await chat.texts(home) if "patience" in text]
            assert [text.split()[-1] for text in texts] == ["0", "1"]
            assert "may be a repeat" not in str(texts)

        self.play(tmp_path, scene)

    def test_a_message_that_the_platform_refuses_goes_back_to_its_sender(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            if Fault.REFUSED not in chat.stage.faults:
                pytest.skip("this stage refuses nothing")
            arc = await chat.agent("arc", harness=None)
            await chat.link("ada")
            await chat.settle()
            fault = chat.stage.fault(Fault.REFUSED)
            await chat.do(fault.__enter__)
            posted = await arc.call(PostToUser(user="ada", body="are you there?"))
            assert len(posted.posts) == 1

            async def bounced() -> bool:
                return any("not shown in the" in one for one in await inbox_bodies(chat.rig, "arc"))

            await wait_until(bounced)
            await chat.do(fault.__exit__, None, None, None)

        self.play(tmp_path, scene)

    def test_credentials_that_fail_are_told_once_and_repaired(self, tmp_path: Path) -> None:
        async def scene(chat: Chat) -> None:
            if Fault.CREDENTIALS not in chat.stage.faults:
                pytest.skip("the credentials of this stage cannot end")
            ada = await chat.link("ada")
            home = await chat.private(ada)
            await chat.settle()
            fault = chat.stage.fault(Fault.CREDENTIALS)
            await chat.do(fault.__enter__)
            for number in range(3):
                await chat.rig.operator(PostToUser(user="ada", body=f"kept {number}"))
            view = await chat.wait_for_state("credentials")
            assert view.problem

            async def told() -> list[Any]:
                items = (await chat.rig.operator(ListAttention())).items
                return [one for one in items if "credentials no longer work" in one.title]

            (item,) = await wait_until(told)
            assert f"scout connector add {chat.connector}" in item.body
            await chat.do(fault.__exit__, None, None, None)
            await chat.rig.broker.connectors.stop(chat.connector)
            chat.rig.broker.connectors.start(chat.connector)
            await chat.shows(home, "kept 2")
            after = await chat.rig.operator(GetAttention(attention_id=item.id))
            assert after.state is AttentionState.DISMISSED

        self.play(tmp_path, scene)


# -- looking ----------------------------------------------------------------------------------------


async def _asks(chat: Chat, count: int) -> list[Ask]:
    """The asks so far, once there are this many."""

    async def look() -> list[Ask]:
        found = [one.payload.record for one in await read_log(chat.rig) if isinstance(one, AskCreated)]
        return found if len(found) >= count else []

    return await wait_until(look)


async def _received(chat: Chat, count: int) -> bool:
    log = await read_log(chat.rig)
    return len([one for one in log if isinstance(one, ChatReceived)]) >= count


async def _agents(chat: Chat) -> list[Any]:
    return list((await chat.rig.operator(Who(all=True, limit=200))).items)


async def _agent_of(chat: Chat, user: str) -> Any:
    """An agent of another user than the operator, with a token of its own."""
    path = f"/{user}/agent/helper"
    await chat.rig.operator(Send(to=path, body="hello", create={"description": "helps"}))
    made = await chat.rig.operator(CreateToken(agent=path))
    return await chat.rig.scout(made.secret)


async def _wait_decided(chat: Chat, item: str) -> Any:
    async def look() -> Any:
        view = await chat.rig.operator(GetAttention(attention_id=item))
        return view if view.decided_by is not None else None

    return await wait_until(look)


async def _choose(chat: Chat, person: str, shown: Any, label: str, word: str) -> None:
    """Decide by a button, or by its word where the platform shows too few."""
    if label in shown.buttons:
        await chat.press(person, label, shown)
    else:
        await chat.say(person, word, reply_to=shown.message_id)


async def _try(work: Coroutine[Any, Any, Any]) -> None:
    try:
        await work
    except Refused:
        return


async def _outcomes(chat: Chat, people: list[str], state: AttentionState) -> bool:
    """Whether everybody is shown the decision, and those who were too late are told."""
    word = "Approved" if state is AttentionState.RESOLVED else "Denied"
    if not chat.capabilities.edits:
        return True
    return all([any(word in text for text in await chat.texts(await chat.private(one))) for one in people])
