"""A person's Matrix client, by plain HTTP against the homeserver."""

import itertools
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx2

__all__ = ["Phone"]

_WAIT = 20.0
_numbers = itertools.count(1)


class Phone:
    """One account and what it sees."""

    def __init__(self, url: str, user_id: str, token: str) -> None:
        self.user_id = user_id
        self.token = token
        self._http = httpx2.Client(
            base_url=f"{url}/_matrix/",
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
            verify=False,  # loopback; reading certificates takes longer than the requests
            timeout=30,
        )

    def close(self) -> None:
        self._http.close()

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        """One request, which must succeed."""
        if body is not None:
            options["json"] = body
        answer = self._http.request(method, path, **options)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.headers["content-type"] == "application/json" else answer.content

    def create_room(self, *invited: str, direct: bool = False, encrypted: bool = False) -> str:
        body: dict[str, Any] = {
            "preset": "trusted_private_chat",
            "invite": list(invited),
            "is_direct": direct,
        }
        if encrypted:
            state = {"type": "m.room.encryption", "content": {"algorithm": "m.megolm.v1.aes-sha2"}}
            body["initial_state"] = [{**state, "state_key": ""}]
        return self.ask("POST", "client/v3/createRoom", body)["room_id"]

    def join(self, room: str) -> None:
        self.ask("POST", f"client/v3/join/{_quote(room)}", {})

    def invite(self, room: str, user_id: str) -> None:
        self.ask("POST", f"client/v3/rooms/{_quote(room)}/invite", {"user_id": user_id})

    def say(self, room: str, text: str, **content: Any) -> str:
        return self.send(room, "m.room.message", {"msgtype": "m.text", "body": text, **content})

    def react(self, room: str, message_id: str, key: str) -> str:
        relation = {"rel_type": "m.annotation", "event_id": message_id, "key": key}
        return self.send(room, "m.reaction", {"m.relates_to": relation})

    def edit(self, room: str, message_id: str, text: str) -> str:
        new = {"msgtype": "m.text", "body": text}
        relation = {"rel_type": "m.replace", "event_id": message_id}
        return self.say(room, f"* {text}", **{"m.new_content": new, "m.relates_to": relation})

    def send_file(self, room: str, name: str, data: bytes, **content: Any) -> str:
        upload = self.ask("POST", "media/v3/upload", content=data, params={"filename": name})
        file = {"msgtype": "m.file", "url": upload["content_uri"], "info": {"size": len(data)}}
        return self.send(room, "m.room.message", {**file, "body": name, "filename": name, **content})

    def send(self, room: str, kind: str, content: dict[str, Any]) -> str:
        path = f"client/v3/rooms/{_quote(room)}/send/{kind}/{next(_numbers)}-{time.monotonic_ns()}"
        return self.ask("PUT", path, content)["event_id"]

    def list_events(self, room: str) -> list[dict[str, Any]]:
        """Everything in a room, oldest first."""
        path, found, start = f"client/v3/rooms/{_quote(room)}/messages?dir=b&limit=1000", list[Any](), ""
        while True:
            page = self.ask("GET", f"{path}&from={start}" if start else path)
            found += page["chunk"]
            start = page.get("end", "")
            if not page["chunk"] or not start:
                return found[::-1]

    def list_messages(self, room: str, sender: str) -> list[dict[str, Any]]:
        """The messages of one user in a room, oldest first."""
        events = self.list_events(room)
        return [one for one in events if one["type"] == "m.room.message" and one["sender"] == sender]

    def get_members(self, room: str) -> dict[str, str]:
        """The members of a room: invited, joined or gone."""
        found = self.ask("GET", f"client/v3/rooms/{_quote(room)}/members")
        return {one["state_key"]: one["content"]["membership"] for one in found["chunk"]}

    def is_typing(self, room: str, user_id: str) -> bool:
        """Whether a user is shown as writing."""
        wanted = {"room": {"timeline": {"limit": 0}, "ephemeral": {"types": ["m.typing"]}}}
        found = self.ask("GET", "client/v3/sync", params={"filter": json.dumps(wanted)})
        events = found["rooms"]["join"][room]["ephemeral"]["events"]
        return any(user_id in one["content"]["user_ids"] for one in events)

    def download(self, mxc: str) -> bytes:
        return self.ask("GET", f"client/v1/media/download/{mxc.removeprefix('mxc://')}")

    def wait(self, condition: Callable[[], Any]) -> Any:
        """The first true result."""
        until = time.monotonic() + _WAIT
        while not (found := condition()):
            assert time.monotonic() < until, f"not within {_WAIT} s"
            time.sleep(0.02)
        return found


def _quote(part: str) -> str:
    return quote(part, safe="")
