"""The warm path: everyday verbs in their plain forms, before anything slow is imported.

Everything else (help, other flags, mistakes) is left to the full command line, which reads the same flags
from the operation table and ends in the same functions; a test compares the two.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.operations.verbs import Options

_AT = {"--at": ("at", "text")}
_PAGE = {"--cursor": ("cursor", "text"), "--limit": ("limit", "int")}
_OF_LOG = {
    "--after": ("after", "int"),
    "--agent": ("agent", "text"),
    "--conversation": ("conversation", "text"),
    "--work": ("work", "text"),
    "--flight": ("flight", "text"),
    "--family": ("family", "text"),
}
_DECIDES = {"--reason": ("reason", "text"), "--revision": ("revision", "int")}

# Verb → wire name of the record that its only word refers to.
_ONE_RECORD = {
    "show": "address",
    "feed": "address",
    "flight get": "flightId",
    "session inspect": "sessionId",
    "work show": "workItemId",
    "question show": "questionId",
}

# Those of them that can be shown as they were.
_PAST = ("show", "flight get", "work show", "question show")

# Verb → flag → (wire name, kind of value).
FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    "send": {
        "--to": ("to", "text"),
        "--channel": ("channel", "text"),
        "--conversation": ("conversationId", "text"),
        "--in-reply-to": ("inReplyTo", "text"),
        "--wake": ("wake", "flag"),
        "--thread": ("thread", "text"),
        "--broadcast": ("broadcast", "flag"),
        "--all-nodes": ("allNodes", "flag"),
        "--attach": ("attachments", "list"),
    },
    "ask": {
        "--to": ("to", "text"),
        "--project": ("projectPath", "text"),
        "--session-id": ("targetSessionId", "text"),
        "--harness": ("harness", "text"),
        "--model": ("model", "text"),
        "--conversation": ("conversationId", "text"),
        "--attach": ("attachments", "list"),
    },
    "reply": {"--to": ("inReplyTo", "text"), "--attach": ("attachments", "list")},
    "wait": {},
    "now": {"--since": ("since", "text"), **_AT},
    "status": {},
    "whoami": {},
    "brief": {},
    "who": {"--online": ("online", "flag"), "--all": ("all", "flag"), **_PAGE, **_AT},
    "inbox": {"--all": ("all", "flag"), **_PAGE},
    "attention": {"--all": ("all", "flag"), **_PAGE, **_AT},
    "approve": {
        **_DECIDES,
        "--always": ("always", "flag"),
        "--until": ("until", "text"),
        "--any-use": ("anyUse", "flag"),
    },
    "deny": _DECIDES,
    "answer": _DECIDES,
    "dismiss": _DECIDES,
    "latest": _PAGE,
    "log": {
        **_OF_LOG,
        "--newest": ("newest", "flag"),
        "--before": ("before", "int"),
        "--limit": ("limit", "int"),
    },
    "watch": _OF_LOG,
    "flight list": {
        "--agent": ("agent", "text"),
        "--mine": ("mine", "flag"),
        "--open": ("open", "flag"),
        **_PAGE,
        **_AT,
    },
    "session list": {"--agent": ("agent", "text"), "--live": ("live", "flag"), **_PAGE, **_AT},
    "work list": {"--owed": ("owed", "flag"), "--all": ("all", "flag"), **_PAGE, **_AT},
    "question list": {"--owed": ("owed", "flag"), "--asked": ("asked", "flag"), **_PAGE, **_AT},
    **{verb: _AT if verb in _PAST else {} for verb in _ONE_RECORD},
}

# Options of the verb itself: flag → (name in Options, kind of value).
MANNER: dict[str, dict[str, tuple[str, str]]] = {
    "send": {"--file": ("file", "text")},
    "reply": {"--file": ("file", "text")},
    "ask": {
        "--file": ("file", "text"),
        "--wait": ("wait", "float"),
        "--no-wait": ("no_wait", "flag"),
        "--notify": ("notify", "flag"),
    },
    "wait": {"--timeout": ("timeout", "float")},
    **{key: {"--all-of": ("all_of", "text")} for key in ("approve", "deny", "answer", "dismiss")},
    "watch": {"--count": ("count", "int")},
}
_EVERY = {"--json": ("as_json", "flag"), "--as": ("act_as", "text")}
_KEY = {"--idempotency-key": ("key", "text")}
_WRITES = ("send", "ask", "reply", "approve", "deny", "answer", "dismiss")
# Maximum words of a verb; default 0.
_WORDS = {**dict.fromkeys(_WRITES, 10**6), **dict.fromkeys(_ONE_RECORD, 1), "wait": 1, "who": 1}
_NEEDED = ("show", "feed")  # verbs that require a word
_NO_CALLER = ("status",)  # verbs without --as


class _Leave(Exception):  # noqa: N818 (not a mistake: the full command line takes it)
    pass


def read(argv: list[str]) -> tuple[str, list[str], dict[str, Any], dict[str, Any]] | None:
    """Return verb, words, parameters and options; None if the full command line must parse it."""
    if any(name.endswith("_COMPLETE") for name in os.environ if name.startswith("_SCOUT")):
        return None
    verb, rest = _split_verb(argv)
    if verb not in FLAGS:
        return None
    try:
        return (verb, *_read(verb, rest))
    except _Leave:
        return None


def _split_verb(argv: list[str]) -> tuple[str, list[str]]:
    """Return the verb and the rest: no words mean `now`, an address an ask, and a noun alone lists."""
    if not argv or argv == ["--json"] or argv[0] == "--at":
        return "now", argv
    first, *rest = argv
    if first.startswith(("@", ">>")):
        return "ask", _split_implicit_ask(argv)
    if f"{first} list" not in FLAGS:
        return (first, rest) if first in FLAGS else _resolve_synonym(first, rest)
    if not rest or rest[0].startswith("-"):
        return f"{first} list", rest
    return f"{first} {rest[0]}", rest[1:]


def _resolve_synonym(word: str, rest: list[str]) -> tuple[str, list[str]]:
    """Resolve a synonym: `tell` is `send`, `ps` is `session list --live`."""
    from scout.cli.connection.catalogue import COMMANDS, SAME_AS

    known = word in SAME_AS and word not in COMMANDS and SAME_AS[word] != (word,)
    return _split_verb([*SAME_AS[word], *rest]) if known else (word, rest)


def _split_implicit_ask(argv: list[str]) -> list[str]:
    """Split an implicit ask: `scout @agent text`, `scout '@agent text'` or `scout '>> agent text'`."""
    if argv[0].startswith(">>"):
        return argv
    to, space, body = argv[0].partition(" ")
    return [to, body, *argv[1:]] if space else argv


def _read(verb: str, argv: list[str]) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    words: list[str] = []
    parameters: dict[str, Any] = {}
    manner: dict[str, Any] = {}
    how = {**MANNER.get(verb, {}), **_EVERY, **(_KEY if verb in _WRITES else {})}
    rest = iter(argv)
    for word in rest:
        if word == "--":
            words += rest
        elif not word.startswith("-") or word == "-":
            words.append(word)
        elif word in FLAGS[verb]:
            _set(parameters, FLAGS[verb][word], rest)
        elif word in how and (word != "--as" or verb not in _NO_CALLER):
            _set(manner, how[word], rest)
        else:
            raise _Leave
    if len(words) > _WORDS.get(verb, 0) or (verb in _NEEDED and not words):
        raise _Leave
    return words, parameters, manner


def _set(into: dict[str, Any], flag: tuple[str, str], rest: Any) -> None:
    name, kind = flag
    if kind == "flag":
        into[name] = True
        return
    value = next(rest, None)
    if value is None:
        raise _Leave
    try:
        given = {"int": int, "float": float}.get(kind, str)(value)
    except ValueError:
        raise _Leave from None
    into[name] = [*into.get(name, ()), given] if kind == "list" else given


def prepare() -> None:
    """Escape characters that the locale cannot encode, instead of crashing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def move_json(argv: list[str]) -> list[str]:
    """Move a leading --json behind the verb: `scout --json who` is `scout who --json`."""
    if argv[:1] != ["--json"] or len(argv) == 1:
        return argv
    rest = argv[1:]
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], "--json", *rest[end:]]


def end_quietly() -> int:
    """End silently after a broken pipe (`scout log | head`), as other programs do."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _run_host_command(argv: list[str]) -> int | None:
    """Run the commands that hosts call, at every prompt or as long as they run."""
    verb, words = argv[0] if argv else "", argv[1:]
    if verb not in ("hook", "mcp", "statusline") or {"--help", "-h"} & {*words}:
        return None
    if verb == "mcp":
        from scout.cli.hosts.relay import run_relay

        return run_relay(words)
    from scout.cli.hosts.hook import print_statusline, run_hook

    return run_hook(words) if verb == "hook" else print_statusline(words)


def run(argv: list[str]) -> int | None:
    """Run a command and return the exit code; None if the full command line must run it."""
    hosted = _run_host_command(argv)
    if hosted is not None:
        return hosted
    plain = read(argv)
    if plain is None:
        return None
    from scout.cli.connection.refusal import RefusalError

    verb, words, parameters, given = plain
    as_json = bool(given.get("as_json"))
    try:
        return _DOING.get(verb, _look)(verb, words, {**parameters}, {**given})
    except RefusalError as problem:
        if problem.code == "directory_not_allowed":
            from scout.cli.connection.refusal import allow_directory

            if allow_directory(problem):
                return run(argv)
        return problem.show(as_json, f"scout {verb}")
    except KeyboardInterrupt:
        return 130


def _build_options(given: dict[str, Any]) -> Options:
    from scout.cli.operations.verbs import Options

    return Options(**given)


def _run_send_or_ask(verb: str, words: list[str], parameters: dict[str, Any], given: dict[str, Any]) -> int:
    from scout.cli.operations import verbs

    return {"send": verbs.send, "ask": verbs.ask}[verb](words, parameters, _build_options(given))


def _reply(verb: str, words: list[str], parameters: dict[str, Any], given: dict[str, Any]) -> int:
    from scout.cli.connection.call import ROUTES
    from scout.cli.operations import verbs

    return verbs.reply(words, parameters, _build_options(given), ROUTES["reply"])


def _read_inbox(verb: str, words: list[str], parameters: dict[str, Any], given: dict[str, Any]) -> int:
    from scout.cli.operations import verbs

    return verbs.show_inbox(parameters, _build_options(given))


def _wait(verb: str, words: list[str], parameters: dict[str, Any], given: dict[str, Any]) -> int:
    from scout.cli.waiting.follow import follow

    timeout = given.pop("timeout", None)
    manner = _build_options(given)
    return follow(manner.line(), words[0] if words else "only", timeout, manner.as_json)


def _decide(verb: str, words: list[str], parameters: dict[str, Any], given: dict[str, Any]) -> int:
    from scout.cli.operations.decision_calls import decide

    return decide(verb, words, given.pop("all_of", None), parameters, _build_options(given))


def _watch(verb: str, words: list[str], parameters: dict[str, Any], given: dict[str, Any]) -> int:
    from scout.cli.operations.overview import follow_log

    count = given.pop("count", None)
    return follow_log(parameters, _build_options(given), count)


def _look(verb: str, words: list[str], parameters: dict[str, Any], given: dict[str, Any]) -> int:
    from scout.cli.connection.call import ROUTES
    from scout.cli.operations import overview

    if verb == "now":
        return overview.show_now(parameters, _build_options(given))
    if verb == "status":
        return overview.show_status(_build_options(given))
    operation = verb.replace(" ", ".")
    if verb in _ONE_RECORD:
        named = {_ONE_RECORD[verb]: words[0] if words else "only"}
    else:
        named = {"query": words[0]} if words else {}
    return overview.poll(operation, ROUTES[operation], {**named, **parameters}, _build_options(given))


_DOING: dict[str, Callable[[str, list[str], dict[str, Any], dict[str, Any]], int]] = {
    "send": _run_send_or_ask,
    "ask": _run_send_or_ask,
    "reply": _reply,
    "inbox": _read_inbox,
    "wait": _wait,
    **dict.fromkeys(("approve", "deny", "answer", "dismiss"), _decide),
    "watch": _watch,
}
