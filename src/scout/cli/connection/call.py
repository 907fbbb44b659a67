"""Calls to the daemon: identity, routes, and retries when the connection breaks."""

from __future__ import annotations

import os

from scout import __version__
from scout.cli.connection.refusal import RefusalError, build_remedy, repeat_typed
from scout.cli.connection.text import note
from scout.client.environment import Environment, NoToken, build_headers, get_current_directory
from scout.client.http import Lost, build_target, exchange, open_stream, quote, to_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from scout.client.http import DaemonAddress, HttpResponse
    from scout.client.sse import SseEvent
    from scout.daemon.start import NotAnswering, Running

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
    "brief": "GET /v1/brief",
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

# Remedies that only the operator may use, or that take no `--as`.
_NOT_AS = frozenset({"config", "doctor", "explain", "grant", "restart", "runtimes", "token", "up"})
_NAMES = frozenset(
    {"to", "agent", "target", "flight", "conversation", "work", "ownerId"}
)  # besides those in a route
_PATIENCE = 75.0  # seconds: longer than any long poll
_RESTART = 15.0  # seconds that the next daemon has after one was stopped
_PAUSES = (0.05, 0.2, 0.8)  # seconds before a request is repeated after a lost connection


class CliIdentity(Environment):
    """The caller of one command: its environment, and the agent it acts as."""

    def __init__(self, act_as: str | None = None, environ: Mapping[str, str] = os.environ) -> None:
        super().__init__(environ)
        self.act_as = act_as

    @property
    def address(self) -> DaemonAddress:
        """Return the daemon's address."""
        try:
            return super().address
        except ValueError as error:
            raise RefusalError.of("bad_request", f"SCOUT_URL: {error}") from None

    @property
    def may_start(self) -> bool:
        """Whether a command may start the daemon: a person typed it, and autostart is not turned off."""
        return self.where.autostart and not self.session and not self.environ.get("SCOUT_URL")

    @property
    def is_operator(self) -> bool:
        """Whether the operator's token is used: no other is given, and this runs in no session."""
        return not (self.given_token or self.session)

    def find_token(self) -> str:
        """Return the credential to use."""
        try:
            return super().find_token()
        except NoToken as missing:
            message = f"not authenticated: {missing.reason}"
            remedies = [] if self.session else [build_remedy("doctor")]
            raise RefusalError.of(
                "unauthenticated",
                message,
                reason=missing.reason,
                needs=[*missing.needs],
                remedies=remedies,
            ) from None

    def build_headers(self) -> dict[str, str]:
        """Return the headers of every request: credential, identity and directory."""
        return build_headers(self.find_token(), self.act_as, get_current_directory())


class DaemonCall:
    """The daemon, called with one identity."""

    _has_checked_version = False  # once per process is enough

    def __init__(self, caller: CliIdentity | None = None, *, start: bool = True) -> None:
        self.caller = caller or CliIdentity()
        self.start = start

    def call(
        self,
        route: str,
        parameters: Mapping[str, Any],
        key: str | None = None,
        *,
        patience: float = _PATIENCE,
    ) -> Any:
        """Return the decoded response; raise a refusal. Writes carry a key, so that repeating is safe.

        `patience`: seconds until the daemon must have answered.
        """
        _check_names(route, parameters)
        method, target, body = build_target(route, parameters)
        headers = {**self._build_headers(), "Accept": "application/json"}
        if method != "GET":
            headers["Idempotency-Key"] = quote(key) if key else os.urandom(16).hex()
        answer = self._send_until_answered(method, target, headers, body, patience)
        if _is_stopping(answer):
            answer = self._repeat_after_restart(method, target, headers, body, patience)
        self._warn_of_version(answer)
        return _decode_response(answer, self.caller.act_as)

    def events(self, target: str, last: str | None = None) -> Iterator[SseEvent]:
        """Yield the events of a stream. It ends, or raises `Lost`, with the connection."""
        from scout.client.http import HttpResponse

        headers = {**self._build_headers(), "Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = last
        for part in open_stream(self.caller.address, target, headers, _PATIENCE):
            if not isinstance(part, HttpResponse):
                yield part
            elif part.status != 200:
                _decode_response(part)
                return

    def _build_headers(self) -> dict[str, str]:
        """Return the headers of a request. The first start makes the token, so the daemon starts first."""
        address = self.caller.address
        if self.caller.is_operator and address.socket and not os.path.exists(address.socket):  # noqa: PTH110 (pathlib would be loaded for this)
            self._start_or_refuse("there is no socket")
        return self.caller.build_headers()

    def _start_or_refuse(self, why: str) -> None:
        if not (self.start and self.caller.may_start):
            self._check_daemon()
            raise self._report_not_running(why)
        running, began = start_daemon(self.caller)
        if began:
            note(f"scout: started the daemon (pid {running.pid}, {running.url})")

    def _send_until_answered(
        self, method: str, target: str, headers: dict[str, str], body: bytes, patience: float
    ) -> HttpResponse:
        address, started, problem = self.caller.address, False, ""
        for pause in (*_PAUSES, None):
            try:
                silent = self._check_daemon
                return exchange(address, method, target, headers, body, timeout=patience, silent=silent)
            except Lost as lost:
                problem = f"the daemon at {address.name} broke the connection ({lost})"
            except OSError as error:
                if started:
                    raise self._report_not_running(error.strerror or str(error)) from None
                self._start_or_refuse(error.strerror or str(error))
                started = True
                headers["Authorization"] = f"Bearer {self.caller.find_token()}"
                continue
            if pause is not None:
                import time

                time.sleep(pause)
        raise RefusalError.of(
            "busy", problem, reason="the connection broke", retryAfter=1, remedies=[build_remedy("doctor")]
        )

    def _repeat_after_restart(
        self, method: str, target: str, headers: dict[str, str], body: bytes, patience: float
    ) -> HttpResponse:
        """Repeat a request that a stopping daemon ended, at the next daemon. Nothing is started here.

        A person who runs `scout restart` keeps every wait; after `scout down` the daemon stays down.
        """
        import time

        began = time.monotonic()
        while time.monotonic() - began < _RESTART:
            time.sleep(_PAUSES[1])
            try:
                answer = exchange(self.caller.address, method, target, headers, body, timeout=patience)
            except (Lost, OSError):
                continue
            if not _is_stopping(answer):
                return answer
        message = "the daemon was stopped; what you waited for is stored and continues with the next daemon"
        raise RefusalError.of("not_running", message, remedies=[build_remedy("up")])

    def _check_daemon(self) -> None:
        """Refuse immediately if the daemon of this data folder is running but cannot answer."""
        if self.caller.address.socket != self.caller.where.socket:
            return
        from scout.daemon.start import NotAnswering, find_running, is_blocked

        found = find_running(self.caller.where.home)
        if found is not None and is_blocked(found):
            raise report_not_answering(NotAnswering(found))

    def _report_not_running(self, why: str) -> RefusalError:
        message = f"no daemon answers at {self.caller.address.name} ({why})"
        return RefusalError.of("not_running", message, remedies=[build_remedy("up")])

    def _read_version(self) -> str:
        """Return the version that the daemon wrote beside its lock; ours if the daemon is elsewhere."""
        if self.caller.address.socket != self.caller.where.socket:
            return __version__
        from scout.daemon.lock import read_facts

        return str(read_facts(self.caller.where.home).get("version") or __version__)

    def _warn_of_version(self, answer: HttpResponse) -> None:
        if DaemonCall._has_checked_version:
            return
        DaemonCall._has_checked_version = True
        other = answer.headers.get("scout-version") or self._read_version()
        if other != __version__:
            note(f"scout: the daemon is version {other}, this command is {__version__}; try: scout restart")


def start_daemon(caller: CliIdentity, arguments: Sequence[str] = ()) -> tuple[Running, bool]:
    """Start the daemon unless it is running; whether this call started it."""
    from scout.daemon.start import NotAnswering, NotStarted, start

    try:
        home, environ = caller.where.home, caller.environ
        return start(home, arguments=arguments, environ=environ, on_upgrade=_note_upgrade)
    except NotAnswering as silent:
        raise report_not_answering(silent) from None
    except NotStarted as refused:
        code = str(refused.problem.get("code") or "busy")
        facts = {name: value for name, value in refused.problem.items() if name not in ("code", "message")}
        raise RefusalError.of(code, str(refused), **{"remedies": [build_remedy("doctor")], **facts}) from None


def _note_upgrade(size: int) -> None:
    much = f"{size >> 20:,} MB" if size >> 20 else "less than 1 MB"
    note(f"scout: upgrading the store ({much}) once, after a copy of it; a large one takes minutes")


def report_not_answering(silent: NotAnswering) -> RefusalError:
    """Build the refusal of a daemon that is running but does not answer: only a restart helps."""
    reason = "the daemon does not answer"
    return RefusalError.of(
        "busy", str(silent), reason=reason, remedies=[build_remedy("restart"), build_remedy("doctor")]
    )


def _check_names(route: str, parameters: Mapping[str, Any]) -> None:
    """Refuse an empty name, such as a variable of the shell that is not set: it never means a record."""
    for name, value in parameters.items():
        if value == "" and (f"{{{name}}}" in route or name in _NAMES):
            raise RefusalError.of("bad_request", "an address or id is empty", field=name)


def _is_stopping(answer: HttpResponse) -> bool:
    return answer.status == 503 and to_object(answer.decode()).get("reason") == "the daemon is stopping"


def _decode_response(answer: HttpResponse, act_as: str | None = None) -> Any:
    data = answer.decode()
    if answer.status < 400:
        return data
    if "code" in (document := to_object(data)):
        raise RefusalError(_add_identity(document, act_as) if act_as else document)
    message = f"the daemon answered {answer.status} without a reason"
    raise RefusalError.of("busy", message, remedies=[build_remedy("doctor")])


def _add_identity(data: dict[str, Any], act_as: str) -> dict[str, Any]:
    """Return the refusal with remedies that act as the same agent as the refused command."""
    if data.get("address") == act_as:  # it is the agent to act as that is refused
        return repeat_typed(data, act_as, "address")
    import shlex

    flag = f" --as {shlex.quote(act_as)}"

    def build_command(one: dict[str, Any]) -> str:
        words, mark, rest = str(one["command"]).partition(" -- ")
        own = str(one["operation"]).partition(".")[0] not in _NOT_AS
        return f"{words}{flag if own else ''}{mark}{rest}"

    remedies = [
        {**one, "command": build_command(one)} if "command" in one else one for one in data["remedies"]
    ]
    return {**data, "remedies": remedies}
