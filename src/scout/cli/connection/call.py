"""Calls to the daemon: routed by the operation table, made again when the connection breaks."""

from __future__ import annotations

import json
import os
import sys

from scout import __version__
from scout.cli.connection.http import Lost, exchange, quote, stream
from scout.cli.connection.identity import CliIdentity
from scout.cli.connection.refusal import RefusalError, remedy
from scout.cli.connection.text import note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from scout.cli.connection.http import HttpResponse

# The routes of the warm path, as in the operation table (a test compares), which would be costly to load.
ROUTES = {
    "send": "POST /v1/messages",
    "ask": "POST /v1/asks",
    "reply": "POST /v1/replies",
    "work.show": "GET /v1/work/{workItemId}",
    "inbox": "GET /v1/inbox",
    "inbox.ack": "POST /v1/inbox/ack",
    "who": "GET /v1/agents",
    "show": "GET /v1/agents/{address}",
    "whoami": "GET /v1/whoami",
    "attention": "GET /v1/attention",
    "flight.list": "GET /v1/flights",
    "session.list": "GET /v1/sessions",
    "work.list": "GET /v1/work",
    "question.list": "GET /v1/questions",
    "latest": "GET /v1/latest",
    "log": "GET /v1/log",
    "feed": "GET /v1/agents/{address}/feed",
    "watch": "GET /v1/events",
    "conversation.show": "GET /v1/conversations/{conversationId}",
    "flight.get": "GET /v1/flights/{flightId}",
    "session.inspect": "GET /v1/sessions/{sessionId}",
    "attention.show": "GET /v1/attention/{attentionId}",
    "attention.approve": "POST /v1/attention/{attentionId}/approve",
    "attention.deny": "POST /v1/attention/{attentionId}/deny",
    "attention.answer": "POST /v1/attention/{attentionId}/answer",
    "attention.dismiss": "POST /v1/attention/{attentionId}/dismiss",
    "attention.decide": "POST /v1/attention/decide",
    "question.show": "GET /v1/questions/{questionId}",
    "question.answer": "POST /v1/questions/{questionId}/answer",
    "attachment.put": "POST /v1/attachments",
    "status": "GET /v1/status",
    "now": "GET /v1/now",
    "now.seen": "POST /v1/now/seen",
}

# Remedies that are the operator's to use, or take no name.
_NOT_AS = frozenset({"config", "doctor", "explain", "grant", "restart", "runtimes", "token", "up"})
_PATIENCE = 75.0  # seconds: longer than any long poll
_PAUSES = (0.05, 0.2, 0.8)  # before asking again after a lost connection


def target_of(route: str, parameters: Mapping[str, Any]) -> tuple[str, str, bytes]:
    """Method, target and body of a request: names in the route's path, then query or JSON."""
    method, _, path = route.partition(" ")
    rest = {name: value for name, value in parameters.items() if value is not None}
    for name in list(rest):
        if f"{{{name}}}" in path:
            path = path.replace(f"{{{name}}}", quote(str(rest.pop(name))))
    if method != "GET":
        return method, path, json.dumps(rest).encode()
    pairs = [f"{quote(name)}={quote(text)}" for name, value in rest.items() for text in _texts(value)]
    return method, f"{path}?{'&'.join(pairs)}" if pairs else path, b""


def _texts(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return [str(one) for one in _many(value)]


def _many(value: Any) -> list[Any]:
    return [*value] if type(value) in (list, tuple) else [value]


class DaemonCall:
    """One caller's line to the daemon."""

    _skew_said = False  # or looked for: once is enough

    def __init__(self, caller: CliIdentity | None = None, *, start: bool = True) -> None:
        self.caller = caller or CliIdentity()
        self.start = start

    def call(self, route: str, parameters: Mapping[str, Any], key: str | None = None) -> Any:
        """The answer, decoded; `RefusalError` when refused. Writes carry a key, so that repeating is safe."""
        method, target, body = target_of(route, parameters)
        headers = {**self._headers(), "Accept": "application/json"}
        if method != "GET":
            headers["Idempotency-Key"] = quote(key) if key else os.urandom(16).hex()
        answer = self._persist(method, target, headers, body)
        self._mention_skew(answer)
        return _told(answer, self.caller.act_as)

    def events(self, target: str, last: str | None = None) -> Iterator[str]:
        """The lines of an event stream; ends or raises `Lost` when the connection does."""
        headers = {**self._headers(), "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        for part in stream(self.caller.place(), target, headers, _PATIENCE):
            if isinstance(part, str):
                yield part
            elif part.status != 200:
                _told(part)
                return

    def _headers(self) -> dict[str, str]:
        """A first start makes the token: so it is read after the daemon is there."""
        place = self.caller.place()
        if not self.caller.has_own_token and place.socket and not os.path.exists(place.socket):  # noqa: PTH110 (pathlib would be loaded for this)
            self._start_or_say("there is no socket")
        return self.caller.headers()

    def _start_or_say(self, why: str) -> None:
        if not (self.start and self.caller.may_start):
            self._check_daemon()
            raise self._not_running(why)
        from scout.cli.connection.autostart import start_for

        start_for(self.caller)

    def _persist(self, method: str, target: str, headers: dict[str, str], body: bytes) -> HttpResponse:
        place, started, problem = self.caller.place(), False, ""
        for pause in (*_PAUSES, None):
            try:
                silent = self._check_daemon
                return exchange(place, method, target, headers, body, timeout=_PATIENCE, silent=silent)
            except Lost as lost:
                problem = f"the daemon at {place.name} broke the connection ({lost})"
            except OSError as error:
                if started:
                    raise self._not_running(error.strerror or str(error)) from None
                self._start_or_say(error.strerror or str(error))
                started = True
                headers["Authorization"] = f"Bearer {self.caller.token()}"
                continue
            if pause is not None:
                import time

                time.sleep(pause)
        raise RefusalError.of(
            "busy", problem, reason="the connection broke", retryAfter=1, remedies=[remedy("doctor")]
        )

    def _check_daemon(self) -> None:
        """Refuse at once when the daemon of this home runs and cannot answer."""
        if self.caller.place().socket != self.caller.where.socket:
            return
        from scout.cli.connection.autostart import not_answering
        from scout.daemon.start import NotAnswering, is_hindered, running

        found = running(self.caller.where.home)
        if found is not None and is_hindered(found):
            raise not_answering(NotAnswering(found))

    def _not_running(self, why: str) -> RefusalError:
        message = f"no daemon answers at {self.caller.place().name} ({why})"
        return RefusalError.of("not_running", message, remedies=[remedy("up")])

    def _written_version(self) -> str:
        """The version that the daemon wrote beside its lock; ours when another place is asked."""
        if self.caller.place().socket != self.caller.where.socket:
            return __version__
        from scout.daemon.lock import facts

        return str(facts(self.caller.where.home).get("version") or __version__)

    def _mention_skew(self, answer: HttpResponse) -> None:
        if DaemonCall._skew_said:
            return
        DaemonCall._skew_said = True
        other = answer.headers.get("scout-version") or self._written_version()
        if other != __version__:
            note(f"scout: the daemon is version {other}, this command is {__version__}; try: scout restart")


def _told(answer: HttpResponse, act_as: str | None = None) -> Any:
    try:
        data: Any = json.loads(answer.body) if answer.body else None
    except ValueError:
        data = None
    if answer.status < 400:
        return data
    if _is_problem(data):
        raise RefusalError(_repeated_as(data, act_as) if act_as else data)
    raise RefusalError.of(
        "busy", f"the daemon answered {answer.status} without a reason", remedies=[remedy("doctor")]
    )


def _repeated_as(data: dict[str, Any], act_as: str) -> dict[str, Any]:
    """The refusal, with remedies in the name that the refused command was typed in."""
    import shlex

    flag = f" --as {shlex.quote(act_as)}"

    def command_of(one: dict[str, Any]) -> str:
        words, mark, rest = str(one["command"]).partition(" -- ")
        own = str(one["operation"]).partition(".")[0] not in _NOT_AS
        return f"{words}{flag if own else ''}{mark}{rest}"

    remedies = [{**one, "command": command_of(one)} if "command" in one else one for one in data["remedies"]]
    return {**data, "remedies": remedies}


def _is_problem(data: Any) -> bool:
    return type(data) is dict and "code" in data


def on_terminal() -> bool:
    """Whether a person sits in front of both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty()
