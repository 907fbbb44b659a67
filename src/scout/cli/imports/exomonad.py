"""ExoMonad: the folder `.exo` of a project, with its agents, their branches and their inboxes."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.cli.connection.refusal import RefusalError
from scout.cli.imports.source import Source, get_text, is_object, read_json, read_lines
from scout.protocol.imports.records import ImportedAgent, ImportedConversation, ImportedMessage
from scout.tree.git.repository import find_repository, read_small_text

_EXO = ".exo"
_SMALL = 64 * 1024  # bytes of an identity file
_MOST = 10_000  # folders
_ROOT = "root"
_PEOPLE = frozenset({"user", "human", "operator"})
_ROLES = {"tl": "tl", "dev": "dev", "worker": "worker", "root": "tl"}


def read_exomonad(path: Path) -> Source:
    """Read the agents of a project; PATH is the project's folder or its `.exo`."""
    top = path.parent if path.name == _EXO else path
    if not (top / _EXO).is_dir():
        raise RefusalError.of("bad_request", f"{path} has no folder {_EXO}", field="path")
    reader = _Reader(top.resolve())
    reader.read_agents()
    return reader.build()


class _Reader:
    """What the folders say of each agent, by its name."""

    def __init__(self, project: Path) -> None:
        self.source = Source()
        self.project = project
        self.agents: dict[str, dict[str, Any]] = {}
        self.broken: set[str] = set()
        self.ids: dict[str, str] = {}

    # -- folders -----------------------------------------------------------------------------------

    def read_agents(self) -> None:
        """Read the identity of every folder; its file first, then the older one, then its branch."""
        for kind in ("agents", "worktrees"):
            for folder in self._list_folders(kind):
                found = self._read_identity(folder)
                born = get_text(found, "birth_branch") or self._read_branch(folder)
                known = self.agents.setdefault(folder.name, {})
                facts = {"birth_branch": born} if born else {}
                place = {"folder": str(folder)} if kind == "worktrees" else {}
                known.update({**found, **facts, **place, **known})

    def _list_folders(self, kind: str) -> Iterator[Path]:
        """Yield the folders of one kind. Links are not followed."""
        top = self.project / _EXO / kind
        if top.is_symlink() or not top.is_dir():
            return
        names = sorted(one for one in top.iterdir() if not one.name.startswith("."))
        for folder in names[:_MOST]:
            if folder.is_symlink():
                self.source.skip("folder", f"{kind}/{folder.name}", "it is a link, which is not followed")
            elif folder.is_dir():
                yield folder
        self.source.leave_out("folder", f"only the first {_MOST} are read", max(0, len(names) - _MOST))

    def _read_identity(self, folder: Path) -> dict[str, Any]:
        file = folder / "identity.json"
        if not file.exists():
            return {}
        try:
            found = read_json(file, _SMALL)
        except ValueError as problem:
            self.source.skip("identity file", folder.name, str(problem))
            self.broken.add(folder.name)
            return {}
        return found if is_object(found) else {}

    def _read_branch(self, folder: Path) -> str | None:
        older = folder / ".birth_branch"
        text = None if older.is_symlink() else read_small_text(older)
        if text and text.strip():
            return text.strip()
        repository = find_repository([str(folder)])
        return repository.branch if repository is not None else None

    # -- what is sent ------------------------------------------------------------------------------

    def build(self) -> Source:
        """Return everything in the form that all systems share. An agent is known by its birth branch."""
        root = self._find_root_branch()
        self.ids[_ROOT] = root
        self.source.agents.append(
            ImportedAgent(
                id=root,
                name=self.project.name,
                birth_branch=root,
                root_branch=root,
                project_root=str(self.project),
                tool_role="tl",
            )
        )
        branches = {one["birth_branch"] for one in self.agents.values() if one.get("birth_branch")}
        for name, facts in self.agents.items():
            if get_text(facts, "birth_branch", "parent_branch") is not None:
                self._build_agent(name, facts, root, branches | {root})
            elif name not in self.broken:
                self.source.skip("agent", name, "it has neither an identity file nor a branch")
        self.source.messages = self._read_messages().__iter__
        self._count_events()
        return self.source

    def _find_root_branch(self) -> str:
        """Return the branch that the tree grew from: a parent's that no agent was born on."""
        born = {one.get("birth_branch") for one in self.agents.values()}
        above = [get_text(one, "parent_branch") for one in self.agents.values()]
        roots = sorted({one for one in above if one and one not in born}, key=len)
        if roots:
            return roots[0]
        repository = find_repository([str(self.project)])
        return (repository.branch if repository is not None else None) or "main"

    def _build_agent(self, name: str, facts: dict[str, Any], root: str, branches: set[str]) -> None:
        born = get_text(facts, "birth_branch")
        if born == root:
            self.ids[name] = root
            return
        own = born is not None and born != get_text(facts, "parent_branch")
        ident = born if own and born is not None else f"{get_text(facts, 'parent_branch') or root}/{name}"
        if len(ident) > 500 or ident in self.ids.values():
            self.source.skip("agent", name, f"another agent has the branch {ident[:60]!r}")
            return
        parent = _find_parent(born, facts, root, branches) if own else get_text(facts, "parent_branch")
        shown = get_text(facts, "display_name")
        self.ids[name] = ident
        self.source.agents.append(
            ImportedAgent(
                id=ident,
                name=get_text(facts, "slug", "agent_name") or name,
                parent=parent if parent in branches else root,
                birth_branch=born if own else None,
                root_branch=root,
                project_root=str(self.project),
                working_dir=self._find_folder(facts),
                tool_role=_ROLES.get(str(facts.get("role") or facts.get("agent_type"))),
                config={"name": shown} if shown else {},
            )
        )

    def _find_folder(self, facts: dict[str, Any]) -> str:
        """Return the work tree of an agent; a folder outside of the project is not believed."""
        given = get_text(facts, "working_dir")
        if given is not None:
            folder = (self.project / given).resolve()
            if folder.is_relative_to(self.project):
                return str(folder)
        return get_text(facts, "folder") or str(self.project)

    # -- messages ----------------------------------------------------------------------------------

    def _read_messages(self) -> list[ImportedMessage]:
        found: list[ImportedMessage] = []
        for name, file in self._list_inboxes():
            try:
                entries = read_json(file)
            except ValueError as problem:
                self.source.skip("inbox", name, str(problem))
                continue
            several: list[Any] = entries if isinstance(entries, list) else []  # pyright: ignore[reportUnknownVariableType] (JSON)
            found += self._read_inbox(name, several)
        return sorted(found, key=lambda one: one.created_at or 0)

    def _list_inboxes(self) -> Iterator[tuple[str, Path]]:
        top = self.project / _EXO
        for file in (*top.glob("inboxes/*.json"), *top.glob("teams/*/inboxes/*.json")):
            yield file.stem, file
        for file in top.glob("agents/*/inbox.json"):
            yield file.parent.name, file

    def _read_inbox(self, name: str, entries: list[Any]) -> Iterator[ImportedMessage]:
        owner = self._find_agent(name)
        for number, entry in enumerate(entries, 1):
            text = get_text(entry, "text", "summary") if is_object(entry) else None
            sender = self._find_agent(str(entry.get("from"))) if is_object(entry) else None
            if text is None:
                self.source.skip("message", f"{name} {number}", "it has no text")
            elif owner is None or sender is None:
                missing = name if owner is None else str(entry.get("from"))
                self.source.skip(
                    "message", f"{name} {number}", f"{missing[:60]!r} is no agent of this project"
                )
            else:
                yield self._build_message(owner, sender, text, entry)

    def _find_agent(self, name: str) -> str | None:
        if name in self.ids:
            return self.ids[name]
        if name in self.ids.values():
            return name
        return "operator" if name in _PEOPLE else None

    def _build_message(self, owner: str, sender: str, text: str, entry: dict[str, Any]) -> ImportedMessage:
        """Return a message; its id is made from what it says, because it has none."""
        place = "dm:" + ":".join(sorted((owner, sender)))
        if not any(one.id == place for one in self.source.conversations):
            pair = (owner, sender)
            self.source.conversations.append(ImportedConversation(id=place, kind="dm", members=pair))
        stamp = str(entry.get("timestamp"))
        digest = hashlib.sha256(f"{place}\0{sender}\0{stamp}\0{text}".encode("utf-8", "replace"))
        return ImportedMessage(
            id=digest.hexdigest(),
            conversation=place,
            sender=sender,
            body=text,
            unread=entry.get("read") is False,
            created_at=_read_time(entry.get("timestamp")),
        )

    def _count_events(self) -> None:
        for file in (self.project / _EXO).glob("events/*.jsonl"):
            count = sum(1 for _ in read_lines(file))
            self.source.leave_out("event", "its own log stays with ExoMonad", count)


def _find_parent(born: str | None, facts: dict[str, Any], root: str, branches: set[str]) -> str:
    """Return the nearest branch above that an agent was born on; the root, if there is none."""
    above = (born or "").rpartition(".")[0]
    while above and above not in branches:
        above = above.rpartition(".")[0]
    return above or get_text(facts, "parent_branch") or root


def _read_time(value: object) -> Time | None:
    try:
        return Time.parse(value) if isinstance(value, str) else None
    except Refused:
        return None
