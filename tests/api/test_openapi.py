"""The OpenAPI document: complete, valid, and true of the real daemon."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scout.api.docs_page import build_page
from scout.api.openapi import build_document
from scout.protocol.operations import REQUESTS
from tests.daemon.daemons import Daemon, daemon

DOCUMENT = build_document("0")
OPERATIONS = {
    operation["operationId"]: (method, path, operation)
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
}


def resolve_reference(reference: str) -> Any:
    found: Any = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


@pytest.mark.rows("R4.2-2")
def test_every_operation_is_described() -> None:
    assert set(OPERATIONS) == {request.operation for request in REQUESTS}
    for method, path, operation in OPERATIONS.values():
        assert operation["summary"].endswith((".", "?")), operation["operationId"]
        assert f"{method.upper()} {path}" in {request.route for request in REQUESTS}


def test_every_reference_leads_somewhere() -> None:
    text = json.dumps(DOCUMENT)
    for reference in set(re.findall(r'"\$ref": "([^"]+)"', text)):
        assert resolve_reference(reference), reference
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+", name) for name in DOCUMENT["components"]["schemas"])


def test_no_answer_is_left_undescribed() -> None:
    for _, _, operation in OPERATIONS.values():
        statuses = set(operation["responses"])
        assert "default" not in statuses
        assert {"400", "401", "403", "404", "409", "429", "500", "503"} <= statuses
        assert ("requestBody" in operation) == ("413" in statuses)


def test_a_path_parameter_is_not_a_field_of_the_body() -> None:
    _, _, operation = OPERATIONS["agent.config"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert "address" not in body["properties"]
    assert body["additionalProperties"] is False
    (address,) = [one for one in operation["parameters"] if one.get("in") == "path"]
    assert address["required"]
    assert address["schema"]["minLength"] == 1


def test_an_answer_shows_the_names_of_other_integrations_too() -> None:
    flight = DOCUMENT["components"]["schemas"]["FlightView"]["properties"]
    assert flight["status"]["description"] == "The same as `state`."


def test_the_page_lists_every_operation() -> None:
    text = build_page("0").body.decode()
    assert [name for name in OPERATIONS if f"<code>{name}</code>" not in text] == []


def test_the_daemon_serves_the_document(live: Daemon) -> None:
    served = live.call("GET", "/openapi.json", token=None)
    assert served.headers["content-type"] == "application/json"
    assert served.json["paths"].keys() == DOCUMENT["paths"].keys()


CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,unsupported_method"
CONFIG = """
[checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", "503"]
"""


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", timeout=140, check=False
    )


@pytest.mark.rows("R7-8")
@pytest.mark.slow
@pytest.mark.first
@pytest.mark.timeout(320)
def test_the_daemon_does_what_the_document_says(tmp_path: Path) -> None:
    done, log = _run_schemathesis(tmp_path / "first")
    if done.returncode != 0 and "FAILURES" not in done.stdout:
        done, log = _run_schemathesis(
            tmp_path / "second"
        )  # the tool itself stumbled, without a word against the daemon
    if done.returncode != 0:
        pytest.fail(
            f"{done.stdout[:6000]}\n…\n{done.stdout[-3000:]}\n{done.stderr[-1000:]}\n{log[-3000:]}",
            pytrace=False,
        )
    assert "ERROR" not in log


def _run_schemathesis(folder: Path) -> tuple[subprocess.CompletedProcess[str], str]:
    """What the tool says about a daemon of its own, and what that daemon wrote.

    503 is how Scout says that a target is offline: documented, and never a fault. `watch` never ends.
    Acting as somebody by chance would be forbidden every time, and nothing behind it would be reached.
    """
    folder.mkdir()
    config, described = folder / "schemathesis.toml", folder / "openapi.json"
    config.write_text(CONFIG)
    with daemon(folder / "home", SCOUT_PERIODS_LONG_POLL="0.2") as one:
        one.register("tested")
        served = one.call("GET", "/openapi.json").body.decode()
        described.write_text(served.replace('{"$ref":"#/components/parameters/ScoutAs"},', ""))
        command = [
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run"),
            *(str(described), "--url", one.running.url),
            *("--header", f"Authorization: Bearer {one.token}"),
            *("--checks", CHECKS, "--phases", "coverage,fuzzing", "--max-examples", "4"),
            *("--generation-deterministic", "--exclude-operation-id", "watch"),
            # One worker: in threads, the library trips over a fault of this Python's syntax trees.
            *("--request-timeout", "20", "--no-color", "--workers", "1", "--max-time", "40"),
        ]
        done = _run(command, folder)
        return done, (one.home / "logs" / "scout.log").read_text()
