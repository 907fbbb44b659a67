"""The environment of a client: where the daemon is, and which credential to use.

The command line, the relay, the hooks and the Python client all read it here. Inside a harness session the
operator's token is never used: a program that an agent runs acts as that agent.
"""

from __future__ import annotations

import os

from scout.client.http import DaemonAddress, quote
from scout.settings.where import find

TYPE_CHECKING = False  # the command line loads this on its warm path, where `typing` is too slow
if TYPE_CHECKING:
    from collections.abc import Mapping

# Set by Scout for the programs it starts, and by harnesses for the programs they run.
SESSION_MARKS = (
    "SCOUT_SESSION",
    "SCOUT_FLIGHT",
    "SCOUT_AGENT",
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CURSOR_AGENT",
    "GEMINI_CLI",
    "OPENCODE",
)
_OF_A_DAEMON = ("SCOUT_URL", "SCOUT_SOCKET", "SCOUT_TOKEN")


class NoToken(Exception):  # noqa: N818 (each client has its own refusal for it)
    """No credential is available: `reason` says why, `needs` what would help."""

    def __init__(self, reason: str, *needs: str) -> None:
        super().__init__(reason)
        self.reason, self.needs = reason, needs


class Environment:
    """The environment variables of a client. With `home`, only that data folder counts."""

    def __init__(self, environ: Mapping[str, str] = os.environ, home: str | None = None) -> None:
        if home is not None:
            kept = {name: value for name, value in environ.items() if name not in _OF_A_DAEMON}
            environ = {**kept, "SCOUT_HOME": home}
        self.environ = environ
        self.where = find(environ)
        self.session = next((mark for mark in SESSION_MARKS if environ.get(mark)), None)

    @property
    def address(self) -> DaemonAddress:
        """`SCOUT_URL` if set, else the socket: `SCOUT_SOCKET`, or the socket in the data folder.

        A ValueError says what is wrong with `SCOUT_URL`.
        """
        if url := self.environ.get("SCOUT_URL"):
            return DaemonAddress.of_url(url)
        return DaemonAddress(socket=self.environ.get("SCOUT_SOCKET") or self.where.socket)

    @property
    def given_token(self) -> str:
        """The credential in `SCOUT_TOKEN`; empty if there is none."""
        return self.environ.get("SCOUT_TOKEN", "").strip()

    def find_token(self) -> str:
        """Return `SCOUT_TOKEN`, else the enrolled session's token, else (outside sessions) the operator's."""
        if self.given_token:
            return self.given_token
        if self.session:
            from scout.client.session_files import find_session_token  # noqa: PLC0415 (few commands need it)

            if token := find_session_token(self.where.runtime, self.environ):
                return token
            reason = (
                f"this runs inside a harness session ({self.session} is set) and SCOUT_TOKEN is not set; "
                "the operator's token is never used inside a session"
            )
            raise NoToken(reason, "SCOUT_TOKEN of the session")
        try:
            with open(self.where.token_file, encoding="ascii", errors="replace") as file:  # noqa: PTH123 (pathlib would be loaded for this)
                return file.read().strip()
        except OSError as error:
            reason = f"cannot read {self.where.token_file} ({error.strerror}), and SCOUT_TOKEN is not set"
            raise NoToken(reason, "SCOUT_TOKEN", self.where.token_file) from None


def build_headers(token: str, act_as: str | None = None, directory: str = "") -> dict[str, str]:
    """Return the headers with credential, identity and directory that every request carries."""
    headers = {"Authorization": f"Bearer {token}"}
    if act_as:
        headers["Scout-As"] = quote(act_as)
    if directory:
        headers["Scout-Directory"] = quote(directory)
    return headers


def get_current_directory() -> str:
    """Return the working directory; empty if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 (pathlib would be loaded for this)
    except OSError:
        return ""
