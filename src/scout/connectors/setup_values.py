"""The values that are set for a connector, checked before anything is sent."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit

from scout.ports.connector import ConnectorError, ConnectorSetup, FailureKind, SetupField

_HEADER_VALUE = re.compile(r"[!-~]+")  # what a header can carry


class SetupValues:
    """The set-up of a connector, read by the names of its fields. A missing value raises `ConnectorError`."""

    def __init__(self, setup: ConnectorSetup, fields: Iterable[SetupField]) -> None:
        self._setup = setup
        self._fields = {field.name: field for field in fields}

    def get_text(self, name: str) -> str:
        """Return a value, or the default of its field."""
        field = self._fields[name]
        value = self._setup.values.get(name, "").strip() or field.default
        if value is None:
            raise self._refuse(name, "is not set")
        return value

    def get_token(self, name: str) -> str:
        """Return a secret that is sent in a header."""
        token = self.get_text(name)
        if not _HEADER_VALUE.fullmatch(token):
            raise self._refuse(name, "has a character that no token has")
        return token

    def get_url(self, name: str) -> str:
        """Return an HTTP URL without a slash at its end."""
        url = self.get_text(name)
        try:
            parts = urlsplit(url)
            valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            valid = valid and not (parts.username or parts.password or parts.query or parts.fragment)
        except ValueError:
            valid = False
        if not valid or not url.isascii():
            raise self._refuse(name, "is not an http or https URL without a user name or query")
        return url.rstrip("/")

    def get_number(self, name: str, least: int, most: int) -> int:
        """Return a whole number in a range."""
        text = self.get_text(name)
        if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
            raise self._refuse(name, f"is not a number from {least} to {most}")
        return int(text)

    def _refuse(self, name: str, problem: str) -> ConnectorError:
        return ConnectorError(
            FailureKind.CREDENTIALS, f"{self._setup.connector}: the value '{name}' {problem}"
        )
