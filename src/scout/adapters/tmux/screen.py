"""Reading a screen: new output, whether the program waits for input, and whether it asks a question."""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

from scout.ports import Asked

_MARKS = " \t>❯›»$#%*│┃|"  # prompt marks before typed text
_LINE_PROMPT = re.compile(r".{0,80}[>$#%❯›»:?]")
_NUMBER = re.compile(r"\d+")
_YES_NO = re.compile(r"[\[(] ?y(?:es)? ?/ ?no? ?[\])] ?[:?]?", re.IGNORECASE)
_OPTION = re.compile(r"[\s│┃|]*(?P<mark>[❯›>→])?\s*(?P<number>\d)[.)]\s+(?P<text>\S.*?)[\s│┃|]*")
_RULE = re.compile(r"[\s─━╌═╭╮╰╯│┃|-]+")
_CONSENT = re.compile(r"(?:yes|allow|approve|proceed)\b", re.IGNORECASE)
_BELOW = 4  # maximum lines of hints below the options
_ABOVE = 8  # maximum lines of context above the options
_BLINKING = re.compile(r"^[●•◦⏺○](?= )")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def split_lines(text: str) -> tuple[str, ...]:
    """Split a screen into lines, without trailing blanks and trailing empty lines."""
    lines = [line.rstrip() for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return tuple(lines)


def steady(lines: Sequence[str]) -> tuple[str, ...]:
    """Return a screen without marks that blink while a program waits."""
    return tuple(_BLINKING.sub(" ", line) for line in lines)


def sanitize(text: str) -> str:
    """Return a text that is safe to paste: without control characters, it cannot end the paste."""
    return _CONTROL.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


# -- what is new -------------------------------------------------------------------------------------


def find_new_lines(before: Sequence[str], after: Sequence[str], prompt: str) -> str:
    """Return the output between the unchanged top and bottom of the screen, without the prompt's echo."""
    head = _count_common(before, after)
    tail = _count_common(
        list(reversed(before))[: len(before) - head], list(reversed(after))[: len(after) - head]
    )
    fresh = list(after[head : len(after) - tail])
    if before and head < len(before) and fresh:  # the input line was there before
        fresh[0] = fresh[0].removeprefix(before[head])
    return "\n".join(_drop_echo(fresh, prompt)).strip("\n").rstrip()


def _count_common(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _drop_echo(lines: list[str], prompt: str) -> list[str]:
    """Drop lines from the top while they repeat the prompt, however it is wrapped."""
    left = "".join(prompt.split())
    for number, line in enumerate(lines):
        said = "".join(line.split())
        bare = "".join(line.lstrip(_MARKS).split())
        if not left:
            return lines[number:]
        if left.startswith((said, bare)):
            left = left[len(said if left.startswith(said) else bare) :]
        else:
            return lines[number:]
    return []


def is_ready(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the program waits for input as before, judged by its last line; numbers in it may differ.

    If the screen was empty before, any output counts.
    """
    old, new = _get_last_line(before), _get_last_line(after)
    if not old:
        return bool(new)
    if _NUMBER.sub("0", old) == _NUMBER.sub("0", new):
        return True
    return bool(_LINE_PROMPT.fullmatch(old) and _LINE_PROMPT.fullmatch(new))


def is_line_prompt(lines: Sequence[str]) -> bool:
    """Whether the last line looks like the prompt of a shell or an interpreter."""
    return _LINE_PROMPT.fullmatch(_get_last_line(lines)) is not None


def _get_last_line(lines: Sequence[str]) -> str:
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


# -- what it asks ------------------------------------------------------------------------------------


class ScreenWish(NamedTuple):
    """A question on the screen; `keys` are typed for each option, `refusal` to deny."""

    kind: Asked
    question: str
    detail: str
    options: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    refusal: tuple[str, ...]

    def answer(self, allow: bool, text: str) -> tuple[str, ...]:
        """Return the keys for a person's answer: an option by name or number, else yes or no."""
        named = text.strip().casefold()
        for number, (option, keys) in enumerate(zip(self.options, self.keys, strict=True), 1):
            if named and named in (option.casefold(), str(number)):
                return keys
        return (self.keys[0] if self.keys else ()) if allow else self.refusal


def find_question(lines: Sequence[str]) -> ScreenWish | None:
    """Return the yes-or-no question or list of options at the end of the screen; None if there is none."""
    shown = [line for line in lines if line.strip()]
    if shown and _YES_NO.search(shown[-1]) and _is_at_end(shown[-1]):
        question = shown[-1].strip()
        return ScreenWish(
            Asked.PERMISSION, question, "", ("yes", "no"), (("y", "Enter"), ("n", "Enter")), ("n", "Enter")
        )
    return _read_options(shown)


def _is_at_end(line: str) -> bool:
    found = list(_YES_NO.finditer(line))
    return not line[found[-1].end() :].strip()


def _read_options(shown: list[str]) -> ScreenWish | None:
    """Return numbered options, starting at 1, one of them marked, with few lines below them."""
    found = [_OPTION.fullmatch(line) for line in shown]
    begins = [at for at, match in enumerate(found) if match and match["number"] == "1"]
    if not begins:
        return None
    first = begins[-1]
    options = list(takewhile(lambda match: match is not None, found[first:]))
    matches = [match for match in options if match is not None]
    hints = shown[first + len(matches) :]
    if len(matches) < 2 or len(hints) > _BELOW or not any(match["mark"] for match in matches):
        return None
    about = _read_context(shown[:first])
    texts = tuple(match["text"] for match in matches)
    consents = bool(_CONSENT.match(texts[0]))
    return ScreenWish(
        kind=Asked.PERMISSION if consents else Asked.QUESTION,
        question=about[-1] if about else texts[0],
        detail="\n".join(about[:-1]),
        options=texts,
        keys=tuple((match["number"],) for match in matches),
        refusal=("Escape",),
    )


def _read_context(above: list[str]) -> list[str]:
    """Return the lines above the options, without drawn rules."""
    said = [line.strip(" │┃|") for line in above[-_ABOVE:]]
    return [line for line in said if line and not _RULE.fullmatch(line)]
