"""A strict Slack on loopback: every request is checked against the documentation, by slack-sdk's types where it has them.

It keeps what was posted, reports what people do through sockets, and repeats an envelope that was not
acknowledged. `problems` lists what the documentation does not allow.
"""

import asyncio
import inspect
import itertools
import json
import threading
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from slack_sdk import WebClient
from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from tests.connectors.loopback import (
    Loopback,
    Receive,
    Request,
    Response,
    Send,
    parse_form,
    respond,
)

__all__ = ["APP_TOKEN", "BOT_TOKEN", "FakeSlack"]

BOT_TOKEN = "xoxb-17-secret"
APP_TOKEN = "xapp-1-A1-secret"
# The types of slack-sdk; it leaves out what their dicts hold.
_ENVELOPE: Any = SocketModeRequest
_ACKNOWLEDGEMENT: Any = SocketModeResponse
_BLOCK: Any = Block
_USER, _BOT, _TEAM, _APP = "U0BOT", "B0BOT", "T0", "A0"
_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_HTTP_ONLY = {"apps.connections.open": APP_TOKEN}
_METHODS = {
    "apps.connections.open": ("apps_connections_open", {"app_token"}, ("", _FORM, _JSON)),
    "auth.test": ("auth_test", set[str](), (_JSON, _FORM)),
    "chat.postEphemeral": ("chat_postEphemeral", set[str](), (_JSON, _FORM)),
    "chat.postMessage": ("chat_postMessage", set[str](), (_JSON, _FORM)),
    "chat.update": ("chat_update", set[str](), (_JSON, _FORM)),
    "files.completeUploadExternal": ("files_completeUploadExternal", set[str](), (_JSON, _FORM)),
    "files.getUploadURLExternal": ("files_getUploadURLExternal", set[str](), (_FORM,)),
    "files.info": ("files_info", set[str](), (_FORM,)),
}


class _Socket:
    """One connection of the app, on the thread of the server."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.queue = asyncio.Queue[str]()

    async def send_text(self, text: str) -> None:
        await self._send({"type": "websocket.send", "text": text})

    async def send_queue(self) -> None:
        """Send one frame after the other, until the app is gone."""
        while True:
            try:
                await self.send_text(await self.queue.get())
            except Exception:  # noqa: BLE001 (the app was killed; whoever receives notices)
                return


class Call(NamedTuple):
    """One request of the app."""

    method: str
    arguments: dict[str, Any]


class FakeSlack:
    """One workspace with one app."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.calls: list[Call] = []
        self.answer: Callable[[str], Response | None] = lambda _: None
        """What a method answers in place of the usual."""
        self.hold: asyncio.Event | None = None
        self.channels: dict[str, list[str]] = {}
        self.messages: dict[str, list[dict[str, Any]]] = {}
        self.ephemerals: list[dict[str, Any]] = []
        self.files: dict[str, tuple[dict[str, Any], bytes]] = {}
        self.acknowledged: list[str] = []
        self.bot_token = BOT_TOKEN
        self.scopes_files = True
        self.silent = False
        """Whether a socket is opened without a word."""
        self._uploads: dict[str, tuple[str, int]] = {}
        self._tickets = set[str]()
        self._envelopes: dict[str, dict[str, Any]] = {}
        self._reported: list[dict[str, Any]] = []
        self._sockets: list[_Socket] = []
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._handlers: dict[str, Callable[[dict[str, Any]], Response]] = {
            "apps.connections.open": self._open_socket,
            "auth.test": self._test_token,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.postMessage": self._post_message,
            "chat.update": self._update,
            "files.completeUploadExternal": self._complete_upload,
            "files.getUploadURLExternal": self._begin_upload,
            "files.info": self._show_file,
        }
        self.server = Loopback(self)

    # -- what people do ------------------------------------------------------------------------------

    def open_channel(self, channel: str, *members: str) -> str:
        """A channel (C…), a group (G…) or a chat with one person (D…)."""
        with self._lock:
            self.channels[channel] = list(members)
            self.messages.setdefault(channel, [])
        return channel

    def say(self, user: str, channel: str, text: str, **more: Any) -> str:
        """A person types; the timestamp of the message."""
        message = {"type": "message", "user": user, "text": text, "ts": self._stamp(), "team": _TEAM, **more}
        thread = message.get("thread_ts")
        if thread is not None:
            (parent,) = (one for one in self.messages[channel] if one["ts"] == thread)
            message["parent_user_id"] = parent["user"]
        with self._lock:
            self.messages[channel].append(message)
        self.report(
            {**message, "channel": channel, "event_ts": message["ts"], "channel_type": _kind(channel)}
        )
        return message["ts"]

    def keep_message(self, channel: str, user: str, text: str) -> str:
        """A message that the app does not hear of."""
        message = {"type": "message", "user": user, "text": text, "ts": self._stamp(), "team": _TEAM}
        with self._lock:
            self.messages[channel].append(message)
        return message["ts"]

    def find_root(self, channel: str, ts: str) -> str:
        """The message that the thread of a message begins with."""
        with self._lock:
            (message,) = (one for one in self.messages[channel] if one["ts"] == ts)
        return message.get("thread_ts", ts)

    def edit(self, channel: str, ts: str, text: str) -> None:
        """A person changes a message of theirs."""
        with self._lock:
            (message,) = (one for one in self.messages[channel] if one["ts"] == ts)
            before = dict(message)
            message.update(text=text, edited={"user": message["user"], "ts": self._stamp()})
        self.report_change(channel, dict(message), before)

    def report_change(self, channel: str, message: dict[str, Any], before: dict[str, Any]) -> None:
        """A message was changed, by a person or by Slack."""
        stamp = self._stamp()
        self.report(
            {
                "type": "message",
                "subtype": "message_changed",
                "hidden": True,
                "message": message,
                "previous_message": before,
                "channel": channel,
                "ts": stamp,
                "event_ts": stamp,
                "channel_type": _kind(channel),
            }
        )

    def press(self, user: str, channel: str, ts: str, label: str) -> None:
        """A person presses a button of a message."""
        (message,) = (one for one in self.messages[channel] if one["ts"] == ts)
        ((block, button),) = (
            (block, one)
            for block in message["blocks"]
            if block["type"] == "actions"
            for one in block["elements"]
            if one["text"]["text"] == label
        )
        action = {**button, "block_id": block.get("block_id", "b1"), "action_ts": self._stamp()}
        container = {"type": "message", "message_ts": ts, "channel_id": channel, "is_ephemeral": False}
        if "thread_ts" in message:
            container["thread_ts"] = message["thread_ts"]
        payload: dict[str, Any] = {
            "type": "block_actions",
            "user": {"id": user, "username": user.lower(), "name": user.lower(), "team_id": _TEAM},
            "api_app_id": _APP,
            "token": "verification",
            "container": container,
            "trigger_id": f"{next(self._numbers)}.trigger",
            "team": {"id": _TEAM, "domain": "example"},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": channel, "name": "directmessage" if channel.startswith("D") else "general"},
            "message": message,
            "state": {"values": {}},
            "response_url": "https://hooks.slack.com/actions/T0/1/secret",
            "actions": [action],
        }
        self._deliver("interactive", payload)

    def share(self, user: str, channel: str, name: str, data: bytes, text: str = "", **more: Any) -> str:
        """A person sends a file."""
        thread = {"thread_ts": more.pop("thread_ts")} if "thread_ts" in more else {}
        file = self.keep_file(name, data, **more)
        return self.say(user, channel, text, subtype="file_share", files=[file], upload=False, **thread)

    def keep_file(self, name: str, data: bytes, **more: Any) -> dict[str, Any]:
        """A file in the workspace."""
        number = next(self._numbers)
        url = f"{self.server.url}/files-pri/{_TEAM}-F{number}/download/{name}"
        file: dict[str, Any] = {
            "id": f"F{number}",
            "name": name,
            "mimetype": "text/plain",
            "size": len(data),
            "mode": "hosted",
            "is_external": False,
            "url_private": url.replace("/download", ""),
            "url_private_download": url,
            **more,
        }
        with self._lock:
            self.files[file["id"]] = (file, data)
        return file

    def report(self, event: dict[str, Any]) -> None:
        """An event for the app."""
        payload = {
            "token": "verification",
            "team_id": _TEAM,
            "api_app_id": _APP,
            "event": event,
            "type": "event_callback",
            "event_id": f"Ev{next(self._numbers)}",
            "event_time": 1700000000,
        }
        self._deliver("events_api", payload)

    def repeat(self) -> None:
        """Everything that was reported so far, as if no acknowledgement had arrived."""
        with self._lock:
            again = [*self._reported]
        for envelope in again:
            self._send({**envelope, "envelope_id": f"e-{next(self._numbers)}", "retry_attempt": 1})

    def disconnect(self, reason: str) -> None:
        """Slack asks for a new connection."""
        frame = {"type": "disconnect", "reason": reason, "debug_info": {"host": "wss-1"}}
        self._send_frames([json.dumps(frame)])

    def send_frame(self, frame: str) -> None:
        """Any text through every socket."""
        self._send_frames([frame])

    def shown(self, channel: str) -> list[dict[str, Any]]:
        """The messages of the app in a channel."""
        with self._lock:
            return [dict(one) for one in self.messages[channel] if one.get("bot_id") == _BOT]

    # -- sockets -------------------------------------------------------------------------------------

    def _deliver(self, kind: str, payload: dict[str, Any]) -> None:
        """Built by slack-sdk's type, so that its reader understands what is sent."""
        envelope = _ENVELOPE(kind, f"e-{next(self._numbers)}", payload).to_dict()
        self._reported.append(envelope)
        self._send(envelope)

    def _send(self, envelope: dict[str, Any]) -> None:
        assert _ENVELOPE.from_dict(envelope) is not None
        with self._lock:
            self._envelopes[envelope["envelope_id"]] = envelope
        self._send_frames([json.dumps(envelope)])

    def _send_frames(self, frames: list[str]) -> None:
        def send() -> None:
            for one in self._sockets[-1:]:  # Slack chooses one of several connections
                for frame in frames:
                    one.queue.put_nowait(frame)

        self.server.call(send)

    async def handle_socket(self, path: str, query: str, receive: Receive, send: Send) -> None:
        """A socket is opened with a ticket, which is good once."""
        ticket = parse_qs(query).get("ticket", [""])[0]
        await receive()
        if path != "/link/" or ticket not in self._tickets:
            self._complain(f"a socket with the ticket {ticket!r}")
            await send({"type": "websocket.close", "code": 1008})
            return
        self._tickets.discard(ticket)
        await send({"type": "websocket.accept"})
        one = _Socket(send)
        hello = {"type": "hello", "num_connections": 1, "connection_info": {"app_id": _APP}, "debug_info": {}}
        if not self.silent:
            await one.send_text(json.dumps(hello))
        with self._lock:
            for envelope in self._envelopes.values():
                one.queue.put_nowait(json.dumps(envelope))
            self._sockets.append(one)
        sending = asyncio.create_task(one.send_queue())
        try:
            while (frame := await receive())["type"] == "websocket.receive":
                self._take_acknowledgement(frame.get("text") or "")
        finally:
            self._sockets.remove(one)
            sending.cancel()

    def _take_acknowledgement(self, text: str) -> None:
        found: dict[str, Any] = {}
        try:
            found = json.loads(text)
            whole = _ACKNOWLEDGEMENT(**found).to_dict() == found
        except (ValueError, TypeError):
            whole = False
        envelope_id = str(found.get("envelope_id"))
        with self._lock:
            if whole and envelope_id in self.acknowledged:
                return  # reported while a socket was being opened, it is sent twice there
            if not whole or envelope_id not in self._envelopes:
                self._complain(f"an acknowledgement {text!r}")
                return
            del self._envelopes[envelope_id]
            self.acknowledged.append(envelope_id)

    # -- methods -------------------------------------------------------------------------------------

    async def handle(self, request: Request) -> Response:
        """A method of the Web API, an upload, or a download."""
        if request.path.startswith("/upload/"):
            return self._take_upload(request)
        if request.path.startswith("/files-pri/"):
            return self._give_file(request)
        method = request.path.removeprefix("/api/")
        if self.hold is not None:
            await self.hold.wait()
        if (instead := self.answer(method)) is not None:
            return instead
        with self._lock:
            return self._call(method, request)

    def _call(self, method: str, request: Request) -> Response:
        if method not in _METHODS or request.method != "POST":
            return self._refuse(method, "unknown_method")
        _, _, types = _METHODS[method]
        if request.content_type.replace(";charset", "; charset").removesuffix("; charset=utf-8") not in types:
            return self._refuse(method, f"invalid_post_type {request.content_type!r}")
        if request.headers.get("authorization") != f"Bearer {_HTTP_ONLY.get(method, self.bot_token)}":
            return respond({"ok": False, "error": "invalid_auth"})  # no problem: a test gave a wrong token
        is_json = request.content_type.startswith(_JSON) and bool(request.body)
        try:
            arguments = json.loads(request.body) if is_json else parse_form(request.body)
        except ValueError:
            return self._refuse(method, "invalid_json")
        if problem := _check_arguments(method, arguments):
            return self._refuse(method, problem)
        self.calls.append(Call(method, arguments))
        return self._handlers[method](arguments)

    def _test_token(self, _: dict[str, Any]) -> Response:
        who = {"user": "scout", "user_id": _USER, "bot_id": _BOT, "team": "Example", "team_id": _TEAM}
        return respond(
            {"ok": True, "url": "https://example.slack.com/", **who, "is_enterprise_install": False}
        )

    def _open_socket(self, _: dict[str, Any]) -> Response:
        ticket = f"t{next(self._numbers)}"
        self._tickets.add(ticket)
        url = self.server.url.replace("http:", "ws:")
        return respond({"ok": True, "url": f"{url}/link/?ticket={ticket}&app_id={_APP}"})

    def _post_message(self, arguments: dict[str, Any]) -> Response:
        channel = arguments["channel"]
        if refused := self._check_target(arguments):
            return refused
        kept = {name: arguments[name] for name in ("text", "blocks", "thread_ts") if name in arguments}
        message = {"type": "message", "user": _USER, "bot_id": _BOT, "ts": self._stamp(), **kept}
        self.messages[channel].append(message)
        event = {**message, "channel": channel, "event_ts": message["ts"], "channel_type": _kind(channel)}
        self.report(event)  # an app hears of its own messages, too
        return respond({"ok": True, "channel": channel, "ts": message["ts"], "message": message})

    def _post_ephemeral(self, arguments: dict[str, Any]) -> Response:
        if refused := self._check_target(arguments):
            return refused
        if arguments["user"] not in self.channels[arguments["channel"]]:
            return respond({"ok": False, "error": "user_not_in_channel"})
        self.ephemerals.append(arguments)
        return respond({"ok": True, "message_ts": self._stamp()})

    def _update(self, arguments: dict[str, Any]) -> Response:
        if refused := self._check_target(arguments):
            return refused
        messages = self.messages[arguments["channel"]]
        message = next((one for one in messages if one["ts"] == arguments["ts"]), None)
        if message is None:
            return respond({"ok": False, "error": "message_not_found"})
        if message.get("bot_id") != _BOT:
            return respond({"ok": False, "error": "cant_update_message"})
        before = dict(message)
        message.update(text=arguments["text"], blocks=arguments["blocks"])
        message["edited"] = {"user": _BOT, "ts": self._stamp()}
        self.report_change(arguments["channel"], dict(message), before)
        return respond(
            {"ok": True, "channel": arguments["channel"], "ts": message["ts"], "text": message["text"]}
        )

    def _begin_upload(self, arguments: dict[str, Any]) -> Response:
        file_id = f"F{next(self._numbers)}"
        self._uploads[file_id] = (arguments["filename"], int(arguments["length"]))
        return respond({"ok": True, "upload_url": f"{self.server.url}/upload/{file_id}", "file_id": file_id})

    def _complete_upload(self, arguments: dict[str, Any]) -> Response:
        files = arguments["files"]
        files = json.loads(files) if isinstance(files, str) else files
        if any(one["id"] not in self.files for one in files):
            return self._refuse("files.completeUploadExternal", "file_not_found: nothing was uploaded")
        channel = arguments.get("channel_id")
        if channel is not None:
            if refused := self._check_target({**arguments, "channel": channel}):
                return refused
            shared = [self.files[one["id"]][0] for one in files]
            thread = {"thread_ts": arguments["thread_ts"]} if "thread_ts" in arguments else {}
            message = {
                "type": "message",
                "user": _USER,
                "bot_id": _BOT,
                "ts": self._stamp(),
                "text": "",
                **thread,
            }
            self.messages[channel].append({**message, "files": shared})
        return respond({"ok": True, "files": [{"id": one["id"], "title": one.get("title")} for one in files]})

    def _show_file(self, arguments: dict[str, Any]) -> Response:
        if arguments["file"] not in self.files:
            return respond({"ok": False, "error": "file_not_found"})
        return respond({"ok": True, "file": self.files[arguments["file"]][0], "comments": []})

    def _take_upload(self, request: Request) -> Response:
        file_id = request.path.removeprefix("/upload/")
        with self._lock:
            name, length = self._uploads.pop(file_id, ("", -1))
            if request.method != "POST" or "authorization" in request.headers or len(request.body) != length:
                self._complain(f"an upload of {len(request.body)} bytes, with {length} announced")
                return Response(400, b"bad upload")
            file = self.keep_file(name, request.body)
            self.files[file_id] = ({**file, "id": file_id}, request.body)
        return Response(200, b"OK - %d" % length)

    def _give_file(self, request: Request) -> Response:
        file_id = request.path.split("/")[2].partition("-")[2]
        if request.headers.get("authorization") != f"Bearer {self.bot_token}" or not self.scopes_files:
            page = b"<!DOCTYPE html><title>Sign in</title>"
            return Response(200, page, {"content-type": "text/html; charset=utf-8"})
        return Response(200, self.files[file_id][1], {"content-type": self.files[file_id][0]["mimetype"]})

    # -- checks --------------------------------------------------------------------------------------

    def _check_target(self, arguments: dict[str, Any]) -> Response | None:
        channel, thread = arguments["channel"], arguments.get("thread_ts")
        if channel not in self.channels:
            return respond({"ok": False, "error": "channel_not_found"})
        parents = {one["ts"] for one in self.messages[channel] if "thread_ts" not in one}
        if thread is not None and thread not in parents:
            return self._refuse("thread_ts", "is no message that a thread can begin with")
        return None

    def _refuse(self, method: str, problem: str) -> Response:
        self._complain(f"{method}: {problem}")
        return respond({"ok": False, "error": problem.split(maxsplit=1)[0]})

    def _complain(self, problem: str) -> None:
        with self._lock:
            self.problems.append(problem)

    def _stamp(self) -> str:
        return f"1700000000.{next(self._numbers):06}"


def _kind(channel: str) -> str:
    return {"D": "im", "C": "channel", "G": "group"}[channel[0]]


def _check_arguments(method: str, arguments: dict[str, Any]) -> str:
    """What slack-sdk's method and its models of blocks do not allow."""
    name, elsewhere, _ = _METHODS[method]
    signature = inspect.signature(getattr(WebClient, name)).parameters
    named = {
        key: one for key, one in signature.items() if one.kind is one.KEYWORD_ONLY and key not in elsewhere
    }
    if unknown := set(arguments) - set(named):
        return f"invalid_arguments: unknown {sorted(unknown)}"
    required = {key for key, one in named.items() if one.default is one.empty}
    if missing := required - set(arguments):
        return f"invalid_arguments: missing {sorted(missing)}"
    return _check_blocks(arguments) if "blocks" in arguments else ""


def _check_blocks(arguments: dict[str, Any]) -> str:
    blocks = arguments["blocks"]
    try:
        blocks = json.loads(blocks) if isinstance(blocks, str) else blocks
        parsed = _BLOCK.parse_all(blocks)
        for one in parsed:
            one.validate_json()
    except (SlackObjectFormationError, ValueError) as error:
        return f"invalid_blocks: {error}"
    if [one.to_dict() for one in parsed] != blocks:
        return f"invalid_blocks: not understood whole: {blocks}"
    if not arguments.get("text") or len(arguments["text"]) > 40_000:
        return "no_text: a notification has nothing to show"
    return "" if 0 < len(blocks) <= 50 else "invalid_blocks: too many"
