"""The seeds' field names: records are sent with both names, and read with either."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import msgspec

from scout.base.codec import decode, to_plain
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.identity.address import Address
from scout.model.agent import Agent, derive_project_id
from scout.model.ask import Ask
from scout.model.conversation import Conversation, Message
from scout.model.endpoint import Endpoint
from scout.model.flight import Flight
from scout.model.session import Session
from scout.model.work_item import WorkItem

T = TypeVar("T", bound=Record)

# Our wire name → the name that other integrations use for the same field.
SYNONYMS = {
    "harness": "harnessType",
    "node": "authorityNode",
    "workspace": "workspaceQualifier",
    "projectRoot": "projectPath",
    "projectId": "workspaceId",
    "askId": "invocationId",
    "workItemId": "workId",
    "state": "status",
}

# A record's own id under the name by which other records refer to it.
OWN_IDS: dict[type[Record], tuple[str, ...]] = {
    Agent: ("agentId",),
    Endpoint: ("endpointId",),
    Session: ("sessionId",),
    Conversation: ("conversationId",),
    Message: ("messageId",),
    Ask: ("askId", "invocationId"),
    Flight: ("flightId",),
    WorkItem: ("workItemId", "workId"),
}


def get_logical_agent_id(agent: Agent) -> str:
    """Return the base handle (definition, workspace, profile), or the path of an agent without a handle."""
    if agent.definition_id is None:
        return str(agent.path)
    return Address(
        definition_id=agent.definition_id, workspace_qualifier=agent.workspace, profile=agent.profile
    ).canonical


def to_wire(record: Record, **beside: Any) -> dict[str, Any]:
    """Return the record as sent, with the seeds' names; `beside` adds fields such as a status."""
    fields: dict[str, Any] = {**to_plain(record), **list_derived(record), **beside}
    also = {seed: fields[own] for own, seed in SYNONYMS.items() if own in fields}
    own_id = dict.fromkeys(OWN_IDS.get(type(record), ()), fields.get("id"))
    return {**also, **own_id, **fields}


def from_wire(kind: type[T], data: object) -> T:
    """Decode a record from fields under either name."""
    fields = decode(data, dict[str, Any])
    known = {field.encode_name for field in msgspec.structs.fields(kind)}
    return decode(restore_names(fields, known, OWN_IDS.get(kind, ())), kind)


def restore_names(
    fields: Mapping[str, Any], known: Collection[str], own_ids: Collection[str] = ()
) -> dict[str, Any]:
    """Replace the seeds' names with ours where ours is known here and theirs is not."""
    pairs = [(seed, own) for own, seed in SYNONYMS.items()] + [(name, "id") for name in own_ids]
    renamed = dict(fields)
    for seed, own in pairs:
        if seed in renamed and seed not in known and own in known:
            value = renamed.pop(seed)
            if renamed.setdefault(own, value) != value:
                problem = f"{own} and {seed} are the same field and have different values"
                raise Refused(BadRequest(problem=problem, field=seed))
    return renamed


def list_derived(record: Record) -> dict[str, Any]:
    """Return what is sent with a record beyond its fields, under our names."""
    if not isinstance(record, Agent):
        return {}
    root = record.project_root
    project = {"projectId": derive_project_id(record.node, root)} if root is not None else {}
    return {"logicalAgentId": get_logical_agent_id(record), **project}
