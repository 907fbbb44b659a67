"""Diagnostics for refused names, and the helpers that build them."""

from typing import ClassVar

from scout.base.refusal import Diagnostic, Family, Refused, Remedy


class MalformedAddress(Diagnostic, tag="malformed_address"):
    """The text is not an address in any of the forms Scout reads.

    `position` is the character (from 0) at which reading failed, `expected` what could have stood
    there. The remedies are the readings that were probably meant. Names with spaces or dots are
    folded only in structured fields, never in typed text: `Super Refactor` is `super-refactor`.

      handle    @definition[.workspace][.profile:x][.harness:x][.model:x][.node:x][#harness][?model]
      path      /user/agent/name, /user/telegram, /system/tag, with /sub/0, /search/0, /memory after it
      branch    main.feature.auth in your project, or branch:main.feature.auth anywhere
      relative  . .. self parent ./sub/0 ../sub/1
      others    root operator agt_… session:… project:DIR channel:NAME alias:NAME
    """

    text: str
    position: int
    problem: str
    expected: str

    @property
    def message(self) -> str:
        return f"found {self.problem} at character {self.position}; expected {self.expected}"


class ReservedName(Diagnostic, tag="reserved_name"):
    """The word has a special meaning in addresses, so it cannot be the name of an agent or alias.

    Dimension keys, harness names and words such as `root` or `self` are reserved, because a name
    that looks like syntax would be read as syntax. `teaches` shows how the word is used.
    """

    family: ClassVar[Family] = Family.CONFLICT

    word: str
    teaches: str

    @property
    def message(self) -> str:
        return f"'{self.word}' is reserved: {self.teaches}"


class DepthCap(Diagnostic, tag="depth_cap"):
    """The tree of agents below a root branch has a maximum depth.

    Spawn from an agent higher up, give the work to a worker (which needs no separate branch), or
    raise `limits.depthCap` in the settings.
    """

    family: ClassVar[Family] = Family.LIMIT
    status: ClassVar[int | None] = 409

    branch: str
    depth: int
    cap: int

    @property
    def message(self) -> str:
        return f"{self.branch} is at depth {self.depth} and the cap is {self.cap}: it cannot have children"


def suggest(text: str, why: str) -> Remedy:
    """Return the remedy "write this instead"."""
    return Remedy(operation="parse", parameters={"texts": [text]}, why=why)


def build_malformed(text: str, position: int, problem: str, expected: str, *remedies: Remedy) -> Refused:
    """Return the refusal of a text that is not an address; it keeps only the first 200 characters."""
    teach = Remedy(
        operation="explain", parameters={"code": "malformed_address"}, why="the forms of an address"
    )
    return Refused(
        MalformedAddress(
            text=_replace_surrogates(text[:200]),
            position=position,
            problem=_replace_surrogates(problem),
            expected=expected,
            remedies=remedies or (teach,),
        )
    )


def shift_position(text: str, offset: int, refusal: Refused) -> Refused:
    """Return the refusal of a part with its position in the whole text, where the part starts at `offset`."""
    part = refusal.diagnostic
    assert isinstance(part, MalformedAddress)  # parsing raises no other refusal
    return build_malformed(text, offset + part.position, part.problem, part.expected, *part.remedies)


def _replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON cannot carry, with question marks."""
    return text.encode("utf-8", "replace").decode()
