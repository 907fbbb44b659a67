"""Memory and search agents: children that exist from the first ask to them, and what they may read."""

from typing import NamedTuple

from scout.base.refusal import Refused
from scout.broker.routing import registration, routes
from scout.broker.transaction.transaction import Transaction, build_subject
from scout.identity.lexer import lex
from scout.identity.name import PathName, RelativeName
from scout.identity.path import AgentPath, Kind
from scout.model.agent import Agent, AgentConfig, Lifecycle, PermissionProfile, ToolRole
from scout.model.ask import AskedChild
from scout.model.session import Session, get_native_id
from scout.policy.permit import Deed
from scout.policy.prompt import ParentContext
from scout.ports import Transcript
from scout.store.ledger import LAST

_KINDS = frozenset({Kind.MEMORY, Kind.SEARCH})
_SESSIONS = 20  # transcripts of the parent, newest first


class ParentFiles(NamedTuple):
    """What a memory or search agent learns about its parent, and the folders that it may read."""

    context: ParentContext
    folders: tuple[str, ...]


# -- creating ------------------------------------------------------------------------------------------


def ensure_named_child(tx: Transaction, address: str) -> None:
    """Create the memory or search agent that an address names, if only its parent exists."""
    if "/memory" not in address and "/search/" not in address:
        return
    path = _read_path(tx, address)
    if path is None or path.kind not in _KINDS or path.parent is None or tx.everybody.at_path(path):
        return
    parent = tx.everybody.at_path(path.parent)
    if parent is not None:
        _create_child(tx, parent, path)


def ensure_child(tx: Transaction, parent: Agent, child: AskedChild) -> Agent:
    """Return an agent's memory agent, created if needed, or a new search agent for it."""
    if child is AskedChild.SEARCH:
        return _create_child(tx, parent, parent.path.search(parent.next_search_index))
    path = parent.path.memory()
    return tx.everybody.at_path(path) or _create_child(tx, parent, path)


def _read_path(tx: Transaction, address: str) -> AgentPath | None:
    """Return the path that a text spells out, absolute or relative to the caller."""
    try:
        name = lex(address)
        if isinstance(name, RelativeName) and tx.caller.path is not None:
            base = tx.caller.path.parent if name.up else tx.caller.path
            return AgentPath.parse(f"{base}{name.suffix}") if base is not None else None
    except Refused:
        return None  # resolving it reports the error
    return name.path if isinstance(name, PathName) else None


def _create_child(tx: Transaction, parent: Agent, path: AgentPath) -> Agent:
    """Store the child under the parent's next index. It may only read, and has few tools."""
    tx.permit(Deed.ASK, build_subject(parent))
    if parent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, parent))
    word = "memory" if path.kind is Kind.MEMORY else "search agent"
    config = AgentConfig(
        description=f"{word} of {tx.address(parent.id)}", permission_profile=PermissionProfile.OBSERVE
    )
    return registration.register_agent_at(tx, path, config, tool_role=ToolRole.WORKER)


# -- reading -------------------------------------------------------------------------------------------


def find_parent_files(tx: Transaction, agent: Agent) -> ParentFiles | None:
    """Return what a memory or search agent may read of its parent; None for any other agent."""
    parent = tx.agent(agent.parent_id) if agent.kind in _KINDS else None
    if parent is None:
        return None
    transcripts, own = _list_transcripts(tx, parent), routes.get_folder(parent)
    context = ParentContext(
        address=tx.address(parent.id),
        description=parent.config.description,
        folder=own,
        transcripts=tuple(one.file for one in transcripts),
    )
    folders = (*(one.folder for one in transcripts), *((own,) if own else ()))
    return ParentFiles(context, tuple(dict.fromkeys(folders)))


def _list_transcripts(tx: Transaction, agent: Agent) -> list[Transcript]:
    sessions = tx.ledger.many(Session, "sessions_of", agent=agent.id, before=LAST, limit=_SESSIONS)
    found = [_locate_transcript(tx, one) for one in sessions]
    return [one for one in found if one is not None]


def _locate_transcript(tx: Transaction, session: Session) -> Transcript | None:
    harness, native = tx.services.harnesses.get(session.harness), get_native_id(session)
    return harness.locate_transcript(native, session.cwd) if harness is not None and native else None
