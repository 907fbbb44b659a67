"""OpenScout: its journal (`broker-journal.jsonl`), and the aliases and roles that only its database has."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scout.base.time import Time
from scout.cli.imports.source import (
    Source,
    clean_value,
    find_file,
    get_object,
    get_text,
    is_object,
    list_texts,
    parse_json,
    read_lines,
    read_milliseconds,
)
from scout.model.agent import ToolRole
from scout.model.conversation import MessageKind
from scout.model.work_item import Acceptance, Priority
from scout.protocol.imports.records import (
    ImportedAgent,
    ImportedAlias,
    ImportedConversation,
    ImportedMessage,
    ImportedQuestion,
    ImportedWork,
)
from scout.store.foreign import read_foreign_rows

JOURNAL = "broker-journal.jsonl"
_DATABASE = "control-plane.sqlite"
_OPEN_FLIGHTS = frozenset({"queued", "waking", "running", "waiting"})
_OPEN_WORK = frozenset({"open", "working", "waiting", "review"})
_NOT_SAID = frozenset({"status", "system", "log"})
# Scout has its own of these two.
_OPERATOR, _SYSTEM = "operator", "system"

# What is never imported, and why.
_LEFT = {
    "node.upsert": ("node", "this machine has its own node record"),
    "binding.upsert": ("binding", "connect the chat again with `scout connector add`"),
    "conversation.read_cursor.upsert": ("read position", "what is imported counts as read"),
    "invocation.dispatch_job.record": ("dispatch job", "nothing is delivered again"),
    "collaboration.event.record": ("work event", "the work itself is imported"),
    "deliveries.record": ("delivery", "nothing is delivered again"),
    "delivery.attempt.record": ("delivery attempt", "nothing is delivered again"),
    "delivery.status.update": ("delivery status", "nothing is delivered again"),
    "durable.action.record": ("durable action", "it belongs to OpenScout's own runs"),
    "durable.action.heartbeat": ("durable action", "it belongs to OpenScout's own runs"),
    "durable.attempt.record": ("durable attempt", "it belongs to OpenScout's own runs"),
    "durable.checkpoint.record": ("durable checkpoint", "it belongs to OpenScout's own runs"),
    "durable.signal.record": ("durable signal", "it belongs to OpenScout's own runs"),
    "scout.dispatch.record": ("dispatch", "it describes a message that could not be routed"),
    "control.event.record": ("control event", "it belongs to OpenScout's own runs"),
    "journal.replay_barrier": ("journal mark", "it belongs to the journal"),
    "history.rotate": ("journal mark", "it belongs to the journal"),
}


def read_openscout(path: Path) -> Source:
    """Read a folder of OpenScout, or its journal."""
    journal = find_file(path, JOURNAL, f"control-plane/{JOURNAL}")
    reader = _Reader(journal)
    reader.read_journal()
    database = journal.with_name(_DATABASE)
    if database.is_file():
        reader.read_database(database)
    return reader.build()


class _Reader:
    """The last state of each thing in the journal; messages are read again when they are sent."""

    def __init__(self, journal: Path) -> None:
        self.source = Source()
        self.journal = journal
        self.actors: dict[str, dict[str, Any]] = {}
        self.deleted: set[str] = set()
        self.endpoints: dict[str, dict[str, Any]] = {}
        self.conversations: dict[str, dict[str, Any]] = {}
        self.invocations: dict[str, dict[str, Any]] = {}
        self.flights: dict[str, dict[str, Any]] = {}
        self.records: dict[str, dict[str, Any]] = {}
        self.roles: dict[str, str] = {}
        self.known: dict[str, tuple[str, Callable[[dict[str, Any]], None]]] = {
            "actor.upsert": ("actor", self._keep("actor", self.actors)),
            "agent.upsert": ("agent", self._keep("agent", self.actors)),
            "agent.endpoint.upsert": ("endpoint", self._keep("endpoint", self.endpoints)),
            "conversation.upsert": ("conversation", self._keep("conversation", self.conversations)),
            "invocation.record": ("invocation", self._keep("invocation", self.invocations)),
            "flight.record": ("flight", self._keep("flight", self.flights)),
            "collaboration.record": ("record", self._keep("work", self.records)),
            "message.record": ("message", self._count_attachments),
        }

    def _keep(self, kind: str, onto: dict[str, dict[str, Any]]) -> Callable[[dict[str, Any]], None]:
        def keep(fields: dict[str, Any]) -> None:
            if self.source.has_id(kind, fields):
                onto[fields["id"]] = {**onto.get(fields["id"], {}), **fields}

        return keep

    def _count_attachments(self, fields: dict[str, Any]) -> None:
        self.source.has_id("message", fields)
        attached = fields.get("attachments")
        count = len(attached) if isinstance(attached, list) else 0  # pyright: ignore[reportUnknownArgumentType] (JSON)
        self.source.leave_out("attachment", "files stay with OpenScout", count)

    # -- the journal -------------------------------------------------------------------------------

    def read_journal(self) -> None:
        """Read every line once. A damaged one is skipped and told."""
        for number, line in read_lines(self.journal):
            entry = self._parse(number, line)
            if entry is not None:
                self._read_entry(number, entry)

    def _parse(self, number: int, line: bytes | None) -> dict[str, Any] | None:
        if line is not None and not line.strip():
            return None
        try:
            entry = parse_json(line) if line is not None else None
        except ValueError as problem:
            self.source.skip("line", number, str(problem))
            return None
        if not is_object(entry):
            self.source.skip("line", number, "it is too long" if line is None else "it is not a JSON object")
            return None
        return entry

    def _read_entry(self, number: int, entry: dict[str, Any]) -> None:
        kind = entry.get("kind")
        if kind in ("agent.delete", "actor.delete"):
            self.deleted.add(str(entry.get("agentId") or entry.get("actorId")))
        elif kind == "agent.endpoint.delete":
            self.endpoints.pop(str(entry.get("endpointId")), None)
        elif isinstance(kind, str) and kind in _LEFT:
            name, reason = _LEFT[kind]
            several = entry.get("deliveries")
            self.source.leave_out(name, reason, len(several) if isinstance(several, list) else 1)  # pyright: ignore[reportUnknownArgumentType] (JSON)
        elif isinstance(kind, str) and kind in self.known:
            field, read = self.known[kind]
            thing = entry.get(field)
            if is_object(thing):
                read(thing)
            else:
                self.source.skip("line", number, f"its {field} is not a JSON object")
        else:
            self.source.skip("line", number, f"its kind {str(kind)[:60]!r} is unknown")

    def read_messages(self) -> Iterator[ImportedMessage]:
        """Yield the messages of the journal in their order, each once."""
        seen: set[str] = set()
        for _, line in read_lines(self.journal):
            message = _parse_message(line)
            if message is not None and message.id not in seen:
                seen.add(message.id)
                yield message

    # -- the database ------------------------------------------------------------------------------

    def read_database(self, path: Path) -> None:
        """Read what only the database has: aliases and roles."""
        try:
            for row in read_foreign_rows(path, "route_alias_bindings"):
                self._read_alias(clean_value(row))
            for row in read_foreign_rows(path, "role_assignments"):
                self._read_role(clean_value(row))
            missions = sum(1 for _ in read_foreign_rows(path, "mission_log_entries"))
            self.source.leave_out("mission log entry", "Scout keeps no mission log", missions)
        except ValueError as problem:
            self.source.skip("database", path.name, str(problem))

    def _read_alias(self, row: dict[str, Any]) -> None:
        name = get_text(row, "normalized_alias", "display_alias")
        if row.get("state") != "active":
            self.source.leave_out("alias", "it is no longer in use")
        elif row.get("target_kind") != "agent":
            self.source.skip("alias", name, "it names a session, which is not imported")
        elif self.source.has_id("alias", row) and name and (target := get_text(row, "target_agent_id")):
            created = read_milliseconds(row.get("created_at"))
            self.source.aliases.append(
                ImportedAlias(id=row["id"], name=name, target=target, created_at=created)
            )
        else:
            self.source.skip("alias", name, "it has no name or no target")

    def _read_role(self, row: dict[str, Any]) -> None:
        role, agent = str(row.get("role_id")), str(row.get("agent_id"))
        if not row.get("active"):
            self.source.leave_out("role", "it is no longer in use")
        elif role in set(ToolRole):
            self.roles[agent] = role
        else:
            self.source.skip("role", f"{role} of {agent}", "Scout has no such role")

    # -- what is sent ------------------------------------------------------------------------------

    def build(self) -> Source:
        """Return everything in the form that all systems share."""
        source = self.source
        places = {str(one.get("agentId")): one for one in self.endpoints.values()}
        source.leave_out("endpoint", "only its harness and folder are kept", len(self.endpoints))
        for ident, actor in self.actors.items():
            if ident not in (_OPERATOR, _SYSTEM):
                source.agents.append(self._build_agent(ident, actor, places.get(ident, {})))
        source.conversations = [_build_conversation(one) for one in self.conversations.values()]
        for flight in self.flights.values():
            self._build_flight(flight)
        for record in self.records.values():
            self._build_record(record)
        source.messages = self.read_messages
        return source

    def _build_agent(self, ident: str, actor: dict[str, Any], place: dict[str, Any]) -> ImportedAgent:
        beside = get_object(actor, "metadata")
        about = {"name": get_text(actor, "displayName"), "description": get_text(actor, "description")}
        return ImportedAgent(
            id=ident,
            name=get_text(actor, "definitionId", "handle", "displayName") or ident,
            workspace=get_text(actor, "workspaceQualifier"),
            profile=get_text(actor, "profile"),
            project_root=get_text(place, "projectRoot", "cwd") or get_text(beside, "projectRoot"),
            harness=get_text(place, "harness"),
            model=get_text(place, "model") or get_text(get_object(place, "metadata"), "model"),
            tool_role=self.roles.get(ident),
            retired=ident in self.deleted,
            config={key: text for key, text in about.items() if text and text != actor.get("handle")},
        )

    def _build_flight(self, flight: dict[str, Any]) -> None:
        """Take an open ask as open work, so that it is not lost and nobody is woken by the import."""
        asked = self.invocations.get(str(flight.get("invocationId")), {})
        task, target = get_text(asked, "task"), get_text(flight, "targetAgentId")
        if flight.get("state") not in _OPEN_FLIGHTS:
            self.source.leave_out("ask", "it has ended")
        elif task is None or target is None:
            self.source.skip("ask", flight["id"], "its task or its target is missing")
        else:
            created = read_milliseconds(asked.get("createdAt"))
            self.source.work.append(
                ImportedWork(
                    id=flight["id"],
                    title=task.strip().splitlines()[0],
                    description=task,
                    owner=target,
                    requester=get_text(flight, "requesterId") or _OPERATOR,
                    conversation=get_text(asked, "conversationId"),
                    created_at=created or read_milliseconds(flight.get("startedAt")),
                )
            )

    def _build_record(self, record: dict[str, Any]) -> None:
        created = read_milliseconds(record.get("createdAt"))
        asker = get_text(record, "requestedById", "createdById") or _OPERATOR
        title = get_text(record, "title", "summary")
        if record.get("kind") == "question" and record.get("state") == "open" and title:
            self.source.questions.append(_build_question(record, title, created))
        elif record.get("kind") == "work_item" and record.get("state") in _OPEN_WORK and title:
            self.source.work.append(_build_work(record, title, asker, created))
        elif title is None:
            self.source.skip("work", record["id"], "it has no title")
        else:
            self.source.leave_out(_name_record(record), "it is settled")


def _name_record(record: dict[str, Any]) -> str:
    return "question" if record.get("kind") == "question" else "work"


def _parse_message(line: bytes | None) -> ImportedMessage | None:
    """Return the message in a line; None for any other. What is damaged was told at the first reading."""
    if line is None or b'"message.record"' not in line:
        return None
    try:
        entry = parse_json(line)
    except ValueError:
        return None
    fields = get_object(entry, "message") if is_object(entry) else {}
    ident, place = get_text(fields, "id"), get_text(fields, "conversationId")
    if ident is None or len(ident) > 500 or entry.get("kind") != "message.record":
        return None
    status = fields.get("class") in _NOT_SAID
    body = fields.get("body")
    return ImportedMessage(
        id=ident,
        conversation=place or "",
        sender=get_text(fields, "actorId") or "",
        body=body if isinstance(body, str) else "",
        kind=MessageKind.STATUS if status else MessageKind.CHAT,
        in_reply_to=get_text(fields, "replyToMessageId"),
        created_at=read_milliseconds(fields.get("createdAt")),
    )


def _build_conversation(fields: dict[str, Any]) -> ImportedConversation:
    members = tuple(list_texts(fields.get("participantIds")))
    above, root = get_text(fields, "parentConversationId"), get_text(fields, "messageId")
    is_thread = fields.get("kind") == "thread" and above is not None and root is not None
    direct = fields.get("kind") == "direct" and len(set(members)) == 2
    return ImportedConversation(
        id=fields["id"],
        kind="thread" if is_thread else "dm" if direct else "channel",
        name=get_text(fields, "title") or fields["id"],
        members=members,
        parent=above if is_thread else None,
        root_message=root if is_thread else None,
        created_at=read_milliseconds(fields.get("createdAt")),
    )


def _build_work(record: dict[str, Any], title: str, asker: str, created: Time | None) -> ImportedWork:
    accepts, priority = record.get("acceptanceState"), record.get("priority")
    return ImportedWork(
        id=record["id"],
        title=title,
        description=get_text(record, "summary") or "",
        owner=get_text(record, "ownerId") or _OPERATOR,
        requester=asker,
        next_move_owner=get_text(record, "nextMoveOwnerId"),
        state=record["state"],
        acceptance=Acceptance(accepts) if accepts in set(Acceptance) else Acceptance.PENDING,
        priority=Priority(priority) if priority in set(Priority) else Priority.NORMAL,
        labels=tuple(list_texts(record.get("labels"))),
        conversation=get_text(record, "conversationId"),
        created_at=created,
    )


def _build_question(record: dict[str, Any], title: str, created: Time | None) -> ImportedQuestion:
    said = get_text(record, "summary")
    return ImportedQuestion(
        id=record["id"],
        body=f"{title}\n\n{said}" if said and said != title else title,
        asker=get_text(record, "createdById") or _OPERATOR,
        responder=get_text(record, "nextMoveOwnerId", "askedById", "ownerId") or _OPERATOR,
        conversation=get_text(record, "conversationId"),
        created_at=created,
    )
