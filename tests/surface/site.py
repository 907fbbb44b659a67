"""One real daemon, its person at the command line, and its agents over HTTP and MCP."""

import asyncio
import subprocess
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.running import Shell
from tests.daemon.daemons import Daemon, eventually

__all__ = ["Agent", "Site", "git"]

PAST = ("completed", "failed", "cancelled")


def git(folder: Path, *words: str) -> None:
    """A git command in this folder, by nobody in particular."""
    who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


class Agent:
    """One agent and what it does with its own token."""

    def __init__(self, site: "Site", made: dict[str, Any]) -> None:
        self.site = site
        self.record: dict[str, Any] = made["agent"]
        self.id = str(self.record["id"])
        self.path = str(made["path"])
        self.address = str(made["address"])
        self._given: str | None = made.get("token")

    @cached_property
    def token(self) -> str:
        """Its own token: from its registration, else made now."""
        return self._given or str(self.site.post("/v1/tokens", agent=self.id)["secret"])

    def get(self, path: str, /, **query: Any) -> Any:
        return self.site.get(path, token=self.token, **query)

    def post(self, path: str, /, **body: Any) -> Any:
        return self.site.post(path, token=self.token, **body)

    def refused(self, method: str, path: str, /, **body: Any) -> Any:
        return self.site.refused(method, path, token=self.token, **body)

    def endpoint(self, **wish: Any) -> Any:
        """A way to this agent, which says so itself."""
        return self.post("/v1/endpoints", **wish)

    def claim(self) -> list[Any]:
        return self.post("/v1/inbox/claim")["items"]

    def texts(self) -> list[str]:
        """What waits for it, as text."""
        return [item["message"]["body"] for item in self.get("/v1/inbox")["items"] if item.get("message")]

    def tool(self, name: str, **arguments: Any) -> Any:
        """What an MCP tool answers to it, as data."""
        return self.result(name, **arguments).structured_content

    def result(self, name: str, **arguments: Any) -> Any:
        """The whole result of an MCP tool."""

        async def run() -> Any:
            headers = {"Authorization": f"Bearer {self.token}"}
            async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
                url = f"{self.site.daemon.running.url}/mcp"
                async with Client(streamable_http_client(url, http_client=http)) as client:
                    return await client.call_tool(name, arguments)

        return asyncio.run(run())


class Site:
    """A daemon and the ways to it; every test uses names that no other test uses."""

    def __init__(self, shell: Shell, daemon: Daemon) -> None:
        self.shell = shell
        self.daemon = daemon

    def call(self, method: str, path: str, /, token: str = "", directory: str = "", **body: Any) -> Any:
        """The status and the answer of one request."""
        headers = {"Scout-Directory": quote(directory)} if directory else {}
        sent = None if method == "GET" else body
        where = f"{path}?{urlencode(body)}" if method == "GET" and body else path
        reply = self.daemon.call(method, where, sent, headers, token=token)
        return reply.status, reply.json

    def get(self, path: str, /, **query: Any) -> Any:
        status, answer = self.call("GET", path, **query)
        assert status == 200, answer
        return answer

    def post(self, path: str, /, **body: Any) -> Any:
        status, answer = self.call("POST", path, **body)
        assert status in (200, 201), answer
        return answer

    def patch(self, path: str, /, **body: Any) -> Any:
        status, answer = self.call("PATCH", path, **body)
        assert status == 200, answer
        return answer

    def refused(self, method: str, path: str, /, **body: Any) -> Any:
        """The problem document of a request that is refused."""
        status, answer = self.call(method, path, **body)
        assert status >= 400, answer
        assert answer["status"] == status
        return answer

    def agent(self, name: str, **wish: Any) -> Agent:
        """A new agent of this name, in a project of its own."""
        wish.setdefault("projectRoot", str(self.shell.project(name)))
        return Agent(self, self.post("/v1/agents", definitionId=name, **wish))

    def puller(self, name: str, **wish: Any) -> Agent:
        """A new agent that takes what is for it from its inbox."""
        made = self.agent(name, **wish)
        made.endpoint()
        return made

    def show(self, address: str) -> Any:
        return self.get(f"/v1/agents/{quote(address, safe='')}")

    def resolve(self, address: str, **how: Any) -> Any:
        """What an address means."""
        return self.get("/v1/resolve", address=address, **how)

    def unresolved(self, address: str, **how: Any) -> Any:
        """The problem document of an address that means nothing, or several things."""
        return self.refused("GET", "/v1/resolve", address=address, **how)

    def parse(self, text: str) -> Any:
        """What a text is, read without a directory."""
        (found,) = self.post("/v1/parse", texts=[text])["items"]
        return found

    def ask(self, to: str, body: str = "Review this.", **more: Any) -> Any:
        return self.post("/v1/asks", to=to, body=body, **more)

    def flight(self, ident: str) -> Any:
        return self.get(f"/v1/flights/{ident}")

    def finished(self, ident: str) -> Any:
        """A flight, once it is finished."""

        def look() -> Any:
            found = self.get(f"/v1/flights/{ident}", wait=5)
            return found if found["state"] in PAST else None

        return eventually(look)

    def log(self, after: int = 0, **query: Any) -> list[Any]:
        """The events of the log after this number."""
        found: list[Any] = []
        while page := self.get("/v1/log", after=after, limit=200, **query)["items"]:
            found += page
            after = page[-1]["seq"]
        return found

    def events_about(self, after: int, *words: str) -> list[Any]:
        """The events after this number that hold one of these words; others may go on beside a test."""
        return [event for event in self.log(after) if any(word in str(event) for word in words)]

    def end_of_log(self) -> int:
        """The number of the newest event."""
        items = self.get("/v1/log", newest="true", limit=1)["items"]
        return int(items[-1]["seq"]) if items else 0
