"""AgentNames of the agents in events, by id: each is asked for once in a document."""

from collections.abc import Iterable

from scout.base.refusal import Refused
from scout.model.events.envelope import Event
from scout.protocol.agents import ShowAgent, WhoAmI
from scout.protocol.scout import Scout
from scout.web.html import Html, tag
from scout.web.parts import shorten, show_address

# An agent's address never changes, so each browser session asks for it once.
_FOUND: dict[tuple[str, str], str] = {}
_KEPT = 5000
_FIELDS = ("target", "sender", "agent_id", "requester_id", "owner_id")


class AgentNames:
    """The addresses of agents. The reader is `you`, and the broker is `scout`."""

    def __init__(self, known: dict[str, str]) -> None:
        self._known = known

    def show(self, ident: str | None) -> Html:
        """Return an agent's address as a link; words for the reader and the broker."""
        name = self.get(ident)
        return show_address(name) if name.startswith(("@", "/")) else tag("span", name)

    def get(self, ident: str | None) -> str:
        return self._known.get(ident or "", shorten(ident) if ident else "scout")


async def find_names(scout: Scout, events: Iterable[Event]) -> AgentNames:
    """Return the names of every agent that the events mention."""
    me = await scout.call(WhoAmI())
    known = {"system": "scout", str(me.agent_id): "you"}
    for ident in dict.fromkeys(one for event in events for one in _list_ids(event)):
        if ident not in known:
            known[ident] = await _find_name(scout, str(me.token_id), ident)
    return AgentNames(known)


def _list_ids(event: Event) -> list[str]:
    record = getattr(event.payload, "record", event.payload)
    found = [
        str(ref).partition(":")[2] for ref in (event.source, event.target) if str(ref).startswith("agent:")
    ]
    found += [getattr(record, name, None) or "" for name in _FIELDS]
    found += [getattr(record, "id", "") if str(getattr(record, "id", "")).startswith("agt_") else ""]
    return [one for one in (*found, *event.metadata.target_agents) if one.startswith("agt_")]


async def _find_name(scout: Scout, reader: str, ident: str) -> str:
    if (name := _FOUND.get((reader, ident))) is not None:
        return name
    try:
        found = await scout.call(ShowAgent(address=ident))
    except Refused:
        return shorten(ident)  # records that the reader may not see have no name
    if len(_FOUND) >= _KEPT:
        _FOUND.clear()
    name = "scout" if found.kind in ("system", "broker") else found.address
    return _FOUND.setdefault((reader, ident), name)
