"""Publishing agents, so that clients of other systems reach them by A2A."""

from scout.base.refusal import Refused, Remedy
from scout.broker.operations.agents import find
from scout.broker.routing import routes
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction, build_subject, require_local
from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle, publish_agent, unpublish_agent
from scout.model.events.presence import AgentPublished, AgentUnpublished
from scout.model.problems.target import NotPublished
from scout.policy.permit import Deed
from scout.protocol.agents import Publication, PublishAgent, ShowPublication, UnpublishAgent
from scout.store.ledger import Ledger

_HARNESS = "a2a"  # it needs the same package


def publish(tx: Transaction, request: PublishAgent) -> Publication:
    """Publish an agent; safe to repeat."""
    agent = _find_local(tx, request.address)
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(routes.build_retired_refusal(tx, agent))
    probe = tx.services.ready.get(_HARNESS)
    if probe is not None and not probe.ready:
        raise Refused(routes.build_harness_refusal(tx, _HARNESS))
    published = publish_agent(agent, tx.now)
    if published is not agent:
        tx.record(AgentPublished, published, move="publish")
    return _build_view(tx, published, _list_notes(published))


def unpublish(tx: Transaction, request: UnpublishAgent) -> Publication:
    """Withdraw an agent; safe to repeat."""
    agent = _find_local(tx, request.address)
    withdrawn = unpublish_agent(agent, tx.now)
    if withdrawn is not agent:
        tx.record(AgentUnpublished, withdrawn, move="unpublish")
    return _build_view(tx, withdrawn)


def show_publication(tx: Transaction, request: ShowPublication) -> Publication:
    """Return what the card of a published agent tells, to a caller who may ask the agent."""
    agent = require_local(tx, find(tx, request.address))
    tx.permit(Deed.ASK, build_subject(agent))
    if not _is_published(agent):
        remedy = Remedy(operation="agent.publish", parameters={"address": str(agent.path)})
        raise Refused(NotPublished(address=tx.address(agent.id), remedies=(remedy,)))
    return _build_view(tx, agent)


def find_publication(ledger: Ledger, services: Services, path: AgentPath) -> Publication | None:
    """Return what everyone may read about the published agent at a path; None if there is none."""
    agent = ledger.one(Agent, "agent_at_path", path=str(path))
    return build_publication(services, agent, str(path)) if agent and _is_published(agent) else None


def _find_local(tx: Transaction, address: str) -> Agent:
    agent = require_local(tx, find(tx, address))
    tx.permit(Deed.ADMINISTER, build_subject(agent))
    return agent


def _is_published(agent: Agent) -> bool:
    return agent.published_at is not None and agent.lifecycle is not Lifecycle.RETIRED


def _list_notes(agent: Agent) -> tuple[str, ...]:
    """Return how a client gets in; without a grant, it does not."""
    return (
        "add a user for each client: scout user add NAME",
        "give it a token: scout token create --user NAME",
        f"let it ask: scout grant add ask --holder NAME --path {agent.path}",
    )


def _build_view(tx: Transaction, agent: Agent, notes: tuple[str, ...] = ()) -> Publication:
    return build_publication(tx.services, agent, tx.address(agent.id), notes)


def build_publication(
    services: Services, agent: Agent, address: str, notes: tuple[str, ...] = ()
) -> Publication:
    """Return an agent as its card tells about it. Its URL is made from its path, which never changes."""
    url = f"{services.status.url}/a2a{agent.path}"
    return Publication(
        address=address,
        path=str(agent.path),
        name=agent.config.name or agent.definition_id or str(agent.path).rpartition("/")[2],
        description=agent.config.description or "",
        url=url,
        card_url=f"{url}/.well-known/agent-card.json",
        published_at=agent.published_at,
        changed_at=agent.updated_at,
        notes=notes,
    )
