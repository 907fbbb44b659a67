"""Events as sentences: `08:41 you → @hudson: hello all`. `--json` prints the log itself."""

from __future__ import annotations

from scout.cli.connection.call import ROUTES
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import cut, format_local_time, get_columns, paint, shorten_id
from scout.policy.sentences import add_node, build_sentence, find_node, rephrase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from scout.cli.connection.call import DaemonCall


class Names:
    """Names of the agents and conversations in events, by id; each is requested once."""

    def __init__(self, line: DaemonCall) -> None:
        self._line = line
        self._known: dict[str, str] = {}
        self._own = ""

    def agent(self, ident: str) -> str:
        """Return an agent's address; the caller is `you`, and the broker is `scout`."""
        if not self._known:
            self._known["system"] = "scout"
            me = self._ask(ROUTES["whoami"], {})
            self._known[str(me.get("agentId"))] = "you"
            self._own = str(me.get("address") or "")
            for one in self._ask(ROUTES["who"], {"limit": 200}).get("items", ()):
                self._known.setdefault(one["id"], one.get("address") or one["minimal"])
        if ident not in self._known:
            self._known[ident] = _name_agent(self._ask(ROUTES["show"], {"address": ident}), ident)
        return self._known[ident]

    def say_you(self, sentence: str) -> str:
        """Replace the reader's address in a sentence, for example the reason of a cancelled flight."""
        return rephrase(sentence, self._own) if self._own else sentence

    def conversation(self, ident: str) -> str:
        """Return a channel's name; empty for other conversations."""
        if ident not in self._known:
            found = self._ask(ROUTES["conversation.show"], {"conversationId": ident})
            self._known[ident] = str(found.get("name") or "")
        return self._known[ident]

    def node(self, ident: str) -> str:
        """Return the name of a node."""
        if ident not in self._known:
            for one in self._ask("GET /v1/mesh/nodes", {"all": True}).get("items", ()):
                self._known[one["id"]] = one["name"]
        return self._known.setdefault(ident, shorten_id(ident))

    def _ask(self, route: str, parameters: dict[str, Any]) -> dict[str, Any]:
        try:
            return dict(self._line.call(route, parameters))
        except RefusalError:
            return {}  # records the caller may not see have no name


def _name_agent(found: dict[str, Any], ident: str) -> str:
    if found.get("kind") in ("system", "broker"):
        return "scout"
    name = str(found.get("address") or found.get("minimal") or shorten_id(ident))
    return add_node(name, find_node(found))


def format_event(event: dict[str, Any], names: Names) -> str:
    """Format one event as a line, cut to the terminal."""
    when = format_local_time(event.get("time"))
    sentence, ident = build_sentence(event, names)
    reference = f"  {paint(shorten_id(ident), 'dim')}" if ident else ""
    return cut(f"{paint(when, 'dim')} {names.say_you(sentence)}{reference}", get_columns())
