"""The large libraries of MCP are loaded after the daemon listens, and never by the command line."""

import asyncio
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from scout.daemon.lazy_mcp import LazyMcp
from tests.broker.rig import wait_until
from tests.daemon.daemons import Daemon, daemon

_HEAVY = ("mcp", "mcp_types", "pydantic", "starlette")


@pytest.mark.parametrize(
    "module",
    [
        "scout.daemon.__main__",
        "scout.daemon.serve",
        "scout.cli.main",
        "scout.cli.fast",
        "scout.client",
        "scout.api.app",
    ],
)
def test_nothing_that_starts_loads_them(module: str) -> None:
    code = f"import sys, {module}; print(sorted(set({_HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def _has_loaded(running: Daemon) -> bool:
    return "pydantic_core" in Path(f"/proc/{running.running.pid}/maps").read_text()


async def _who(running: Daemon, token: str) -> str:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{running.running.url}/mcp", http_client=http)) as client,
    ):
        result = await client.call_tool("whoami", {})
        return result.structured_content["minimal"]


@pytest.mark.rows("R6-7")
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")
def test_a_daemon_listens_first_and_who_comes_early_is_served(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as running:
        assert not _has_loaded(running)
        token = running.register("arc")["token"]
        assert asyncio.run(_who(running, token)) == "@arc"
        assert _has_loaded(running)


def test_they_are_loaded_by_themselves_only_while_nothing_is_asked() -> None:
    async def scene() -> None:
        counts, looks = (0, 5, 9, 9), list[bool]()  # requests so far: at the start, and at three looks

        def count() -> int:
            looks.append(lazy.is_begun)
            return counts[len(looks) - 1]

        lazy = LazyMcp("0", pause=0.001)
        lazy.begin_when_idle(count)
        await wait_until(lambda: lazy.is_begun)
        assert looks == [False] * len(counts)
        await lazy.close()

    asyncio.run(scene())


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")
def test_an_idle_daemon_loads_them_unless_the_setting_says_no(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with (
        daemon(tmp_path / "one" / "home", SCOUT_MCP_PRELOAD="true") as eager,
        daemon(tmp_path / "two" / "home") as lazy,
    ):
        asyncio.run(wait_until(lambda: _has_loaded(eager), 60))
        assert not _has_loaded(lazy)
