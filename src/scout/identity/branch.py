"""Birth branches: an agent's place in the tree of branches.

The root branch counts as one unit even if it contains dots or slashes (`release-1.2`, `feature/x`), so
parent and depth follow from the text alone.
"""

import re

from scout.base.record import Record
from scout.base.refusal import Refused, Remedy
from scout.identity.address import MAX_LENGTH, fold, is_folded, require_text
from scout.identity.problem import DepthCap, build_malformed, suggest
from scout.identity.reserved import check_name

DEPTH_CAP = 2
MAX_SLUG = 50

# Characters and sequences that git forbids in a branch name (git-check-ref-format).
_FORBIDDEN = re.compile(
    r"[\s\x00-\x1f\x7f\ud800-\udfff~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?=/|\Z)|\A[/.@-]|[/.]\Z"
)


class BirthBranch(Record):
    """The branch an agent was created on, and the root branch of its project."""

    root: str
    text: str

    def __post_init__(self) -> None:
        check_ref(self.root)
        check_ref(self.text)
        if self.text != self.root and not self.text.startswith(f"{self.root}."):
            problem = f"a branch outside '{self.root[:60]}'"
            expected = f"{self.root[:60]} or {self.root[:60]}.SLUG"
            raise build_malformed(self.text, 0, problem, expected, *_suggest_handle(self.text))

    @classmethod
    def parse(cls, text: object, root: object) -> "BirthBranch":
        return cls(root=require_text(root), text=require_text(text))

    @property
    def slugs(self) -> tuple[str, ...]:
        """The segments below the root branch."""
        below = self.text[len(self.root) + 1 :]
        return tuple(below.split(".")) if below else ()

    @property
    def depth(self) -> int:
        return len(self.slugs)

    @property
    def parent(self) -> "BirthBranch | None":
        """The branch without its last segment; None for the root."""
        if not self.slugs:
            return None
        return BirthBranch(root=self.root, text=self.text.rpartition(".")[0])

    def child(self, slug: object, cap: int = DEPTH_CAP) -> "BirthBranch":
        """Return the branch of an agent spawned here; refuse at the depth cap."""
        name = check_slug(slug)
        if self.depth >= cap:
            remedies = self._suggest_elsewhere(name, cap)
            raise Refused(DepthCap(branch=self.text, depth=self.depth, cap=cap, remedies=remedies))
        return BirthBranch(root=self.root, text=f"{self.text}.{name}")

    def _suggest_elsewhere(self, slug: str, cap: int) -> tuple[Remedy, ...]:
        here = {"slugs": [slug], "from": f"branch:{self.text}", "role": "worker"}
        worker = Remedy(operation="spawn", parameters=here, why="a worker needs no separate branch")
        if cap < 1:
            return (worker,)
        above = ".".join((self.root, *self.slugs[: cap - 1]))
        there = {"slugs": [slug], "from": f"branch:{above}"}
        return (
            worker,
            Remedy(operation="spawn", parameters=there, why="the deepest agent that can have children"),
        )


def check_ref(text: str) -> str:
    """Return the text if it is a valid git branch name; refuse it otherwise."""
    found = _FORBIDDEN.search(text)
    if found or not text:
        at = found.start() if found else 0
        problem = f"{found[0]!r}" if found else "nothing"
        raise build_malformed(text, at, problem, "a branch name that git accepts")
    return text


def check_slug(text: object) -> str:
    """Return the slug of a new branch; it must be folded, 1 to 50 characters long and not reserved."""
    slug = require_text(text)
    proposal = fold(slug)[:MAX_SLUG].strip("-")
    if not is_folded(slug) or len(slug) > MAX_SLUG:
        remedies = (suggest(proposal, "the folded slug"),) if proposal else ()
        at = MAX_SLUG if is_folded(slug) else _find_first_difference(slug, proposal)
        raise build_malformed(
            slug, at, f"the slug '{slug[:60]}'", f"a-z, 0-9 and '-', 1 to {MAX_SLUG}", *remedies
        )
    return check_name(slug)


def _suggest_handle(text: str) -> tuple[Remedy, ...]:
    """Return a remedy that reads the text as a handle, if it can be one."""
    parts = [fold(part) for part in text.split(".", 1)]
    handle = "@" + ".".join(parts)
    return (suggest(handle, "as a handle"),) if all(parts) and len(handle) <= MAX_LENGTH else ()


def _find_first_difference(text: str, folded: str) -> int:
    pairs = enumerate(zip(text, folded, strict=False))
    return next((index for index, (one, other) in pairs if one != other), min(len(text), len(folded)))
