"""The sweeper of a real daemon, with periods of a second instead of hours."""

from pathlib import Path
from typing import Any

import pytest

from tests.daemon.daemons import daemon, eventually


@pytest.mark.slow
@pytest.mark.rows("R3.4-2", "R3.4-11", "R3.4-13")
def test_a_question_that_nobody_answers_is_brought_up_again(tmp_path: Path) -> None:
    with daemon(tmp_path / "home", SCOUT_PERIODS_SWEEPS_QUESTION_OPEN="1") as running:
        asker, answerer = running.register("asker")["token"], running.register("answerer")["token"]
        asked = running.call("POST", "/v1/questions", {"to": "@answerer", "body": "well?"}, token=asker)
        assert asked.status == 201, asked.body

        def reminded() -> Any:
            items = running.call("GET", "/v1/inbox", token=answerer).json["items"]
            texts = [one["message"]["body"] for one in items]
            return [one for one in texts if one.startswith("open question: well?")]

        (text,) = eventually(reminded)
        assert f"scout question answer {asked.json['id']}" in text

        def escalated() -> Any:
            return running.call("GET", "/v1/attention").json["items"]

        (item,) = eventually(escalated)
        assert item["title"] == "open question: well?"
        assert len(reminded()) == 1
