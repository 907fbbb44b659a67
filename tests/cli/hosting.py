"""A shell in which a host is set up, and what a host says to its hooks."""

import json
import subprocess
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import Shell, a_shell, start_daemon
from tests.daemon.daemons import eventually


class Hosted(Shell):
    """What a host would do: run a hook with an event on standard input."""

    def hook(
        self,
        event: str,
        name: str = "",
        *,
        cwd: Path | None = None,
        session: str = "n-1",
        environ: Mapping[str, Any] = {},
        **facts: Any,
    ) -> subprocess.CompletedProcess[str]:
        cwd = cwd or self.project("talkie")
        told = {"session_id": session, "cwd": str(cwd), "hook_event_name": name, **facts}
        words = ("hook", event, "--host", "claude", "--wait", "20")
        done = self.type(*words, cwd=cwd, stdin=json.dumps(told), **environ)
        assert (done.returncode, done.stderr) == (0, "")
        return done

    def told(self, event: str, name: str = "", **facts: Any) -> Any:
        """What the host reads, decoded; None when the hook is silent."""
        printed = self.hook(event, name, **facts).stdout
        return json.loads(printed) if printed else None

    def ask(self, text: str) -> Any:
        """Ask the agent of this session, and wait until the ask is in its mail.

        The daemon first tries to hand it to the idle session itself, which no program here takes.
        """
        receipt = self.data("ask", "@talkie", text, "--no-wait")
        eventually(lambda: self._is_in_mail(receipt["flightId"]))
        return receipt

    def _is_in_mail(self, flight_id: str) -> bool:
        found = self.data("delivery", "list", "--target", "@talkie")["items"]
        (delivery,) = [one for one in found if one["flightId"] == flight_id]
        return (delivery["state"], delivery["attempts"]) == ("pending", 1)

    def kept(self, session: str = "n-1") -> dict[str, Any]:
        return json.loads((self.home / "hosts" / f"claude-{session}.json").read_text())

    def make_token(self) -> None:
        secret = self.data("token", "create", "--kind", "host", "--label", "scout setup")["secret"]
        file = self.home / "host.token"
        file.write_text(secret)
        file.chmod(0o600)


@pytest.fixture
def hosted() -> Generator[Hosted]:
    """A daemon of its own, and a host's token."""
    with a_shell() as shell:
        start_daemon(shell)
        made = Hosted(shell.folder)
        made.make_token()
        yield made
