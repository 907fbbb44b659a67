"""Reserved files in the summary: those that concern the reader, on every surface, and no others."""

import asyncio
import json
from collections.abc import Generator
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.stories.families import Family, a_family

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ROOT, AUTH = "@hudson", "@hudson.auth"


@pytest.fixture
def family() -> Generator[Family]:
    """@hudson holds its sources in its own work tree, @hudson.auth all notes of the repository."""
    with a_family() as made:
        made.spawn("auth")
        wish = {"globs": ["src/**"], "folder": str(made.root), "why": "moving the parser"}
        made.post("/v1/reservations", wish, ROOT)
        made.post("/v1/reservations", {"globs": ["*.md"], "folder": str(made.root), "repo": True}, AUTH)
        yield made


def read_brief(family: Family, agent: str) -> Any:
    """The resource that an MCP client reads to find out where it stands."""

    async def run() -> str:
        headers = {"Authorization": f"Bearer {family.token(agent)}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            target = f"{family.daemon.running.url}/mcp"
            async with Client(streamable_http_client(target, http_client=http)) as client:
                found: Any = await client.read_resource("scout://brief")
                return str(found.contents[0].text)

    return json.loads(asyncio.run(run()))


def files_of(answer: Any) -> list[tuple[str, list[str]]]:
    return sorted((one["address"], one["globs"]) for one in answer.get("reservations", ()))


@pytest.mark.rows("R10.w-6")
def test_the_summary_names_the_reserved_files_that_concern_the_reader(family: Family) -> None:
    both = [(ROOT, ["src/**"]), (AUTH, ["*.md"])]
    notes = [(AUTH, ["*.md"])]
    # A person, by the folder in which the command is typed.
    shown = family.shell.say("now", cwd=family.root)
    assert "Reserved files" in shown
    assert f"{ROOT}  src/**, until " in shown
    assert ": moving the parser" in shown
    assert f"{AUTH}  *.md, until " in shown
    assert files_of(family.shell.data("now", cwd=family.root)) == both
    assert files_of(family.shell.data("now", cwd=family.work_tree("auth"))) == notes
    elsewhere = family.shell.say("now", cwd=family.shell.folder)
    assert "Reserved files" not in elsewhere
    # An agent, by its work tree: over HTTP, MCP, and on the command line.
    assert files_of(family.get("/v1/now", ROOT)) == both
    assert files_of(family.get("/v1/now", AUTH)) == notes
    assert files_of(read_brief(family, ROOT)) == both
    assert files_of(read_brief(family, AUTH)) == notes
    assert "reserved       @hudson.auth  *.md, until " in family.shell.say("brief", "--as", AUTH)
    # What has ended concerns nobody.
    for one in family.get("/v1/reservations")["items"]:
        family.shell.say("reserve", "release", one["id"])
    assert files_of(family.shell.data("now", cwd=family.root)) == []
    assert "Reserved files" not in family.shell.say("now", cwd=family.root)
