"""The warm path: `send`, `ask` and `inbox` in their plain forms, before anything heavy is loaded.

What it does not know (help, other flags, a mistake) it leaves to the full command line, which reads the
same flags off the operation table; a test holds the two together.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["FLAGS", "MANNER", "hang_up", "prepare", "read", "run"]

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
    "inbox": {
        "--all": ("all", "flag"),
        "--cursor": ("cursor", "text"),
        "--limit": ("limit", "int"),
    },
}

# How the verb is carried out: flag → (name in Manner, kind of value).
MANNER: dict[str, dict[str, tuple[str, str]]] = {
    "send": {"--file": ("file", "text")},
    "ask": {
        "--file": ("file", "text"),
        "--wait": ("wait", "float"),
        "--no-wait": ("no_wait", "flag"),
        "--notify": ("notify", "flag"),
    },
    "inbox": {},
}
_EVERY = {
    "--json": ("as_json", "flag"),
    "--as": ("act_as", "text"),
    "--idempotency-key": ("key", "text"),
}


class _Leave(Exception):  # noqa: N818 (not a mistake: the full command line takes it)
    pass


def read(argv: list[str]) -> tuple[str, list[str], dict[str, Any], dict[str, Any]] | None:
    """Verb, words, parameters and manner; None when the full command line must look."""
    if not argv or any(name.endswith("_COMPLETE") for name in os.environ if name.startswith("_SCOUT")):
        return None
    if argv[0].startswith("@"):
        argv = ["ask", *_implicit(argv)]
    verb = argv[0]
    if verb not in FLAGS:
        return None
    try:
        return (verb, *_read(verb, argv[1:]))
    except _Leave:
        return None


def _implicit(argv: list[str]) -> list[str]:
    """`scout @agent text` and `scout '@agent text'` are asks."""
    to, space, body = argv[0].partition(" ")
    return [to, body, *argv[1:]] if space else argv


def _read(verb: str, argv: list[str]) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    words: list[str] = []
    parameters: dict[str, Any] = {}
    manner: dict[str, Any] = {}
    rest = iter(argv)
    for word in rest:
        if word == "--":
            words += rest
        elif not word.startswith("-") or word == "-":
            words.append(word)
        elif word in FLAGS[verb]:
            _set(parameters, FLAGS[verb][word], rest)
        elif word in MANNER[verb] or (word in _EVERY and (verb, word) != ("inbox", "--idempotency-key")):
            _set(manner, MANNER[verb].get(word) or _EVERY[word], rest)
        else:
            raise _Leave
    if verb == "inbox" and words:
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
    """Text that no locale can show is escaped instead of crashing."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def hang_up() -> int:
    """Nobody reads any more (`scout log | head`): end without a word, as other programs do."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141


def _for_a_host(argv: list[str]) -> int | None:
    """What hosts call themselves, at every prompt or for as long as they run."""
    verb, words = argv[0] if argv else "", argv[1:]
    if verb not in ("hook", "mcp", "statusline") or {"--help", "-h"} & {*words}:
        return None
    if verb == "mcp":
        from scout.cli.relay import relay

        return relay(words)
    from scout.cli.hook import hook, statusline

    return hook(words) if verb == "hook" else statusline(words)


def run(argv: list[str]) -> int | None:
    """Do it and give the exit code; None when the full command line must."""
    hosted = _for_a_host(argv)
    if hosted is not None:
        return hosted
    plain = read(argv)
    if plain is None:
        return None
    from scout.cli import verbs
    from scout.cli.problem import Problem

    verb, words, parameters, given = plain
    manner = verbs.Manner(**given)
    try:
        if verb == "inbox":
            return verbs.inbox(parameters, manner)
        return {"send": verbs.send, "ask": verbs.ask}[verb](words, parameters, manner)
    except Problem as problem:
        return problem.show(manner.as_json, f"scout {verb}")
    except KeyboardInterrupt:
        return 130
