"""One part of an import in its transaction: what each record refers to, and how its outcome is told."""

from typing import TypeVar

from scout.base.ids import parse_prefix
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.broker.routing.users import DIRECT
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent
from scout.model.conversation import Conversation
from scout.model.imported import ImportedFrom, derive_imported_id
from scout.protocol.imports.records import AnyImported, get_type
from scout.protocol.imports.requests import ImportOutcome, ImportState

R = TypeVar("R", bound=Record)
OPERATOR, SYSTEM = "operator", "system"  # stand for Scout's own in references


class ImportPart:
    """`dry`: nothing is stored, and what earlier parts would have stored is taken as there."""

    def __init__(self, tx: Transaction, system: str, *, dry: bool) -> None:
        self.tx = tx
        self.system = system
        self.dry = dry

    def get_origin(self, record: AnyImported) -> ImportedFrom:
        """Return where a record comes from."""
        return ImportedFrom(system=self.system, id=record.id)

    def derive_message_id(self, source_id: str) -> str:
        """Return the id that a message of the other system has here."""
        return derive_imported_id("msg", ImportedFrom(system=self.system, id=source_id))

    def take(self, record: AnyImported, ident: str, name: str = "", reason: str = "") -> ImportOutcome:
        """Return the outcome of a record that is stored, or would be."""
        return self._build_outcome(record, ImportState.TAKEN, ident, name, reason)

    def find(self, record: AnyImported, ident: str, name: str = "", reason: str = "") -> ImportOutcome:
        """Return the outcome of a record that was there already."""
        return self._build_outcome(record, ImportState.PRESENT, ident, name, reason)

    def skip(self, record: AnyImported, reason: str) -> ImportOutcome:
        """Return the outcome of a record that is not imported."""
        return self._build_outcome(record, ImportState.SKIPPED, None, "", reason)

    @staticmethod
    def _build_outcome(
        record: AnyImported, state: ImportState, ident: str | None, name: str, reason: str
    ) -> ImportOutcome:
        return ImportOutcome(
            type=get_type(record), id=record.id, state=state, record_id=ident, name=name, reason=reason
        )

    # -- references --------------------------------------------------------------------------------

    def resolve_agent(self, reference: str) -> str:
        """Return the id of the agent that a record refers to, or refuse."""
        if reference == OPERATOR:
            path = str(AgentPath.root(self.tx.services.operator, DIRECT))
            person = self.tx.ledger.one(Agent, "agent_at_path", path=path)
            return person.id if person is not None else self.tx.sender
        if reference == SYSTEM:
            return self.tx.services.system_agent
        return self._require(Agent, "agt", "agent", reference)

    def resolve_conversation(self, reference: str) -> str:
        """Return the id of the conversation that a record refers to, or refuse."""
        return self._require(Conversation, "cnv", "conversation", reference)

    def _require(self, kind: type[Record], prefix: str, noun: str, ident: str) -> str:
        known = parse_prefix(ident) == prefix and (self.dry or self.tx.get(kind, ident) is not None)
        if not known:
            raise Refused(BadRequest(problem=f"its {noun} {ident:.60} is unknown", field=noun))
        return ident
