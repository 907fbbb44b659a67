"""The names of agents and channels in events, by id. Each is requested once; unknown ones are short ids."""

from scout.base.refusal import Refused
from scout.client.client import Scout
from scout.policy.sentences import rephrase
from scout.protocol.agents import AgentView, Identity, ShowAgent, Who
from scout.protocol.channels import GetConversation
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

    def _find(self, ident: str) -> str:
        if ident not in self._known:
            self.wanted.add(ident)
        return self._known.get(ident) or shorten_id(ident)

    def say_you(self, text: str) -> str:
        """Replace the reader's address in a sentence of Scout."""
        return rephrase(text, self._own) if self._own else text

    def name(self, address: str | None) -> str:
        """Return an address; the reader is `you`, and the broker is `scout`."""
        if address == _BROKER:
            return "scout"
        return "you" if address and address == self._own else address or ""

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
        agent = await scout.call(ShowAgent(address=ident))
    except Refused:
        return shorten_id(ident)
    return _choose_name(agent)


def _choose_name(agent: AgentView) -> str:
    return "scout" if agent.kind in _OWN_KINDS else agent.address
