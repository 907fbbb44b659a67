"""`scout hook EVENT` and `scout statusline`: called by a host; silent without a daemon."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time

from scout.cli.connection.text import note, print_out
from scout.cli.hosts.host_session import HostSession, Refusal
from scout.client.http import quote, to_object
from scout.client.session_files import find_host_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    Facts = dict[str, Any]

_WAIT = 30.0  # seconds that a permission request waits for a decision elsewhere
_SPARE = 10.0  # seconds after that until the attention item expires
_POLL = 20.0
_BEGINNING = 2000  # characters of a prompt, enough to recognise one that Scout wrote
_ANSWER = 60_000  # characters of an answer
_TAIL = 500_000  # bytes of a transcript
_LONGEST = 1_000_000  # maximum characters of the host's input
_EDIT = 0.08  # seconds until an edit is allowed without an answer; with the start of Python, 200 ms at most


def run_hook(words: list[str]) -> int:
    """Report one event and print what the host expects. An error never disturbs the host."""
    try:
        event, host, wait = _read_words(words)
        if event == "pre_edit":
            with _end_after(float(os.environ.get("SCOUT_EDIT_WAIT") or _EDIT)):
                _check_edit(HostSession(host), _read_input(), wait)
        elif event in EVENTS and (file := os.environ.get("SCOUT_HOOK_FILE")):
            _append_report(file, event, _read_input())  # Scout runs this session in a terminal
        elif event in EVENTS and not os.environ.get(
            "SCOUT_SESSION"
        ):  # Scout watches its other sessions itself
            EVENTS[event](HostSession(host), _read_input(), wait)
    except Exception as problem:  # noqa: BLE001 (no fault of ours may break the host)
        _print_reason(problem)
    return 0


def _read_words(words: list[str]) -> tuple[str, str, float]:
    """Return the event, the host's name, and how long a permission request waits."""
    rest, found = iter(words), {"--host": "claude", "--wait": str(_WAIT)}
    names: list[str] = []
    for word in rest:
        flag, same, value = word.partition("=")
        if flag in found:
            found[flag] = value if same else next(rest, "")
        else:
            names.append(word)
    return "".join(names[:1]).replace("-", "_"), found["--host"], float(found["--wait"])


def _read_input() -> Facts:
    """Read the host's JSON from standard input."""
    return to_object(json.loads(sys.stdin.read(_LONGEST) or "{}"))


def _print_reason(problem: Exception) -> None:
    """Print a problem only if SCOUT_HOOK_DEBUG is set: a host may show stderr to the user."""
    if os.environ.get("SCOUT_HOOK_DEBUG"):
        note(f"scout hook: {type(problem).__name__}: {problem}")


@contextlib.contextmanager
def _end_after(seconds: float) -> Generator[None]:
    """End the process after so many seconds, whatever it does then: an edit waits no longer."""
    import signal

    def end(*_: object) -> None:
        os._exit(0)

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)  # Python takes its handlers away before it ends


# -- the events --------------------------------------------------------------------------------------


def _enrol(host: HostSession, facts: Facts) -> Facts:
    model = facts.get("model")
    named = to_object(model).get("id") or model
    cwd = str(facts.get("cwd") or os.getcwd())  # noqa: PTH109 (one look, no object)
    return host.enrol(cwd, str(facts["session_id"]), named if isinstance(named, str) else None)


def _report(host: HostSession, facts: Facts, event: str, **more: Any) -> tuple[Facts, Facts]:
    """Report an event; return the session and the broker's answer. An unknown session enrols again."""
    kept = host.find_kept(str(facts["session_id"]))
    if kept is not None:
        try:
            return kept, host.report(kept, event, **more)
        except Refusal:
            pass  # the session has ended, or belongs to another host
    session = _enrol(host, facts)
    return session, host.report(session, event, **more)


def _record_working(host: HostSession, session: Facts, *, working: bool) -> None:
    """Record in the session's file whether it is working; the relay reads it there."""
    if session.get("working", False) is not working:
        host.keep({**session, "working": working})


def _on_session_start(host: HostSession, facts: Facts, wait: float) -> None:
    session = _enrol(host, facts)
    _add_context(facts, host.report(session, "session_start")["context"])
    host.end_lost()


def _on_prompt_submit(host: HostSession, facts: Facts, wait: float) -> None:
    session, told = _report(host, facts, "prompt_submit", prompt=str(facts.get("prompt") or "")[:_BEGINNING])
    _record_working(host, session, working=True)
    _add_context(facts, told["context"])


def _on_stop(host: HostSession, facts: Facts, wait: float) -> None:
    """Report the end of a turn with its last text. New mail is printed, which continues the session."""
    session, told = _report(host, facts, "stop", lastText=_find_last_text(facts))
    shown: Facts = {"systemMessage": told["notice"]} if told["notice"] else {}
    if told["context"]:
        shown |= {"decision": "block", "reason": told["context"]}
    else:
        _record_working(host, session, working=False)
    if shown:
        _print(shown)
    if told["handedOver"]:
        host.report(session, "prompt_submit")


def _find_last_text(facts: Facts) -> str:
    """Return the last text of the model, from the host's input or its transcript."""
    said = facts.get("last_assistant_message")
    text = said if isinstance(said, str) else _read_transcript(str(facts.get("transcript_path") or ""))
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}\n… (cut: the whole text is in the session)"


def _read_transcript(path: str) -> str:
    """Return the model's last text in a transcript of Claude Code."""
    with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123 (pathlib costs more)
        file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
        for line in reversed(file.read().splitlines()):
            said = _read_assistant_text(line)
            if said is not None:
                return said
    return ""


def _read_assistant_text(line: bytes) -> str | None:
    try:
        entry = to_object(json.loads(line))
    except ValueError:
        return None
    if entry.get("type") != "assistant":
        return None
    blocks = [to_object(one) for one in _to_list(to_object(entry.get("message")).get("content"))]
    texts = [str(one.get("text", "")) for one in blocks if one.get("type") == "text"]
    return "\n".join(texts) or None


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _to_list(value: Any) -> list[Any]:
    return value if _is_list(value) else []


def _on_tool_use(host: HostSession, facts: Facts, wait: float) -> None:
    """Give an enrolled session its plain mail between two tools."""
    session = host.find_kept(str(facts["session_id"]))
    if session is None:
        return
    told = host.report(session, "tool_use")
    if told["context"]:
        _add_context(facts, told["context"])
        host.call(session["token"], "POST", "/v1/inbox/ack", {"deliveryIds": told["handedOver"]})


def _check_edit(host: HostSession, facts: Facts, wait: float) -> None:
    """Deny an edit of a file that another agent holds. Without an answer in time, the edit is allowed."""
    given = to_object(facts.get("tool_input"))
    path = given.get("file_path") or given.get("notebook_path")
    token = _find_editor(host, facts)
    if not path or not token:
        return
    wish = {"paths": [str(path)], "folder": facts.get("cwd"), "editing": True}
    told = host.call(token, "POST", "/v1/reservations/check", wish)
    if not told["allowed"]:
        denied = {"permissionDecision": "deny", "permissionDecisionReason": told["message"]}
        _print({"hookSpecificOutput": {"hookEventName": "PreToolUse", **denied}})


def _find_editor(host: HostSession, facts: Facts) -> str:
    """Return the token of the session that edits: one that Scout started has it in its environment."""
    if os.environ.get("SCOUT_SESSION"):
        return os.environ.get("SCOUT_TOKEN", "")
    return str((host.find_kept(str(facts["session_id"])) or {}).get("token") or "")


def _on_permission_request(host: HostSession, facts: Facts, wait: float) -> None:
    """Wait for a decision elsewhere; without one, the host asks its own user."""
    tool, given = str(facts.get("tool_name") or ""), to_object(facts.get("tool_input"))
    wish = {"tool": tool, "arguments": given, "expiresIn": wait + _SPARE}
    session, told = _report(host, facts, "permission_request", **wish)
    item = f"/v1/attention/{quote(told['attentionId'])}"
    decided = _wait_for_decision(host, session["token"], item, time.monotonic() + wait)
    if decided is None:
        host.call(session["token"], "POST", f"{item}/dismiss", {"reason": "asked in the session itself"})
        return
    behavior: Facts = {"behavior": "allow"}
    if decided["state"] == "denied":
        behavior = {"behavior": "deny", "message": decided.get("reason") or "denied by a person"}
    _print({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": behavior}})


def _wait_for_decision(host: HostSession, token: str, item: str, end: float) -> Facts | None:
    while (left := end - time.monotonic()) > 0:
        shown = host.call(token, "GET", f"{item}?wait={min(left, _POLL):.1f}", timeout=_POLL + host.timeout)
        if shown["state"] in ("resolved", "denied"):
            return shown
        if shown["state"] not in ("open", "notified"):
            return None
    return None


def _on_session_end(host: HostSession, facts: Facts, wait: float) -> None:
    kept = host.find_kept(str(facts["session_id"]))
    if kept is not None:
        host.forget(kept)
        host.report(kept, "session_end")


EVENTS: dict[str, Callable[[HostSession, Facts, float], None]] = {
    "session_start": _on_session_start,
    "prompt_submit": _on_prompt_submit,
    "stop": _on_stop,
    "pre_edit": _check_edit,
    "tool_use": _on_tool_use,
    "permission_request": _on_permission_request,
    "session_end": _on_session_end,
}


# -- sessions that Scout runs in a terminal ----------------------------------------------------------


def _append_report(file: str, event: str, facts: Facts) -> None:
    """Append the event to the file that the harness reads: its process, and the last text at a stop."""
    pid, started = find_host_process(os.environ)
    report = {"event": event, "pid": pid, "started": started, "native": str(facts.get("session_id") or "")}
    if event == "stop":
        report["text"] = _find_last_text(facts)
    if event == "permission_request":
        report["tool"] = str(facts.get("tool_name") or "")
    line = f"{json.dumps(report)}\n".encode()
    place = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(place, line)
    finally:
        os.close(place)


# -- output for the host -----------------------------------------------------------------------------


def _add_context(facts: Facts, text: str) -> None:
    """Print additional context for the model."""
    if text:
        name = facts.get("hook_event_name") or "SessionStart"
        _print({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}})


def _print(told: Facts) -> None:
    print_out(json.dumps(told))
    sys.stdout.flush()


# -- the status line ---------------------------------------------------------------------------------


def print_statusline(words: list[str]) -> int:
    """Print one line: address, unread mail, items that need the person. Prints nothing without a daemon."""
    try:
        host = HostSession(_read_words(words)[1], timeout=2.0)
        kept = host.find_kept(str(_read_input()["session_id"]))
        if kept is not None:
            now = host.call(kept["token"], "GET", "/v1/now")
            asked = host.call(kept["token"], "GET", "/v1/attention?raised=true")
            print_out(_build_line(kept["address"], now["unread"], len(asked["items"])))
    except Exception as problem:  # noqa: BLE001 (the same)
        _print_reason(problem)
    return 0


def _build_line(address: str, unread: int, needs: int) -> str:
    waits = f"{unread} unread" if unread else ""
    wants = f"{needs} need{'s' if needs == 1 else ''} you" if needs else ""
    return " · ".join(part for part in (address, waits, wants) if part)
