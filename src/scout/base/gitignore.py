"""Path patterns as in `.gitignore`, matched in bounded time.

Written by hand because patterns come from agents: libraries translate them to backtracking expressions, which
a few asterisks keep busy for hours. The tests compare it with git. Two differences: `?` matches one
character, not one byte; and in `a**/b` the asterisks are within one name, as git's manual says.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_WILD = frozenset("*?[\\")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_STAR = ""  # a run of asterisks, among the one-character expressions of a name
_NEVER = "(?!)"
_ANY_FOLDERS = re.compile(r"\*{2,}")


class Pattern(NamedTuple):
    """One line. `names`: an expression for each name of the path, None for `**`.

    `whole`: it matches the whole path, not only the last name. `folders`: it matches folders only.
    """

    negated: bool
    folders: bool
    whole: bool
    names: tuple[re.Pattern[str] | None, ...]


@functools.lru_cache(maxsize=4096)
def parse_pattern(text: str) -> Pattern | None:
    """Return the pattern of a line; None for a blank line, a comment, or a line that names nothing."""
    text = _strip_spaces(text)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    folders = text.endswith("/")
    text = text.removesuffix("/")
    whole = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    names = [None if whole and _ANY_FOLDERS.fullmatch(name) else _compile(name) for name in _split(text)]
    if names[-1] is None:  # everything below a folder, not the folder itself
        names[-1:] = [re.compile(".*", re.DOTALL), None]
    return Pattern(negated, folders, whole, tuple(names))


def get_literal_path(text: str) -> str | None:
    """Return the path that a pattern without wildcards names; None for any other pattern."""
    plain = text.strip("/")
    return None if not plain or plain.startswith(("!", "#")) or _WILD & set(plain) else plain


def matches(patterns: Sequence[str], path: str) -> bool:
    """Whether the patterns match the path of a file, or a folder above it.

    As in git, the last pattern that matches decides, and a file in a matched folder stays matched.
    """
    parsed = [one for one in map(parse_pattern, patterns) if one is not None]
    names = path.split("/")
    fits = [list(_match_steps(one, names)) for one in parsed]
    found = None
    for depth in range(len(names)):
        is_folder = depth < len(names) - 1
        fitting = (
            one
            for one, fit in zip(reversed(parsed), reversed(fits), strict=True)
            if fit[depth] and (is_folder or not one.folders)
        )
        found = next(fitting, None)
        if is_folder and found is not None and not found.negated:
            return True
    return found is not None and not found.negated


def _match_steps(pattern: Pattern, names: list[str]) -> Iterator[bool]:
    """Whether the pattern fits the first name, the first two names, and so on.

    It follows all ways through the pattern at once: the time is the product of the two lengths.
    """
    wanted, reached = pattern.names, {0}
    for name in names:
        after = set[int]()
        for place in _skip_double_stars(wanted, reached if pattern.whole else {0}) - {len(wanted)}:
            expected = wanted[place]
            if expected is None:
                after.add(place)
            elif expected.fullmatch(name):
                after.add(place + 1)
        reached = after
        yield len(wanted) in _skip_double_stars(wanted, reached)


def _skip_double_stars(wanted: tuple[re.Pattern[str] | None, ...], reached: set[int]) -> set[int]:
    """Return the places reached, and those behind a `**`, which may stand for no folder."""
    found = set[int]()
    for start in reached:
        place = start
        found.add(place)
        while place < len(wanted) and wanted[place] is None:
            place += 1
            found.add(place)
    return found


def _strip_spaces(text: str) -> str:
    """Return the line without trailing spaces; a backslash keeps one."""
    bare = text.rstrip(" ")
    slashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if slashes % 2 and bare != text else bare


def _split(text: str) -> list[str]:
    """Return the names of a pattern; a slash in brackets separates nothing."""
    names, start, place = list[str](), 0, 0
    while place < len(text):
        if text[place] == "[":
            place = max(_end_of_bracket(text, place), place + 1)
        elif text[place] == "\\" and text[place + 1 : place + 2] != "/":
            place += 2
        elif text[place] == "/":
            names.append(text[start:place].removesuffix("\\"))
            place = start = place + 1
        else:
            place += 1
    return [*names, text[start:]]


def _compile(name: str) -> re.Pattern[str]:
    """Compile one name. Each piece between asterisks is found at its first place, which is always enough."""
    pieces = [""]
    place = 0
    while place < len(name):
        part, place = _read_part(name, place)
        if part is _STAR:
            pieces.append("")
        else:
            pieces[-1] += part
    *before, last = pieces
    if not before:
        return re.compile(last, re.DOTALL)
    first, *middle = before
    between = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return re.compile(f"{first}{between}.*{last}", re.DOTALL)


def _read_part(name: str, place: int) -> tuple[str, int]:
    """Return the expression for the part of a name that begins here, and where the next part begins."""
    sign = name[place]
    if sign == "*":
        return _STAR, place + 1
    if sign == "?":
        return ".", place + 1
    if sign == "\\":
        following = name[place + 1 : place + 2]
        return (re.escape(following), place + 2) if following else (_NEVER, place + 1)
    if sign == "[":
        end = _end_of_bracket(name, place)
        return (_read_bracket(name[place + 1 : end - 1]), end) if end else (_NEVER, len(name))
    return re.escape(sign), place + 1


def _end_of_bracket(text: str, place: int) -> int:
    """Return the place behind the bracket that begins here; 0 if it is not closed."""
    place += 1
    if text[place : place + 1] in ("!", "^"):
        place += 1
    first = True
    while place < len(text):
        if text[place] == "]" and not first:
            return place + 1
        if text.startswith("[:", place) and (end := text.find(":]", place)) > 0:
            place = end + 1
        elif text[place] == "\\":
            place += 1
        place, first = place + 1, False
    return 0


def _read_bracket(inner: str) -> str:
    """Return the expression for the inside of a bracket: characters, ranges and classes."""
    negated = inner.startswith(("!", "^"))
    parts, place = "", int(negated)
    while place < len(inner):
        if inner.startswith("[:", place) and (end := inner.find(":]", place)) > 0:
            if inner[place + 2 : end] not in _CLASSES:
                return _NEVER
            parts += _CLASSES[inner[place + 2 : end]]
            place = end + 2
            continue
        low, place = _read_sign(inner, place)
        if inner[place : place + 1] == "-" and place + 1 < len(inner):
            high, place = _read_sign(inner, place + 1)
            parts += f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""
        else:
            parts += re.escape(low)
    if not parts:
        return "." if negated else _NEVER
    return f"[{'^' if negated else ''}{parts}]"


def _read_sign(inner: str, place: int) -> tuple[str, int]:
    escaped = inner[place] == "\\" and place + 1 < len(inner)
    return (inner[place + 1], place + 2) if escaped else (inner[place], place + 1)
