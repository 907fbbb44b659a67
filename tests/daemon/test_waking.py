"""Waking through a real daemon: kept warm without being asked, and a router from the settings."""

import shlex
import sys
from pathlib import Path

import pytest

from tests.daemon.daemons import Daemon, daemon, eventually


def agent(one: Daemon, name: str, **fields: object) -> str:
    return str(one.register(name, harness="echo", **fields)["agent"]["id"])


def deliveries(one: Daemon, message_id: str) -> list[dict[str, object]]:
    found: list[dict[str, object]] = one.call("GET", f"/v1/messages/{message_id}").json["deliveries"]
    return found


@pytest.mark.rows("R3.3-14", "R3.3-15")
def test_an_agent_that_is_kept_warm_comes_up_by_itself(tmp_path: Path) -> None:
    with daemon(tmp_path / "home") as one:
        agent(one, "parrot", wakePolicy="keep_warm")

        def is_up() -> bool:
            shown = one.call("GET", "/v1/agents/@parrot")
            return [endpoint["state"] for endpoint in shown.json["endpoints"]] == ["idle"]

        eventually(is_up)


@pytest.mark.parametrize("command", ["good", "unreadable"])
def test_a_router_is_used_if_the_settings_name_one(tmp_path: Path, command: str) -> None:
    script = tmp_path / "pick.py"
    script.write_text("import json, sys\nprint(sorted(json.load(sys.stdin)['candidates'])[-1])\n")
    line = shlex.join((sys.executable, str(script))) if command == "good" else "'unbalanced"
    settings = {"SCOUT_ROUTING_MODEL_ASSISTED": "true", "SCOUT_ROUTER": line}
    with daemon(tmp_path / "home", **settings) as one:
        names = {name: agent(one, name) for name in ("arc", "bow")}
        one.call("POST", "/v1/channels", {"name": "dev", "members": ["@arc", "@bow"]})
        wish = {"channel": "dev", "body": "who takes it?", "wake": True}
        sent = one.call("POST", "/v1/messages", wish).json["messageId"]
        if command == "good":
            [chosen] = eventually(lambda: deliveries(one, sent))
            assert chosen["target"] == names["bow"]
        else:
            assert deliveries(one, sent) == []
            assert "router disabled" in (one.home / "logs" / "scout.log").read_text()
