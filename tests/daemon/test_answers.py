"""A finished answer is kept, whatever it holds, and never with a live token in it."""

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemons import Daemon, daemon

pytestmark = pytest.mark.slow


def _answer(scout: Daemon, name: str, script: str) -> Any:
    """The flight of an agent whose program is this script."""
    scout.register(name, command=["sh", "-c", f"cat >/dev/null; {script}"])
    asked = scout.call("POST", "/v1/asks", {"to": f"@{name}", "body": "go", "wait": 30})
    assert asked.status == 201, asked.body
    return scout.call("GET", f"/v1/flights/{asked.json['flightId']}?wait=30").json


@pytest.mark.rows("R7-18", "R7-19")
def test_an_answer_is_kept_whatever_it_holds(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_ROOTS=str(tmp_path)) as scout:
        long = _answer(scout, "long", "head -c 1000000 /dev/zero | tr '\\0' x")
        assert long["state"] == "completed"
        message = scout.call("GET", f"/v1/messages/{long['outputMessageId']}").json
        blob = scout.call("GET", f"/v1/attachments/{message['attachments'][0]['sha256']}").json
        assert base64.b64decode(blob["data"]) == b"x" * 1_000_000

        odd = _answer(scout, "odd", "printf 'important\\0tail'")
        assert (odd["state"], odd["output"]) == ("completed", "important␀tail")

        leaky = _answer(scout, "leaky", f'echo "$SCOUT_TOKEN" >{tmp_path}/seen; echo "it is $SCOUT_TOKEN"')
        secret = (tmp_path / "seen").read_text().strip()
        assert secret.startswith("sct_")
        assert (leaky["state"], leaky["output"]) == ("completed", "it is sct_…")
        stored = b"".join(file.read_bytes() for file in scout.home.glob("scout.db*"))
        assert secret.encode() not in stored
