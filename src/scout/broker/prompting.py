"""What a program is told at the beginning of a turn: the message, and the contract around it."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from scout.broker import credentials, spending, turns
from scout.broker.turn import Turn
from scout.model.agent import Agent
from scout.model.conversation import Message, MessageKind
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint, permission_of
from scout.model.flight import Flight
from scout.model.question import Question
from scout.model.session import Session
from scout.model.work_item import WorkItem
from scout.policy.prompt import Contract, PromptContext, WorkContext, contract, cost, is_shell
from scout.policy.prompt import Turn as PromptTurn
from scout.ports import Door, Prompt, SessionSpec
from scout.protocol.tools import ROLE_TOOLS
from scout.store.ledger import LAST

__all__ = ["Told", "charge", "door", "told"]

_FEW = 20
_COMMAND_TOOLS = ("the `scout` command",)


class Told(NamedTuple):
    """What the program is given, and the contract that it holds, if any."""

    prompt: Prompt
    contract: Contract | None


def told(
    turn: Turn,
    agent: Agent,
    delivery: Delivery,
    endpoint: Endpoint,
    secret: str | None,
    *,
    more: Sequence[Message] = (),
) -> Told:
    """The message, those that are told with it, the contract around them, and how the program calls back.

    A plain program reads the message alone; the contract is in its environment.
    """
    message = turn.ledger.get(Message, delivery.message_id)
    body = "\n\n".join(one.body for one in (message, *more) if one is not None)
    facts = _facts(turn, agent, delivery, endpoint, secret)
    made, text = None, body
    if endpoint.harness != "echo":
        harness = endpoint.harness or ""
        context = _context(turn, agent, delivery, endpoint, message)
        if harness == "command":
            made = contract(context, harness)
            facts["SCOUT_CONTRACT"] = made.text
        else:
            made = contract(replace(context, body=body), harness)
            text = made.text
    environment = {name: value for name, value in facts.items() if value}
    run = turns.run_of(delivery)
    return Told(Prompt(delivery_id=run, text=text, body=body, environment=environment), made)


def door(turn: Turn, spec: SessionSpec) -> tuple[Door, dict[str, str]]:
    """How the program of a session calls back: with a credential of the session, in place of older ones."""
    agent = turn.need(Agent, "agent", spec.agent_id)
    session = turn.need(Session, "session", spec.session_id)
    credentials.revoke_of_session(turn, session, "its program is started anew")
    secret = credentials.for_agent(turn, agent, session_id=session.id, label="session")
    status = turn.world.status
    url = f"{status.url}/agents/{agent.tool_role}/{quote(str(agent.path), safe='')}/mcp"
    facts = {
        "SCOUT_AGENT": str(agent.path),
        "SCOUT_SESSION": session.id,
        "SCOUT_URL": status.url,
        "SCOUT_SOCKET": status.socket,
        "SCOUT_TOKEN": secret,
    }
    return Door(url=url, token=secret), {name: value for name, value in facts.items() if value}


def charge(turn: Turn, made: Contract | None, delivery: Delivery, endpoint: Endpoint) -> None:
    """Report what the contract of one attempt costs."""
    if made is not None:
        about = spending.about(delivery, endpoint.harness, endpoint.model)
        spending.reported(turn, cost(made, turn.mint("usg"), about, turn.now))


def _facts(
    turn: Turn, agent: Agent, delivery: Delivery, endpoint: Endpoint, secret: str | None
) -> dict[str, str | None]:
    return {
        "SCOUT_AGENT": str(agent.path),
        "SCOUT_SESSION": endpoint.session_id,
        "SCOUT_FLIGHT": delivery.flight_id,
        "SCOUT_DELIVERY": delivery.id,
        "SCOUT_URL": turn.world.status.url,
        "SCOUT_SOCKET": turn.world.status.socket,
        "SCOUT_TOKEN": secret,
        "SCOUT_MAY_REPEAT": "1" if delivery.may_repeat else None,
    }


def _context(
    turn: Turn, agent: Agent, delivery: Delivery, endpoint: Endpoint, message: Message | None
) -> PromptContext:
    shell = is_shell(endpoint.harness or "")
    return PromptContext(
        address=turn.address(agent.id),
        path=str(agent.path),
        role=agent.tool_role,
        turn=PromptTurn.STARTED,
        session=endpoint.session_id,
        project=agent.project_root,
        directory=agent.working_dir,
        branch=agent.birth_branch,
        permission=permission_of(agent, endpoint),
        conversation=delivery.conversation_id,
        sender=turn.address(delivery.sender),
        ask=delivery.ask_id,
        flight=delivery.flight_id,
        question=_question(turn, agent, message),
        work=_work(turn, delivery),
        may_repeat=delivery.may_repeat,
        tools=_COMMAND_TOOLS if shell else ROLE_TOOLS[agent.tool_role],
    )


def _question(turn: Turn, agent: Agent, message: Message | None) -> str | None:
    """The question that the message puts, if it is the agent's to answer."""
    if message is None or message.kind is not MessageKind.QUESTION:
        return None
    owed = turn.ledger.many(Question, "questions_owed", agent=agent.id, before=LAST, limit=_FEW)
    asked = [one for one in owed if one.asker_id == message.sender and message.body.startswith(one.body)]
    return asked[0].id if asked else None


def _work(turn: Turn, delivery: Delivery) -> WorkContext | None:
    """The work item that the message is about, or that its flight belongs to."""
    flight = turn.ledger.get(Flight, delivery.flight_id)
    item = turn.ledger.get(WorkItem, delivery.work_item_id or (flight.work_item_id if flight else None))
    if item is None:
        return None
    return WorkContext(
        id=item.id,
        title=item.title,
        state=item.state,
        owner=turn.address(item.owner_id),
        next_move_owner=turn.address(item.next_move_owner_id) or "nobody",
    )
