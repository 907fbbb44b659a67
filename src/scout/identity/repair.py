"""What a malformed handle probably meant: texts to offer, not all of them readable."""

import re

from scout.identity.segment import fold

_LAST_PIECE = re.compile(r"[.#?][^.#?]*$")
_VALUE = re.compile(r'(?<=")[^"]*"|(?<=\?)[^#?]*|[^.#?]*')
_SHORTHAND = re.compile(r"([#?])([^#?]*)")


def second_at(text: str, position: int) -> tuple[str, ...]:
    """`@arc@mini` was meant as a node, or only its first half was meant."""
    name, other = text[:position], text[position + 1 :]
    return (f"@{other}",) if name == "@" else (f"{name}.node:{other}", name)


def two_workspaces(text: str, position: int) -> tuple[str, ...]:
    """`@arc.dev.mini`: the second word was a node, the whole was a branch, or both are one word."""
    before, after = text[: position - 1], text[position:]
    as_branch = () if set(text) & set(':#?"') else (f"branch:{text.lstrip('@')}",)
    return (f"{before}.node:{after}", *as_branch, f"{before}-{after}")


def left_out(text: str, position: int) -> tuple[str, ...]:
    """The same address without the piece whose value stands at this position."""
    value = _VALUE.match(text, position)
    assert value is not None  # the pattern matches the empty text too
    return (_LAST_PIECE.sub("", text[:position]) + text[value.end() :],)


def long_forms(text: str, start: int) -> tuple[str, ...]:
    """Shorthands in a wrong order written with keys: `@arc#codex.main` as `@arc.main.harness:codex`."""
    name, tail = text[:start], text[start:].replace('"', "")
    words = {"#": "", "?": ""}
    extra = ""
    for sign, word in _SHORTHAND.findall(tail):
        cut = word.find(".") if sign == "#" else word.rfind(".", 0, max(word.find(":"), 0))
        head, rest = (word, "") if cut < 0 else (word[:cut], word[cut:])
        words[sign] = words[sign] or fold(head)
        extra += rest
    keys = (("harness", words["#"]), ("model", words["?"]))
    typed = "".join(f".{key}:{word}" for key, word in keys if word)
    return (f"{name}{extra}{typed}", f"{name}{typed}")
