"""The ways to a person's eyes: a program on the PATH, and a signed POST."""

import asyncio
import hashlib
import hmac
import json
from pathlib import Path

import pytest

from scout.adapters.sinks.desktop import Desktop, find_program
from scout.adapters.sinks.webhook import Webhook, sign
from scout.base.time import Time
from scout.daemon.clock import SystemClock
from scout.ports import Notice
from tests.adapters.receiving import read_arguments, receiver, stand_in
from tests.adapters.turns import LOOPS

NOTICE = Notice(
    id="att_1", title="$(touch x) --help", text="a\nb\x1b[0m", kind="question", risk="high", at=Time(1)
)


def test_a_notice_is_shown_by_the_program_that_is_there(tmp_path: Path, loop: str) -> None:
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(Desktop(stand_in(tmp_path)).tell(NOTICE))
    # Texts are arguments, whatever is in them: no shell and no option reads them.
    words = ["--urgency=critical", "--app-name=Scout", "--", "Scout: $(touch x) --help", "a ⏎ b\\x1b[0m"]
    assert read_arguments(tmp_path) == words
    assert not (tmp_path / "x").exists()


def test_the_other_program(tmp_path: Path) -> None:
    environ = stand_in(tmp_path, "osascript")
    asyncio.run(Desktop({**environ, "PATH": str(tmp_path)}).tell(NOTICE))
    assert read_arguments(tmp_path, "osascript")[-2:] == ["Scout: $(touch x) --help", "a ⏎ b\\x1b[0m"]


def test_a_program_that_fails_or_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="exited with 3: it went wrong"):
        asyncio.run(Desktop(stand_in(tmp_path, code=3)).tell(NOTICE))
    nowhere = str(tmp_path / "nowhere")
    assert find_program(nowhere) is None
    with pytest.raises(OSError, match="neither notify-send nor osascript"):
        asyncio.run(Desktop({"PATH": nowhere}).tell(NOTICE))


def test_a_webhook_is_signed_and_says_what_it_is() -> None:
    with receiver() as other:
        asyncio.run(Webhook(other.url, "hush", SystemClock()).tell(NOTICE))
        ((headers, body),) = other.seen
    told = json.loads(body)
    assert {name: told[name] for name in ("id", "title", "kind", "risk")} == {
        "id": "att_1",
        "title": "$(touch x) --help",
        "kind": "question",
        "risk": "high",
    }
    assert headers["Content-Type"] == "application/json"
    # The signature as a receiver would compute it, by the words of the documentation.
    parts = dict(part.split("=") for part in headers["Scout-Signature"].split(","))
    expected = hmac.new(b"hush", parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
    assert parts["v1"] == expected
    assert sign("another", int(parts["t"]), body) != headers["Scout-Signature"]


@pytest.mark.parametrize("code", [302, 404, 500])
def test_whatever_is_no_success_is_a_failure_and_nobody_is_sent_elsewhere(code: int) -> None:
    with receiver(code) as other:
        hook = Webhook(other.url, "hush", SystemClock())
        assert "s3cret" not in hook.name
        with pytest.raises(OSError, match=f"webhook 127.0.0.1 answered {code}"):
            asyncio.run(hook.tell(NOTICE))
        assert len(other.seen) == 1
