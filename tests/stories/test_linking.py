"""Which chat account belongs to whom: linked by a code in the chat, shown, quiet at night, taken over, unlinked."""

import re
import subprocess
from collections.abc import Generator

import pytest

from scout.daemon.start import start
from tests.cli.running import Shell, a_shell, start_daemon
from tests.connectors.telegram_stage import TelegramStage, telegram_stage
from tests.daemon.daemons import eventually
from tests.stories.test_chats import add_telegram, connect, shows

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

WRONG = "This code is not valid. Ask for a new one."


@pytest.fixture
def phone() -> Generator[TelegramStage]:
    with telegram_stage() as stage:
        yield stage
        assert stage.problems() == []


@pytest.fixture
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        yield made


def get_code(shell: Shell, user: str) -> str:
    return shell.data("user", "link", user, "telegram")["code"]


def count(phone: TelegramStage, chat: str, text: str) -> int:
    return len([one for one in phone.shown(chat) if text in one.text])


@pytest.mark.rows("R9.keys-1", "R9.keys-6", "R9.keys-7")
def test_my_account_is_shown_with_its_last_use_and_can_be_unlinked(
    shell: Shell, phone: TelegramStage
) -> None:
    me = connect(shell, phone)
    agent = shell.data("show", "/me/telegram")
    assert (agent["kind"], agent["modelRole"]) == ("connector", "user")
    shown = shell.say("user", "show", "me")
    assert re.search(r"key_\w+  telegram me \(\d+\), last used", shown), shown
    quiet = shell.say("user", "quiet", "me", "telegram", "22:00-07:00", "--tz", "Europe/Berlin")
    assert "is quiet 22:00-07:00 Europe/Berlin" in quiet
    assert "quiet 22:00-07:00 Europe/Berlin" in shell.say("user", "show", "me")
    assert "has no quiet hours" in shell.say("user", "quiet", "me", "telegram", "off")
    wrong = shell.type("user", "quiet", "me", "telegram", "22-7")
    assert wrong.returncode == 2
    assert shell.say("user", "target", "me", "telegram").startswith(f"telegram:{me}")

    (key,) = shell.data("user", "keys")["items"]
    shell.say("user", "unlink", "me", "--key-id", key["id"])
    assert shell.data("user", "keys")["items"] == []
    phone.say(me, me, "/who")
    shows(phone, me, "does not know this account")


@pytest.mark.rows("R9.keys-4")
def test_codes_that_do_not_count_are_refused_in_the_same_words_and_soon_not_at_all(
    shell: Shell, phone: TelegramStage
) -> None:
    add_telegram(shell, phone, "--no-link")
    shell.say("user", "add", "bob")
    bob, eve = (phone.private(phone.person(name)) for name in ("bob", "eve"))
    used, replaced = get_code(shell, "me"), get_code(shell, "bob")
    valid = get_code(shell, "bob")
    phone.say(bob, bob, replaced)
    eventually(lambda: count(phone, bob, WRONG) == 1)
    phone.say(bob, bob, valid)
    shows(phone, bob, "is linked to bob")
    for number, code in enumerate((valid, "scout-zzzz-zzzz", "scout-yyyy-yyyy", valid, valid), start=1):
        phone.say(eve, eve, code)
        eventually(lambda number=number: count(phone, eve, WRONG) == number)
    phone.say(eve, eve, used)  # a good one, too late
    shows(phone, eve, "Too many")
    assert [one["user"] for one in shell.data("user", "keys")["items"]] == ["bob"]


@pytest.mark.rows("R9.keys-5")
def test_an_account_changes_hands_only_by_a_code_and_its_first_owner_is_told(
    shell: Shell, phone: TelegramStage
) -> None:
    me = connect(shell, phone)
    shell.say("user", "add", "bob")
    phone.say(me, me, get_code(shell, "bob"))
    shows(phone, me, "is linked to bob")
    (key,) = shell.data("user", "keys")["items"]
    assert key["user"] == "bob"
    eventually(lambda: "is now linked to another user" in shell.say("attention"))
    assert shell.type("user", "target", "me", "telegram").returncode == 3


@pytest.mark.rows("R9.keys-8")
def test_a_group_is_linked_in_the_group_and_a_code_that_others_have_read_is_withdrawn(
    shell: Shell, phone: TelegramStage
) -> None:
    me = connect(shell, phone)
    shell.say("user", "add", "bob")
    shell.say("user", "add", "crew", "--kind", "group")
    bob = phone.private(phone.person("bob"))
    group = phone.group("crew", me, bob)
    code = get_code(shell, "bob")
    phone.say(bob, group, code, mention=True)
    shows(phone, group, "others have seen it")
    phone.say(bob, bob, code)
    shows(phone, bob, WRONG)
    of_group = get_code(shell, "crew")
    phone.say(me, me, of_group)
    shows(phone, me, "Type it in the group")
    phone.say(me, group, of_group, mention=True)
    shows(phone, group, "This group is linked to crew")
    assert {one["user"] for one in shell.data("user", "keys")["items"]} == {"me", "crew"}


@pytest.mark.rows("R9.out-12")
def test_a_daemon_that_is_killed_loses_no_message_and_marks_what_it_may_repeat(
    shell: Shell, phone: TelegramStage
) -> None:
    me = connect(shell, phone)
    texts = [f"message number {number:02}" for number in range(12)]
    for number, text in enumerate(texts):
        shell.say("post", "me", text)
        if number % 4 == 3:
            pid = start_daemon(shell).pid
            subprocess.run(["kill", "-9", str(pid)], check=True)
            start(str(shell.home), environ=shell.environ, timeout=60)
    for text in texts:
        shows(phone, me, text)
        again = [one.text for one in phone.shown(me) if text in one.text][1:]
        assert all("(may be a repeat)" in one for one in again), again
    assert "clean" in shell.say("verify")
