"""The verbs, typed at a real daemon."""

import base64
import json
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from scout.base.refusal import Family
from scout.cli.connection.refusal import OPEN
from tests.cli.running import Shell, type_in_terminal
from tests.daemon.daemons import eventually

pytestmark = pytest.mark.slow  # each command is a process of its own


def test_a_message_is_sent_and_found_again(shell: Shell) -> None:
    assert "sent msg_" in shell.say("send", "@arc", "the", "heron", "stands", "still")
    receipt = shell.data("send", "@arc", "-", stdin="from standard input\n")  # a body is never altered
    message = shell.data("message", "show", receipt["messageId"])
    assert message["body"] == "from standard input\n"
    listed = shell.data("message", "list", "--to", "@arc", "--newest")
    assert receipt["messageId"] in [one["id"] for one in listed["items"]]
    assert "from standard input" in shell.say("message", "list", "--to", "@arc", "--newest")


@pytest.mark.rows("R4.1-16")
def test_a_body_comes_from_a_file_and_files_are_attached(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "body.md").write_text("# Title\n")
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    receipt = shell.data(
        "send", "@arc", "--file", str(tmp_path / "body.md"), "--attach", str(tmp_path / "data.bin")
    )
    message = shell.data("message", "show", receipt["messageId"])
    assert message["body"] == "# Title\n"
    (attached,) = message["attachments"]
    told = shell.data("attachment", "get", attached["sha256"])
    assert base64.b64decode(told["data"]) == bytes(range(256))
    assert shell.data("attachment", "put", str(tmp_path / "data.bin"))["sha256"] == attached["sha256"]


@pytest.mark.rows("R3.1-27", "R3.1-29", "R4.1-4")
def test_an_ask_is_waited_for_or_not(shell: Shell) -> None:
    answered = shell.type("ask", "@arc", "say hello")
    assert (answered.returncode, "say hello" in answered.stdout) == (0, True)
    assert "say hello" in shell.say("@arc say hello")
    assert shell.data("ask", "@arc", "again", "--wait", "20")["state"] == "completed"
    receipt = shell.data("ask", "@arc", "later", "--no-wait")
    assert "later" in shell.say("wait", receipt["flightId"])
    assert shell.data("flight", "wait", receipt["flightId"], "--timeout", "20")["state"] == "completed"
    assert shell.data("flight", "get", receipt["flightId"])["output"]
    notified = shell.type("ask", "@arc", "tell me", "--notify")
    assert (notified.returncode, "scout wait flt_" in notified.stderr) == (0, True)


@pytest.mark.rows("R3.1-29")
def test_a_flight_that_nobody_runs_is_left_cancelled_and_retried(shell: Shell) -> None:
    shell.say(
        *("agent", "register", "slow", "--harness", "command", "--command", "sleep 60", "--project", "."),
        cwd=shell.project("slow"),
    )
    began = shell.type("ask", "@slow", "take your time", "--wait", "0.2")
    assert began.returncode == OPEN, began
    tried = began.stderr.splitlines()[-1]
    assert tried.startswith("try: scout wait flt_")
    flight = tried.split()[-1]
    assert shell.data("flight", "cancel", flight, "--reason", "enough")["state"] == "cancelled"
    over = shell.type("wait", flight)
    assert (over.returncode, over.stderr.splitlines()[-1]) == (7, f"try: scout flight retry {flight}")
    again = shell.data("flight", "retry", flight)
    assert again["flightId"] != flight
    shell.say("flight", "cancel", again["flightId"])
    assert flight[:14] in shell.say("flight", "list", "--mine")


@pytest.mark.rows("R3.1-21", "R4.1-2")
def test_a_project_is_named_from_where_one_stands(shell: Shell) -> None:
    shell.project("bow")
    arc = shell.project("arc")
    assert "Review this." in shell.say("ask", "--project", "../bow", "Review this.", cwd=arc)
    told = shell.data("ask", "--project", "../bow", "Again.", "--no-wait", cwd=arc)
    assert "bow" in told["canonical"]


def test_an_agent_takes_what_is_in_its_inbox(shell: Shell) -> None:
    registered = shell.data("agent", "register", "reader", "--project", ".", cwd=shell.project("reader"))
    own = {"SCOUT_TOKEN": registered["token"], "SCOUT_AGENT": registered["address"]}
    shell.say("send", "@reader", "one for you")
    assert "one for you" in shell.say("inbox", **own)
    (item,) = shell.data("inbox", "claim", **own)["items"]
    delivery = item["delivery"]["id"]
    assert shell.data("inbox", "renew", delivery, **own)["items"][0]["state"] == "leased"
    assert "pending" in shell.say("inbox", "nack", delivery, "--retry-after", "0", **own)
    claimed = shell.data("inbox", "claim", "--wait", "5", **own)["items"]
    assert "acked" in shell.say("inbox", "ack", claimed[0]["delivery"]["id"], **own)
    assert "sent msg_" in shell.say("reply", "thank you", **own)
    assert shell.data("whoami", **own)["agentId"] == registered["agent"]["id"]
    assert shell.data("whoami", "--as", "@reader")["agentId"] == registered["agent"]["id"]
    assert shell.type("whoami", "--as", "@arc", **own).returncode == Family.CREDENTIAL.exit_code


@pytest.mark.rows("R3.1-32")
def test_the_reading_verbs(shell: Shell) -> None:
    shell.say("send", "@bow", "an unusual word: quokka")
    assert "collab" in shell.say("feed", "@bow") or shell.data("feed", "@bow")["items"]
    assert shell.data("latest")["items"]
    assert {"items", "next"} <= set(shell.data("inbox"))
    events = shell.say("watch", "--after", "0", "--count", "3", "--json").splitlines()
    assert [json.loads(line)["seq"] for line in events] == [1, 2, 3]
    assert len(shell.say("watch", "--after", "0", "--count", "2").splitlines()) == 2
    assert len(shell.data("log", "--limit", "4")["items"]) == 4
    assert "more: --after" in shell.type("log", "--limit", "2").stderr
    assert "@bow" in shell.say("who")
    assert "@bow" in shell.say("show", "@bow")
    assert shell.data("resolve", "@bow")["minimal"] == "@bow"
    assert "steps" in shell.say("resolve", "--explain", "@bow")


def test_channels_aliases_cards_tokens_and_grants(shell: Shell) -> None:
    shell.say("channel", "create", "dev", "--member", "@arc")
    assert "sent msg_" in shell.say("send", "--channel", "dev", "to all of dev")
    assert "dev" in shell.say("channel", "list")
    shell.say("channel", "policy", "dev", "--quiet")
    assert shell.data("channel", "show", "dev")["quiet"] is True
    shell.say("channel", "policy", "dev", "--no-quiet", "--master", "@bow", "--soft-mentions", "wake")
    shown = shell.say("channel", "show", "dev").splitlines()
    assert "3 members, 0 unread, soft mentions wake" in shown[0]
    assert sorted(line.split()[-1] for line in shown[1:])[1:] == ["master", "owner"]
    assert "master" not in shell.say("channel", "policy", "dev", "--no-master")
    assert "2 members" in shell.say("channel", "leave", "dev", "--member", "@bow")
    shell.say("alias", "set", "archie", "@arc")
    assert "archie" in shell.say("alias", "list")
    card = shell.data("card", "create", "--max-uses", "1")
    assert shell.data("card", "revoke", card["id"])["id"] == card["id"]
    minted = shell.data("token", "create", "--agent", "@arc", "--label", "test")
    assert minted["secret"] not in shell.say("token", "list")
    shell.say("token", "revoke", minted["token"]["id"])
    granted = shell.data("grant", "add", "read", "--agent", "@arc", "--channel", "dev")
    assert granted["id"][:14] in shell.say("grant", "list")
    shell.say("grant", "revoke", granted["id"])
    shell.say("agent", "config", "@arc", "--set", "description=the first")
    assert shell.data("show", "@arc")["config"]["description"] == "the first"


def test_a_refusal_leads_to_a_command_that_works(shell: Shell) -> None:
    refused = shell.type("ask", "@ark", "hello")
    assert refused.returncode == Family.UNKNOWN.exit_code
    tried = [line for line in refused.stderr.splitlines() if line.startswith("try: ")]
    assert tried == refused.stderr.splitlines()[-len(tried) :]
    words = shlex.split(tried[0].removeprefix("try: ").partition("  #")[0])
    assert shell.type(*words[1:]).returncode == 0
    told = json.loads(shell.type("show", "@ark", "--json").stdout)["error"]
    assert told["code"] == "unknown_target"


@pytest.mark.rows("R3.1-36")
def test_a_key_makes_a_write_happen_once(shell: Shell) -> None:
    first, second = (shell.data("send", "@arc", "once", "--idempotency-key", "k1") for _ in range(2))
    assert first["messageId"] == second["messageId"]
    other = shell.type("send", "@arc", "other", "--idempotency-key", "k1")
    assert other.returncode == Family.CONFLICT.exit_code


def test_now_is_one_summary(shell: Shell) -> None:
    assert "agents, " in shell.say()
    now = shell.data("now")
    assert {"needsMe", "open", "finished", "online", "agents"} <= set(now)


@pytest.mark.rows("R0-27")
def test_the_socket_is_preferred_and_a_url_can_be_given(shell: Shell) -> None:
    status = shell.data("status")
    assert set(status) == {"url", "socket", "pid", "version", "node", "home"}
    token = (shell.home / "token").read_text()
    assert shell.data("whoami", SCOUT_URL=status["url"], SCOUT_TOKEN=token, SCOUT_HOME="/nowhere")
    assert shell.data("whoami", SCOUT_SOCKET=status["socket"])["kind"] == "operator"
    unreachable = {"SCOUT_PORT": "9"}  # the port plays no part: the socket is what is used
    assert shell.data("whoami", **unreachable)


@pytest.mark.rows("R4.1-24")
def test_completion_knows_verbs_and_addresses(shell: Shell) -> None:
    verbs = shell.type(_SCOUT_COMPLETE="bash_complete", COMP_WORDS="scout fl", COMP_CWORD="1").stdout
    assert verbs.split() == ["plain,flight"]
    found = shell.type(_SCOUT_COMPLETE="bash_complete", COMP_WORDS="scout show @ar", COMP_CWORD="2").stdout
    assert "plain,@arc" in found.split()


@pytest.mark.rows("R4.1-24")
def test_completion_speaks_to_zsh_and_fish(shell: Shell) -> None:
    for name in ("zsh", "fish"):
        assert f"_SCOUT_COMPLETE={name}_complete" in shell.say(_SCOUT_COMPLETE=f"{name}_source")
    typed = "scout show @ar"
    found = shell.type(_SCOUT_COMPLETE="zsh_complete", COMP_WORDS=typed, COMP_CWORD="2")
    lines = found.stdout.splitlines()
    offered = list(zip(lines[::3], lines[1::3], strict=True))
    assert ("plain", "@arc") in offered  # kind, word and description, each on its line
    found = shell.type(_SCOUT_COMPLETE="fish_complete", COMP_WORDS=typed, COMP_CWORD="@ar")
    assert "plain,@arc" in [line.partition("\t")[0] for line in found.stdout.splitlines()]


def test_the_warm_path_loads_nothing_heavy(shell: Shell) -> None:
    probe = (
        "import sys; from scout.__main__ import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    heavy = ("msgspec", "asyncio", "httpx2", "httpx", "typeid", "rich", "platformdirs", "click", "pathlib")
    talking = (
        ("send", "@arc", "x"),
        ("ask", "@arc", "x"),
        ("inbox",),
        ("log",),
        ("watch", "--after", "0", "--count", "3"),
    )
    needs = {"SCOUT_TOKEN": shell.data("agent", "register", "needs")["token"]}
    deciding: list[tuple[str, ...]] = [
        (move, shell.data("attention", "raise", f"{move}?", **needs)["id"])
        for move in ("approve", "deny", "dismiss")
    ]
    deciding.append(("answer", shell.data("need", "really?", "--no-wait", **needs)["id"], "yes"))
    looking = ("", "who", "status", "attention", "latest", "flight list", "session list", "work", "question")
    for words in (*talking, *deciding, *(tuple(verb.split()) for verb in looking)):
        done = subprocess.run(
            [sys.executable, "-c", probe, *words],
            env=shell.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == 0, done.stderr
        assert [name for name in heavy if name in done.stderr.split()] == [], words


def test_a_short_answer_takes_one_request(shell: Shell) -> None:
    url = shell.data("status")["url"]

    def count_requests() -> int:
        with urllib.request.urlopen(f"{url}/metrics") as answer:
            text = answer.read().decode()
        return int(re.findall(r"^scout_http_requests_total (\d+)", text, re.MULTILINE)[0])

    shell.say("ask", "@arc", "warm")
    taken = set[int]()
    for _ in range(5):  # a busy machine may not answer within the first wait
        before = count_requests()
        assert shell.say("ask", "@arc", "short") == "short\n"
        taken.add(count_requests() - before - 1)  # the count is a request, too
    assert min(taken) == 1


def test_ctrl_c_at_once_leaves_the_work_running(shell: Shell) -> None:
    folder = shell.project("begun")
    program = folder / "begin"
    program.write_text(f"#!/bin/sh\ntouch {folder}/began\nexec sleep 60\n")
    program.chmod(0o755)
    shell.say("agent", "register", "begun", "--command", str(program), "--project", ".", cwd=folder)
    command = [sys.executable, "-m", "scout", "ask", "@begun", "x"]
    process = subprocess.Popen(command, env=shell.environ, cwd=folder, stderr=subprocess.PIPE, text=True)
    eventually((folder / "began").exists)
    process.send_signal(signal.SIGINT)
    _, shown = process.communicate(timeout=30)
    assert process.returncode == 130
    flight = shown.rstrip().rpartition("to wait again: scout wait ")[2]
    assert shell.data("flight", "get", flight)["state"] in ("queued", "running")
    shell.say("flight", "cancel", flight)


def test_project_move_and_retirement(shell: Shell) -> None:
    old = shell.project("mover")
    shell.say("agent", "register", "mover", "--project", ".", "--harness", "echo", cwd=old)
    new = old.with_name("moved")
    old.rename(new)
    assert shell.data("project", "move", "mover", "moved", cwd=new.parent)["agents"]
    shell.say("agent", "retire", "@mover", "--reason", "done")
    assert shell.type("ask", "@mover", "still there?").returncode != 0
    shell.say("agent", "revive", "@mover")


# -- on a terminal ------------------------------------------------------------------------------


@pytest.mark.rows("R4.1-17", "R2.2-44")
def test_progress_is_shown_and_ctrl_c_leaves_the_work_running(shell: Shell) -> None:
    shell.say("agent", "register", "long", "--project", ".", "--harness", "echo", cwd=shell.project("long"))
    code, shown = type_in_terminal(shell, "ask", "@long", "!hang", until="echo in work/long · ")
    assert code == 130
    flight = shown.rstrip().rpartition("to wait again: scout wait ")[2]
    assert shell.data("flight", "get", flight)["state"] in ("queued", "running")
    shell.say("flight", "cancel", flight)


@pytest.mark.rows("R4.1-18")
def test_colours_are_for_terminals_whose_owner_wants_them(shell: Shell) -> None:
    assert "\x1b[32msent" in type_in_terminal(shell, "send", "@arc", "x")[1]
    assert "\x1b[" not in type_in_terminal(shell, "send", "@arc", "x", NO_COLOR="1")[1]
    assert "\x1b[" not in shell.say("send", "@arc", "x")


def test_a_look_on_a_terminal_counts_as_one(shell: Shell) -> None:
    shell.say("ask", "@arc", "news")
    assert "news" in shell.say()
    assert "news" in type_in_terminal(shell)[1]
    assert "news" not in type_in_terminal(shell)[1]


@pytest.mark.rows("R4.1-16")
def test_a_text_is_written_in_the_editor(shell: Shell) -> None:
    editor = "sh -c 'echo written by hand > \"$1\"' -"
    code, shown = type_in_terminal(shell, "send", "@arc", EDITOR=editor)
    assert (code, "sent" in shown) == (0, True)
    newest = shell.data("message", "list", "--to", "@arc", "--newest")["items"][-1]
    assert newest["body"] == "written by hand\n"
    code, shown = type_in_terminal(shell, "send", "@arc", EDITOR="true")
    assert (code, "nothing is sent" in shown) == (2, True)


def test_a_thread_is_spoken_in_without_an_address(shell: Shell) -> None:
    root = shell.data("send", "@arc", "two things")
    said = shell.data("send", "--thread", root["messageId"], "the", "first")
    assert shell.data("message", "show", said["messageId"])["body"] == "the first"
    assert said["conversationId"] != root["conversationId"]


@pytest.mark.rows("R7-7", "R3.5-18")
def test_the_remedy_of_a_folder_that_is_not_allowed_works_at_once(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    shell.say("agent", "register", "far", "--command", "cat", cwd=folder)
    refused = shell.type("ask", "@far", "hello", cwd=folder)
    assert (refused.returncode, "directory_not_allowed" in refused.stderr) == (6, True)
    shell.say("config", "roots", "--add", str(folder))
    assert "hello" in shell.say("ask", "@far", "hello", cwd=folder)
