"""The methods of the Slack Web API that Scout uses."""

from typing import Any, TypeVar

from scout.base.codec import encode
from scout.connectors.calls import Answer, PlatformCalls, decode_body, explain_status
from scout.connectors.wire import WireRecord
from scout.ports.connector import ConnectorError, FailureKind

T = TypeVar("T")
_UPLOAD_PATIENCE = 120.0
_CREDENTIALS = {
    "access_denied",
    "account_inactive",
    "app_missing_action_url",
    "ekm_access_denied",
    "enterprise_is_restricted",
    "invalid_auth",
    "missing_scope",
    "no_permission",
    "not_allowed_token_type",
    "not_authed",
    "org_login_required",
    "team_access_not_granted",
    "token_expired",
    "token_revoked",
    "two_factor_setup_required",
}
_TEMPORARY = {
    "accesslimited",
    "fatal_error",
    "internal_error",
    "ratelimited",
    "rate_limited",
    "request_timeout",
    "service_unavailable",
    "team_added_to_org",
}


class _Outcome(WireRecord):
    ok: bool
    error: str = ""
    needed: str = ""


class BotAccount(WireRecord):
    """The bot, as a user and as a bot."""

    user_id: str
    user: str = ""
    bot_id: str = ""
    team: str = ""


class _Posted(WireRecord):
    ts: str


class _Noted(WireRecord):
    message_ts: str


class _Socket(WireRecord):
    url: str


class _Upload(WireRecord):
    upload_url: str
    file_id: str


class _FileInfo(WireRecord):
    url_private_download: str = ""
    mimetype: str = ""


class _File(WireRecord):
    file: _FileInfo


def explain(answer: Answer) -> ConnectorError | None:
    """Return the failure that an answer means. Slack reports most of them with status 200."""
    failure = explain_status(answer)
    if failure is not None:
        return failure
    try:
        outcome = decode_body(answer.body, _Outcome)
    except ConnectorError as error:
        return error
    if outcome.ok:
        return None
    reason = f"{outcome.error} {outcome.needed}"
    if outcome.error in _CREDENTIALS:
        return ConnectorError(FailureKind.CREDENTIALS, reason)
    if outcome.error in _TEMPORARY:
        may_have_acted = outcome.error in ("fatal_error", "internal_error")
        return ConnectorError(FailureKind.RETRY, reason, uncertain=may_have_acted)
    return ConnectorError(FailureKind.REFUSED, reason)


class SlackApi:
    """The Web API as one bot of one app."""

    def __init__(self, base_url: str, bot_token: str, app_token: str) -> None:
        secrets = (bot_token, app_token)
        self.calls = PlatformCalls("slack", base_url, secrets=secrets, explain=explain)
        self._uploads = PlatformCalls("slack", base_url, secrets=secrets, domains=("slack.com",))
        self._is_secure = base_url.startswith("https:")
        self._bot = {"Authorization": f"Bearer {bot_token}"}
        self._app = {"Authorization": f"Bearer {app_token}"}

    async def close(self) -> None:
        """Close the connections."""
        await self.calls.close()
        await self._uploads.close()

    async def get_account(self) -> BotAccount:
        """Return the bot that the bot token belongs to."""
        return await self._call("auth.test", BotAccount, {})

    async def open_socket(self) -> str:
        """Return the URL of a new socket, which can be used once."""
        url = (await self.calls.call("POST", "apps.connections.open", _Socket, headers=self._app)).url
        if self._is_secure and not url.startswith("wss://"):
            raise self.calls.name_failure(ConnectorError(FailureKind.RETRY, "the socket is not encrypted"))
        return url

    async def post(self, arguments: dict[str, Any]) -> str:
        """Post a message and return its timestamp, which is its id in the channel."""
        return (await self._call("chat.postMessage", _Posted, arguments)).ts

    async def post_ephemeral(self, arguments: dict[str, Any]) -> str:
        """Post a message that one member sees."""
        return (await self._call("chat.postEphemeral", _Noted, arguments)).message_ts

    async def update(self, arguments: dict[str, Any]) -> None:
        """Replace a message."""
        await self._call("chat.update", _Posted, arguments)

    async def upload(self, name: str, data: bytes, place: dict[str, str]) -> str:
        """Upload a file into a channel, and return its id."""
        form = {"filename": name, "length": str(len(data))}
        target = await self.calls.call(
            "POST", "files.getUploadURLExternal", _Upload, headers=self._bot, data=form
        )
        content_type = {"Content-Type": "application/octet-stream"}
        await self._uploads.send(
            "POST", target.upload_url, patience=_UPLOAD_PATIENCE, headers=content_type, content=data
        )
        files = [{"id": target.file_id, "title": name}]
        await self._call("files.completeUploadExternal", WireRecord, {"files": files, **place})
        return target.file_id

    async def download(self, file_id: str, limit: int) -> bytes:
        """Return the bytes of a file. The token is sent to Slack only."""
        found = await self.calls.call("POST", "files.info", _File, headers=self._bot, data={"file": file_id})
        answer = await self._uploads.download(found.file.url_private_download, limit, headers=self._bot)
        if _is_page(answer) and found.file.mimetype != "text/html":
            reason = "the file cannot be read: the app needs the scope files:read"
            raise self.calls.name_failure(ConnectorError(FailureKind.REFUSED, reason))
        return answer.body

    async def _call(self, method: str, kind: type[T], arguments: dict[str, Any]) -> T:
        headers = {**self._bot, "Content-Type": "application/json; charset=utf-8"}
        return await self.calls.call("POST", method, kind, headers=headers, content=encode(arguments))


def _is_page(answer: Answer) -> bool:
    """Whether it is the page on which people log in, in place of a file."""
    return answer.headers.get("content-type", "").startswith("text/html")
