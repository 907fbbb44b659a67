"""Events as sentences, with links to what they are about."""

from collections.abc import Callable

from scout.base.codec import to_plain
from scout.model.events.envelope import Event
from scout.policy.sentences import build_parts
from scout.web.html import Html, join, tag
from scout.web.names import EventNames
from scout.web.parts import cut, link_conversation, link_flight, show_address

_LONGEST = 160  # characters of one part


def write_sentence(event: Event, names: EventNames) -> Html:
    """Return an event as one sentence."""
    parts = build_parts(to_plain(event), names)
    return join(*(_write_part(*part) for part in parts))


def _write_part(words: str, kind: str, ident: str) -> Html | str:
    shown = words if len(words) <= _LONGEST else cut(words, _LONGEST)
    link = _LINKS.get(kind)
    return link(ident, shown) if link is not None and ident else shown


def _link_agent(_ident: str, name: str) -> Html:
    address, _, node = name.partition(" on ")
    return show_address(address, node or None) if name.startswith(("@", "/")) else tag("span", name)


def _link_work(ident: str, words: str) -> Html:
    return tag("a", words, href=f"/work/{ident}")


def _link_item(_ident: str, words: str) -> Html:
    return tag("a", words, href="/inbox")


_LINKS: dict[str, Callable[[str, str], Html]] = {
    "agent": _link_agent,
    "conversation": link_conversation,
    "flight": link_flight,
    "work_item": _link_work,
    "attention": _link_item,
}
