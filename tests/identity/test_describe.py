"""Every form of an address as plain data: what `scout parse --json` and `POST /v1/parse` answer."""

from typing import Any

import pytest

from scout.identity.describe import describe, describe_mentions


@pytest.mark.parametrize(
    ("text", "form", "parts"),
    [
        (
            "@arc.main#claude",
            "handle",
            {"dimensions": {"definitionId": "arc", "workspaceQualifier": "main", "harness": "claude"}},
        ),
        ("/u1/agent/arc", "path", {"kind": "agent", "modelRole": "user", "userId": "u1", "connector": None}),
        ("main.feature.auth", "branch", {"depth": 2, "parent": "main.feature"}),
        ("./sub/0", "relative", {"base": "self", "suffix": "/sub/0"}),
        ("../sub/1", "relative", {"base": "parent", "suffix": "/sub/1"}),
        ("project:/srv/arc", "project", {"directory": "/srv/arc"}),
        ("root", "root", {}),
    ],
)
def test_each_form_has_its_parts(text: str, form: str, parts: dict[str, Any]) -> None:
    described = describe(text, "main")
    assert (described["input"], described["form"]) == (text, form)
    assert parts.items() <= described.items()


def test_ids_and_sessions_say_what_they_name() -> None:
    assert describe("agt_01m7hqsxx3e8rbxq7vkf5y2k3c")["kind"] == "agt"
    by_id = describe("session:ses_01m7hqsxx3e8rbxq7vkf5y2k3c")
    assert (by_id["form"], by_id["id"]) == ("session", "ses_01m7hqsxx3e8rbxq7vkf5y2k3c")
    by_harness = describe("session:claude:0f3a")
    assert (by_harness["harness"], by_harness["nativeId"]) == ("claude", "0f3a")


def test_mentions_of_a_body() -> None:
    described = describe_mentions("@arc look at this with @hudson")
    assert (described["leading"], described["soft"]) == ("@arc", ["@hudson"])
    assert describe_mentions("nobody is named")["leading"] is None
    broken = describe_mentions("@arc.dev.mini look")
    assert broken["leading"] is None
    assert broken["error"]["code"] == "malformed_address"
