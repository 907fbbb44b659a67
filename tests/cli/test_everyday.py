"""What a person types every day: words that are guessed, nouns alone, ids that are cut, and one word that says what was done."""

import re
import shlex
from typing import Any

import pytest

from tests.cli.running import Shell, start_daemon

pytestmark = pytest.mark.slow  # each command is a process of its own

NOUNS = ("work", "session", "flight", "channel", "alias", "card", "token", "question", "agent")


def _agent(shell: Shell, name: str) -> dict[str, str]:
    """An agent's token, as it stands in its environment."""
    return {"SCOUT_TOKEN": shell.data("agent", "register", name)["token"]}


def _need(shell: Shell, agent: dict[str, str], question: str) -> str:
    return str(shell.data("need", "--no-wait", question, **agent)["id"])


@pytest.mark.rows("R4.1-5")
def test_help_shows_the_everyday_verbs_in_groups_and_help_all_the_rest(fresh: Shell) -> None:
    groups = fresh.say("--help").partition("Options:")[2].partition("Examples:")[0].split("\n\n")[1:-1]
    verbs = [line.split()[0] for group in groups for line in group.splitlines()[1:]]
    assert len(groups) >= 3
    assert 10 <= len(verbs) <= 20
    assert {"ask", "send", "inbox", "who", "approve", "status"} <= {*verbs}
    listed = {line.split()[0] for line in fresh.say("help", "all").splitlines() if line.startswith("  ")}
    assert {*verbs, "alias", "card", "usage", "verify", "backup", "topology", "explain"} <= listed


@pytest.mark.rows("R4.1-6")
def test_a_noun_alone_lists_its_records(shell: Shell) -> None:
    for noun in NOUNS:
        alone = shell.type(noun)
        assert (alone.returncode, alone.stderr) == (0, ""), noun
        assert alone.stdout == shell.say(noun, "list")
        assert "items" in shell.data(noun)


def test_a_noun_with_an_id_shows_the_record(shell: Shell) -> None:
    made = shell.data("work", "create", "look at it")
    assert shell.data("work", made["id"])["title"] == "look at it"
    assert shell.say("work", made["id"][:14]) == shell.say("work", "show", made["id"])
    who = shell.data("who")["items"][0]["address"]
    assert shell.say("agent", who) == shell.say("show", who)


@pytest.mark.rows("R4.1-7")
def test_everyday_synonyms_work_and_a_wrong_word_is_answered_with_the_nearest(shell: Shell) -> None:
    assert shell.say("tell", "@arc", "good morning").startswith("sent msg_")
    assert shell.say("ps") == shell.say("session", "list")
    assert shell.say("version") == shell.say("--version")
    assert "Usage: scout ask" in shell.say("help", "ask")
    for wrong, meant in (("kill", "scout session stop"), ("sned", "scout send"), ("staus", "scout status")):
        refused = shell.type(wrong)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert f"try: {meant}" in refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.rows("R4.1-7")
def test_each_word_for_a_look_works_below_every_noun(fresh: Shell) -> None:
    start_daemon(fresh)
    fresh.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=fresh.project("arc"))
    fresh.say("ask", "@arc", "hello")
    fresh.say("work", "create", "Fix it", "--owner", "@arc")
    for word in ("show", "get", "inspect"):
        for noun, ident in (("agent", "@arc"), ("flight", "last"), ("session", "last"), ("work", "last")):
            assert fresh.data(noun, word, ident)["id"], (noun, word)
    assert fresh.data("flight", "ls") == fresh.data("flight", "list")
    # A word that would change something is answered with the noun's own.
    for words, meant in (
        (("work", "add", "x"), "scout work create --help"),
        (("agent", "delete", "@arc"), "scout agent retire --help"),
        (("session", "kill", "last"), "scout session stop --help"),
        (("alias", "new", "a", "@arc"), "scout alias set --help"),
    ):
        refused = fresh.type(*words)
        assert (refused.returncode, f"try: {meant}" in refused.stderr) == (2, True), refused.stderr
        fresh.say(*meant.split()[1:])


@pytest.mark.rows("R4.1-8")
def test_what_needs_me_is_named_by_its_beginning_by_its_agent_or_not_at_all(fresh: Shell) -> None:
    start_daemon(fresh)
    oak, elm = _agent(fresh, "oak"), _agent(fresh, "elm")
    item = _need(fresh, oak, "which port?")
    assert fresh.say("answer", item[:14], "8080").startswith(f"answered {item}")
    item = _need(fresh, oak, "which host?")
    assert fresh.say("answer", "@oak", "here").startswith(f"answered {item}")
    only = fresh.data("attention", "raise", "may I?", "--kind", "permission", **elm)["id"]
    assert fresh.say("approve").startswith(f"approved {only}")
    two = [fresh.data("attention", "raise", "again?", "--kind", "permission", **elm)["id"] for _ in range(2)]
    unclear = fresh.type("deny")
    assert (unclear.returncode != 0, all(one[:14] in unclear.stderr for one in two)) == (True, True)
    denied = fresh.say("deny", *(one[:14] for one in two))
    assert all(f"denied {one}" in denied for one in two)
    assert fresh.data("attention")["items"] == []


@pytest.mark.rows("R4.1-11")
def test_the_log_is_sentences_with_the_time_of_this_clock(shell: Shell) -> None:
    shell.say("send", "@arc", "the kettle is on")
    sentence = re.compile(r"^\d\d:\d\d you → @arc: the kettle is on", re.MULTILINE)
    newest = shell.data("log", "--newest", "--limit", "1")["items"][-1]["seq"]
    for words in (("log", "--newest"), ("watch", "--after", "0", "--count", str(newest))):
        shown = shell.say(*words, TZ="UTC")
        elsewhere = shell.say(*words, TZ="Asia/Kolkata")
        assert sentence.search(shown), shown
        assert sentence.search(elsewhere), elsewhere
        assert shown != elsewhere  # the same facts, half an hour apart on the clock
    raw = shell.data("log", "--newest", "--limit", "5")["items"]
    assert all(one["type"].startswith("collab.") and one["seq"] for one in raw)


@pytest.mark.rows("R4.1-12")
def test_what_a_command_did_is_its_first_word(fresh: Shell) -> None:
    start_daemon(fresh)
    echo = ("--project", ".", "--harness", "echo")
    assert fresh.say("agent", "register", "arc", *echo, cwd=fresh.project("arc")).startswith("registered ")
    assert fresh.say("send", "@arc", "hello").startswith("sent ")
    flight = fresh.data("ask", "@arc", "!hang", "--no-wait")["flightId"]
    assert fresh.say("flight", "cancel", flight).startswith("cancelled ")
    assert fresh.say("session", "stop", "last").startswith("stopped ")
    assert fresh.say("alias", "set", "archie", "@arc").startswith("set ")
    assert fresh.say("question", "create", "@arc", "Which port?").startswith("asked ")
    assert fresh.say("channel", "create", "dev").startswith("created ")
    assert fresh.say("work", "create", "Fix it", "--owner", "@arc").startswith("created ")
    assert fresh.say("token", "create", "--agent", "@arc").startswith("made ")
    assert fresh.say("agent", "retire", "@arc").startswith("retired ")
    assert fresh.say("agent", "revive", "@arc").startswith("revived ")


@pytest.mark.rows("R4.1-25")
def test_an_id_is_given_by_its_beginning_by_last_or_by_its_agent(fresh: Shell) -> None:
    start_daemon(fresh)
    fresh.say("agent", "register", "arc", "--project", ".", "--harness", "echo", cwd=fresh.project("arc"))
    asked = fresh.data("ask", "@arc", "hello")
    made: dict[tuple[str, str], Any] = {
        ("flight", "get"): asked["flightId"],
        ("session", "inspect"): asked["sessionId"],
        ("message", "show"): fresh.data("send", "@arc", "hello")["messageId"],
        ("work", "show"): fresh.data("work", "create", "Fix it", "--owner", "@arc")["id"],
        ("question", "show"): fresh.data("question", "create", "@arc", "Which port?")["id"],
    }
    for (noun, verb), ident in made.items():
        assert fresh.data(noun, verb, ident[:14])["id"] == ident, noun
    for noun, verb in (("flight", "get"), ("session", "inspect"), ("work", "show"), ("question", "show")):
        assert fresh.data(noun, verb, "last")["id"] == made[noun, verb], noun
    assert fresh.data("session", "inspect", "@arc")["id"] == asked["sessionId"]
    hangs = fresh.data("ask", "@arc", "!hang", "--no-wait")["flightId"]
    assert fresh.data("flight", "get", "@arc")["id"] == hangs
    # Once nothing of it is open, an agent's address shows its newest.
    fresh.say("session", "stop", "@arc")
    assert fresh.data("flight", "get", "@arc")["id"] == hangs
    assert fresh.data("session", "inspect", "@arc")["id"] == asked["sessionId"]
    made["token", "revoke"] = fresh.data("token", "create", "--agent", "@arc")["token"]["id"]
    assert fresh.data("token", "revoke", "last")["id"] == made["token", "revoke"]


def test_nothing_is_there_is_said_as_a_sentence(fresh: Shell) -> None:
    start_daemon(fresh)
    fresh.say("agent", "register", "arc")
    for words, says in (
        (("approve",), "nothing needs you"),
        (("deny",), "nothing needs you"),
        (("answer", "8080"), "nothing needs you"),
        (("dismiss",), "nothing needs you"),
        (("approve", "@arc"), "nothing from @arc needs you"),
        (("attention", "show"), "nothing needs you"),
        (("wait",), "you have no open flight"),
        (("flight", "get"), "you have no open flight"),
        (("flight", "cancel"), "you have no open flight"),
        (("flight", "cancel", "@arc"), "@arc has no open flight"),
        (("session", "stop"), "there is no live session"),
        (("session", "inspect", "@arc"), "@arc has no live session"),
        (("question", "answer", "only", "8080"), "no question waits for your answer"),
        (("work", "show"), "there is no open work item"),
        (("grant", "revoke", "last"), "there is no grant yet"),
        (("message", "show", "last"), "there is no message yet"),
        (("reply", "yes"), "there is no message to you yet"),
    ):
        refused = fresh.type(*words)
        assert (refused.returncode, refused.stdout) == (3, ""), (words, refused.stderr)
        first, *tries = refused.stderr.splitlines()
        assert first == f"not_found: {says}", words
        # What is offered shows the list, also when it is empty.
        assert tries, words
        fresh.say(*shlex.split(tries[0].removeprefix("try: ").partition("  #")[0])[1:])


@pytest.mark.rows("R4.2-1")
def test_every_record_of_an_agent_has_its_address_its_canonical_text_and_its_path(shell: Shell) -> None:
    made = shell.data("agent", "register", "fern", "--project", ".", cwd=shell.project("fern"))
    listed = next(one for one in shell.data("who", "--limit", "200")["items"] if one["address"] == "@fern")
    for one in (made, listed, shell.data("show", "@fern")):
        assert (one["address"], one["path"]) == ("@fern", "/me/agent/fern")
        assert one["canonical"].startswith("@fern.node:")


@pytest.mark.rows("R6-8")
def test_a_redacted_body_is_nowhere_and_that_it_was_there_stays(fresh: Shell) -> None:
    start_daemon(fresh)
    fresh.say("agent", "register", "arc")
    sent = fresh.data("send", "@arc", "the password is swordfish")["messageId"]
    fresh.say("redact", sent)
    assert "swordfish" not in fresh.say("message", "show", sent, "--json")
    assert fresh.data("search", "swordfish")["items"] == []
    events = fresh.data("log", "--newest", "--limit", "50")["items"]
    assert "swordfish" not in str(events)
    assert [one["type"] for one in events if "redacted" in one["type"]] == ["collab.message.redacted"]
    fresh.say("down")
    stored = b"".join(file.read_bytes() for file in fresh.home.glob("scout.db*"))
    assert b"swordfish" not in stored


@pytest.mark.rows("R4.1-21")
def test_a_setting_says_what_the_running_daemon_needs(fresh: Shell) -> None:
    start_daemon(fresh)
    told = fresh.type("config", "set", "limits.openFlights", "64")
    assert (told.returncode, told.stdout.split()[:2]) == (0, ["limits.openFlights", "64"])
    assert told.stderr == "the running daemon uses it from now on\n"
    assert "scout restart" in fresh.type("config", "set", "host", "::1").stderr
