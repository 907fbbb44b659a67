"""What a person mistypes about users, chats, schedules, tasks and grants: each remedy works when it is pasted."""

import shlex
from collections.abc import Generator

import pytest

from tests.cli.running import Shell, a_shell, start_daemon

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# What is typed, how the refusal begins, and the first command that it offers.
MISTAKES = [
    ("user show adda", "not_found: no user 'adda'; nearest: ada", "user show ada"),
    ("user rename adda 'Ada L.'", "not_found: no user", "user rename ada 'Ada L.'"),
    ("user link ada telegarm", "bad_request: there is no connector 'telegarm'", "user link ada telegram"),
    ("user link adda telegram", "not_found: no user", "user link ada telegram"),
    ("user target ada telegram", "not_found: there is no telegram account of ada", "user link ada telegram"),
    ("user add ada", "name_taken:", "user show ada"),
    ("user retire bob", "wrong_state: a user that is retired", "user revive bob"),
    ("user key key_0000", "not_found: no chat account", "user keys"),
    ("token create --user adda", "not_found: no user", "token create --user ada"),
    ("post adda 'adda, hello'", "not_found: no user", "post ada 'adda, hello'"),
    ("connector add telegarm", "not_found: no connector 'telegarm'", "connector list --all"),
    ("connector add telegram", "bad_request: telegram needs token", "connector show telegram"),
    ("connector test telegram", "not_found: no connector", "connector add telegram"),
    ("connector remove telegram", "not_found: no connector", "connector add telegram"),
    ("connector posts adda", "not_found: no user", "connector posts ada"),
    (
        "binding add telegram -100 --agent @upper",
        "Error: No such option",
        "binding add telegram --agent @upper -- -100",
    ),
    ("binding add matrix '!a:b' --channel dve", "not_found: no channel", "channel create dve"),
    ("binding close bnd_0000", "not_found: no binding", "binding list"),
    ("cron add '0 9 * * *' --to @uper hello", "unknown_target:", "cron add --to @upper '0 9 * * *' hello"),
    ("cron add '0 9 * *' --to @upper hello", "malformed_cron:", "cron add --to @upper '0 9 * * *' hello"),
    ("cron add 0 9 '*' '*' '*' --to @upper hello", "bad_request: quote the five fields", "cron add --help"),
    ("cron add @daily hello", "bad_request: name the agent to ask with --to", "cron add --help"),
    ("cron add @daily --to", "Error: Option '--to' requires", "cron add --help"),
    ("cron add @daily --to @upper --jitter 2h hi", "Error: Invalid value for '--jitter'", "cron add --help"),
    ("cron show mornin", "not_found: no schedule 'mornin'; nearest: morning", "cron show morning"),
    ("cron pause morning", "wrong_state: a schedule that is paused", "cron resume morning"),
    ("task --harness ecko hello", "harness_unavailable:", "task --harness echo hello"),
    ("task shwo", "Error: 'shwo' is no task", "task list"),
    ("task show zzzz", "not_found: no task", "task list"),
    (
        "grant add aks --holder ada --path /me/agent/upper",
        "Error:",
        "grant add ask --holder ada --path /me/agent/upper",
    ),
    ("grant add ask --holder adda --user me", "not_found: no user", "grant add --holder ada --user me ask"),
    ("grant revoke grt_0000", "not_found: no grant", "grant list"),
]
NOT_RUN = frozenset({"connector add telegram"})  # it asks for a token on a terminal


@pytest.fixture(scope="module")
def shell() -> Generator[Shell]:
    with a_shell() as made:
        start_daemon(made)
        for name in ("ada", "bob"):
            made.say("user", "add", name)
        made.say("user", "retire", "bob")
        made.say("agent", "register", "upper", "--command", "tr a-z A-Z")
        made.say("cron", "add", "@daily", "--to", "@upper", "--name", "morning", "--tz", "UTC", "hello")
        made.say("cron", "pause", "morning")
        made.say("config", "set", "roles.task", "echo")
        yield made


def list_tries(text: str) -> list[str]:
    lines = [one for one in text.splitlines() if one.startswith("try: scout ")]
    return [one.removeprefix("try: scout ").partition("  #")[0] for one in lines]


@pytest.mark.parametrize(("typed", "told", "offered"), MISTAKES, ids=[one[0] for one in MISTAKES])
def test_a_mistake_is_answered_with_commands_that_work(
    shell: Shell, typed: str, told: str, offered: str
) -> None:
    refused = shell.type(*shlex.split(typed))
    assert refused.returncode != 0
    assert any(line.startswith(told) for line in refused.stderr.splitlines()), refused.stderr
    tries = list_tries(refused.stderr)
    assert offered in tries, refused.stderr
    for line in tries:
        if line not in NOT_RUN:
            shell.say(*shlex.split(line))


@pytest.mark.rows("R9.connectors-2")
def test_a_refused_secret_is_not_repeated(shell: Shell) -> None:
    words = ("connector", "add", "telegram", "--set", "baseUrl=http://127.0.0.1:9", "--secrets", "-")
    for more in ((), ("--json",)):
        refused = shell.type(*words, *more, stdin="token=123:hidden\n")
        assert refused.returncode == 5
        assert "connector_failed" in refused.stdout + refused.stderr
        assert "hidden" not in refused.stdout + refused.stderr


def test_a_file_goes_with_a_post_and_with_a_task(shell: Shell) -> None:
    file = shell.folder / "notes.txt"
    file.write_text("the notes")
    for words in (("post", "ada"), ("task", "--harness", "echo")):
        shell.say(*words, "--attach", str(file), "See the notes.")
    log = shell.say("log", "--newest", "--limit", "200", "--json")
    assert log.count("notes.txt") >= 2


def test_grants_and_connectors_are_shown_in_words(shell: Shell) -> None:
    shell.say("grant", "add", "read", "--holder", "ada", "--path", "/me/agent/upper", "--reason", "review")
    listed = shell.say("grant").splitlines()
    (line,) = [one for one in listed if "review" in one]
    assert "every agent of ada" in line
    assert "/me/agent/upper" in line
    shown = shell.say("connector", "show", "matrix")
    assert "baseUrl: URL of the homeserver" in shown
    assert "(a secret)" in shown
    assert "{" not in shown
