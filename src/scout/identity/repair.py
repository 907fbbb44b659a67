"""Likely corrections of a malformed handle. Some of them may not parse."""

import re

from scout.identity.address import fold

_LAST_PIECE = re.compile(r"[.#?][^.#?]*$")
_VALUE = re.compile(r'(?<=")[^"]*"|(?<=\?)[^#?]*|[^.#?]*')
_SHORTHAND = re.compile(r"([#?])([^#?]*)")


def repair_second_at(text: str, position: int) -> tuple[str, ...]:
    """`@arc@mini`: read the second half as a node, or drop it."""
    name, other = text[:position], text[position + 1 :]
    return (f"@{other}",) if name == "@" else (f"{name}.node:{other}", name)


def repair_two_workspaces(text: str, position: int) -> tuple[str, ...]:
    """`@arc.dev.mini`: read the second word as a node, the whole as a branch, or join both words."""
    before, after = text[: position - 1], text[position:]
    as_branch = () if set(text) & set(':#?"') else (f"branch:{text.lstrip('@')}",)
    return (f"{before}.node:{after}", *as_branch, f"{before}-{after}")


def leave_out(text: str, position: int) -> tuple[str, ...]:
    """Return the address without the piece whose value starts at this position."""
    value = _VALUE.match(text, position)
    assert value is not None  # the pattern matches the empty text too
    return (_LAST_PIECE.sub("", text[:position]) + text[value.end() :],)


def write_long_forms(text: str, start: int) -> tuple[str, ...]:
    """Rewrite misplaced shorthands with keys: `@arc#codex.main` as `@arc.main.harness:codex`."""
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
