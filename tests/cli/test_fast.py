"""The warm path reads the same flags as the full command line, and leaves alone what it does not know."""

from typing import Any

import click
import pytest

from scout.cli import fast
from scout.cli.connection.call import ROUTES
from scout.cli.main import scout
from scout.cli.operations.durations import Duration
from scout.protocol.operations import OPERATIONS


@pytest.mark.rows("R4.1-4")
@pytest.mark.parametrize(
    ("argv", "verb", "words", "parameters", "manner"),
    [
        (["send", "@arc", "hi", "there"], "send", ["@arc", "hi", "there"], {}, {}),
        (["send", "--channel", "dev", "hi", "--json"], "send", ["hi"], {"channel": "dev"}, {"as_json": True}),
        (["send", "@a", "-"], "send", ["@a", "-"], {}, {}),
        (["send", "--", "@a", "--json"], "send", ["@a", "--json"], {}, {}),
        (
            ["send", "--attach", "a", "--attach", "b", "@x", "y"],
            "send",
            ["@x", "y"],
            {"attachments": ["a", "b"]},
            {},
        ),
        (["ask", "--project", "../t", "x"], "ask", ["x"], {"projectPath": "../t"}, {}),
        (["ask", "@a", "x", "--wait", "2.5"], "ask", ["@a", "x"], {}, {"wait": 2.5}),
        (["@arc", "do", "it"], "ask", ["@arc", "do", "it"], {}, {}),
        (["@arc do it", "--no-wait"], "ask", ["@arc", "do it"], {}, {"no_wait": True}),
        (["inbox", "--limit", "5", "--as", "@a"], "inbox", [], {"limit": 5}, {"act_as": "@a"}),
        ([], "now", [], {}, {}),
        (["--json"], "now", [], {}, {"as_json": True}),
        (["who", "arc", "--online"], "who", ["arc"], {"online": True}, {}),
        (["flight"], "flight list", [], {}, {}),
        (["flight", "--open"], "flight list", [], {"open": True}, {}),
        (["session", "list", "--live"], "session list", [], {"live": True}, {}),
        (["log", "--newest", "--limit", "6"], "log", [], {"newest": True, "limit": 6}, {}),
        (["watch", "--count", "3", "--json"], "watch", [], {}, {"count": 3, "as_json": True}),
        (["wait", "flt_1", "--timeout", "2"], "wait", ["flt_1"], {}, {"timeout": 2.0}),
        (["status"], "status", [], {}, {}),
        (["whoami", "--json"], "whoami", [], {}, {"as_json": True}),
        (["tell", "@arc", "hi"], "send", ["@arc", "hi"], {}, {}),
        (["ps"], "session list", [], {"live": True}, {}),
        (["ls", "--online"], "who", [], {"online": True}, {}),
        (["flights", "--open"], "flight list", [], {"open": True}, {}),
        (["show", "@arc"], "show", ["@arc"], {}, {}),
        (["flight", "get"], "flight get", [], {}, {}),
        (["work", "show", "wrk_1", "--json"], "work show", ["wrk_1"], {}, {"as_json": True}),
        (["reply", "--to", "msg_1", "yes"], "reply", ["yes"], {"inReplyTo": "msg_1"}, {}),
        (["approve", "att_1", "--always"], "approve", ["att_1"], {"always": True}, {}),
        (["deny", "@a", "not", "now", "--json"], "deny", ["@a", "not", "now"], {}, {"as_json": True}),
        (["dismiss", "--all-of", "@a"], "dismiss", [], {}, {"all_of": "@a"}),
    ],
)
def test_plain_forms_are_read(
    argv: list[str], verb: str, words: list[str], parameters: dict[str, Any], manner: dict[str, Any]
) -> None:
    assert fast.read(argv) == (verb, words, parameters, manner)


@pytest.mark.parametrize(
    "argv",
    [
        ["who", "--help"],
        ["who", "a", "b"],
        ["status", "--as", "@a"],
        ["flight", "cancel", "flt_1"],
        ["show"],
        ["--json", "who"],
        ["send", "--help"],
        ["send", "-h"],
        ["send", "--kind", "status", "@a", "x"],
        ["send", "--channel"],
        ["inbox", "claim"],
        ["inbox", "--limit", "many"],
        ["inbox", "--idempotency-key", "k"],
        ["ask", "--wait", "long", "@a", "x"],
        ["approve", "att_1", "--for", "project"],
        ["attention", "show", "att_1"],
        ["--version"],
    ],
)
def test_the_rest_is_left_to_the_full_command_line(argv: list[str]) -> None:
    assert fast.read(argv) is None


@pytest.mark.parametrize("verb", fast.FLAGS)
def test_every_flag_means_the_same_in_both(verb: str) -> None:
    command: click.Command | None = scout
    for word in verb.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    options = {name: one for one in command.params for name in one.opts if isinstance(one, click.Option)}
    for flag, (name, kind) in {**fast.FLAGS[verb], **fast.MANNER.get(verb, {})}.items():
        option = options[flag]
        assert option.name == name, flag
        assert isinstance(option, click.Option)
        assert (option.is_flag, option.multiple) == (kind == "flag", kind == "list"), flag
        is_float = option.type is click.FLOAT or isinstance(option.type, Duration)
        assert (option.type is click.INT, is_float) == (kind == "int", kind == "float"), flag


def test_the_routes_of_the_warm_path_are_those_of_the_table() -> None:
    for name, route in ROUTES.items():
        request = OPERATIONS[name].request
        assert request is not None
        assert request.route == route
