"""The calls of the Graph API that Scout uses."""

from typing import Any

from scout.connectors.calls import PlatformCalls, check_media_type
from scout.connectors.whatsapp.errors import explain
from scout.connectors.wire import WireRecord
from scout.ports.connector import ConnectorAccount, ConnectorError, FailureKind

_UPLOAD_PATIENCE = 120.0
_DOMAINS = ("facebook.com", "fbsbx.com", "whatsapp.net")  # of Meta, where files are stored


class _PhoneNumber(WireRecord):
    display_phone_number: str = ""
    verified_name: str = ""


class _Sent(WireRecord):
    id: str


class _Accepted(WireRecord):
    messages: list[_Sent]


class _Uploaded(WireRecord):
    id: str


class _MediaLink(WireRecord):
    url: str
    file_size: int = 0


class GraphApi:
    """The Graph API for one phone number."""

    def __init__(self, base_url: str, token: str, phone_number_id: str, *secrets: str) -> None:
        secret = (token, *secrets)
        self.calls = PlatformCalls("whatsapp", base_url, secrets=secret, explain=explain, domains=_DOMAINS)
        self._headers = {"Authorization": f"Bearer {token}"}
        self._phone = phone_number_id

    async def get_account(self) -> ConnectorAccount:
        """Return the phone number of the bot."""
        fields = {"fields": "display_phone_number,verified_name"}
        found = await self.calls.call("GET", self._phone, _PhoneNumber, headers=self._headers, params=fields)
        name = f"{found.verified_name} {found.display_phone_number}".strip()
        return ConnectorAccount(id=self._phone, name=name)

    async def send(self, message: dict[str, Any]) -> str:
        """Send a message and return its id."""
        url = f"{self._phone}/messages"
        accepted = await self.calls.call("POST", url, _Accepted, headers=self._headers, json=message)
        if not accepted.messages:
            failure = ConnectorError(FailureKind.RETRY, "answered without a message", uncertain=True)
            raise self.calls.name_failure(failure)
        return accepted.messages[0].id

    async def show_typing(self, message_id: str) -> None:
        """Mark a message as read, and show that an answer is being written."""
        body = {
            "messaging_product": "whatsapp",
            "status": "read",
            "message_id": message_id,
            "typing_indicator": {"type": "text"},
        }
        await self.calls.send("POST", f"{self._phone}/messages", headers=self._headers, json=body)

    async def upload(self, name: str, media_type: str, data: bytes) -> str:
        """Upload a file and return its id."""
        kind = check_media_type(media_type)
        uploaded = await self.calls.call(
            "POST",
            f"{self._phone}/media",
            _Uploaded,
            patience=_UPLOAD_PATIENCE,
            headers=self._headers,
            data={"messaging_product": "whatsapp", "type": kind},
            files={"file": (name, data, kind)},
        )
        return uploaded.id

    async def download(self, media_id: str, limit: int) -> bytes:
        """Return the bytes of a file, from the address that it has for a few minutes."""
        if not media_id.isalnum():
            failure = ConnectorError(FailureKind.REFUSED, "this is no id of a file")
            raise self.calls.name_failure(failure)
        link = await self.calls.call("GET", media_id, _MediaLink, headers=self._headers)
        if link.file_size > limit:
            reason = f"the file has {link.file_size} bytes, and {limit} are allowed"
            raise self.calls.name_failure(ConnectorError(FailureKind.REFUSED, reason))
        return (await self.calls.download(link.url, limit, headers=self._headers)).body
