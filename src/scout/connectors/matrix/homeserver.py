"""The calls of the Matrix Client-Server API that Scout uses."""

import json
from typing import Any, TypeVar
from urllib.parse import quote

from scout.connectors.calls import (
    Answer,
    PlatformCalls,
    check_media_type,
    decode_body,
    explain_status,
    limit_wait,
)
from scout.connectors.matrix.events import TYPES, RoomEvent, Sync
from scout.connectors.wire import WireRecord
from scout.ports.connector import ConnectorError, FailureKind

T = TypeVar("T")
_CLIENT = "_matrix/client/v3"
_POLL = 30_000  # milliseconds that a sync waits for an event
_POLL_PATIENCE = 60.0
_UPLOAD_PATIENCE = 120.0
_TYPING = 20_000  # milliseconds
_NONE = {"not_types": ["*"]}
_LOST = {
    "M_UNKNOWN_TOKEN",
    "M_MISSING_TOKEN",
    "M_USER_DEACTIVATED",
    "M_USER_LOCKED",
    "M_USER_SUSPENDED",
}


class _Problem(WireRecord):
    errcode: str = ""
    error: str = ""
    retry_after_ms: float | None = None


class _Sent(WireRecord):
    event_id: str


class _Account(WireRecord):
    user_id: str


class _Login(WireRecord):
    access_token: str
    user_id: str


class _Profile(WireRecord):
    displayname: str | None = None


class _Membership(WireRecord):
    membership: str = ""
    displayname: str | None = None


class _Member(WireRecord):
    state_key: str
    content: _Membership


class _Members(WireRecord):
    chunk: list[_Member]


class _Media(WireRecord):
    content_uri: str


class EventPage(WireRecord):
    """Earlier events of a room, newest first."""

    chunk: list[Any] = []
    end: str | None = None


def explain(answer: Answer) -> ConnectorError | None:
    """Return the failure that an answer of a homeserver means."""
    failure = explain_status(answer)
    if failure is None:
        return None
    try:
        problem = decode_body(answer.body, _Problem)
    except ConnectorError:
        return failure
    reason = f"{problem.errcode} {problem.error}" if problem.errcode else failure.reason
    if problem.errcode in _LOST:
        return ConnectorError(FailureKind.CREDENTIALS, reason)
    if problem.errcode == "M_LIMIT_EXCEEDED" and problem.retry_after_ms is not None:
        wait = limit_wait(problem.retry_after_ms / 1000)
        return ConnectorError(FailureKind.RETRY, reason, retry_after=wait)
    return ConnectorError(failure.kind, reason, retry_after=failure.retry_after, uncertain=failure.uncertain)


def build_filter(events: int) -> str:
    """Return the filter of a sync: the newest events of each room that concern people, nothing else."""
    wanted = {"types": list(TYPES), "limit": events}
    room = {"timeline": wanted, "state": _NONE, "ephemeral": _NONE, "account_data": _NONE}
    return json.dumps({"room": room, "presence": _NONE, "account_data": _NONE})


class Homeserver:
    """One homeserver, as one user of it."""

    def __init__(self, base_url: str, token: str, *, secrets: tuple[str, ...] = ()) -> None:
        self.calls = PlatformCalls("matrix", base_url, secrets=(token, *secrets), explain=explain)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def log_in(self, user: str, password: str) -> _Login:
        """Log in, and return an access token."""
        body = {
            "type": "m.login.password",
            "identifier": {"type": "m.id.user", "user": user},
            "password": password,
            "initial_device_display_name": "Scout",
        }
        return await self.calls.call("POST", f"{_CLIENT}/login", _Login, json=body)

    async def get_user_id(self) -> str:
        """Return the user that the token belongs to."""
        return (await self._get(f"{_CLIENT}/account/whoami", _Account)).user_id

    async def get_display_name(self, user_id: str) -> str:
        """Return the display name of a user; empty if there is none."""
        profile = await self._get(f"{_CLIENT}/profile/{_quote(user_id)}", _Profile)
        return profile.displayname or ""

    async def sync(self, since: str | None, wanted: str) -> Sync:
        """Return the events since a position; waits for one if there is none yet."""
        params = {"filter": wanted, "timeout": str(_POLL if since else 0)}
        params |= {"since": since} if since else {}
        return await self._get(f"{_CLIENT}/sync", Sync, params, patience=_POLL_PATIENCE)

    async def read_earlier(self, room: str, start: str, end: str) -> EventPage:
        """Return a page of events before `start`, back to `end`."""
        wanted = json.dumps({"types": list(TYPES)})
        params = {"dir": "b", "from": start, "to": end, "limit": "100", "filter": wanted}
        return await self._get(f"{_CLIENT}/rooms/{_quote(room)}/messages", EventPage, params)

    async def get_event(self, room: str, event_id: str) -> RoomEvent:
        """Return one event of a room."""
        return await self._get(f"{_CLIENT}/rooms/{_quote(room)}/event/{_quote(event_id)}", RoomEvent)

    async def list_members(self, room: str) -> dict[str, str]:
        """Return the users who are in a room or invited to it, with their display names."""
        url = f"{_CLIENT}/rooms/{_quote(room)}/members"
        found = await self._get(url, _Members, {"not_membership": "leave"})
        here = [one for one in found.chunk if one.content.membership in ("join", "invite")]
        return {one.state_key: one.content.displayname or "" for one in here}

    async def join(self, room: str) -> None:
        """Accept an invitation."""
        await self._change("POST", f"{_CLIENT}/rooms/{_quote(room)}/join", {})

    async def leave(self, room: str) -> None:
        """Leave a room, or decline an invitation."""
        await self._change("POST", f"{_CLIENT}/rooms/{_quote(room)}/leave", {})

    async def send_event(self, room: str, kind: str, transaction: str, content: dict[str, Any]) -> str:
        """Send an event. The same transaction sent again is the same event."""
        url = f"{_CLIENT}/rooms/{_quote(room)}/send/{kind}/{_quote(transaction)}"
        sent = await self.calls.call("PUT", url, _Sent, headers=self._headers, json=content)
        return sent.event_id

    async def show_typing(self, room: str, user_id: str) -> None:
        """Show in a room that the bot is writing."""
        url = f"{_CLIENT}/rooms/{_quote(room)}/typing/{_quote(user_id)}"
        await self._change("PUT", url, {"typing": True, "timeout": _TYPING})

    async def upload(self, name: str, media_type: str, data: bytes) -> str:
        """Upload a file and return its mxc URL."""
        media = await self.calls.call(
            "POST",
            "_matrix/media/v3/upload",
            _Media,
            patience=_UPLOAD_PATIENCE,
            params={"filename": name},
            headers={**self._headers, "Content-Type": check_media_type(media_type)},
            content=data,
        )
        return media.content_uri

    async def download(self, server: str, media_id: str, limit: int) -> bytes:
        """Return a file. Servers before Matrix 1.11 have it at the older address only."""
        where = f"{_quote(server)}/{_quote(media_id)}"
        try:
            url = f"_matrix/client/v1/media/download/{where}"
            return (await self.calls.download(url, limit, headers=self._headers)).body
        except ConnectorError as error:
            if "M_UNRECOGNIZED" not in error.reason:
                raise
        url = f"_matrix/media/v3/download/{where}"
        return (await self.calls.download(url, limit, headers=self._headers)).body

    async def _get(
        self, url: str, kind: type[T], params: dict[str, str] | None = None, patience: float = 30.0
    ) -> T:
        return await self.calls.call(
            "GET", url, kind, patience=patience, headers=self._headers, params=params or {}
        )

    async def _change(self, method: str, url: str, body: dict[str, Any]) -> None:
        await self.calls.send(method, url, headers=self._headers, json=body)


def _quote(part: str) -> str:
    return quote(part, safe="")
