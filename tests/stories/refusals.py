"""How each refusal comes about, as a person, a program or an agent meets it.

A scene sets the stage and gives back the command that is refused. `http` and `tool` are the same request on
the other two surfaces; a scene without one says why that surface cannot meet it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scout.base.refusal import get_code as code_of_class
from scout.model.problems.diagnostics import ALL
from tests.cli.running import Shell
from tests.daemon.daemons import Daemon
from tests.tree.repositories import git

__all__ = ["ABSENT", "CODES", "SCENES", "Scene", "Stage", "read_code", "tries"]

CODES = [code_of_class(one) for one in ALL]


class Stage:
    """One daemon, its person's shell, and the agents of the scenes."""

    def __init__(self, shell: Shell, daemon: Daemon) -> None:
        self.shell = shell
        self.daemon = daemon
        self.tokens: dict[str, str] = {}

    def do(self, *words: str, **how: Any) -> str:
        return self.shell.say(*words, **how)

    def agent(self, name: str, **wish: Any) -> str:
        """An agent of this name; its token, if it connects by itself."""
        if name not in self.tokens:
            project = str(self.shell.project(name))
            made = self.post("/v1/agents", {"definitionId": name, "projectRoot": project, **wish})
            self.tokens[name] = str(made.get("token") or "")
        return self.tokens[name]

    def post(self, path: str, body: Any, token: str = "") -> Any:
        answer = self.daemon.call("POST", path, body, token=token)
        assert answer.status in (200, 201), answer.body
        return answer.json

    def endpoint(self, name: str, harness: str, model: str | None = None) -> str:
        """A way to an agent that pulls, in this harness."""
        token = self.agent(name)
        agent = self.daemon.call("GET", f"/v1/agents/%40{name}").json
        wish = {"agentId": agent["id"], "harness": harness, "transport": "pull", "state": "idle"}
        return str(self.post("/v1/endpoints", {**wish, **({"model": model} if model else {})}, token)["id"])


Words = list[str]


@dataclass(frozen=True)
class Scene:
    """`typed`: what is refused; `environ`: what is set while it is typed; `tool_token`: who calls the tool.

    `alone`: the scene or a line that it offers changes the whole daemon, which it has for itself.
    """

    typed: Callable[[Stage], Words]
    http: Callable[[Stage], tuple[str, str, Any]] | None = None
    tool: Callable[[Stage], tuple[str, dict[str, Any]]] | None = None
    environ: Callable[[Stage], dict[str, str]] = lambda _: {}
    token: Callable[[Stage], str] = lambda _: ""
    tool_token: Callable[[Stage], str] = lambda _: ""
    alone: bool = False


def _ask(to: str, body: str = "Review this.") -> dict[str, Any]:
    """An ask that is refused alike on all three surfaces."""

    def http(_: Stage) -> tuple[str, str, Any]:
        return "POST", "/v1/asks", {"to": to, "body": body}

    def tool(_: Stage) -> tuple[str, dict[str, Any]]:
        return "ask", {"to": to, "body": body}

    return {"http": http, "tool": tool}


def _unknown(stage: Stage) -> Words:
    stage.agent("talkie", command=["cat"])
    return ["ask", "@talki", "Review this."]


def _two_hudsons(stage: Stage) -> Words:
    project = str(stage.shell.project("hudson"))
    for profile in ("one", "two"):
        wish = {"definitionId": "hudson", "profile": profile, "projectRoot": project, "command": ["cat"]}
        stage.post("/v1/agents", wish)
    return ["ask", "@hudson", "Review this."]


def _two_harnesses(stage: Stage) -> Words:
    stage.endpoint("both", "claude")
    stage.endpoint("both", "codex")
    return ["ask", "@both", "Review this."]


def _broken_alias(stage: Stage) -> Words:
    stage.agent("talkie", command=["cat"])
    stage.do("alias", "set", "short", "@talkie")
    stage.agent("short", command=["cat"])
    return ["ask", "@short", "Review this."]


def _shadowing(stage: Stage) -> Words:
    stage.agent("talkie", command=["cat"])
    return ["alias", "set", "talkie", "@talkie"]


def _one_harness(stage: Stage) -> None:
    stage.endpoint("one", "claude", "claude-sonnet-4-6")


def _wrong_harness(stage: Stage) -> Words:
    _one_harness(stage)
    return ["resolve", "@one#codex"]


def _wrong_model(stage: Stage) -> Words:
    _one_harness(stage)
    return ["resolve", "@one?opus"]


def _offline(_: Stage) -> Words:
    return ["ask", "/system/sweeper", "Review this."]


def _paused(stage: Stage) -> Words:
    stage.agent("talkie", command=["cat"])
    stage.do("pause")
    return ["wake", "@talkie"]


def _wrong_time(stage: Stage) -> Words:
    stage.agent("nightly", command=["cat"])
    return ["cron", "add", "0 25 * * *", "--to", "@nightly", "Check the build."]


_NOBODY = {"token": f"1:{'x' * 35}", "baseUrl": "http://127.0.0.1:9"}


def _unreachable_chat(stage: Stage) -> Words:
    secrets = stage.shell.folder / "telegram.env"
    secrets.write_text(f"token={_NOBODY['token']}\n")
    place = f"baseUrl={_NOBODY['baseUrl']}"
    return ["connector", "add", "telegram", "--set", place, "--secrets", str(secrets)]


def _add_unreachable_chat(_: Stage) -> tuple[str, str, Any]:
    return "POST", "/v1/connectors", {"connector": "telegram", "values": _NOBODY}


def _retired_user(stage: Stage) -> Words:
    stage.do("user", "add", "gwen")
    stage.do("user", "retire", "gwen")
    return ["user", "link", "gwen", "telegram"]


def _unpublished(stage: Stage) -> Words:
    stage.agent("private")
    return ["agent", "publication", "@private"]


def _retire(stage: Stage, name: str) -> None:
    stage.agent(name)
    stage.do("agent", "retire", f"@{name}")


def _retired(stage: Stage) -> Words:
    _retire(stage, "gone")
    return ["ask", "@gone", "Review this."]


def _name_taken(stage: Stage) -> Words:
    _retire(stage, "taken")
    return ["agent", "register", "taken", "--project", str(stage.shell.project("taken"))]


def _used_card(stage: Stage) -> Words:
    stage.agent("talkie", command=["cat"])
    card = stage.shell.data("card", "create", "@talkie", "--max-uses", "1")
    stage.tokens["card"] = card["id"]
    stage.do("send", card["id"], "once")
    return ["send", stage.tokens["card"], "twice"]


def _outside(stage: Stage) -> Words:
    folder = stage.shell.folder / "outside"
    folder.mkdir(exist_ok=True)
    stage.agent("stranger", projectRoot=str(folder), command=["cat"])
    return ["ask", "@stranger", "Review this."]


def _no_binary(stage: Stage) -> Words:
    project = stage.shell.project("needs-codex")
    return ["ask", "--project", str(project), "--harness", "codex", "Review this."]


def _failed(name: str, command: str) -> Callable[[Stage], Words]:
    def scene(stage: Stage) -> Words:
        stage.agent(name, command=["sh", "-c", command] if " " in command else [command])
        return ["ask", f"@{name}", "Review this."]

    return scene


def _not_mine(stage: Stage) -> Words:
    stage.agent("asker")
    stage.agent("reader")
    made = stage.post("/v1/questions", {"to": "@reader", "body": "Which colour?"})
    stage.tokens["question"] = made["id"]
    return ["question", "answer", stage.tokens["question"], "red"]


def _key_reused(stage: Stage) -> Words:
    stage.agent("bare")
    stage.do("send", "@bare", "one", "--idempotency-key", "the-key")
    return ["send", "@bare", "two", "--idempotency-key", "the-key"]


def _too_large(stage: Stage) -> Words:
    stage.agent("bare")
    (stage.shell.folder / "long.txt").write_text("x" * 300_000)
    return ["send", "@bare", "--file", "long.txt"]


def _too_many(stage: Stage) -> Words:
    stage.agent("full", wakePolicy="manual", command=["cat"])
    for _ in range(32):
        assert stage.daemon.call("POST", "/v1/asks", {"to": "@full", "body": "x"}).status == 201
    return ["ask", "@full", "Review this."]


def _work(stage: Stage) -> str:
    stage.agent("reader")
    made = stage.post("/v1/work", {"title": "the form", "ownerId": "@reader"})
    stage.tokens["work"] = made["id"]
    return stage.tokens["work"]


def _finished(stage: Stage) -> Words:
    stage.agent("talkie", command=["cat"])
    done = stage.post("/v1/asks", {"to": "@talkie", "body": "hi", "wait": 20}, stage.agent("reader"))
    stage.tokens["finished"] = done["flightId"]
    return ["flight", "cancel", stage.tokens["finished"]]


def _old_revision(stage: Stage) -> Words:
    item = _work(stage)
    return ["work", "hand-over", item, "@reader", "--revision", "99"]


def _taken_port(stage: Stage) -> Words:
    return ["up"]


def _other_home(stage: Stage) -> dict[str, str]:
    home = stage.shell.folder / "other"
    home.mkdir(mode=0o700, exist_ok=True)
    return {"SCOUT_HOME": str(home), "SCOUT_PORT": str(stage.daemon.port)}


def _as(name: str) -> Callable[[Stage], dict[str, str]]:
    return lambda stage: {"SCOUT_TOKEN": stage.agent(name)}


# -- trees of agents ----------------------------------------------------------------------------------


def _spawn(name: str, prepare: Callable[[Stage, Path], None] = lambda _, __: None, **more: Any) -> Scene:
    """A spawn in a repository that is prepared first; an agent there meets the same refusal."""

    def place(stage: Stage) -> Path:
        folder = stage.shell.folder / "work" / name
        if not folder.exists():
            folder.mkdir(parents=True)
            prepare(stage, folder)
            lead = {"definitionId": f"{name}-lead", "projectRoot": str(folder), "toolRole": "tl"}
            stage.tokens[name] = stage.post("/v1/agents", lead)["token"]
        return folder

    def typed(stage: Stage) -> Words:
        options = [word for key, value in more.items() for word in (f"--{key.rstrip('_')}", value)]
        return ["spawn", "api", "--harness", "echo", "--project", str(place(stage)), *options]

    def http(stage: Stage) -> tuple[str, str, Any]:
        given = {key.rstrip("_"): value for key, value in more.items()}
        return (
            "POST",
            "/v1/spawn",
            {"slugs": ["api"], "harness": "echo", "projectPath": str(place(stage)), **given},
        )

    def tool(stage: Stage) -> tuple[str, dict[str, Any]]:
        return "agent_spawn", {"slugs": ["api"], "harness": "echo"}

    def token(stage: Stage) -> str:
        return stage.tokens[name]

    return Scene(typed, http=http, tool=tool, tool_token=token)


def _begun(stage: Stage, folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")


def _git_init(folder: Path, *options: str) -> None:
    git(folder, "init", "-q", *options)


def _dirty(stage: Stage, folder: Path) -> None:
    _begun(stage, folder)
    (folder / "a.txt").write_text("changed\n")


def _branched(stage: Stage, folder: Path) -> None:
    _begun(stage, folder)
    git(folder, "branch", "main.api")


def _set_up(stage: Stage, folder: Path) -> None:
    _begun(stage, folder)
    stage.do("project", "set", "worktree.setup", "echo no network; exit 3", "--project", str(folder))


def _linked(stage: Stage, folder: Path) -> None:
    _begun(stage, folder)
    (folder / ".scout").symlink_to(stage.shell.folder)


def _deep(stage: Stage) -> Words:
    folder = stage.shell.folder / "work" / "deep"
    folder.mkdir(parents=True)
    _begun(stage, folder)
    stage.do("spawn", "one", "--harness", "echo", "--project", str(folder))
    stage.do("spawn", "two", "--from", "@deep.one")
    return ["spawn", "three", "--from", "@deep.one-two"]


def _finish(name: str, prepare: Callable[[Stage, Path, Path], None], **choice: bool) -> Scene:
    """A finish of a child that cannot be merged or removed now; no tool finishes agents."""

    def address(stage: Stage) -> str:
        folder = stage.shell.folder / "work" / name
        if not folder.exists():
            folder.mkdir(parents=True)
            _begun(stage, folder)
            stage.do("spawn", "api", "--harness", "echo", "--project", str(folder), within=60)
            prepare(stage, folder, folder / ".scout" / "worktrees" / "api")
        return f"@{name}.api"

    def typed(stage: Stage) -> Words:
        flags = [f"--{key}" if value else f"--no-{key}" for key, value in choice.items()]
        return ["finish", address(stage), *flags]

    def http(stage: Stage) -> tuple[str, str, Any]:
        return "POST", f"/v1/agents/{address(stage).replace('@', '%40')}/finish", dict(choice)

    return Scene(typed, http=http)


def _written(tree: Path, name: str, text: str) -> None:
    (tree / name).write_text(text)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", name)


def _torn(stage: Stage, folder: Path, tree: Path) -> None:
    _written(tree, "a.txt", "child\n")
    _written(folder, "a.txt", "parent\n")


def _checked(stage: Stage, folder: Path, tree: Path) -> None:
    _written(tree, "b.txt", "b\n")
    stage.do("project", "set", "worktree.check", "echo one test failed; exit 3", "--project", str(folder))


def _unsaved(stage: Stage, folder: Path, tree: Path) -> None:
    (tree / "new.txt").write_text("new\n")


def _with_child(stage: Stage, folder: Path, tree: Path) -> None:
    _written(tree, "b.txt", "b\n")
    stage.do("spawn", "db", "--from", f"@{folder.name}.api", "--harness", "echo", within=60)


SCENES: dict[str, Scene] = {
    "malformed_address": Scene(
        lambda _: ["show", "@a..b"],
        http=lambda _: ("GET", "/v1/resolve?address=%40a..b", None),
        tool=lambda _: ("agents_resolve", {"address": "@a..b"}),
    ),
    "reserved_name": Scene(
        lambda _: ["agent", "register", "codex"],
        http=lambda _: ("POST", "/v1/agents", {"definitionId": "codex"}),
    ),
    "unknown_target": Scene(_unknown, **_ask("@talki")),
    "ambiguous_target": Scene(_two_hudsons, **_ask("@hudson")),
    "ambiguous_endpoint": Scene(_two_harnesses, **_ask("@both")),
    "alias_broken": Scene(_broken_alias, **_ask("@short")),
    "alias_shadows": Scene(
        _shadowing,
        http=lambda _: ("POST", "/v1/aliases", {"name": "talkie", "target": "@talkie"}),
    ),
    "harness_mismatch": Scene(
        _wrong_harness,
        http=lambda _: ("GET", "/v1/resolve?address=%40one%23codex", None),
        tool=lambda _: ("agents_resolve", {"address": "@one#codex"}),
    ),
    "model_mismatch": Scene(
        _wrong_model,
        http=lambda _: ("GET", "/v1/resolve?address=%40one%3Fopus", None),
        tool=lambda _: ("agents_resolve", {"address": "@one?opus"}),
    ),
    "target_offline": Scene(_offline, http=_ask("/system/sweeper")["http"]),
    "paused": Scene(_paused, http=lambda _: ("POST", "/v1/agents/%40talkie/wake", {}), alone=True),
    "malformed_cron": Scene(
        _wrong_time,
        http=lambda _: ("POST", "/v1/schedules", {"cron": "0 25 * * *", "to": "@nightly", "body": "x"}),
        tool=None,  # no tool is about schedules
    ),
    "connector_failed": Scene(_unreachable_chat, http=_add_unreachable_chat),
    "retired_user": Scene(
        _retired_user,
        http=lambda _: ("POST", "/v1/users/gwen/link", {"connector": "telegram"}),
        tool=None,  # no tool is about users
    ),
    "retired_target": Scene(_retired, **_ask("@gone")),
    "not_published": Scene(
        _unpublished,
        http=lambda _: ("GET", "/v1/agents/%40private/publication", None),
        tool=None,  # no tool is about publishing
    ),
    "name_taken": Scene(_name_taken),
    "expired_card": Scene(
        _used_card,
        http=lambda stage: ("POST", "/v1/messages", {"to": stage.tokens["card"], "body": "x"}),
        tool=lambda stage: ("messages_send", {"to": stage.tokens["card"], "body": "x"}),
    ),
    "no_session": Scene(
        lambda _: ["ask", "--session-id", "ses_01m7hqsxx3k4q5r6s7t8v9w0x1", "Review this."],
        http=lambda _: (
            "POST",
            "/v1/asks",
            {"targetSessionId": "ses_01m7hqsxx3k4q5r6s7t8v9w0x1", "body": "x"},
        ),
        tool=lambda _: ("ask", {"targetSessionId": "ses_01m7hqsxx3k4q5r6s7t8v9w0x1", "body": "x"}),
    ),
    "harness_unavailable": Scene(
        _no_binary,
        http=lambda stage: (
            "POST",
            "/v1/asks",
            {"projectPath": str(stage.shell.project("needs-codex")), "harness": "codex", "body": "x"},
        ),
    ),
    "directory_not_allowed": Scene(_outside, **_ask("@stranger")),
    "session_failed": Scene(_failed("breaks", "echo no >&2; exit 3")),
    "wake_failed": Scene(_failed("absent", "/no/such/program")),
    "empty_reply": Scene(_failed("silent", "true")),
    "unauthenticated": Scene(
        lambda _: ["who"],
        http=lambda _: ("GET", "/v1/agents", None),
        environ=lambda _: {"SCOUT_TOKEN": "not-a-token"},
        token=lambda _: "not-a-token",
    ),
    "forbidden": Scene(
        lambda _: ["token", "list"],
        http=lambda _: ("GET", "/v1/tokens", None),
        environ=_as("reader"),
        token=lambda stage: stage.agent("reader"),
    ),
    "not_owner": Scene(
        _not_mine,
        http=lambda stage: ("POST", f"/v1/questions/{stage.tokens['question']}/answer", {"answer": "red"}),
        tool=lambda stage: ("question_answer", {"questionId": stage.tokens["question"], "answer": "red"}),
        environ=_as("asker"),
        token=lambda stage: stage.agent("asker"),
    ),
    "not_found": Scene(
        lambda _: ["flight", "get", "flt_01m7hqsxx3k4q5r6s7t8v9w0x1"],
        http=lambda _: ("GET", "/v1/flights/flt_01m7hqsxx3k4q5r6s7t8v9w0x1", None),
        tool=lambda _: ("invocations_get", {"flightId": "flt_01m7hqsxx3k4q5r6s7t8v9w0x1"}),
    ),
    "key_reused": Scene(
        _key_reused,
        http=lambda _: ("POST", "/v1/messages", {"to": "@bare", "body": "2", "idempotencyKey": "the-key"}),
    ),
    "too_large": Scene(
        _too_large,
        http=lambda _: ("POST", "/v1/messages", {"to": "@bare", "body": "x" * 300_000}),
        tool=lambda _: ("messages_send", {"to": "@bare", "body": "x" * 300_000}),
    ),
    "rate_limited": Scene(_too_many, **_ask("@full")),
    "port_in_use": Scene(_taken_port, environ=_other_home),
    "bad_request": Scene(
        lambda _: ["send", "hello"],
        http=lambda _: ("POST", "/v1/messages", {"body": "hello"}),
        tool=lambda _: ("messages_send", {"body": "hello"}),
    ),
    "wrong_state": Scene(
        _finished,
        http=lambda stage: ("POST", f"/v1/flights/{stage.tokens['finished']}/cancel", {}),
        tool=lambda stage: ("flight_cancel", {"flightId": stage.tokens["finished"]}),
        environ=_as("reader"),
        token=lambda stage: stage.agent("reader"),
    ),
    "depth_cap": Scene(
        _deep, http=lambda _: ("POST", "/v1/spawn", {"slugs": ["three"], "from": "@deep.one-two"})
    ),
    "not_a_repository": _spawn("plain"),
    "no_commit": _spawn("unborn", lambda _, folder: _git_init(folder)),
    "bare_repository": _spawn("bare.git", lambda _, folder: _git_init(folder, "--bare")),
    "uncommitted_changes": _spawn("dirty", _dirty),
    "branch_exists": replace(_spawn("branched", _branched), tool=None),
    "setup_failed": replace(_spawn("set-up", _set_up), tool=None),
    "git_failed": replace(_spawn("linked", _linked), tool=None),
    "merge_conflict": _finish("torn", _torn, merge=True, ask=False),
    "check_failed": _finish("checked", _checked, merge=True),
    "work_would_be_lost": _finish("unsaved", _unsaved, discard=True),
    "unfinished_work": _finish("busy", _with_child, merge=True),
    "no_mesh": Scene(
        lambda _: ["mesh", "invite"], http=lambda _: ("POST", "/v1/mesh/invitations", {}), alone=True
    ),
    "invitation_invalid": Scene(
        lambda _: ["mesh", "join", "nonsense"],
        http=lambda _: ("POST", "/v1/mesh/join", {"line": "nonsense"}),
        alone=True,
    ),
    "wrong_revision": Scene(
        _old_revision,
        http=lambda stage: (
            "POST",
            f"/v1/work/{stage.tokens['work']}/hand_over",
            {"to": "@reader", "revision": 99},
        ),
    ),
}

# Codes that no scene here can bring about, and where they are shown instead.
ABSENT = {
    "disk_space": "a disk that is nearly full: tests/stories/test_spawn.py",
    "peer_unreachable": "a machine that stopped: tests/stories/test_mesh.py",
    "remote_target": "an agent of another machine: tests/stories/test_mesh.py",
    "agent_busy": "an agent that works while it should move: tests/broker/test_mesh_move.py",
    "move_refused": "a machine that has an agent of that name: tests/broker/test_mesh_move.py",
    "not_founder": "a machine that joined: tests/stories/test_mesh.py",
    "mesh_not_installed": "without the extra: tests/mesh",
    "server_missing": "without a nats-server: tests/mesh",
    "server_too_old": "with an old nats-server: tests/mesh",
    "server_failed": "a server that does not start: tests/mesh",
    "mesh_unreachable": "a server that does not answer: tests/mesh",
    "mesh_login_refused": "a removed machine: tests/mesh",
    "certificate_mismatch": "another server at the address: tests/mesh",
    "no_such_moment": "before the first event, and in the future: tests/stories/test_past.py",
    "history_behind": "a history that is being built: tests/stories/test_past.py",
    "history_purged": "a part of the log that was purged: tests/stories/test_archives.py",
    "store_full": "tests/stories/test_full_disk.py",
    "store_damaged": "a damaged file is named at start: tests/stories/test_faults.py",
    "busy": "the daemon is stopping, or its connection broke: tests/cli/test_daemon.py",
    "session_busy": "two terminals take one session: tests/cli/test_sessions.py",
    "session_not_attachable": "a session that a harness does not know: tests/cli/test_sessions.py",
    "wake_budget": "a held flight names it: tests/stories/test_limits.py",
    "ask_loop": "agents that ask in a circle: tests/live/test_sessions.py",
}


def tries(stderr: str) -> list[str]:
    """The commands that a refusal offers."""
    lines = [line.removeprefix("try: ") for line in stderr.splitlines() if line.startswith("try: ")]
    return [line.split("  # ")[0] for line in lines]


def read_code(stderr: str) -> str:
    """The code of the refusal that a command ended with."""
    heads = [line.partition(": ")[0] for line in stderr.splitlines()]
    return next((head for head in heads if head in CODES), "")
