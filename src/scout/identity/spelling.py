"""The names of a new agent: derived once when it is created, stored, never recomputed."""

import hashlib
from collections.abc import Callable

from scout.base.record import Record
from scout.base.refusal import Refused
from scout.identity.address import Address, fold, fold_segment
from scout.identity.branch import DEPTH_CAP, BirthBranch
from scout.identity.path import PATH_WORDS, AgentPath
from scout.identity.problem import ReservedName, build_malformed, suggest
from scout.identity.reserved import RESERVED, check_name

# All work trees of a project, whatever their depth, are in this folder of its main repository.
WORK_TREES = "/.scout/worktrees/"


class Spelling(Record):
    """The three names of an agent. Only registered and spawned agents have a handle."""

    path: AgentPath
    address: Address
    birth_branch: str | None = None


def name_registered(
    owner: str,
    definition: str,
    workspace: str | None = None,
    profile: str | None = None,
    root_branch: str | None = None,
) -> Spelling:
    """Return the names of a registered agent; `root_branch` is the birth branch of a project's root agent."""
    name = check_name(fold_segment(definition))
    place = fold_segment(workspace) if workspace is not None else None
    persona = fold_segment(profile) if profile is not None else None
    last = ".".join(part for part in (name, place, persona) if part)
    if last in PATH_WORDS:
        teaches = f"it is a path word, as in `/user/{last}`"
        raise Refused(
            ReservedName(word=last, teaches=teaches, remedies=(suggest(f"@my-{last}", "a free name"),))
        )
    return Spelling(
        path=AgentPath.root(owner, "agent", last),
        address=Address(definition_id=name, workspace_qualifier=place, profile=persona),
        birth_branch=root_branch,
    )


def name_spawned(
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
        raise build_malformed(slug, 0, "a parent without a branch", "an agent that was born on a branch")
    branch = BirthBranch.parse(parent.birth_branch, root_branch).child(slug, cap)
    below = "-".join(branch.slugs)
    address = Address(definition_id=parent.address.definition_id, workspace_qualifier=below)
    if taken(address):
        longer = f"{below}-{_hash_short(branch.text)}"
        address = Address(definition_id=parent.address.definition_id, workspace_qualifier=longer)
    return Spelling(path=parent.path.sub(index), address=address, birth_branch=branch.text)


def name_worker(
    parent: Spelling, index: int, *, taken: Callable[[Address], bool] = lambda _: False
) -> Spelling:
    """Return the names of a child that works on its parent's branch."""
    definition, path = parent.address.definition_id, parent.path.sub(index)
    place = f"{parent.address.workspace_qualifier or 'w'}-{index}"
    address = Address(definition_id=definition, workspace_qualifier=place)
    if taken(address):
        address = Address(definition_id=definition, workspace_qualifier=f"{place}-{_hash_short(str(path))}")
    return Spelling(path=path, address=address)


def name_clone_workspace(definition: str, branch: str, folder: str) -> str:
    """Return the workspace of a second live registration of a definition from another folder."""
    return f"{fold_segment(definition)}-{fold_segment(branch)}-{_hash_short(folder)}"


def name_session_alias(definition: str, number: int) -> str:
    """Return the alias of an agent's second or later live session."""
    if number < 2:
        raise build_malformed(f"{definition}-{number}", 0, f"session number {number}", "2 or more")
    return f"{fold_segment(definition)}-{number}"


def name_worktree_folder(branch: BirthBranch, taken: Callable[[str], bool]) -> str:
    """Return the worktree folder of a branch: its slug, with a hash if the slug is taken."""
    slug = branch.slugs[-1] if branch.slugs else branch.root
    return f"{slug}-{_hash_short(branch.text)}" if taken(slug) else slug


def name_directory_agent(
    folder: str, parent_folder: str, configured: str | None, taken: Callable[[str], bool]
) -> str:
    """Return the configured or folder name; if unusable, prefix it with the parent folder's name."""
    name = fold_segment(configured) if configured else fold_segment(folder)
    if name not in RESERVED and name not in PATH_WORDS and not taken(name):
        return name
    return check_name(fold_segment(f"{fold(parent_folder)}-{name}"))


def list_import_names(name: str, system: str, source_id: str) -> tuple[str, ...]:
    """Return the names that an imported record may get, best first: its own, with its system, with a hash."""
    own = fold(name) or system
    return own, f"{own}-{system}", f"{own}-{system}-{_hash_short(source_id)}"


def name_operator(login: str) -> str:
    """Return the operator's user id: the folded login name, or `me` if it is empty or reserved."""
    user = fold(login)
    return user if user and user not in ("root", "operator") and user not in PATH_WORDS else "me"


def name_node(host: str) -> str:
    """Return a machine's name: its folded host name."""
    return fold_segment(host)


def _hash_short(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]
