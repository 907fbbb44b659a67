"""Who calls, and where the daemon is: read from the environment, never guessed.

Inside a harness session the operator's token is never used: a program that an agent runs is that agent.
"""

from __future__ import annotations

import os

from scout.cli.connection.http import DaemonAddress, quote
from scout.cli.connection.refusal import RefusalError, remedy
from scout.client.session import in_session
from scout.settings.where import find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from scout.settings.where import Where


class CliIdentity:
    """One invocation's view: where, as whom, from which directory."""

    def __init__(self, act_as: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
        self.act_as = act_as
        self.environ = environ
        self.where: Where = find(environ)
        self.session = in_session(environ)

    def place(self) -> DaemonAddress:
        """The daemon's address: SCOUT_URL if set, else the socket."""
        if url := self.environ.get("SCOUT_URL"):
            try:
                return DaemonAddress.of_url(url)
            except ValueError as error:
                raise RefusalError.of("bad_request", f"SCOUT_URL: {error}") from None
        return DaemonAddress(socket=self.environ.get("SCOUT_SOCKET") or self.where.socket)

    @property
    def may_start(self) -> bool:
        """Whether a verb may start the daemon: typed by a person, and not turned off."""
        return self.where.autostart and not self.session and not self.environ.get("SCOUT_URL")

    @property
    def has_own_token(self) -> bool:
        """Whether the environment, or a session, says whose credential it is; else it is the operator's."""
        return bool(self.environ.get("SCOUT_TOKEN", "").strip() or self.session)

    def headers(self) -> dict[str, str]:
        """Credential, identity and directory, as every request carries them."""
        told = {"Authorization": f"Bearer {self.token()}"}
        if self.act_as:
            told["Scout-As"] = quote(self.act_as)
        if here := _directory():
            told["Scout-Directory"] = quote(here)
        return told

    def token(self) -> str:
        """SCOUT_TOKEN, else that of the enrolled session, else the operator's, which no session may use."""
        if token := self.environ.get("SCOUT_TOKEN", "").strip():
            return token
        if self.session:
            from scout.cli.connection.host_session import session_token

            if token := session_token(self.where.runtime, self.environ):
                return token
            raise RefusalError.of(
                "unauthenticated",
                f"not authenticated: {self.session} says that this runs inside a harness session, "
                "and SCOUT_TOKEN is not set; the operator's token is never used there",
                reason="no token of the session",
                needs=["SCOUT_TOKEN of the session"],
            )
        try:
            with open(self.where.token_file, encoding="ascii", errors="replace") as file:  # noqa: PTH123 (pathlib would be loaded for this)
                return file.read().strip()
        except OSError as error:
            raise RefusalError.of(
                "unauthenticated",
                f"not authenticated: the operator's token {self.where.token_file} cannot be read "
                f"({error.strerror}), and SCOUT_TOKEN is not set",
                reason="no token",
                needs=["SCOUT_TOKEN", str(self.where.token_file)],
                remedies=[remedy("doctor")],
            ) from None


def _directory() -> str:
    """Where the command is typed; empty when that directory was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 (pathlib would be loaded for this)
    except OSError:
        return ""
