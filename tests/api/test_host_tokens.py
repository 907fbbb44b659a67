"""A host token enrols a session, reports its hooks and fetches its mail, and can do nothing else."""

from pathlib import Path

import pytest

from tests.daemon.daemons import Daemon


@pytest.mark.rows("R7-6")
def test_a_host_token_enrols_reports_and_fetches_and_nothing_else(live: Daemon, tmp_path: Path) -> None:
    host = live.call("POST", "/v1/tokens", {"kind": "host"}).json["secret"]
    wish = {"cwd": str(tmp_path), "harness": "claude", "nativeSessionId": "n-host"}
    enrolled = live.call("POST", "/v1/sessions/enrol", wish, token=host)
    assert enrolled.status == 201, enrolled.body
    session = f"/v1/sessions/{enrolled.json['session']['id']}"
    address = enrolled.json["session"]["agentId"]
    assert live.call("POST", "/v1/messages", {"to": address, "body": "hello"}).status == 201
    told = live.call("POST", f"{session}/hook", {"event": "stop"}, token=host)
    assert told.status == 200, told.body
    assert "hello" in told.body.decode()

    refused: list[tuple[str, str, object]] = [
        ("GET", "/v1/agents", None),
        ("GET", "/v1/messages?to=@x", None),
        ("GET", "/v1/attention", None),
        ("GET", "/v1/log", None),
        ("POST", "/v1/messages", {"to": address, "body": "x"}),
        ("POST", "/v1/asks", {"to": address, "body": "x"}),
        ("POST", "/v1/agents", {"definitionId": "more"}),
        ("POST", "/v1/tokens", {"kind": "host"}),
        ("POST", f"{session}/stop", {}),
    ]
    for method, path, body in refused:
        answer = live.call(method, path, body, token=host)
        assert (answer.status, answer.json["code"]) == (403, "forbidden"), (path, answer.body)
