"""The libraries of A2A are an extra: nothing loads them before a request needs them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.a2a.stage import play, say, send, staged

_HEAVY = ("a2a", "google.protobuf", "sse_starlette", "httpx")


@pytest.mark.parametrize(
    "module", ["scout.daemon.serve", "scout.daemon.harnesses", "scout.cli.main", "scout.adapters.a2a.adapter"]
)
def test_nothing_that_starts_loads_them(module: str) -> None:
    code = f"import sys, {module}; print(sorted(set({_HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")
def test_publishing_and_the_card_load_nothing_and_the_first_message_does(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        maps = Path(f"/proc/{stage.daemon.running.pid}/maps")
        url = stage.publish("arc", harness="echo")
        assert (
            stage.daemon.call(
                "GET", f"{url[len(stage.daemon.running.url) :]}/.well-known/agent-card.json"
            ).status
            == 200
        )
        assert "google/_upb" not in maps.read_text()
        play(url, stage.guest, "JSONRPC", lambda client: send(client, say("hello")))
        assert "google/_upb" in maps.read_text()


# A daemon without the package: the import of `a2a` fails as if it were not installed.
_WITHOUT = """
import sys, importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "a2a" else find(name, *more)
sys.modules["a2a"] = None
"""


@pytest.mark.slow
def test_without_the_package_publishing_is_refused_with_the_command_that_installs_it(tmp_path: Path) -> None:
    shim = tmp_path / "shim"
    shim.mkdir()
    (shim / "sitecustomize.py").write_text(_WITHOUT)
    path = os.pathsep.join([str(shim), os.environ.get("PYTHONPATH", "")])
    with staged(tmp_path, PYTHONPATH=path) as stage:
        stage.daemon.register("arc", harness="echo")
        reply = stage.daemon.call("POST", "/v1/agents/@arc/publish", {})
        assert (reply.status, reply.json["code"]) == (503, "harness_unavailable")
        assert "pip install 'scout-broker[a2a]'" in reply.json["message"]
        assert reply.json["remedies"][0]["operation"] == "runtimes"
