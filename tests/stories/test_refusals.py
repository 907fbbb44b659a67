"""A refusal helps on every surface: the code is the same, and each command it offers works when it is pasted."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon, eventually
from tests.stories.refusals import ABSENT, CODES, SCENES, Stage, read_code, tries

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# `scout` in a pasted line is this one.
SCOUT = 'scout() { "$SCOUT_PYTHON" -m scout "$@"; }\n'
_PATIENCE = 60.0  # seconds for a pasted line to end or to be accepted: a busy machine is no failure
_ANSWERS = 2.0  # seconds for the answer to what was accepted


@contextmanager
def a_stage() -> Generator[Stage]:
    with a_shell() as shell:
        yield Stage(shell, Daemon(shell.home, start_daemon(shell)))


@pytest.fixture(scope="module")
def common() -> Generator[Stage]:
    """One daemon for the scenes that only add to it."""
    with a_stage() as made:
        yield made


@pytest.fixture
def stage(code: str, request: pytest.FixtureRequest) -> Generator[Stage]:
    if SCENES[code].alone:
        with a_stage() as made:
            yield made
    else:
        yield request.getfixturevalue("common")


def test_every_code_has_a_scene_or_a_reason() -> None:
    assert {*SCENES} | {*ABSENT} == {*CODES}
    assert {*SCENES} & {*ABSENT} == set()


@pytest.mark.rows("R0-95", "R3.5-2", "R1.5-16", "R10.3-1")
@pytest.mark.parametrize("code", SCENES)
def test_a_refusal_is_the_same_everywhere_and_what_it_offers_can_be_pasted(stage: Stage, code: str) -> None:
    scene = SCENES[code]
    words = scene.typed(stage)
    environ: dict[str, Any] = {**scene.environ(stage)}

    # A person types it,
    refused = stage.shell.type(*words, cwd=None, stdin="", within=60, **environ)
    assert read_code(refused.stderr) == code, (words, refused.stdout, refused.stderr)
    # a program posts it,
    if scene.http is not None:
        method, path, body = scene.http(stage)
        answer = stage.daemon.call(method, path, body, token=scene.token(stage))
        assert answer.json.get("code") == code, answer.body
        assert answer.json["remedies"], answer.body
        assert all("…" not in str(one) for one in answer.json["remedies"])
    # an agent calls its tool,
    if scene.tool is not None:
        token = scene.tool_token(stage) or scene.token(stage) or stage.agent("reader")
        found = asyncio.run(call(stage, token, *scene.tool(stage)))
        assert found["code"] == code, found
        assert found["remedies"], found
    # and the person pastes each line that was offered.
    offered = tries(refused.stderr)
    assert offered, refused.stderr
    for line in offered:
        assert "…" not in line, line
        code_then, shown = paste(stage, line, environ)
        assert code_then != code, (line, shown)
        assert "Traceback" not in shown, shown


def paste(stage: Stage, line: str, environ: dict[str, str]) -> tuple[str, str]:
    """The code of the refusal that the line leads to, if any, and what was shown.

    A command that is accepted and waits for its result or for a person is left with Ctrl-C.
    """
    process = subprocess.Popen(
        ["bash", "-c", SCOUT + line],
        cwd=stage.shell.folder,
        env={**stage.shell.environ, **environ, "SCOUT_PYTHON": sys.executable},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        process_group=0,
    )
    before = list_open(stage)
    eventually(lambda: process.poll() is not None or list_open(stage) - before, _PATIENCE)
    try:
        out, err = process.communicate(timeout=_ANSWERS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=30)
        return "", out + err
    refused = read_code(err)
    assert process.returncode == 0 or refused or line == "scout doctor", (line, out, err)
    return refused, out + err


def list_open(stage: Stage) -> set[str]:
    """The asks that are not answered, and what waits for a person."""
    places = ("/v1/flights?open=true", "/v1/attention")
    return {one["id"] for place in places for one in stage.daemon.call("GET", place).json["items"]}


async def call(stage: Stage, token: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{stage.daemon.running.url}/mcp", http_client=http)
        async with Client(transport) as client:
            result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    assert result.structured_content is not None
    return result.structured_content
