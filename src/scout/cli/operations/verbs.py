"""Implements `send`, `ask`, `reply` and `inbox` after parsing; the warm path ends here."""

from __future__ import annotations

import json
import os
import sys
import time

from scout.cli.connection.call import ROUTES, CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError, build_remedy
from scout.cli.connection.text import is_interactive, note, paint, print_out, print_text
from scout.policy.sentences import add_node, describe_receipt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Parameters that are directories, relative to the current one.
DIRECTORIES = frozenset({"cwd", "projectPath", "projectRoot", "workingDir", "old", "new"})
_FIRST_WAIT = 0.5  # seconds: a short turn is answered by the request that asks for it


class Options:
    """Options of a verb that are not parameters of its operation."""

    def __init__(
        self,
        *,
        as_json: bool = False,
        act_as: str | None = None,
        key: str | None = None,
        file: str | None = None,
        wait: float | None = None,
        no_wait: bool = False,
        notify: bool = False,
    ) -> None:
        self.as_json, self.act_as, self.key, self.file = as_json, act_as, key, file
        self.wait, self.no_wait, self.notify = wait, no_wait, notify

    def line(self) -> DaemonCall:
        return DaemonCall(CliIdentity(self.act_as))


def send(words: list[str], parameters: dict[str, Any], manner: Options) -> int:
    """Post a message and show its receipt."""
    elsewhere = any(
        parameters.get(name) for name in ("to", "channel", "conversationId", "thread", "broadcast")
    )
    _assign_words(words, parameters, manner, elsewhere)
    line = manner.line()
    attach_files(line, parameters)
    receipt = _post(line, ROUTES["send"], parameters, manner)
    _show_receipt(receipt, _describe_aim(parameters, receipt), manner)
    return 0


def reply(words: list[str], parameters: dict[str, Any], manner: Options, route: str) -> int:
    """Reply in the conversation of a message."""
    _assign_words(words, parameters, manner, True)
    line = manner.line()
    attach_files(line, parameters)
    receipt = _post(line, route, parameters, manner)
    _show_receipt(receipt, str(receipt.get("to") or "the conversation"), manner)
    return 0


def ask(words: list[str], parameters: dict[str, Any], manner: Options, route: str = ROUTES["ask"]) -> int:
    """Ask, then wait for the result unless an option says otherwise. The route of a task has no target."""
    named = any(parameters.get(name) for name in ("to", "projectPath", "targetSessionId"))
    elsewhere = named or route != ROUTES["ask"]
    _assign_words(words, parameters, manner, elsewhere)
    if manner.notify:
        parameters["replyMode"] = "notify"
    if parameters.get("within") is None and (flight := os.environ.get("SCOUT_FLIGHT")):
        parameters["within"] = flight
    if route == ROUTES["ask"] and parameters.get("traceparent") is None:
        parameters |= {"traceparent": trace[:200]} if (trace := os.environ.get("TRACEPARENT")) else {}
    line = manner.line()
    attach_files(line, parameters)
    if _is_wait_skipped(parameters, manner):
        return _show_ask(_post(line, route, parameters, manner), manner)
    from scout.cli.waiting.follow import follow, show_interrupted

    manner.key = manner.key or os.urandom(16).hex()
    began, first = time.monotonic(), _FIRST_WAIT if manner.wait is None else min(_FIRST_WAIT, manner.wait)
    try:
        receipt = _post(line, route, {**parameters, "wait": first}, manner)
    except KeyboardInterrupt:  # under the same key, the daemon returns the receipt of the same ask
        return show_interrupted(_post(line, route, parameters, manner)["flightId"])
    for text in receipt.get("notes") or ():
        note(f"note: {text}")
    if receipt["state"] == "completed" and not manner.as_json:
        print_text(str(receipt.get("output") or "").rstrip("\n"))
        return 0
    left = None if manner.wait is None else max(manner.wait - (time.monotonic() - began), 0.0)
    held = manner.wait is None and receipt["phase"] == "held"
    return follow(line, receipt["flightId"], 0.0 if held else left, manner.as_json)


def _is_wait_skipped(parameters: dict[str, Any], manner: Options) -> bool:
    """Whether to show the receipt instead of waiting. A queued ask is only awaited with --wait."""
    queued = parameters.get("ifUnreachable") == "queue" and manner.wait is None
    return manner.no_wait or manner.notify or queued or parameters.get("replyMode") == "none"


def show_inbox(parameters: dict[str, Any], manner: Options) -> int:
    """Show unread items. Showing them to a person marks them as read; for a program nothing changes."""
    line = manner.line()
    page = line.call(ROUTES["inbox"], parameters)
    if manner.as_json:
        print_out(json.dumps(page))
        return 0
    from scout.cli.output.results import show_items

    show_items(page["items"])
    is_person = line.caller.is_operator and not manner.act_as
    if is_person:
        _mark_read(line, page["items"])
    if page.get("next"):
        note("more: scout inbox" if is_person and not parameters.get("all") else _format_more(page["next"]))
    return 0


def _format_more(cursor: str) -> str:
    return f"more: scout inbox --cursor {cursor}"


def _mark_read(line: DaemonCall, items: list[dict[str, Any]]) -> None:
    """Mark shown items as read; an ask stays until it is answered."""
    unread = [item for item in items if not item.get("read")]
    mail = [item["delivery"] for item in unread if item.get("delivery")]
    ids = [one["id"] for one in mail if one["state"] == "pending" and not one.get("flightId")]
    if ids:
        line.call(ROUTES["inbox.ack"], {"deliveryIds": ids})
    cursors = {item["conversationId"]: 0 for item in unread if item.get("seq")}
    for ident in cursors:
        last = max(item["seq"] for item in unread if item.get("conversationId") == ident)
        line.call(ROUTES["inbox.ack"], {"conversationId": ident, "seq": last})


# ------------------------------------------------------------------------------- words and bodies


def _assign_words(words: list[str], parameters: dict[str, Any], manner: Options, elsewhere: bool) -> None:
    """Set target and body: the first word is the target unless a flag names one; the rest is the body."""
    rest = _join_operator(words)
    if not elsewhere and rest and rest[0] != "-" and not _has_route(rest[0]):
        parameters["to"] = rest.pop(0)
    parameters["body"] = read_body(rest, manner)
    for name in DIRECTORIES & parameters.keys():
        if parameters[name] is not None:
            parameters[name] = os.path.abspath(parameters[name])  # noqa: PTH100 (pathlib would be loaded for this)


def _join_operator(words: list[str]) -> list[str]:
    """Join a separate route operator with the word after it."""
    return [" ".join(words[:2]), *words[2:]] if words[:1] == [">>"] else list(words)


def _has_route(word: str) -> bool:
    """Whether a word is the route operator with a target and a text, which the broker parses."""
    after = word.lstrip().removeprefix(">>")
    return after != word.lstrip() and (len(after.split()) != 1 or "\n" in after)


def read_body(words: list[str], manner: Options) -> str:
    """Return the body: the words, standard input for -, a file, or the text from an editor."""
    if manner.file is not None:
        if words:
            raise _build_refusal("give the text or --file, not both")
        return _read_file(manner.file)
    if words == ["-"]:
        return _decode_body(sys.stdin.buffer.read(), "standard input")
    if words and any(word.strip() for word in words):
        return " ".join(words)
    if words:
        raise _build_refusal("the text is empty, so nothing is sent")
    if is_interactive():
        return _edit_body()
    raise _build_refusal(
        "there is no text: give it as an argument, as - for standard input, or with --file FILE"
    )


def _edit_body() -> str:
    """Return a body written in the person's editor. An empty text is refused, so that nothing is sent."""
    import shlex
    import subprocess
    import tempfile

    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise _build_refusal("there is no text, and EDITOR is not set")
    with tempfile.TemporaryDirectory(prefix="scout-") as folder:
        file = f"{folder}/message.md"
        os.close(os.open(file, os.O_CREAT, 0o600))
        status = subprocess.run([*shlex.split(editor), file], check=False).returncode
        text = _read_file(file) if os.path.exists(file) else ""  # noqa: PTH110 (one look, no object)
    if status or not text.strip():
        raise _build_refusal("nothing was written, so nothing is sent")
    return text


def _read_file(name: str) -> str:
    try:
        with open(name, "rb") as file:  # noqa: PTH123 (pathlib would be loaded for this)
            return _decode_body(file.read(), name)
    except OSError as error:
        raise _build_refusal(f"{name} cannot be read: {error.strerror}") from None


def _decode_body(data: bytes, name: str) -> str:
    """Decode a body without any change, line ends included."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise _build_refusal(f"{name} is not UTF-8 text; --attach FILE takes any file") from None


def _build_refusal(problem: str) -> RefusalError:
    return RefusalError.of("bad_request", problem, problem=problem, field="body")


def _post(line: DaemonCall, route: str, parameters: dict[str, Any], manner: Options) -> dict[str, Any]:
    """Post and return the receipt. If a file is too long for a body, suggest attaching it."""
    try:
        return line.call(route, parameters, manner.key)
    except RefusalError as problem:
        if problem.code == "too_large" and problem.told.get("what") == "body":
            problem.told["remedies"] = [_suggest_attach(manner.file)]
        raise


def _suggest_attach(file: str | None) -> dict[str, Any]:
    """Return the typed command with the file, or standard input, attached instead."""
    import shlex

    flags = {"--file": "--attach", f"--file={file}": f"--attach={file}"}
    typed = [flags.get(word, word) for word in sys.argv[1:] if file is not None or word != "-"]
    if file is None:
        typed[1:1] = ["--attach", "/dev/stdin"]
    command = shlex.join(["scout", *typed, "See the attachment."])
    return build_remedy(typed[0], command, "attach the file" if file is not None else "from the same pipe")


def attach_files(line: DaemonCall, parameters: dict[str, Any]) -> None:
    """Store attached files; a SHA-256, perhaps with a name behind it, is kept as it is."""
    names = parameters.get("attachments") or ()
    if names:
        parameters["attachments"] = [store_file(line, name) for name in names]


def is_hash(word: str) -> bool:
    """Whether a word is the SHA-256 of a stored file."""
    return len(word) == 64 and not word.strip("0123456789abcdef")


def store_file(line: DaemonCall, name: str) -> str:
    """Store a file and return its SHA-256 and name."""
    import base64
    import mimetypes

    if is_hash(name.partition(":")[0]) and not os.path.exists(name):  # noqa: PTH110 (one look, no object)
        return name
    try:
        with open(name, "rb") as file:  # noqa: PTH123 (one read, no object)
            data = file.read()
    except OSError as error:
        raise _build_refusal(f"{name} cannot be read: {error.strerror}") from None
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    told = {"name": os.path.basename(name), "mediaType": kind, "data": base64.b64encode(data).decode()}  # noqa: PTH119 (one name, no object)
    return f"{line.call(ROUTES['attachment.put'], told)['sha256']}:{told['name']}"


# ------------------------------------------------------------------------------------- output


def _describe_aim(parameters: dict[str, Any], receipt: dict[str, Any]) -> str:
    aim = parameters.get("to") or parameters.get("projectPath") or parameters.get("targetSessionId")
    if aim is None and parameters.get("channel"):
        aim = f"channel {parameters['channel']}"
    if aim is None and not any(parameters.get(name) for name in ("conversationId", "thread", "broadcast")):
        aim = ", ".join(str(one["address"]) for one in receipt.get("deliveries") or ())
    return str(aim or ("everybody" if parameters.get("broadcast") else "the conversation"))


def print_result(told: Any, text: str, as_json: bool) -> None:
    """Print an answer as JSON or as text."""
    print_out(json.dumps(told) if as_json else text)


def _show_receipt(receipt: dict[str, Any], to: str, manner: Options) -> None:
    if manner.as_json:
        print_out(json.dumps(receipt))
        return
    deliveries = receipt.get("deliveries") or ()
    states = sorted({str(one["state"]) for one in deliveries})
    nodes = {one["mesh"]["node"] for one in deliveries if one.get("mesh")}
    to = add_node(to, nodes.pop()) if len(nodes) == len(deliveries) == 1 else to
    print_out(f"{paint('sent', 'green')} {receipt['messageId']} to {to} ({', '.join(states) or 'stored'})")
    for one in deliveries:
        if way := describe_receipt(one.get("mesh")):
            note(f"{one['address']}: the message {way}")
    for text in receipt.get("notes") or ():
        note(f"note: {text}")


def _show_ask(receipt: dict[str, Any], manner: Options) -> int:
    if manner.as_json:
        print_out(json.dumps(receipt))
        return 0
    to = add_node(receipt.get("address") or receipt["target"], receipt.get("node"))
    print_out(
        f"{paint('asked', 'green')} {to}: {receipt['flightId']} ({receipt['state']}, {receipt['phase']})"
    )
    if receipt.get("reason"):
        note(f"because: {receipt['reason']}")
    for text in receipt.get("notes") or ():
        note(f"note: {text}")
    note(f"the answer: scout wait {receipt['flightId']}")
    return 0
