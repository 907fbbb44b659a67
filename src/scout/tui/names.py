"""The names of agents, channels and nodes in events, by id. Each is requested once; others are short ids."""

from scout.base.refusal import Refused
from scout.client.client import Scout
from scout.policy.sentences import add_node, rephrase
from scout.protocol.agents import AgentView, Identity, ShowAgent, Who
from scout.protocol.channels import GetConversation
from scout.protocol.mesh import ListMeshNodes
from scout.tui.text import shorten_id

_MOST = 5000  # names that are kept
_AT_ONCE = 50
_OWN_KINDS = ("system", "broker")
_BROKER = "/system/broker"


class NameBook:
    """Names that are known so far. `wanted` are those that a sentence lacked."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {"system": "scout"}
        self._own = ""
        self.wanted = set[str]()

    def learn(self, ident: str, name: str) -> None:
        """Keep a name; the oldest are dropped where there are too many."""
        self._known[ident] = name
        while len(self._known) > _MOST:
            self._known.pop(next(iter(self._known)))

    def agent(self, ident: str) -> str:
        return self._find(ident)

    def conversation(self, ident: str) -> str:
        found = self._find(ident)
        return "" if found == shorten_id(ident) else found

    def node(self, ident: str) -> str:
        return self._find(ident)

    def _find(self, ident: str) -> str:
        if ident not in self._known:
            self.wanted.add(ident)
        return self._known.get(ident) or shorten_id(ident)

    def say_you(self, text: str) -> str:
        """Replace the reader's address in a sentence of Scout."""
        return rephrase(text, self._own) if self._own else text

    def name(self, address: str | None, node: str | None = None) -> str:
        """Return an address, and its node if that is another one. The reader is `you`, the broker `scout`."""
        if address == _BROKER:
            return "scout"
        return "you" if address and address == self._own else add_node(address or "", node)

    async def begin(self, scout: Scout, me: Identity) -> None:
        """Learn who the reader is, and the newest agents."""
        self._own = me.address or ""
        if me.agent_id:
            self.learn(me.agent_id, "you")
        for agent in (await scout.call(Who(all=True, limit=200))).items:
            if agent.id != me.agent_id:
                self.learn(agent.id, _choose_name(agent))

    async def look_up(self, scout: Scout) -> bool:
        """Request the names that were wanted; whether there are new ones."""
        wanted, self.wanted = list(self.wanted)[:_AT_ONCE], set[str]()
        for ident in wanted:
            self.learn(ident, await _find_name(scout, ident))
        return bool(wanted)


async def _find_name(scout: Scout, ident: str) -> str:
    """Return the name of an agent or channel; a record that the reader may not see has none."""
    try:
        if ident.startswith("cnv_"):
            return (await scout.call(GetConversation(conversation_id=ident))).name or shorten_id(ident)
        if ident.startswith("nod_"):
            nodes = (await scout.call(ListMeshNodes(all=True))).items
            return next((one.name for one in nodes if one.id == ident), shorten_id(ident))
        agent = await scout.call(ShowAgent(address=ident))
    except Refused:
        return shorten_id(ident)
    return _choose_name(agent)


def _choose_name(agent: AgentView) -> str:
    name = "scout" if agent.kind in _OWN_KINDS else agent.address
    return add_node(name, agent.node if agent.is_remote else None)
