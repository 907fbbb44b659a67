"""The names of agents, channels and nodes in events, by id: each is asked for once in a browser session."""

from collections.abc import Iterable

from scout.base.codec import to_plain
from scout.base.refusal import Refused
from scout.model.events.envelope import Event
from scout.policy.sentences import add_node, build_parts
from scout.protocol.agents import ShowAgent, WhoAmI
from scout.protocol.channels import GetConversation
from scout.protocol.mesh import ListMeshNodes
from scout.protocol.scout import Scout
from scout.web.parts import shorten

# An agent's address and a channel's name never change.
_FOUND: dict[tuple[str, str], str] = {}
_KEPT = 5000


class EventNames:
    """The names that are known; the reader is `you`, and the broker is `scout`.

    `lacking`: ids that a sentence named and that have no name yet.
    """

    def __init__(self, known: dict[str, str]) -> None:
        self._known = known
        self.lacking = dict[str, None]()

    def agent(self, ident: str) -> str:
        return self._find(ident, shorten(ident))

    def conversation(self, ident: str) -> str:
        return self._find(ident, "")

    def node(self, ident: str) -> str:
        return self._find(ident, shorten(ident))

    def _find(self, ident: str, otherwise: str) -> str:
        if ident not in self._known:
            self.lacking[ident] = None
        return self._known.get(ident, otherwise)


async def find_names(scout: Scout, events: Iterable[Event]) -> EventNames:
    """Return the names of every agent and channel that the sentences of these events name."""
    me = await scout.call(WhoAmI())
    known = {"system": "scout", str(me.agent_id): "you"}
    lacking = EventNames(known)
    for event in events:
        build_parts(to_plain(event), lacking)
    for ident in lacking.lacking:
        known[ident] = await _find_name(scout, str(me.token_id), ident)
    return EventNames(known)


async def _find_name(scout: Scout, reader: str, ident: str) -> str:
    if (name := _FOUND.get((reader, ident))) is not None:
        return name
    try:
        name = await _request_name(scout, ident)
    except Refused:  # records that the reader may not see have no name
        return "" if ident.startswith("cnv_") else shorten(ident)
    if ident.startswith("nod_") or " on " in name:  # a node may be renamed
        return name
    if len(_FOUND) >= _KEPT:
        _FOUND.clear()
    return _FOUND.setdefault((reader, ident), name)


async def _request_name(scout: Scout, ident: str) -> str:
    if ident.startswith("cnv_"):
        return (await scout.call(GetConversation(conversation_id=ident))).name or ""
    if ident.startswith("nod_"):
        nodes = (await scout.call(ListMeshNodes(all=True))).items
        return next((one.name for one in nodes if one.id == ident), shorten(ident))
    found = await scout.call(ShowAgent(address=ident))
    name = "scout" if found.kind in ("system", "broker") else found.address
    return add_node(name, found.node if found.is_remote else None)
