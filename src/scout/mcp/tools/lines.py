"""Each tool result as one line of text."""

from typing import Any

from scout.base.codec import encode, to_plain
from scout.model.attention import Attention
from scout.model.card import Card
from scout.model.conversation import Receipt
from scout.model.mesh_receipt import MeshReceipt
from scout.model.session import Session
from scout.model.usage import Usage
from scout.policy.sentences import add_node, describe_receipt
from scout.protocol.access import AliasView
from scout.protocol.agents import AgentView, Registered, Resolved
from scout.protocol.asks import FlightView
from scout.protocol.observation import Topology
from scout.protocol.questions import QuestionView
from scout.protocol.request import Page
from scout.protocol.reservations import ReservationMade, ReservationView
from scout.protocol.talk import MessageLine
from scout.protocol.work import WorkView

_LONG = 200


def format_identity(facts: dict[str, Any]) -> str:
    return f"You are {facts.get('address', facts['kind'])}, role {facts['role']}."


def format_ask(facts: dict[str, Any]) -> str:
    wait = facts["next"]
    arguments = encode(wait["arguments"]).decode()
    where = f" on {facts['node']}" if "node" in facts else ""
    return f"{facts['flightId']} is {facts['state']}{where}; next: {wait['tool']} {arguments}"


def format_flight(facts: dict[str, Any]) -> str:
    if "output" in facts:
        return _shorten(facts["output"])
    if "error" in facts:
        return f"{facts['state']}: {facts['error']['message']}"
    way = describe_receipt(facts.get("mesh"))
    said = f"{facts['flightId']} is {facts['state']}: {facts.get('reason', facts['phase'])}"
    return f"{said}; the ask {way}" if way else said


def format_flight_state(view: FlightView) -> str:
    return f"{view.id} is {view.state}."


def format_topology(seen: Topology) -> str:
    live = sum(one.live for one in seen.items)
    known = sum(one.session_id is not None for one in seen.items)
    return f"{len(seen.items)} shown: {live} running, {known} known to Scout."


def format_message_receipt(receipt: Receipt) -> str:
    states = ", ".join(f"{one.target} {one.state}{_format_way(one.mesh)}" for one in receipt.deliveries)
    return f"{receipt.message_id} is stored{f': {states}' if states else ''}."


def _format_way(mesh: MeshReceipt | None) -> str:
    return f" ({describe_receipt(to_plain(mesh))})" if mesh is not None else ""


def format_inbox(page: Page[dict[str, Any]]) -> str:
    if not page.items:
        return "Your inbox is empty."
    first = page.items[0]
    body = _shorten(first.get("body", ""))
    return f"{_format_count(page, 'item')}; first from {first.get('from', '?')}: {body}"


def format_messages(page: Page[MessageLine]) -> str:
    last = page.items[-1] if page.items else None
    return f"{_format_count(page, 'message')}{f'; last: {_shorten(last.body)}' if last else ''}"


def format_channels(page: Page[dict[str, Any]]) -> str:
    return _format_list(page, "channel", [f"{one['channel']} ({one['unread']} unread)" for one in page.items])


def format_feed(page: Page[dict[str, Any]]) -> str:
    return _format_count(page, "record")


def format_resolution(found: Resolved) -> str:
    about = f" {_shorten(found.description)}" if found.description else ""
    return f"{found.address} is {found.canonical} ({found.rule}).{about}"


def format_agents(page: Page[AgentView]) -> str:
    return _format_list(page, "agent", [_format_agent(one) for one in page.items])


def _format_agent(one: AgentView) -> str:
    name = add_node(one.address, one.node if one.is_remote else None)
    return f"{name} ({_shorten(one.description)})" if one.description else name


def format_question(view: QuestionView) -> str:
    told = f": {_shorten(view.answer)}" if view.answer else f", to {view.responder_address}"
    return f"{view.id} is {view.state}{told}"


def format_work(view: WorkView) -> str:
    move = f"; next move: {view.next_move_address}" if view.next_move_address else ""
    return f"{view.id} ({_shorten(view.title)}) is {view.state}{move}"


def format_work_items(page: Page[WorkView]) -> str:
    return _format_list(page, "work item", [f"{one.id} {one.state}" for one in page.items])


def format_attention(item: Attention) -> str:
    return f"{item.id} is {item.state}{f': {_shorten(item.answer)}' if item.answer else ''}"


def format_need(facts: dict[str, Any]) -> str:
    return f"{facts['id']} is {facts['state']}{': ' + _shorten(facts['answer']) if 'answer' in facts else ''}"


def format_reserved(made: ReservationMade) -> str:
    return " ".join([f"{made.id} reserves {_join_globs(made)} until {made.expires_at}.", *made.notes])


def format_reservation(found: ReservationView) -> str:
    return f"{found.id} ({_join_globs(found)}) is {found.state}."


def format_reservations(page: Page[ReservationView]) -> str:
    return _format_list(page, "reservation", [f"{one.address}: {_join_globs(one)}" for one in page.items])


def _join_globs(one: ReservationView) -> str:
    return _shorten(", ".join(one.globs))


def format_usage(report: Usage) -> str:
    guess = ", estimated" if report.estimated else ""
    return f"{report.total_tokens} tokens of {report.category}{guess}."


def format_session(found: Session) -> str:
    return f"{found.id} ({found.harness}) is {found.state}."


def format_sessions(page: Page[Session]) -> str:
    return _format_list(page, "session", [f"{one.id} {one.state}" for one in page.items])


def format_card(made: Card) -> str:
    return f"{made.id} is {made.state}."


def format_registration(made: Registered) -> str:
    return f"{made.address} is {'new' if made.created else 'known'}."


def format_aliases(page: Page[AliasView]) -> str:
    return _format_list(page, "alias", [one.name for one in page.items])


def format_alias(found: AliasView) -> str:
    return f"{found.name} means {found.means}."


def _format_count(page: Page[Any], noun: str) -> str:
    more = " or more" if page.next else ""
    return f"{len(page.items)} {noun}{'' if len(page.items) == 1 else 's'}{more}"


def _format_list(page: Page[Any], noun: str, names: list[str]) -> str:
    return f"{_format_count(page, noun)}{': ' if names else ''}{_shorten(', '.join(names))}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONG else f"{line[: _LONG - 1]}…"
