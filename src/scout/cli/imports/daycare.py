"""Daycare: a JSON export of its tables, or the text of `pg_dump --data-only`."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.cli.connection.refusal import RefusalError
from scout.cli.imports.postgres_dump import read_dump
from scout.cli.imports.source import (
    Source,
    find_file,
    get_object,
    get_text,
    is_object,
    parse_json,
    read_json,
    read_milliseconds,
)
from scout.identity.address import fold
from scout.identity.legacy import CONFIG_KEYS, Conversion, LegacyAgent, convert
from scout.identity.path import AgentPath, Kind, is_segment
from scout.protocol.imports.records import ImportedAgent, ImportedConversation, ImportedMessage

Row = dict[str, Any]
_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_CHILDREN = frozenset({Kind.SUB, Kind.SEARCH, Kind.MEMORY})
_RETIRED = frozenset({"dead", "retired"})

# Tables that are never imported, and why; what is not named here is left out as unknown.
_LEFT = {
    "sessions": ("session", "transcripts stay with their system"),
    "session_history": ("transcript line", "transcripts stay with their system"),
    "tokens": ("token", "credentials are never imported"),
    "token_stats_hourly": ("token count", "Scout counts its own"),
    "signals_events": ("signal", "it belongs to Daycare's own runs"),
    "signals_subscriptions": ("subscription", "it belongs to Daycare's own runs"),
    "delayed_signals": ("signal", "it belongs to Daycare's own runs"),
}


def read_daycare(path: Path) -> Source:
    """Read an export of Daycare."""
    file = find_file(path, "daycare.json", "daycare.sql")
    reader = _Reader()
    reader.read(file)
    return reader.build()


class _Reader:
    """The current rows of each table."""

    def __init__(self) -> None:
        self.source = Source()
        self.tables: dict[str, list[Row]] = {}
        self.users: dict[str, str] = {}
        self.owners: dict[str, str] = {}
        self.inboxes: set[str] = set()

    # -- files -------------------------------------------------------------------------------------

    def read(self, file: Path) -> None:
        """Read every row; a damaged one is skipped and told."""
        if file.suffix == ".json":
            self._read_export(file)
            return
        for row in read_dump(file):
            if row.problem:
                self.source.skip(row.table, f"line {row.number}", row.problem)
            else:
                self._keep(row.table, dict(row.fields))

    def _read_export(self, file: Path) -> None:
        try:
            tables = read_json(file)
        except ValueError as problem:
            raise RefusalError.of("bad_request", f"{file} is no JSON export: {problem}") from None
        if not is_object(tables):
            raise RefusalError.of("bad_request", f"{file} is no JSON export: expected an object of tables")
        for table, rows in tables.items():
            several: list[Any] = rows if isinstance(rows, list) else []  # pyright: ignore[reportUnknownVariableType] (JSON)
            for number, row in enumerate(several, 1):
                if is_object(row):
                    self._keep(_to_snake(table), {_to_snake(key): value for key, value in row.items()})
                else:
                    self.source.skip(table, f"row {number}", "it is not a JSON object")

    def _keep(self, table: str, row: Row) -> None:
        if row.get("valid_to") is not None:
            self.source.leave_out(f"{table} row", "it is an earlier version")
        elif table in _LEFT:
            self.source.leave_out(*_LEFT[table])
        else:
            self.tables.setdefault(table, []).append(row)

    # -- what is sent ------------------------------------------------------------------------------

    def build(self) -> Source:
        """Return everything in the form that all systems share."""
        self._build_users()
        self._build_agents()
        messages = [*self._build_inbox(), *self._build_channels()]
        self.source.messages = lambda: iter(messages)
        for row in self.tables.pop("tasks_cron", []):
            command = f"scout cron add '{get_text(row, 'schedule') or 'CRON'}'"
            self.source.skip("schedule", row.get("id"), f"add it again with {command}")
        for table, rows in self.tables.items():
            self.source.leave_out(f"{table} row", "Scout has no counterpart", len(rows))
        return self.source

    def _build_users(self) -> None:
        """Name each user by its nametag; a user becomes the person `/<name>/direct`."""
        for row in self.tables.pop("users", []):
            if not self.source.has_id("user", row):
                continue
            tag = get_text(row, "nametag") or row["id"]
            name = tag if is_segment(tag) else fold(tag)
            if not is_segment(name) or name in self.users.values():
                self.source.skip("user", row["id"], f"its nametag {tag[:60]!r} cannot be the name of a user")
                continue
            self.users[row["id"]] = name
            self.source.agents.append(ImportedAgent(id=_person(row["id"]), path=f"/{name}/direct"))

    def _build_agents(self) -> None:
        keys = self._read_keys()
        rows = [one for one in self.tables.pop("agents", []) if self.source.has_id("agent", one)]
        placed = {row["id"]: path for row in rows if (path := self._read_path(row)) is not None}
        legacy = [one for row in rows if row["id"] not in placed and (one := self._read_legacy(row))]
        plan = convert(legacy, keys, placed)
        self._tell_rest(plan)
        by_id = {row["id"]: row for row in rows}
        paths = {**placed, **{one.id: one.path for one in plan.converted}}
        configs = {one.id: one.config for one in plan.converted}
        holders = {path: ident for ident, path in paths.items()}
        for ident, path in paths.items():
            config = configs.get(ident) or _read_config(by_id[ident])
            self._add_agent(by_id[ident], path, config, holders)

    def _read_keys(self) -> dict[str, str]:
        keys: dict[str, str] = {}
        for row in self.tables.pop("user_connector_keys", []):
            key, user = get_text(row, "connector_key"), self.users.get(str(row.get("user_id")))
            if key and user:
                keys[key] = user
                again = f"link it again with scout user link {user} {key.partition(':')[0]}"
                self.source.skip("chat account", key, again)
        return keys

    def _read_path(self, row: Row) -> AgentPath | None:
        """Return the path of a row that has one, with the name of its user."""
        text = get_text(row, "path")
        if text is None:
            return None
        first, _, rest = text.removeprefix("/").partition("/")
        try:
            return AgentPath.parse(f"/{self.users.get(first, first)}/{rest}")
        except Refused as refusal:
            self.source.skip("agent", row["id"], refusal.diagnostic.message)
            return None

    def _read_legacy(self, row: Row) -> LegacyAgent | None:
        """Return a row with a descriptor; one with a path that cannot be read was skipped before."""
        if get_text(row, "path") is not None:
            return None
        user = self.users.get(str(row.get("user_id")))
        descriptor = _parse_field(row, "descriptor")
        if user is None or not descriptor:
            reason = "its user is unknown" if descriptor else "it has neither a path nor a descriptor"
            self.source.skip("agent", row["id"], reason)
            return None
        typed = {"type": row.get("type"), **descriptor}
        updated = read_milliseconds(row.get("updated_at")) or Time(0)
        return LegacyAgent(id=row["id"], user_id=user, descriptor=typed, updated_at=updated)

    def _tell_rest(self, plan: Conversion) -> None:
        for one in plan.duplicates:
            self.source.skip("agent", one.id, f"{one.kept_id} is newer and has the path {one.path}")
        for ident in plan.deferred:
            self.source.skip("agent", ident, "apps have no counterpart yet; it stays in the export")
        for one in plan.rejected:
            self.source.skip("agent", one.id, one.reason)

    def _add_agent(
        self, row: Row, path: AgentPath, config: dict[str, str], holders: dict[AgentPath, str]
    ) -> None:
        parent = holders.get(path.parent) if path.parent is not None else None
        if path.kind in _CHILDREN and parent is None:
            self.source.skip("agent", row["id"], f"its parent {path.parent} is unknown")
            return
        self.owners[row["id"]] = str(row.get("user_id"))
        self.source.agents.append(
            ImportedAgent(
                id=row["id"],
                path=str(path),
                parent=parent,
                retired=row.get("lifecycle") in _RETIRED,
                config=config,
                created_at=read_milliseconds(row.get("created_at")),
            )
        )

    # -- messages ----------------------------------------------------------------------------------

    def _build_inbox(self) -> Iterator[ImportedMessage]:
        """Yield what agents have not read yet, as messages of their users."""
        rows = self.tables.pop("inbox", [])
        for row in sorted(rows, key=lambda one: read_milliseconds(one.get("posted_at")) or 0):
            agent, data = str(row.get("agent_id")), _parse_field(row, "data")
            kind = str(row.get("type") or data.get("type"))
            text = get_text(data, "text") or get_text(get_object(data, "message"), "text")
            if kind not in ("message", "system_message") or text is None:
                self.source.leave_out(f"inbox {kind[:40]}", "it is no message")
            elif agent not in self.owners:
                self.source.skip("message", row.get("id"), f"its agent {agent[:60]!r} was not imported")
            elif self.source.has_id("message", row):
                yield self._build_mail(row, agent, text, by_person=kind == "message")

    def _build_mail(self, row: Row, agent: str, text: str, *, by_person: bool) -> ImportedMessage:
        place, person = f"inbox:{agent}", _person(self.owners[agent])
        if place not in self.inboxes:
            self.inboxes.add(place)
            self.source.conversations.append(
                ImportedConversation(id=place, kind="dm", members=(person, agent))
            )
        return ImportedMessage(
            id=row["id"],
            conversation=place,
            sender=person if by_person else "system",
            body=text,
            unread=True,
            created_at=read_milliseconds(row.get("posted_at")),
        )

    def _build_channels(self) -> Iterator[ImportedMessage]:
        members = self._read_members()
        for row in self.tables.pop("channels", []):
            if self.source.has_id("channel", row):
                several = [get_text(row, "leader"), *members.get(row["id"], {}).values()]
                self.source.conversations.append(
                    ImportedConversation(
                        id=row["id"],
                        kind="channel",
                        name=get_text(row, "name") or row["id"],
                        members=tuple(dict.fromkeys(one for one in several if one)),
                        created_at=read_milliseconds(row.get("created_at")),
                    )
                )
        rows = self.tables.pop("channel_messages", [])
        for row in sorted(rows, key=lambda one: read_milliseconds(one.get("created_at")) or 0):
            channel = str(row.get("channel_id"))
            sender = members.get(channel, {}).get(str(row.get("sender_username")))
            if self.source.has_id("message", row):
                yield ImportedMessage(
                    id=row["id"],
                    conversation=channel,
                    sender=sender or str(row.get("sender_username") or ""),
                    body=get_text(row, "text") or "",
                    created_at=read_milliseconds(row.get("created_at")),
                )

    def _read_members(self) -> dict[str, dict[str, str]]:
        """Return the agents of each channel by their names in it."""
        members: dict[str, dict[str, str]] = {}
        for row in self.tables.pop("channel_members", []):
            channel, agent = get_text(row, "channel_id"), get_text(row, "agent_id")
            if channel and agent:
                members.setdefault(channel, {})[get_text(row, "username") or agent] = agent
        return members


def _person(user_id: str) -> str:
    return f"user:{user_id}"


def _to_snake(name: str) -> str:
    return _CAPITAL.sub(lambda found: f"_{found[0].lower()}", name)


def _parse_field(row: Row, name: str) -> dict[str, Any]:
    """Return a field that is an object, or the JSON text of one."""
    value = row.get(name)
    if isinstance(value, str):
        try:
            value = parse_json(value)
        except ValueError:
            return {}
    return value if is_object(value) else {}


def _read_config(row: Row) -> dict[str, str]:
    named = {key: get_text(row, _to_snake(key)) for key in CONFIG_KEYS}
    return {key: text for key, text in named.items() if text}
