"""A repository with spawned agents, seen from every surface."""

import asyncio
import contextlib
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from scout.daemon.start import stop
from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import Daemon, Reply

__all__ = ["Family", "a_family", "git", "make_repository"]


def git(folder: Path, *words: str) -> str:
    """A git command in this folder, by nobody in particular."""
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def make_repository(folder: Path, branch: str = "main") -> Path:
    """A repository with one commit."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", branch)
    (folder / "read.me").write_text("hello\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


class Family:
    """A daemon, a repository, and the agents in it."""

    def __init__(self, shell: Shell, root: Path) -> None:
        self.shell = shell
        self.root = root
        self.daemon = Daemon(shell.home, start_daemon(shell))
        self._tokens: dict[str, str] = {}

    def restart(self, *, without_database: bool = False) -> None:
        """Stop the daemon, perhaps delete its database, and start it again."""
        stop(str(self.shell.home), timeout=60)
        if without_database:
            for file in self.shell.home.glob("scout.db*"):
                file.unlink()
            self._tokens.clear()
        self.daemon = Daemon(self.shell.home, start_daemon(self.shell))

    def spawn(self, *slugs: str, **wish: Any) -> list[dict[str, Any]]:
        """Spawn agents; what each of them is."""
        body = {"slugs": slugs, "harness": "echo", "projectPath": str(self.root), **wish}
        return self.post("/v1/spawn", body)["agents"]

    def tree(self, *words: str, cwd: Path | None = None) -> Any:
        """The tree as data."""
        return self.shell.data("tree", *words, cwd=cwd or self.root)

    def work_tree(self, slug: str) -> Path:
        return self.root / ".scout" / "worktrees" / slug

    def call(self, method: str, path: str, body: Any = None, agent: str = "") -> Reply:
        """A request, by the operator or an agent."""
        return self.daemon.call(method, path, body, token=self.token(agent) if agent else "")

    def post(self, path: str, body: Any, agent: str = "") -> Any:
        answer = self.call("POST", path, body, agent)
        assert answer.status in (200, 201), answer.body
        return answer.json

    def get(self, path: str, agent: str = "") -> Any:
        answer = self.call("GET", path, agent=agent)
        assert answer.status == 200, answer.body
        return answer.json

    def token(self, agent: str) -> str:
        if agent not in self._tokens:
            self._tokens[agent] = self.daemon.make_token(agent)
        return self._tokens[agent]

    def inbox(self, agent: str) -> list[str]:
        """The messages that wait for an agent."""
        items = self.get("/v1/inbox", agent)["items"]
        return [one["message"]["body"] for one in items if one.get("message")]

    def use(self, agent: str, tool: str, url: str = "/mcp", **arguments: Any) -> Any:
        """The result of an MCP tool, as an agent calls it."""

        async def run() -> Any:
            headers = {"Authorization": f"Bearer {self.token(agent)}"}
            async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                target = f"{self.daemon.running.url}{url}"
                async with Client(streamable_http_client(target, http_client=http)) as client:
                    return await client.call_tool(tool, arguments)

        return asyncio.run(run())

    def facts(self, agent: str, tool: str, url: str = "/mcp", **arguments: Any) -> Any:
        """What a tool answers, which must work."""
        result = self.use(agent, tool, url, **arguments)
        assert not result.is_error, result
        return result.structured_content

    @staticmethod
    def url(role: str, name: str) -> str:
        """The MCP URL of one agent, with its name percent-encoded."""
        return f"/agents/{role}/{quote(name, safe='')}/mcp"


@contextlib.contextmanager
def a_family(branch: str = "main") -> Generator[Family]:
    """A family without agents yet, in the repository `hudson`."""
    with a_shell() as shell:
        yield Family(shell, make_repository(shell.folder / "work" / "hudson", branch))
