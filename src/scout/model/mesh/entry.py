"""Directory entries: what a node tells the others about one of its agents. No prompts, no folders."""

from scout.base.record import Record
from scout.base.time import Time
from scout.identity.path import AgentPath
from scout.model.agent import Lifecycle
from scout.model.status import AgentStatus

SIGNED_AS = b"scout-entry-1\0"


class RemoteInstance(Record, omit_defaults=True):
    """One way in which the agent is reached on its node."""

    endpoint_id: str
    harness: str | None = None
    model: str | None = None
    online: bool = False


class AgentEntry(Record, omit_defaults=True):
    """One agent of a node, as the others see it. `revision` rises with every change of the entry."""

    id: str
    node_id: str
    path: AgentPath
    definition_id: str | None = None
    workspace: str | None = None
    profile: str | None = None
    name: str | None = None
    description: str | None = None
    status: AgentStatus
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    instances: tuple[RemoteInstance, ...] = ()
    moved_to: str | None = None
    revision: int = 1
    updated_at: Time


class EntryRevision(Record):
    """The revision of an entry whose other fields are not read."""

    revision: int = 1


class SignedEntry(Record):
    """An entry in the directory: the exact bytes that were signed, as text, and the signature in hex."""

    body: str
    signature: str
