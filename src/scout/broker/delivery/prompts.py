"""The text a program gets at the start of a turn: the message, and the contract around it."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from scout.broker.delivery import turn_record
from scout.broker.effects import budget
from scout.broker.routing import children, routes
from scout.broker.routing.traces import build_turn_context
from scout.broker.transaction import admission
from scout.broker.transaction.transaction import Transaction
from scout.model.agent import Agent, PermissionProfile
from scout.model.conversation import Message, MessageKind
from scout.model.delivery import Delivery
from scout.model.endpoint import Endpoint, get_permission_profile
from scout.model.flight import Flight
from scout.model.question import Question
from scout.model.session import Session
from scout.model.usage import Counters
from scout.model.work_item import WorkItem
from scout.policy.host_text import Mail, build_mail_text
from scout.policy.prompt import (
    PromptContext,
    WorkContext,
    build_contract,
    build_plain_turn,
    build_turn_text,
    is_shell,
)
from scout.policy.prompt import Turn as PromptTurn
from scout.policy.usage import Overhead, report_overhead
from scout.ports import McpAccess, Prompt, SessionSpec
from scout.protocol.tools import ROLE_TOOLS
from scout.store.ledger import LAST

TRACEPARENT = "TRACEPARENT"
_FEW = 20
_COMMAND_TOOLS = ("the `scout` command",)


class PromptText(NamedTuple):
    """The prompt of one turn, and the parts of it that Scout added."""

    prompt: Prompt
    contract: str = ""
    line: str = ""
    context: str = ""


def build_prompt(
    tx: Transaction,
    agent: Agent,
    delivery: Delivery,
    endpoint: Endpoint,
    message: Message | None,
    *,
    secret: str | None = None,
    more: Sequence[Message] = (),
    mail: Sequence[Message] = (),
) -> PromptText:
    """Build the prompt: the message, messages batched with it, waiting mail, and how to call back.

    A plain program reads only the messages; the contract is in its environment.
    """
    harness = endpoint.harness or ""
    body = "\n\n".join(one.body for one in (message, *more) if one is not None)
    letters = build_mail_text([build_mail(tx, agent, one) for one in mail], harness) if mail else ""
    facts = _build_environment(tx, agent, delivery, endpoint, secret)
    context = _build_context(tx, agent, delivery, endpoint, message)
    can = tx.services.harnesses[harness].capabilities
    rules = build_contract(context, harness).text if can.calls_back else ""
    if can.plain_body and not rules:
        begin = build_plain_turn(context)
    else:
        begin = build_turn_text(replace(context, body=body), harness)
    first = body if can.plain_body else begin.text
    text = f"{first}\n\n{letters}" if letters else first
    if rules and can.plain_body:
        rules = f"{rules}\n{begin.line}\n"
        facts["SCOUT_CONTRACT"] = rules
    environment = {name: value for name, value in facts.items() if value}
    whole = text if can.plain_body else body
    prompt = Prompt(
        delivery_id=turn_record.build_run_id(delivery), text=text, body=whole, environment=environment
    )
    line = "" if can.plain_body else begin.line
    return PromptText(prompt, rules, line, "\n".join(filter(None, (begin.context, letters))))


def is_own_user(tx: Transaction, agent: Agent, sender: str) -> bool:
    """Whether a sender is the agent's own user."""
    person = tx.agent(sender)
    return person is not None and person.is_person and person.owner == agent.owner


def describe_sender(tx: Transaction, agent: Agent, sender: str) -> str:
    """Return the sender as the agent reads it: "your user", or an address."""
    return "your user" if is_own_user(tx, agent, sender) else tx.address(sender)


def build_mail(tx: Transaction, agent: Agent, message: Message) -> Mail:
    """Return a message as mail for an agent."""
    return Mail(
        sender=tx.address(message.sender),
        message_id=message.id,
        body=message.body,
        by_user=is_own_user(tx, agent, message.sender),
        for_user=is_for_user(tx, agent.id, message),
    )


def is_for_user(tx: Transaction, agent_id: str, message: Message) -> bool:
    """Whether an agent gets a message only because it was written to its user."""
    persons = [one for one in map(tx.agent, message.target_agents) if one is not None and one.is_person]
    return bool(persons) and agent_id not in message.target_agents


def issue_mcp_access(tx: Transaction, spec: SessionSpec) -> tuple[McpAccess, dict[str, str], str]:
    """Replace a session's credentials; return its MCP access, environment and contract."""
    agent = tx.need(Agent, "agent", spec.agent_id)
    session = tx.need(Session, "session", spec.session_id)
    admission.revoke_session_tokens(tx, session, "its program is started again")
    secret = admission.create_agent_token(tx, agent, session_id=session.id, label="session")
    status = tx.services.status
    url = f"{status.url}/agents/{agent.tool_role}/{quote(str(agent.path), safe='')}/mcp"
    facts = {
        "SCOUT_AGENT": str(agent.path),
        "SCOUT_SESSION": session.id,
        "SCOUT_URL": status.url,
        "SCOUT_SOCKET": status.socket,
        "SCOUT_TOKEN": secret,
    }
    rules = build_contract(
        _build_session_context(tx, agent, session.harness, session.id, spec.permission), session.harness
    )
    return (
        McpAccess(url=url, token=secret),
        {name: value for name, value in facts.items() if value},
        rules.text,
    )


def charge_overhead(tx: Transaction, made: PromptText, delivery: Delivery, endpoint: Endpoint) -> None:
    """Report the tokens that Scout adds to one attempt, each part under its value class."""
    about = budget.build_usage_subject(delivery, endpoint.harness, endpoint.model)
    session = tx.get(Session, endpoint.session_id)
    known = session is not None and session.contract_at is not None
    rules = Overhead.WRAPPING if known else Overhead.ONBOARDING
    again = tx.services.harnesses[endpoint.harness or ""].capabilities.plain_body or not known
    parts = {
        Overhead.WAKE_PROMPT: made.line,
        rules: made.contract if again else "",
        Overhead.SUMMARY: made.context,
        Overhead.DIAGNOSTIC: made.prompt.body if delivery.sender in tx.services.own_agents else "",
    }
    given = {what: text for what, text in parts.items() if text}
    for number, (what, text) in enumerate(given.items()):
        counters = Counters(dispatch_attempts=0 if number else 1)
        report = report_overhead(tx.mint("usg"), about, what, tx.now, prompt=text, counters=counters)
        budget.record_usage(tx, report)


def _build_environment(
    tx: Transaction, agent: Agent, delivery: Delivery, endpoint: Endpoint, secret: str | None
) -> dict[str, str | None]:
    return {
        "SCOUT_AGENT": str(agent.path),
        "SCOUT_SESSION": endpoint.session_id,
        "SCOUT_FLIGHT": delivery.flight_id,
        "SCOUT_DELIVERY": delivery.id,
        "SCOUT_URL": tx.services.status.url,
        "SCOUT_SOCKET": tx.services.status.socket,
        "SCOUT_TOKEN": secret,
        "SCOUT_MAY_REPEAT": "1" if delivery.may_repeat else None,
        TRACEPARENT: build_turn_context(tx, delivery),
    }


def _build_session_context(
    tx: Transaction, agent: Agent, harness: str, session_id: str | None, permission: PermissionProfile
) -> PromptContext:
    """Build the part of the context that holds for a whole session."""
    files = children.find_parent_files(tx, agent) if agent.parent_id is not None else None
    return PromptContext(
        address=tx.address(agent.id),
        path=str(agent.path),
        role=agent.tool_role,
        turn=PromptTurn.STARTED,
        instructions=agent.config.system_prompt,
        session=session_id,
        project=agent.project_root,
        directory=routes.get_folder(agent),
        branch=agent.birth_branch,
        permission=permission,
        tools=_COMMAND_TOOLS if is_shell(harness) else ROLE_TOOLS[agent.tool_role],
        parent=files.context if files is not None else None,
    )


def _build_context(
    tx: Transaction, agent: Agent, delivery: Delivery, endpoint: Endpoint, message: Message | None
) -> PromptContext:
    profile = get_permission_profile(agent, endpoint)
    standing = _build_session_context(tx, agent, endpoint.harness or "", endpoint.session_id, profile)
    return replace(
        standing,
        conversation=delivery.conversation_id,
        sender=describe_sender(tx, agent, delivery.sender),
        ask=delivery.ask_id,
        flight=delivery.flight_id,
        question=_find_question(tx, agent, message),
        work=_find_work(tx, delivery),
        may_repeat=delivery.may_repeat,
    )


def _find_question(tx: Transaction, agent: Agent, message: Message | None) -> str | None:
    """Return the id of the question in the message, if the agent has to answer it."""
    if message is None or message.kind is not MessageKind.QUESTION:
        return None
    owed = tx.ledger.many(Question, "questions_owed", agent=agent.id, before=LAST, limit=_FEW)
    asked = [one for one in owed if one.asker_id == message.sender and message.body.startswith(one.body)]
    return asked[0].id if asked else None


def _find_work(tx: Transaction, delivery: Delivery) -> WorkContext | None:
    """Return the work item of the message or of its flight."""
    flight = tx.get(Flight, delivery.flight_id)
    item = tx.get(WorkItem, delivery.work_item_id or (flight.work_item_id if flight else None))
    if item is None:
        return None
    return WorkContext(
        id=item.id,
        title=item.title,
        state=item.state,
        owner=tx.address(item.owner_id),
        next_move_owner=tx.address(item.next_move_owner_id) or "nobody",
    )
