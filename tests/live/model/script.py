"""What the scripted model says: its script travels inside the prompt, so it remembers nothing.

A prompt holds steps, one for each answer of the model; whatever stands between them is for the reader:

    Find out who you are <<tool whoami {}>> and say it <<say I am>> ++ <<echo>>

    <<say TEXT>>           this text
    <<tool NAME {json}>>   a call of an offered tool, named by its end; {} may be left out
    <<force NAME {json}>>  a call of this very name, offered or not
    <<follow PREFIX>>      the call that the last result names as the next one, its tool spelled with this prefix
    <<echo>>               the last results as text, or the prompt when there are none
    <<sleep SECONDS>>      nothing at all for so long; <<stall SECONDS>>: an answer that begins and then hangs
    <<error CODE TEXT>>    an HTTP error

Blocks of one step are joined by ` ++ `. An argument "$name" is the newest value of that name in the results of
this script, or the id that the prompt has after this word, as in `flight flt_1`. The step is the number of answers
since the last prompt that has a script.
"""

import html
import json
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple, cast

__all__ = ["Answer", "Call", "Heard", "Turn", "answer_to", "has_script", "parse_steps"]

_OPEN = re.compile(r"<<(say|tool|force|follow|echo|sleep|stall|error)\b\s*")
_JOINED = re.compile(r"\s+\+\+\s+")
_DECODER = json.JSONDecoder()


class Turn(NamedTuple):
    """One thing of a conversation; `by` is user, model or tool."""

    by: str
    text: str = ""


class Heard(NamedTuple):
    """A request in no dialect: what was said, and the tools that are offered."""

    turns: tuple[Turn, ...]
    offered: tuple[str, ...] = ()


class Call(NamedTuple):
    """A tool that the model calls."""

    name: str
    arguments: dict[str, Any]


class Answer(NamedTuple):
    """What the model does: wait, fail, or give these blocks."""

    blocks: tuple[str | Call, ...] = ()
    sleep: float = 0.0
    stall: float = 0.0
    error: tuple[int, str] | None = None


class Block(NamedTuple):
    """One directive."""

    kind: str
    text: str = ""
    arguments: dict[str, Any] = {}


def answer_to(heard: Heard) -> Answer:
    """The answer that the script asks for."""
    prompt, later = _find_played(heard.turns)
    if prompt is None:
        return Answer(("no script",))
    results = [turn.text for turn in later if turn.by == "tool"]
    done = sum(1 for by, _ in groupby(later, lambda turn: turn.by) if by == "model")
    try:
        steps = parse_steps(prompt)
        if done >= len(steps):
            return Answer(("the script is over",))
        return _answer(steps[done], heard.offered, results, prompt)
    except (LookupError, TypeError, ValueError) as problem:  # a broken connection would be tried again
        return Answer((f"bad script: {problem}",))


def parse_steps(prompt: str) -> list[list[Block]]:
    """The steps of a prompt, each a list of blocks."""
    text = html.unescape(prompt)
    steps: list[list[Block]] = []
    end = 0
    for start, stop, block in _blocks(text):
        joined = _JOINED.match(text, end) if steps else None
        if joined and joined.end() == start:
            steps[-1].append(block)
        else:
            steps.append([block])
        end = stop
    return steps


def has_script(text: str) -> bool:
    """Whether a text has a step, be it a bad one."""
    return _OPEN.search(html.unescape(text)) is not None


def _find_played(turns: tuple[Turn, ...]) -> tuple[str | None, tuple[Turn, ...]]:
    """The last prompt with a script, and what came after it."""
    for at in range(len(turns) - 1, -1, -1):
        if turns[at].by == "user" and has_script(turns[at].text):
            return turns[at].text, turns[at + 1 :]
    return None, ()


def _blocks(text: str) -> Iterator[tuple[int, int, Block]]:
    at = 0
    while found := _OPEN.search(text, at):
        block, at = _block(found[1], text, found.end())
        yield found.start(), at, block


def _block(kind: str, text: str, at: int) -> tuple[Block, int]:
    """The directive that begins here; JSON is read as JSON, for it may hold a script of its own."""
    if kind in ("tool", "force"):
        name = re.compile(r"[^\s>{]+").match(text, at)
        if name is None:
            raise ValueError(f"{kind} without a name")
        at = _after_space(text, name.end())
        arguments: Any = {}
        if text.startswith("{", at):
            try:
                arguments, at = _DECODER.raw_decode(text, at)
            except ValueError as problem:
                raise ValueError(f"{kind} {name[0]}: {problem}") from None
        at = _after_space(text, at)
        if not text.startswith(">>", at):
            raise ValueError(f"{kind} {name[0]} does not end with >>")
        return Block(kind, name[0], arguments), at + 2
    end = text.find(">>", at)
    if end < 0:
        raise ValueError(f"{kind} does not end with >>")
    return Block(kind, text[at:end].strip()), end + 2


def _after_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _answer(step: list[Block], offered: tuple[str, ...], results: list[str], prompt: str) -> Answer:
    made = Answer()
    for block in step:
        match block.kind:
            case "sleep" | "stall":
                made = made._replace(**{block.kind: float(block.text)})
            case "error":
                code, _, text = block.text.partition(" ")
                made = made._replace(error=(int(code), text))
            case _:
                made = made._replace(blocks=(*made.blocks, _content(block, offered, results, prompt)))
    return made if made.blocks or made.error else made._replace(blocks=("ready",))


def _content(block: Block, offered: tuple[str, ...], results: list[str], prompt: str) -> str | Call:
    match block.kind:
        case "say":
            return block.text
        case "tool":
            return Call(_find_offered(block.text, offered), _fill(block.arguments, results, prompt))
        case "force":
            return Call(block.text, _fill(block.arguments, results, prompt))
        case "follow":
            named = _next_call(results[-1] if results else "")
            return Call(block.text + named.name, named.arguments)
        case _:
            return "\n".join(results) or prompt


def _find_offered(name: str, offered: tuple[str, ...]) -> str:
    for one in offered:
        if one == name or one.endswith((f"__{name}", f"/{name}")):
            return one
    raise ValueError(f"no tool {name} among {', '.join(offered) or 'none'}")


def _fill(value: Any, results: list[str], prompt: str) -> Any:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {name: _fill(one, results, prompt) for name, one in pairs}
    if isinstance(value, list):
        return [_fill(one, results, prompt) for one in cast("list[Any]", value)]
    if isinstance(value, str) and re.fullmatch(r"\$\w+", value):
        return _newest(value[1:], results, prompt)
    return value


def _next_call(result: str) -> Call:
    """The call under `next`, or the first of `remedies`; some programs show the model only a line of text."""
    facts = _read(result)
    for key in ("next", "remedies"):
        for found in _values(key, facts):
            first = cast("list[Any]", found)[0] if isinstance(found, list) else found
            return Call(first["tool"], first["arguments"])
    if line := re.search(r"next: (\w+) (?=\{)", result):
        return Call(line[1], _DECODER.raw_decode(result, line.end())[0])
    raise ValueError(f"no next call in {result or 'no result'}")


def _newest(name: str, results: list[str], prompt: str) -> Any:
    for text in reversed(results):
        for found in _values(name, _read(text)):
            return found
    if named := re.search(rf"(?i)\b{name} ([a-z]+_\w+)", prompt):
        return named[1]
    raise ValueError(f"no result has {name}: {results}")


def _read(text: str) -> Any:
    """The first JSON object of a text."""
    at = text.find("{")
    while at >= 0:
        try:
            return _DECODER.raw_decode(text, at)[0]
        except ValueError:
            at = text.find("{", at + 1)
    return None


def _values(name: str, value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        found = cast("dict[str, Any]", value)
        if name in found:
            yield found[name]
        for one in found.values():
            yield from _values(name, one)
    elif isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _values(name, one)
