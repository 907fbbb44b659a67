"""The real programs, only looked at: seen while they run, read afterwards, and not one file of theirs touched."""

import hashlib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from scout.adapters.claude import files as claude
from scout.adapters.codex import files as codex
from scout.adapters.transcript import read_tail
from tests.daemon.daemons import Daemon, daemon, eventually
from tests.live.model.server import scripted_model
from tests.live.programs import HOSTS, Door

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FILES: dict[str, Any] = {"claude": claude, "codex": codex}
PROMPT = "Review this. <<sleep 3>>"


def prints(folder: Path) -> dict[str, str]:
    """Every file of a program by what it holds and when it was written."""
    return {
        str(path): f"{path.stat().st_mtime_ns} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def list_shown(scout: Daemon, query: str = "") -> dict[str, dict[str, Any]]:
    """By its harness, what topology shows of each session that has said something."""
    items = scout.call("GET", f"/v1/topology{query}").json["items"]
    return {one["harness"]: one for one in items if one.get("title") == PROMPT}


@pytest.mark.rows("R5.4-1")
def test_real_sessions_are_seen_while_they_run_and_read_when_they_are_over(tmp_path: Path) -> None:
    homes = {name: tmp_path / name / name for name in FILES}
    environ = {"CLAUDE_CONFIG_DIR": str(homes["claude"]), "CODEX_HOME": str(homes["codex"])}
    with (
        daemon(tmp_path / "home", **environ) as scout,
        scripted_model() as model,
        ExitStack() as programs,
    ):
        token = scout.register("arc")["token"]
        door = Door(f"{scout.running.url}/agents/dev/arc/mcp", token, model.url)
        started = [
            programs.enter_context(HOSTS[name].running(tmp_path / name, door, PROMPT)) for name in FILES
        ]
        runs = dict(zip(FILES, started, strict=True))

        def both() -> dict[str, dict[str, Any]] | None:
            seen = list_shown(scout, "?live=true")
            return seen if len(seen) == len(FILES) else None

        live = eventually(both)
        for name, one in live.items():
            assert (one["pid"], one["cwd"]) == (runs[name].process.pid, str(tmp_path / name / "work"))
            assert one["attach"]["parameters"]["session"] == one["nativeId"]
            entry = FILES[name].find_live_session(homes[name], one["nativeId"])
            assert entry is not None
            assert entry.process.pid == one["pid"]
        for run in started:
            run.ended()
        before = {name: prints(tmp_path / name) for name in FILES}
        over = list_shown(scout)
        for name, files in FILES.items():
            assert over[name]["nativeId"] == live[name]["nativeId"]
            assert not over[name].get("live")
            told = read_tail(
                files.find_transcript(homes[name], over[name]["nativeId"]), 0, 50, files.read_entry
            )
            assert [(line.who, line.text) for line in told.lines] == [
                ("user", PROMPT),
                ("assistant", "ready"),
            ]
        assert {name: prints(tmp_path / name) for name in FILES} == before
