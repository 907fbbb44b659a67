"""Files of other systems, written for tests."""

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

JOURNAL = Path(__file__).parents[1] / "data" / "openscout" / "broker-journal.jsonl"

_ALIASES = (
    "CREATE TABLE route_alias_bindings (id text, normalized_alias text, display_alias text, target_kind text,"
    " target_agent_id text, target_session_id text, state text, created_at integer)"
)
_ROLES = "CREATE TABLE role_assignments (id text, role_id text, agent_id text, active integer)"
_MISSIONS = "CREATE TABLE mission_log_entries (id text, mission_id text)"


def copy_openscout(folder: Path) -> Path:
    """The real journal of an OpenScout, in a folder."""
    folder.mkdir(parents=True)
    shutil.copy(JOURNAL, folder / JOURNAL.name)
    return folder


def write_journal(folder: Path, *entries: Any) -> Path:
    """A journal of these entries; text is written as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [one if isinstance(one, str) else json.dumps(one) for one in entries]
    (folder / JOURNAL.name).write_text(
        "".join(f"{line}\n" for line in lines), "utf-8", errors="surrogatepass"
    )
    return folder


def write_openscout_database(folder: Path) -> None:
    """The tables that only the database of an OpenScout has."""
    connection = sqlite3.connect(folder / "control-plane.sqlite")
    with connection:
        for statement in (_ALIASES, _ROLES, _MISSIONS):
            connection.execute(statement)
        aliases = [
            ("a1", "huddy", "Huddy", "agent", "hudson", None, "active", 1794819347000),
            ("a2", "arc", "arc", "agent", "hudson", None, "active", 1794819347000),
            ("a3", "live", "live", "session", "hudson", "s1", "active", 1794819347000),
            ("a4", "gone", "gone", "agent", "hudson", None, "unset", 1794819347000),
        ]
        connection.executemany("INSERT INTO route_alias_bindings VALUES (?,?,?,?,?,?,?,?)", aliases)
        roles = [("r1", "tl", "hudson", 1), ("r2", "poet", "arc", 1), ("r3", "dev", "arc", 0)]
        connection.executemany("INSERT INTO role_assignments VALUES (?,?,?,?)", roles)
        connection.execute("INSERT INTO mission_log_entries VALUES ('m', 'n')")
    connection.close()


def build_agent(ident: str, **more: Any) -> dict[str, Any]:
    agent = {"id": ident, "kind": "agent", "definitionId": ident, "displayName": ident, "handle": ident}
    return {"kind": "agent.upsert", "agent": {**agent, **more}}


def build_talk(ident: str, kind: str, *members: str, **more: Any) -> dict[str, Any]:
    talk = {"id": ident, "kind": kind, "title": ident, "participantIds": [*members], **more}
    return {"kind": "conversation.upsert", "conversation": talk}


def build_message(ident: str, talk: str, actor: str, body: str, **more: Any) -> dict[str, Any]:
    message = {
        "id": ident,
        "conversationId": talk,
        "actorId": actor,
        "body": body,
        "createdAt": 1794819347001,
    }
    return {"kind": "message.record", "message": {"class": "agent", **message, **more}}


# -- Daycare -----------------------------------------------------------------------------------------

_USERS = [
    {"id": "u1", "version": 2, "valid_to": None, "nametag": "sky.fox", "timezone": "UTC"},
    {"id": "u1", "version": 1, "valid_to": 1794819340000, "nametag": "old.tag"},
    {"id": "u2", "version": 1, "valid_to": None, "nametag": "blue-owl"},
]
_KEYS = [
    {"id": 1, "user_id": "u1", "connector_key": "telegram:123"},
    {"id": 2, "user_id": "u2", "connector_key": "whatsapp:9"},
]


def _describe(ident: str, kind: str, updated: int = 5, user: str = "u1", **fields: Any) -> dict[str, Any]:
    descriptor = json.dumps({"type": kind, **fields})
    facts = {"type": kind, "descriptor": descriptor, "user_id": user, "lifecycle": "active"}
    return {"id": ident, "valid_to": None, "updated_at": 1794819340000 + updated, **facts}


DAYCARE: dict[str, list[dict[str, Any]]] = {
    "users": _USERS,
    "user_connector_keys": _KEYS,
    "agents": [
        _describe("a1", "user", connector="telegram", userId="123", channelId="c77"),
        _describe("a2", "permanent", name="Arc", username="arc", description="plans", systemPrompt="p"),
        _describe("a3", "cron", id="daily", name="Daily"),
        _describe("a4", "task", id="t1"),
        _describe("a5", "subagent", id="a5", parentAgentId="a1", name="helper"),
        _describe("a6", "memory-agent", id="a1"),
        _describe("a7", "memory-search", id="a7", parentAgentId="a6", name="find"),
        _describe("a8", "subuser", id="s1", name="Sue", systemPrompt="be kind"),
        _describe("a9", "system", tag="gc"),
        _describe("b1", "app", id="b1", parentAgentId="a1", name="App", systemPrompt="p", appId="app-1"),
        _describe("b2", "permanent", updated=1, name="Arc", description="older"),
        _describe("b3", "user", connector="slack", userId="5", channelId="6"),
        {**_describe("b4", "task", id="t2"), "lifecycle": "dead"},
        {"id": "b5", "valid_to": None, "user_id": "u2", "path": "/u2/agent/bow", "name": "Bow"},
        {"id": "b6", "valid_to": None, "user_id": "u2", "path": "/u2/agent/bow/sub/4", "name": "arrow"},
    ],
    "inbox": [
        {
            "id": "i2",
            "agent_id": "a2",
            "posted_at": 1794819347002,
            "type": "message",
            "data": json.dumps({"type": "message", "message": {"text": "and a\ttab"}}),
        },
        {
            "id": "i1",
            "agent_id": "a2",
            "posted_at": 1794819347001,
            "type": "message",
            "data": json.dumps({"type": "message", "message": {"text": "first \\ slash"}}),
        },
        {"id": "i3", "agent_id": "a2", "posted_at": 1794819347003, "type": "reset", "data": "{}"},
    ],
    "channels": [{"id": "ch", "name": "Ops Room", "leader": "a2", "user_id": "u1"}],
    "tasks_cron": [{"id": "tc", "schedule": "0 9 * * *", "agent_id": "a3", "enabled": "t"}],
    "session_history": [{"id": 1, "text": "secret thoughts"}],
    "tokens": [{"id": 1, "token": "secret"}],
}


def write_daycare_export(file: Path) -> Path:
    file.write_text(json.dumps(DAYCARE))
    return file


def write_daycare_dump(file: Path) -> Path:
    """The same rows as `pg_dump --data-only` writes them."""
    parts = ["--\n-- PostgreSQL database dump\n--\n\nSET client_encoding = 'UTF8';\n\n"]
    for table, rows in DAYCARE.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        lines = ["\t".join(_escape(row.get(column)) for column in columns) for row in rows]
        parts.append(f"COPY public.{table} ({', '.join(columns)}) FROM stdin;\n")
        parts.append("".join(f"{line}\n" for line in lines) + "\\.\n\n")
    file.write_text("".join(parts))
    return file


def _escape(value: object) -> str:
    if value is None:
        return "\\N"
    text = str(value).replace("\\", "\\\\")
    return text.replace("\t", "\\t").replace("\n", "\\n")


# -- ExoMonad ----------------------------------------------------------------------------------------


def write_exomonad(project: Path) -> Path:
    """A repository with a tree of two branches and a worker, as ExoMonad leaves it."""
    project.mkdir(parents=True)
    _git(project, "init", "-q", "-b", "main")
    _git(project, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "start")
    exo = project / ".exo"
    _write_agent(exo, "feature-claude", "tl", born="main.feature", parent="main")
    _git(project, "worktree", "add", "-q", "-b", "main.feature", ".exo/worktrees/feature-claude")
    tree = exo / "worktrees" / "auth_fix-gemini"  # no identity file, as older versions leave it
    _git(project, "worktree", "add", "-q", "-b", "elsewhere", str(tree))
    (tree / ".birth_branch").write_text("main.feature.auth_fix\n")
    _write_agent(exo, "helper-gemini", "worker", born="main.feature", parent="main.feature")
    _write_agent(exo, "evil", "dev", born="main.evil", parent="main", working_dir="../../../../etc")
    (exo / "agents" / "linked").symlink_to("/etc")
    (exo / "agents" / "broken").mkdir()
    (exo / "agents" / "broken" / "identity.json").write_text("{")
    inboxes = exo / "inboxes"
    inboxes.mkdir()
    mail = [
        {"from": "root", "text": "start with login", "timestamp": "2026-11-01T10:00:00Z", "read": True},
        {"from": "root", "text": "and logout", "timestamp": "2026-11-01T10:01:00Z", "read": False},
        {"from": "nobody", "text": "who am I", "timestamp": "2026-11-01T10:02:00Z", "read": True},
        "no object",
    ]
    (inboxes / "feature-claude.json").write_text(json.dumps(mail))
    (exo / "events").mkdir()
    (exo / "events" / "feature-claude.jsonl").write_text('{"ts": 1, "type": "x"}\n{"ts": 2, "type": "y"}\n')
    return project


def _write_agent(exo: Path, name: str, kind: str, *, born: str, parent: str, **more: str) -> None:
    folder = exo / "agents" / name
    folder.mkdir(parents=True)
    names = {"agent_name": name, "slug": name.partition("-")[0], "agent_type": kind}
    place = {"birth_branch": born, "parent_branch": parent, "working_dir": f".exo/worktrees/{name}"}
    (folder / "identity.json").write_text(json.dumps({**names, **place, **more}))


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, timeout=60)
