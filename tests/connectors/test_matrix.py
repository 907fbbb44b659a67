"""The Matrix connector against a real Synapse, with another account as the phone."""

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from scout.connectors.matrix.connector import MatrixConnector, build, prepare
from scout.ports.connector import (
    Button,
    ChatPlace,
    ConnectorSetup,
    ExternalSender,
    FailureKind,
    InboundPress,
    OutboundFile,
    RemoteFile,
)
from tests.connectors.matrix_phone import Phone
from tests.connectors.running import KeepingInlet, Running, failing, text_to
from tests.connectors.synapse import Synapse

pytestmark = pytest.mark.slow
_numbers = itertools.count(1)


class Scene(NamedTuple):
    """A bot and a person."""

    synapse: Synapse
    bot: str
    values: dict[str, str]
    phone: Phone
    inlet: KeepingInlet
    others: list[Phone]

    def connector(self, **values: str) -> MatrixConnector:
        return build(ConnectorSetup(connector="matrix", values={**self.values, **values}))

    def running(self, **values: str) -> Running:
        return Running(self.connector(**values), self.inlet)

    def direct_room(self) -> str:
        """A room that the bot has joined; the connector must be running."""
        room = self.phone.create_room(self.bot, direct=True)
        self.wait_for_join(room)
        return room

    def wait_for_join(self, room: str, membership: str = "join") -> None:
        self.phone.wait(lambda: self.phone.get_members(room).get(self.bot) == membership)

    def another(self) -> Phone:
        self.others.append(Phone(self.synapse.url, *self.synapse.register(f"other{next(_numbers)}")))
        return self.others[-1]


@pytest.fixture
def scene(synapse: Synapse) -> Iterator[Scene]:
    number = next(_numbers)
    bot, token = synapse.register(f"scout{number}")
    phone = Phone(synapse.url, *synapse.register(f"ada{number}"))
    values = {"baseUrl": synapse.url, "accessToken": token}
    made = Scene(synapse, bot, values, phone, KeepingInlet(), [])
    yield made
    for one in (phone, *made.others):
        one.close()


# -- set-up and credentials ----------------------------------------------------------------------------


def test_check_names_the_bot(scene: Scene) -> None:
    with Running(scene.connector(), receiving=False) as running:
        account = running.do(running.connector.check())
    assert account.id == scene.bot
    assert account.name == scene.bot[1:].partition(":")[0]


def test_a_password_becomes_a_token_and_is_not_kept(scene: Scene) -> None:
    name = scene.bot[1:].partition(":")[0]
    values = {"baseUrl": scene.synapse.url, "user": scene.bot, "password": f"pw-{name}"}
    with Running(scene.connector(), receiving=False) as running:
        stored = running.do(prepare(ConnectorSetup(connector="matrix", values=values)))
        assert "password" not in stored.values
        other = build(stored)
        assert running.do(other.check()).id == scene.bot
        running.do(other.close())
        wrong = ConnectorSetup(connector="matrix", values={**values, "password": "guessed"})
        failure = failing(lambda: running.do(prepare(wrong)))
    assert failure.kind is FailureKind.CREDENTIALS
    assert "M_FORBIDDEN" in failure.reason


def test_a_wrong_token_is_a_matter_of_credentials(scene: Scene) -> None:
    with scene.running(accessToken="syt_wrong") as running:
        for call in (
            lambda: running.do(running.connector.check()),
            lambda: running.send(text_to("!room:localhost")),
        ):
            failure = failing(call)
            assert failure.kind is FailureKind.CREDENTIALS
            assert "M_UNKNOWN_TOKEN" in failure.reason
            assert "syt_wrong" not in failure.reason
        error = running.wait_for_failure()
    assert getattr(error, "kind", None) is FailureKind.CREDENTIALS


# -- rooms and texts -----------------------------------------------------------------------------------


def test_a_text_in_a_direct_room_and_its_answer(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.phone.create_room(scene.bot, direct=True)
        early = scene.phone.say(room, "typed before the bot was there")
        scene.wait_for_join(room)
        late = scene.phone.say(room, "hello")
        first, second = scene.inlet.texts(2)
        assert (first.message_id, second.message_id) == (early, late)
        assert (second.text, second.addressed, second.place) == ("hello", True, ChatPlace(chat_id=room))
        assert second.sender.id == scene.phone.user_id
        assert second.sender.name == scene.phone.user_id[1:].partition(":")[0]
        sent = running.send(text_to(room, "<b>done</b>", plain="done", reply_to=late))
    (shown,) = scene.phone.list_messages(room, scene.bot)
    assert shown["event_id"] == sent
    assert shown["content"]["body"] == "done"
    assert shown["content"]["formatted_body"] == "<b>done</b>"
    assert shown["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == late


def test_the_same_message_sent_again_is_shown_once(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.direct_room()
        message = text_to(room, "once")
        first = running.send(message)
        assert running.send(message) == first
        assert len(scene.phone.list_messages(room, scene.bot)) == 1


def test_history_from_before_the_first_start_is_left_alone(scene: Scene) -> None:
    with scene.running():
        room = scene.direct_room()
        scene.phone.say(room, "taken")
        scene.inlet.texts(1)
    fresh = KeepingInlet()
    with Running(scene.connector(), fresh):
        fresh.wait_until(lambda: fresh.cursor)
        scene.phone.say(room, "new")
        assert [one.text for one in fresh.texts(1)] == ["new"]


def test_only_named_people_may_invite_to_a_group(scene: Scene) -> None:
    other = scene.another()
    with scene.running(groupInvites=f"{scene.phone.user_id}, @nobody:localhost"):
        declined = other.create_room(scene.bot)
        other.wait(lambda: other.get_members(declined).get(scene.bot) == "leave")
        accepted = scene.phone.create_room(scene.bot)
        scene.wait_for_join(accepted)


def test_in_a_group_the_mention_of_the_bot_counts(scene: Scene) -> None:
    other = scene.another()
    with scene.running(groupInvites="*") as running:
        room = scene.phone.create_room(scene.bot, other.user_id)
        other.join(room)
        scene.wait_for_join(room)
        localpart = scene.bot[1:].partition(":")[0]
        scene.phone.say(room, "nothing for anybody")
        scene.phone.say(room, f"{localpart}: one")
        other.say(room, f"{scene.bot} two", **{"m.mentions": {"user_ids": [scene.bot]}})
        sent = running.send(text_to(room, "an answer", group=True))
        relation = {"m.in_reply_to": {"event_id": sent}}
        scene.phone.say(room, f"> <{scene.bot}> an answer\n\nthree", **{"m.relates_to": relation})
        texts = scene.inlet.texts(4)
    assert all(one.place == ChatPlace(chat_id=room, group=True) for one in texts)
    assert [(one.text, one.addressed) for one in texts] == [
        ("nothing for anybody", False),
        ("one", True),
        ("two", True),
        ("three", True),
    ]
    assert texts[3].reply_to == sent
    assert texts[2].sender.id == other.user_id


def test_a_third_member_makes_a_direct_room_a_group(scene: Scene) -> None:
    other = scene.another()
    with scene.running():
        room = scene.direct_room()
        scene.phone.say(room, "alone")
        scene.inlet.texts(1)
        scene.phone.invite(room, other.user_id)
        scene.phone.say(room, "soon not alone")
        other.join(room)
        scene.phone.say(room, "not alone")
        assert [one.place.group for one in scene.inlet.texts(3)] == [False, True, True]


def test_a_thread_is_kept(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.direct_room()
        root = scene.phone.say(room, "root")
        in_thread = {"rel_type": "m.thread", "event_id": root, "is_falling_back": True}
        relation = {**in_thread, "m.in_reply_to": {"event_id": root}}
        scene.phone.say(room, "inside", **{"m.relates_to": relation})
        _, inside = scene.inlet.texts(2)
        assert (inside.place.thread_id, inside.reply_to) == (root, None)
        sent = running.send(text_to(room, "answer", thread=root))
        (shown,) = scene.phone.list_messages(room, scene.bot)
        assert shown["event_id"] == sent
        assert shown["content"]["m.relates_to"]["rel_type"] == "m.thread"
        assert shown["content"]["m.relates_to"]["event_id"] == root
        below = {"rel_type": "m.thread", "event_id": sent, "is_falling_back": True}
        top = running.send(text_to(room, "a question"))
        relation = {**below, "event_id": top, "m.in_reply_to": {"event_id": top}}
        scene.phone.say(room, "yes", **{"m.relates_to": relation})
        assert scene.inlet.texts(3)[2].reply_to == top


def test_edits_both_ways(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.direct_room()
        original = scene.phone.say(room, "teh")
        scene.phone.edit(room, original, "the")
        edit = scene.inlet.texts(2)[1]
        assert (edit.text, edit.edits, edit.message_id) == ("the", original, original)
        sent = running.send(text_to(room, "waiting"))
        changed = text_to(room, "<i>decided</i>", plain="decided")
        for _ in range(2):  # the same edit once more changes nothing
            running.do(running.connector.edit(sent, changed))
    messages = scene.phone.list_messages(room, scene.bot)
    assert len(messages) == 2
    latest = messages[0]["unsigned"]["m.relations"]["m.replace"]["content"]["m.new_content"]
    assert (latest["body"], latest["formatted_body"]) == ("decided", "<i>decided</i>")


# -- reactions -----------------------------------------------------------------------------------------


def test_reactions_to_the_bot_are_presses(scene: Scene) -> None:
    buttons = (Button(label="Once", value="👍"), Button(label="Deny", value="👎"))
    with scene.running() as running:
        room = scene.direct_room()
        own = scene.phone.say(room, "mine")
        message = text_to(room, "May I?", buttons=buttons)
        sent = running.send(message)
        assert running.send(message) == sent  # the offered reactions are sent once, too
        scene.phone.react(room, own, "👎")
        event = scene.phone.react(room, sent, "👍")
        (press,) = scene.inlet.presses(1)
        assert press == InboundPress(
            id=event,
            place=ChatPlace(chat_id=room),
            sender=ExternalSender(id=scene.phone.user_id, name=press.sender.name),
            message_id=sent,
            value="👍",
        )
        running.do(running.connector.answer_press(press, "Allowed once."))
        answer = scene.phone.list_messages(room, scene.bot)[-1]
    assert answer["content"]["body"] == "Allowed once."
    assert answer["content"]["m.relates_to"]["m.in_reply_to"]["event_id"] == sent
    reactions = [one for one in scene.phone.list_events(room) if one["type"] == "m.reaction"]
    own_keys = [one["content"]["m.relates_to"]["key"] for one in reactions if one["sender"] == scene.bot]
    assert own_keys == ["👍", "👎"]


# -- files, typing ---------------------------------------------------------------------------------------


def test_files_both_ways(scene: Scene) -> None:
    data = bytes(range(256)) * 40
    with scene.running() as running:
        room = scene.direct_room()
        scene.phone.send_file(room, "notes.bin", data, body="look at this")
        scene.phone.send_file(room, "bare.bin", data)
        captioned, bare = scene.inlet.texts(2)
        assert (captioned.text, bare.text) == ("look at this", "")
        (file,) = captioned.files
        assert (file.name, file.size) == ("notes.bin", len(data))
        assert running.do(running.connector.fetch(file, len(data))) == data
        refused = failing(lambda: running.do(running.connector.fetch(file, len(data) - 1)))
        assert refused.kind is FailureKind.REFUSED
        assert str(len(data) - 1) in refused.reason
        out = OutboundFile(name="answer ✓.png", media_type="image/png", data=data)
        message = text_to(room, "", files=(out,))
        assert running.send(message) == running.send(message)
        (shown,) = scene.phone.list_messages(room, scene.bot)
        too_long = OutboundFile(name="x", media_type="broken\r\nX: y", data=bytes(1024 * 1024 + 1))
        refused = failing(lambda: running.send(text_to(room, "", files=(too_long,))))
    assert (shown["content"]["msgtype"], shown["content"]["filename"]) == ("m.image", "answer ✓.png")
    assert scene.phone.download(shown["content"]["url"]) == data
    assert refused.kind is FailureKind.REFUSED
    assert "M_TOO_LARGE" in refused.reason


@pytest.mark.parametrize("reference", ["mxc://localhost/none", "https://localhost/x", "mxc:", ""])
def test_a_file_that_does_not_exist(scene: Scene, reference: str) -> None:
    with Running(scene.connector(), receiving=False) as running:
        file = RemoteFile(reference=reference, name="x")
        assert failing(lambda: running.do(running.connector.fetch(file, 10))).kind is FailureKind.REFUSED


def test_typing_is_shown(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.direct_room()
        assert not scene.phone.is_typing(room, scene.bot)
        running.do(running.connector.show_typing(ChatPlace(chat_id=room)))
        assert scene.phone.is_typing(room, scene.bot)


# -- what goes wrong -------------------------------------------------------------------------------------


def test_an_event_that_was_not_taken_is_offered_again(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.direct_room()
        scene.phone.say(room, "first")
        scene.inlet.texts(1)
        scene.inlet.refuses = 1
        scene.phone.say(room, "second")
        assert isinstance(running.wait_for_failure(), OSError)
    with scene.running():
        assert [one.text for one in scene.inlet.texts(2)] == ["first", "second"]


def test_messages_of_a_long_absence_are_all_taken(scene: Scene) -> None:
    with scene.running():
        room = scene.direct_room()
        scene.phone.say(room, "0")
        scene.inlet.texts(1)
    for number in range(1, 131):  # more than one sync reports
        scene.phone.say(room, str(number))
    with scene.running():
        assert [one.text for one in scene.inlet.texts(131)] == [str(number) for number in range(131)]


def test_an_unknown_position_is_given_up(scene: Scene) -> None:
    with scene.running():
        room = scene.direct_room()
    scene.inlet.cursor = "s999_nonsense"
    with scene.running():
        scene.inlet.wait_until(lambda: scene.inlet.cursor != "s999_nonsense")
        scene.phone.say(room, "hello")
        assert [one.text for one in scene.inlet.texts(1)] == ["hello"]


def test_a_message_to_a_room_without_the_bot_is_refused(scene: Scene) -> None:
    room = scene.phone.create_room()
    with Running(scene.connector(), receiving=False) as running:
        refused = failing(lambda: running.send(text_to(room)))
        assert refused.kind is FailureKind.REFUSED
        assert "M_FORBIDDEN" in refused.reason
        private = text_to(room, only_for=scene.phone.user_id)
        assert failing(lambda: running.send(private)).kind is FailureKind.REFUSED
        long = text_to(room, "x" * 70_000)
        assert failing(lambda: running.send(long)).kind is FailureKind.REFUSED


def test_a_text_of_the_greatest_length_can_be_sent_and_edited(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.direct_room()
        limit = running.connector.capabilities.text_limit
        longest = text_to(room, "🙂" * limit)
        sent = running.send(longest)
        running.do(running.connector.edit(sent, longest))


def test_an_encrypted_room_gets_one_explanation(scene: Scene) -> None:
    with scene.running():
        room = scene.phone.create_room(scene.bot, direct=True, encrypted=True)
        scene.wait_for_join(room)
        for _ in range(2):
            content = {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "…", "session_id": "s"}
            scene.phone.send(room, "m.room.encrypted", content)
        scene.phone.say(room, "in the clear")
        assert [one.text for one in scene.inlet.texts(1)] == ["in the clear"]
    (explained,) = scene.phone.list_messages(room, scene.bot)
    assert "encrypted" in explained["content"]["body"]


_MALFORMED: list[dict[str, Any]] = [
    {"msgtype": "m.text", "body": "x", "m.relates_to": "nonsense"},
    {"msgtype": "m.text", "body": "* x", "m.relates_to": {"rel_type": "m.replace"}, "m.new_content": 3},
    {"msgtype": "m.file", "body": "x", "url": {"not": "a url"}},
    {"msgtype": "m.text", "body": "x", "m.mentions": {"user_ids": "everybody"}},
    {"msgtype": "m.location", "body": "somewhere", "geo_uri": "geo:0,0"},
]


def test_events_of_any_form_do_no_harm(scene: Scene) -> None:
    with scene.running():
        room = scene.direct_room()
        for content in _MALFORMED:
            scene.phone.send(room, "m.room.message", content)
        scene.phone.send(room, "m.reaction", {"m.relates_to": {"rel_type": "m.annotation"}})
        scene.phone.send(room, "m.reaction", {})
        scene.phone.say(room, "after")
        assert [one.text for one in scene.inlet.texts(1)] == ["after"]


def test_notices_are_of_programs(scene: Scene) -> None:
    with scene.running():
        room = scene.direct_room()
        scene.phone.say(room, "beep", msgtype="m.notice")
        assert [one.sender.program for one in scene.inlet.texts(1)] == [True]


def test_a_server_that_is_away_and_one_that_limits_messages(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.direct_room()
        scene.phone.say(room, "before")
        scene.inlet.texts(1)
        scene.synapse.set_rate({"per_second": 0.05, "burst_count": 1})
        scene.synapse.stop()
        try:
            away = failing(lambda: running.send(text_to(room)))
            assert (away.kind, away.uncertain) == (FailureKind.RETRY, False)
            error = running.wait_for_failure()
            assert getattr(error, "kind", None) is FailureKind.RETRY
            scene.synapse.start()
            message = text_to(room, "limited")
            running.send(text_to(room, "first"))
            limited = failing(lambda: running.send(message))
            assert limited.kind is FailureKind.RETRY
            assert limited.retry_after is not None
            assert 0 < limited.retry_after <= 20
        finally:
            scene.synapse.set_rate(None)
            scene.synapse.stop()
            scene.synapse.start()
        running.send(message)
        assert [one["content"]["body"] for one in scene.phone.list_messages(room, scene.bot)] == [
            "first",
            "limited",
        ]
    with scene.running():
        scene.phone.say(room, "after")
        assert [one.text for one in scene.inlet.texts(2)] == ["before", "after"]


def test_a_private_message_is_not_shown_once_others_are_in_the_room(scene: Scene) -> None:
    with scene.running() as running:
        room = scene.direct_room()
        sent = running.send(text_to(room, "only for you"))
        third = scene.another()
        scene.phone.invite(room, third.user_id)
        scene.phone.say(room, "somebody comes")
        assert scene.inlet.texts(1)[0].place.group  # the bot has seen the invitation
        for call in (
            lambda: running.send(text_to(room, "rm -rf / ?")),
            lambda: running.do(running.connector.edit(sent, text_to(room, "rm -rf / ?"))),
        ):
            failure = failing(call)
            assert failure.kind is FailureKind.REFUSED
        running.send(text_to(room, "for all of you", group=True))
    assert "rm -rf" not in str(scene.phone.list_events(room))
