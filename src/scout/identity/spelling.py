"""The names of a new agent: derived once when it is created, stored, never recomputed."""

import hashlib
from collections.abc import Callable

from scout.base.record import Record
from scout.base.refusal import Refused
from scout.identity.address import Address, fold, segment
from scout.identity.branch import DEPTH_CAP, BirthBranch
from scout.identity.path import PATH_WORDS, AgentPath
from scout.identity.problem import ReservedName, instead, malformed
from scout.identity.reserved import RESERVED, check_name

# All work trees of a project, whatever their depth, are in this folder of its main repository.
WORK_TREES = "/.scout/worktrees/"


class Spelling(Record):
    """The three names of an agent. Only registered and spawned agents have a handle."""

    path: AgentPath
    address: Address
    birth_branch: str | None = None


def registered(
    owner: str,
    definition: str,
    workspace: str | None = None,
    profile: str | None = None,
    root_branch: str | None = None,
) -> Spelling:
    """Return the names of a registered agent; `root_branch` is the birth branch of a project's root agent."""
    name = check_name(segment(definition))
    place = segment(workspace) if workspace is not None else None
    persona = segment(profile) if profile is not None else None
    last = ".".join(part for part in (name, place, persona) if part)
    if last in PATH_WORDS:
        teaches = f"it is a word of paths, as in `/user/{last}`"
        raise Refused(
            ReservedName(word=last, teaches=teaches, remedies=(instead(f"@my-{last}", "a free name"),))
        )
    return Spelling(
        path=AgentPath.root(owner, "agent", last),
        address=Address(definition_id=name, workspace_qualifier=place, profile=persona),
        birth_branch=root_branch,
    )


def spawned(
    parent: Spelling,
    root_branch: str,
    slug: str,
    index: int,
    *,
    taken: Callable[[Address], bool],
    cap: int = DEPTH_CAP,
) -> Spelling:
    """Return the names of a child with a separate branch below its parent's branch."""
    if parent.birth_branch is None:
        raise malformed(slug, 0, "a parent without a branch", "an agent that was born on a branch")
    branch = BirthBranch.parse(parent.birth_branch, root_branch).child(slug, cap)
    below = "-".join(branch.slugs)
    address = Address(definition_id=parent.address.definition_id, workspace_qualifier=below)
    if taken(address):
        longer = f"{below}-{_six_hex(branch.text)}"
        address = Address(definition_id=parent.address.definition_id, workspace_qualifier=longer)
    return Spelling(path=parent.path.sub(index), address=address, birth_branch=branch.text)


def worker(parent: Spelling, index: int, *, taken: Callable[[Address], bool] = lambda _: False) -> Spelling:
    """Return the names of a child that works on its parent's branch."""
    definition, path = parent.address.definition_id, parent.path.sub(index)
    place = f"{parent.address.workspace_qualifier or 'w'}-{index}"
    address = Address(definition_id=definition, workspace_qualifier=place)
    if taken(address):
        address = Address(definition_id=definition, workspace_qualifier=f"{place}-{_six_hex(str(path))}")
    return Spelling(path=path, address=address)


def clone_workspace(definition: str, branch: str, folder: str) -> str:
    """Return the workspace of a second live registration of a definition from another folder."""
    return f"{segment(definition)}-{segment(branch)}-{_six_hex(folder)}"


def session_alias(definition: str, number: int) -> str:
    """Return the alias of an agent's second or later live session."""
    if number < 2:
        raise malformed(f"{definition}-{number}", 0, f"session number {number}", "2 or more")
    return f"{segment(definition)}-{number}"


def folder_for_slug(branch: BirthBranch, taken: Callable[[str], bool]) -> str:
    """Return the worktree folder of a branch: its slug, with a hash if the slug is taken."""
    slug = branch.slugs[-1] if branch.slugs else branch.root
    return f"{slug}-{_six_hex(branch.text)}" if taken(slug) else slug


def directory_definition(
    folder: str, parent_folder: str, configured: str | None, taken: Callable[[str], bool]
) -> str:
    """Return the configured or folder name; if unusable, prefix it with the parent folder's name."""
    name = segment(configured) if configured else segment(folder)
    if name not in RESERVED and name not in PATH_WORDS and not taken(name):
        return name
    return check_name(segment(f"{fold(parent_folder)}-{name}"))


def operator_user(login: str) -> str:
    """Return the operator's user id: the folded login name, or `me` if it is empty or reserved."""
    user = fold(login)
    return user if user and user not in ("root", "operator") and user not in PATH_WORDS else "me"


def node_name(host: str) -> str:
    """Return a machine's name: its folded host name."""
    return segment(host)


def _six_hex(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
