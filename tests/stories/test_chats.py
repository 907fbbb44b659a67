"""A person away from the desk: connects a chat, is asked there, decides there, and asks from there."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from typing import Any

import pytest
import telegram

from tests.cli.running import Shell, a_shell, start_daemon
from tests.connectors.stage import Fault, Shown
from tests.connectors.telegram_stage import TelegramStage, telegram_stage
from tests.daemon.daemons import Daemon, eventually
from tests.live.machine import a_machine
from tests.live.terminals import tmux_here
from tests.stories.panes import a_pane
from tests.surface.site import Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


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


def add_telegram(shell: Any, phone: TelegramStage, *more: str) -> Any:
    """What a script types."""
    words = ("connector", "add", "telegram", "--set", f"baseUrl={phone.fake.url}", "--secrets", "-", *more)
    return json.loads(shell.say(*words, "--json", stdin=f"token={phone.fake.token}\n"))


def connect(shell: Any, phone: TelegramStage) -> str:
    """The operator's own phone; the id of its chat."""
    made = add_telegram(shell, phone)
    me = phone.private(phone.person("me"))
    phone.say(me, me, made["code"])
    shows(phone, me, "is linked to")
    return me


def shows(phone: TelegramStage, chat: str, text: str) -> Shown:
    def look() -> Shown | None:
        return next((one for one in reversed(phone.shown(chat)) if text in one.text), None)

    try:
        return eventually(look)
    except AssertionError:
        raise AssertionError(f"no {text!r} among {[one.text for one in phone.shown(chat)]}") from None


# -- connecting --------------------------------------------------------------------------------------


@pytest.mark.rows("R9.connectors-3", "R9.connectors-4")
def test_a_chat_is_connected_on_a_terminal_and_proved_with_a_message_to_yourself(
    shell: Shell, phone: TelegramStage
) -> None:
    tmux_here()
    me = phone.private(phone.person("me"))
    with a_pane(shell, "connector", "add", "telegram") as pane:
        pane.shows("Token of the bot")
        pane.type(phone.fake.token, "Enter")
        pane.shows("URL of the Bot API")
        pane.type(phone.fake.url, "Enter")
        screen = pane.shows("waiting for the code")
        assert "connected to telegram as @scout_test_bot" in screen
        assert phone.fake.token not in screen
        code = next(word for word in screen.split() if word.startswith("scout-"))
        phone.say(me, me, code)
        pane.shows("a message is on its way to your chat")
        pane.shows("ended with 0")
    shows(phone, me, "Scout is connected.")
    assert "telegram" in shell.say("connector")
    assert "telegram running" in shell.say("status")
    assert "running as @scout_test_bot" in shell.type("doctor", within=60).stdout


@pytest.mark.rows("R9.connectors-2")
def test_secrets_are_in_one_file_that_only_the_owner_reads(shell: Shell, phone: TelegramStage) -> None:
    connect(shell, phone)
    file = shell.home / "connectors" / "telegram.json"
    assert file.stat().st_mode & 0o777 == 0o600
    secret = phone.fake.token.encode()
    holders = [one for one in shell.home.rglob("*") if one.is_file() and secret in one.read_bytes()]
    assert holders == [file]
    for words in (
        ("connector",),
        ("connector", "show", "telegram"),
        ("config",),
        ("log", "--newest", "--limit", "200", "--json"),
    ):
        assert phone.fake.token not in shell.say(*words)
    refused = shell.type("connector", "add", "telegram", "--set", f"token={phone.fake.token}")
    assert refused.returncode == 2
    assert "token is a secret" in refused.stderr
    shell.say("connector", "remove", "telegram")
    assert not file.exists()
    assert "No chat is connected" in shell.say("connector")


@pytest.mark.rows("R9.connectors-5")
def test_nothing_of_a_connector_is_loaded_unless_it_is_configured() -> None:
    words = (
        "import sys, scout.daemon.serve; print(*(one for one in sys.modules if 'scout.connectors.' in one))"
    )
    found = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True).stdout
    names = {one.rpartition(".")[2] for one in found.split()}
    assert names == {"telegram", "matrix", "slack", "whatsapp", "fields"}


@pytest.mark.rows("R9.connectors-6", "R9.connectors-7")
def test_credentials_that_fail_are_one_item_and_a_line_of_the_doctor(
    shell: Shell, phone: TelegramStage
) -> None:
    me = connect(shell, phone)
    with phone.fault(Fault.CREDENTIALS):
        shell.say("post", "me", "kept for later")
        shell.say("post", "me", "and this")
        eventually(lambda: "credentials no longer work" in shell.say("attention"))
        assert shell.say("attention").count("credentials no longer work") == 1
        checked = shell.type("doctor", within=60)
        assert "credentials: telegram: Unauthorized" in checked.stdout
        assert "try: scout connector add telegram" in checked.stderr
    add_telegram(shell, phone, "--no-link")
    shows(phone, me, "kept for later")
    shows(phone, me, "and this")
    eventually(lambda: "credentials" not in shell.say("attention"))


# -- approving ---------------------------------------------------------------------------------------


def bash(command: str) -> str:
    """What the model behind Claude Code does: run this."""
    return f"<<tool Bash {json.dumps({'command': command, 'description': 'try'})}>>"


@pytest.mark.rows("R9.out-3", "R9.out-4", "R9.out-6")
def test_i_approve_from_my_phone_what_claude_code_wants_to_do(phone: TelegramStage) -> None:
    with a_machine("claude") as machine:
        talkie = machine.repository("talkie", "claude")
        me = connect(machine, phone)
        command = "dd if=/dev/null of=made && date >> times"
        flight = machine.ask(talkie, f"{bash(command)} <<say done>>")
        shown = shows(phone, me, command)
        assert shown.buttons == ("Once", "This session", "Always", "Deny")
        assert not (talkie / "times").exists()
        phone.press(me, me, shown.message_id, "This session")
        assert machine.ended(flight)["output"] == "done"
        assert len((talkie / "times").read_text().splitlines()) == 1
        after = shows(phone, me, "Approved by /me/direct")
        assert (after.message_id, after.buttons) == (shown.message_id, ())

        # The same session is not asked about again.
        again = machine.ask(talkie, f"{bash(command)} <<say done again>>")
        assert machine.ended(again)["output"] == "done again"
        assert len((talkie / "times").read_text().splitlines()) == 2
        assert len([one for one in phone.shown(me) if command in one.text]) == 1


@pytest.mark.rows("R9.out-5")
def test_of_the_phone_and_the_command_line_the_first_decides(shell: Shell, phone: TelegramStage) -> None:
    me = connect(shell, phone)
    site = Site(shell, Daemon(shell.home, start_daemon(shell)))
    arc = site.puller("arc")
    item = arc.post("/v1/attention/need", question="Which colour?", options=["red", "blue"])["id"]
    shows(phone, me, "Which colour?")
    message = next(one for one in phone.fake.messages if "Which colour?" in one.text)
    value = dict(message.buttons)["red"]
    shell.say("answer", item, "green")
    query = phone.fake.make_query(telegram.User(int(me), "me", False), message, value)
    phone.fake.push(callback_query=query)
    eventually(lambda: phone.notes(me))
    assert phone.notes(me)[0].startswith("Too late: it was answered 'green' by /me/direct")
    shows(phone, me, "Answered by /me/direct: green")
    # What an agent tells the person reaches the phone, too.
    arc.tool("operator_notify", message="The build is green.")
    shows(phone, me, "The build is green.")


# -- asking ------------------------------------------------------------------------------------------


@pytest.mark.rows("R9.in-1", "R9.in-2", "R9.in-3", "R1.4-40", "R9.out-1")
def test_i_ask_from_my_phone_and_the_answer_comes_back_there(shell: Shell, phone: TelegramStage) -> None:
    me = connect(shell, phone)
    shell.say("agent", "register", "arc", "--harness", "echo", "--project", ".", cwd=shell.project("arc"))
    said = phone.say(me, me, ">> arc !say **twelve** days")
    shown = shows(phone, me, "twelve days")
    assert shown.markup == "<b>@arc</b>\n\n<b>twelve</b> days"
    assert shown.reply_to == said
    # It is the person's own ask on every surface,
    (flight,) = shell.data("flight", "list")["items"]
    assert flight["requesterAddress"] == "/me/direct"
    # and what nobody has is refused with names that can be typed.
    phone.say(me, me, "@arx hello")
    assert "Try @arc" in shows(phone, me, "No agent has the address").text
    shell.say("agent", "config", "/me/telegram", "--set", "harness=echo")
    phone.say(me, me, "!say no author is named")
    assert shows(phone, me, "no author is named").markup == "no author is named"
    phone.say(me, me, "/who")
    shows(phone, me, "• @arc")
    # The daemon restarts: nothing is asked twice, nothing is lost.
    phone.fake.repeat()
    shell.say("restart", within=60)
    phone.say(me, me, ">> arc !say after the restart")
    shows(phone, me, "after the restart")
    assert len([one for one in phone.shown(me) if "twelve" in one.text]) == 1
    assert "clean" in shell.say("verify", within=60)


def read_log(shell: Shell) -> str:
    return shell.say("log", "--newest", "--limit", "200", "--json")


def count_shown(phone: TelegramStage, chat: str, text: str) -> int:
    return len([one for one in phone.shown(chat) if text in one.text])


@pytest.mark.rows("R9.in-6", "R9.in-7", "R9.in-9", "R9.in-10", "R9.out-2")
def test_what_else_can_be_said_in_a_chat(shell: Shell, phone: TelegramStage) -> None:
    me = connect(shell, phone)
    shell.say("agent", "config", "/me/telegram", "--set", "harness=echo")
    # Texts before the ask starts come with it,
    shell.say("pause")
    phone.say(me, me, "!say together")
    said = phone.say(me, me, "and this")
    phone.say(me, me, "/status")
    shows(phone, me, "Running:")
    shell.say("resume")
    shows(phone, me, "together")
    assert len(shell.data("flight", "list")["items"]) == 1
    # an edit corrects,
    phone.edit(me, me, said, "and that")
    eventually(lambda: "Correction of an earlier message" in read_log(shell))
    # a file is an attachment,
    phone.say(me, me, "!say seen", file=("notes.txt", b"the notes of today"))
    shows(phone, me, "seen")
    assert "notes.txt" in read_log(shell)
    # and a long text arrives whole.
    shell.say("post", "me", "\n\n".join(f"part {number} " + "word " * 100 for number in range(30)))
    shows(phone, me, "part 29")
    texts = "".join(one.text for one in phone.shown(me) if "part " in one.text)
    assert [texts.index(f"part {number} ") for number in range(30)] == sorted(
        texts.index(f"part {number} ") for number in range(30)
    )
    assert texts.count("word") == 3000
    phone.say(me, me, "!hang")
    eventually(lambda: shell.data("flight", "list", "--open")["items"])
    phone.say(me, me, "/stop")
    shows(phone, me, "Stopped: /me/telegram")
    assert shell.data("flight", "list", "--open")["items"] == []


@pytest.mark.rows("R9.in-8", "R9.out-9", "R9.out-10")
def test_a_group_is_a_user_and_each_of_its_members_speaks_for_themselves(
    shell: Shell, phone: TelegramStage
) -> None:
    me = connect(shell, phone)
    bob, eve = phone.person("bob"), phone.person("eve")
    shell.say("user", "add", "bob")
    phone.say(bob, phone.private(bob), shell.data("user", "link", "bob", "telegram")["code"])
    shows(phone, bob, "is linked to bob")
    shell.say("user", "add", "crew", "--kind", "group", "--owner", "me")
    group = phone.group("crew", me, bob, eve)
    phone.say(me, group, shell.data("user", "link", "crew", "telegram")["code"], mention=True)
    shows(phone, group, "This group is linked to crew")
    shell.say("agent", "config", "/crew/telegram", "--set", "harness=echo")
    phone.say(bob, group, "!say not for the bot")
    phone.say(bob, group, "!say for the bot", mention=True)
    shows(phone, group, "for the bot")
    assert count_shown(phone, group, "not for the bot") == 0

    site = Site(shell, Daemon(shell.home, start_daemon(shell)))
    site.post("/v1/messages", to="/crew/agent/helper", body="hi", create={"description": "helps"})
    token = site.post("/v1/tokens", agent="/crew/agent/helper")["secret"]
    site.post("/v1/attention/need", token=token, question="Drop the table?", risk="high")
    item = site.post("/v1/attention/need", token=token, question="Merge it?", options=["yes", "no"])["id"]
    shown = shows(phone, group, "Merge it?")
    assert count_shown(phone, group, "Drop the table?") == 0
    phone.press_as_bot(group, shown.message_id, "yes")
    phone.press(eve, group, shown.message_id, "yes")
    eventually(lambda: "not linked" in str(phone.notes(eve)))
    phone.press(bob, group, shown.message_id, "yes")
    eventually(lambda: "may not decide" in str(phone.notes(bob)))
    assert shell.data("attention", "show", item)["state"] in ("open", "notified")
    phone.press(me, group, shown.message_id, "no")
    shows(phone, group, "Answered by /me/direct: no")


@pytest.mark.rows("R9.out-11", "R9.connectors-8")
def test_a_platform_that_fails_gets_it_later_or_it_goes_back(shell: Shell, phone: TelegramStage) -> None:
    me = connect(shell, phone)
    shell.say("agent", "register", "arc", "--project", ".", cwd=shell.project("arc"))
    arc = shell.data("token", "create", "--agent", "@arc")["secret"]
    with phone.fault(Fault.DOWN):
        shell.say("post", "me", "later")
        eventually(lambda: "retrying" in shell.say("connector"))
        assert "retrying" in shell.say("status")
    shows(phone, me, "later")
    with phone.fault(Fault.RATE):
        shell.say("post", "me", "patience")
        shows(phone, me, "patience")
    with phone.fault(Fault.REFUSED):
        shell.say("post", "me", "never", SCOUT_TOKEN=arc)
        eventually(lambda: "not shown in the telegram chat of me" in shell.say("inbox", SCOUT_TOKEN=arc))


@pytest.mark.rows("R9.in-4", "R9.in-5")
def test_a_stranger_gets_one_polite_message_and_leaves_no_trace(shell: Shell, phone: TelegramStage) -> None:
    add_telegram(shell, phone, "--no-link")
    eve = phone.private(phone.person("eve"))
    for text in ("hello", "my secret is quince-marmalade", "@arc do it"):
        phone.say(eve, eve, text)
    assert "scout user link USER telegram" in shows(phone, eve, "does not know this account").text
    eventually(lambda: not phone.fake._queue)
    assert len(phone.shown(eve)) == 1
    assert "quince-marmalade" not in read_log(shell)
    shell.say("down")
    with sqlite3.connect(shell.home / "scout.db") as store:
        dump = "\n".join(store.iterdump())
    assert "quince-marmalade" not in dump
    assert f"'{eve}'" not in dump


@pytest.mark.rows("R9.out-7", "R9.out-8")
def test_a_message_reaches_a_person_in_every_chat_but_not_at_night(
    shell: Shell, phone: TelegramStage
) -> None:
    connect(shell, phone)
    shell.say("user", "add", "bob")
    code = shell.data("user", "link", "bob", "telegram")["code"]
    bob = phone.private(phone.person("bob"))
    phone.say(bob, bob, code)
    shows(phone, bob, "is linked to bob")
    assert shell.say("post", "bob", "Lunch?").startswith("posted to bob (telegram)")
    shows(phone, bob, "Lunch?")
    shell.say("user", "quiet", "bob", "telegram", "00:00-23:59", "--tz", "UTC")
    shell.say("post", "bob", "Are you awake?")
    (post, *_) = eventually(
        lambda: [one for one in shell.data("connector", "posts", "bob")["items"] if one["problem"]]
    )
    assert (post["state"], post["problem"]) == ("queued", "quiet hours")
    assert "Are you awake?" not in str(phone.shown(bob))
    shell.say("user", "unlink", "bob", "telegram")
    assert shell.say("post", "bob", "Hello?").startswith("posted to bob (in the inbox")
