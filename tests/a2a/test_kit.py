"""The script that runs the public compatibility kit, with a kit of a few calls in its place."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_PATIENCE = 150

# As the real kit: it sends no credential, posts to the URL with a slash, and directs the agent by message ids.
_KIT = """
import sys
import httpx

host = sys.argv[sys.argv.index("--sut-host") + 1]
card = httpx.get(f"{host}/.well-known/agent-card.json").raise_for_status().json()
urls = {one["protocolBinding"]: one["url"] for one in card["supportedInterfaces"]}
assert all(url.startswith(host) for url in urls.values()), urls

def send(binding, ident, **more):
    message = {"role": "ROLE_USER", "messageId": f"{ident}-1a2b", "parts": [{"text": "x"}], **more}
    sent = {"A2A-Version": "1.0"}
    if binding == "JSONRPC":
        body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        return httpx.post(f"{urls[binding]}/", json=body, headers=sent, timeout=30).json()["result"]["task"]
    url = f"{urls[binding]}/message:send"
    return httpx.post(url, json={"message": message}, headers=sent, timeout=30).json()["task"]

for binding in urls:
    states = [send(binding, ident)["status"]["state"] for ident in ("tck-complete-task", "tck-reject-task")]
    assert states == ["TASK_STATE_COMPLETED", "TASK_STATE_REJECTED"], states
    asking = send(binding, "tck-input-required")
    assert asking["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", asking
    done = send(binding, "tck-complete-task", taskId=asking["id"])
    assert done["status"]["state"] == "TASK_STATE_COMPLETED", done
    parts = {
        ident: send(binding, ident)["artifacts"][0]["parts"][-1]
        for ident in ("tck-artifact-text", "tck-artifact-file", "tck-artifact-data", "tck-artifact-file-url")
    }
    assert parts["tck-artifact-text"]["text"] == "Generated text content", parts
    assert parts["tck-artifact-file"]["raw"], parts
    assert parts["tck-artifact-data"]["data"] == {"key": "value", "count": 42}, parts
    assert parts["tck-artifact-file-url"]["url"] == "https://example.com/output.txt", parts
print("all of it", sys.argv[3:])
"""


@pytest.mark.slow
def test_the_kit_talks_to_a_daemon_and_its_verdict_is_the_scripts(tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    python = tmp_path / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    for script, code in ((_KIT, 0), ("raise SystemExit(3)", 3)):
        (tmp_path / "run_tck.py").write_text(script)
        done = subprocess.run(
            [sys.executable, "-m", "tools.a2a_tck", str(tmp_path)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=_PATIENCE,
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert code or "all of it ['--transport', 'jsonrpc,http_json']" in done.stdout
