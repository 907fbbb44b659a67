"""The methods of the Bot API that Scout uses. The token is in each URL, and in no error and no log."""

import logging
from typing import Any, Generic, TypeVar

import msgspec

from scout.base.codec import encode
from scout.connectors.calls import (
    Answer,
    PlatformCalls,
    check_media_type,
    decode_body,
    explain_status,
    limit_wait,
)
from scout.connectors.telegram.updates import Bot
from scout.connectors.wire import WireRecord
from scout.ports.connector import ConnectorError, FailureKind, OutboundFile

T = TypeVar("T")
POLL = 50  # seconds that the platform holds a request for updates
_JSON = {"Content-Type": "application/json"}
_UPLOAD_PATIENCE = 120.0
_KINDS = ("message", "edited_message", "callback_query")


class _Parameters(WireRecord):
    retry_after: float | None = None


class _Outcome(WireRecord):
    ok: bool
    error_code: int = 0
    description: str = ""
    parameters: _Parameters = _Parameters()


class _Result(WireRecord, Generic[T]):
    result: T


class _Sent(WireRecord):
    message_id: int


class _FilePath(WireRecord):
    file_path: str = ""


def explain_answer(answer: Answer) -> ConnectorError | None:
    """Return the failure that an answer means; None for a success."""
    try:
        outcome = decode_body(answer.body, _Outcome)
    except ConnectorError as malformed:
        return explain_status(answer) or malformed
    if outcome.ok:
        return None
    code = outcome.error_code or answer.status
    words = outcome.description or f"answered {code}"
    if code in (409, 429) or code >= 500:  # 409: somebody else reads the updates of this bot
        wait = limit_wait(outcome.parameters.retry_after)
        return ConnectorError(FailureKind.RETRY, words, retry_after=wait, uncertain=code >= 500)
    # A token that has not the form of one is not found.
    kind = FailureKind.CREDENTIALS if code in (401, 404) else FailureKind.REFUSED
    return ConnectorError(kind, words)


class BotApi:
    """One bot."""

    def __init__(self, base_url: str, token: str) -> None:
        # It logs the URL of each request.
        logging.getLogger("httpx2").setLevel(logging.WARNING)
        self.calls = PlatformCalls("telegram", base_url, secrets=(token,), explain=explain_answer)
        self._token = token

    async def get_me(self) -> Bot:
        return await self._call("getMe", Bot)

    async def delete_webhook(self) -> None:
        """Take a webhook away; as long as there is one, updates cannot be read."""
        await self._call("deleteWebhook", msgspec.Raw)

    async def get_updates(self, offset: int | None) -> list[msgspec.Raw]:
        """Wait for updates. Those before the offset are acknowledged."""
        wish = {"offset": offset, "timeout": POLL, "allowed_updates": _KINDS}
        return await self._call("getUpdates", list[msgspec.Raw], patience=POLL + 15, **wish)

    async def send_message(self, **message: Any) -> str:
        return str((await self._call("sendMessage", _Sent, **message)).message_id)

    async def send_document(self, file: OutboundFile, **message: Any) -> str:
        fields = {name: _to_field(value) for name, value in message.items() if value is not None}
        named = (file.name, file.data, check_media_type(file.media_type))
        parts: dict[str, Any] = {"data": fields, "files": {"document": named}}
        url = self._url("sendDocument")
        sent = await self.calls.call("POST", url, _Result[_Sent], patience=_UPLOAD_PATIENCE, **parts)
        return str(sent.result.message_id)

    async def edit_message_text(self, **message: Any) -> None:
        await self._call("editMessageText", msgspec.Raw, **message)

    async def answer_callback_query(self, **answer: Any) -> None:
        await self._call("answerCallbackQuery", msgspec.Raw, **answer)

    async def send_chat_action(self, **action: Any) -> None:
        await self._call("sendChatAction", msgspec.Raw, **action)

    async def download(self, file_id: str, limit: int) -> bytes:
        found = await self._call("getFile", _FilePath, file_id=file_id)
        answer = await self.calls.download(f"file/bot{self._token}/{found.file_path}", limit)
        return answer.body

    def _url(self, method: str) -> str:
        return f"bot{self._token}/{method}"

    async def _call(self, method: str, kind: type[T], *, patience: float = 20.0, **parameters: Any) -> T:
        given = {name: value for name, value in parameters.items() if value is not None}
        answer = await self.calls.call(
            "POST", self._url(method), _Result[kind], patience=patience, content=encode(given), headers=_JSON
        )
        return answer.result


def _to_field(value: object) -> str:
    return value if isinstance(value, str) else encode(value).decode()
