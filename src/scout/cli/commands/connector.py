"""`scout connector add`: set up a chat platform, and prove it with a message to yourself."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click

from scout.cli.connection.call import ROUTES, DaemonCall
from scout.cli.connection.refusal import RefusalError, build_remedy, repeat_typed
from scout.cli.connection.text import erase_status, is_interactive, note, paint, print_out, show_status
from scout.cli.operations.build import build_epilog, run_guarded
from scout.cli.operations.verbs import Options

_SHOW, _ADD = "GET /v1/connectors/{connector}", "POST /v1/connectors"
_TEST, _KEYS = "POST /v1/connectors/{connector}/test", "GET /v1/keys"
_LINK = "POST /v1/users/{user}/link"
_LOOK = 0.5  # seconds between two looks whether the code was typed
_PATIENCE = 900.0  # seconds that a code is valid


@click.command(
    "add",
    short_help="Set up a connector, and prove it with a message to yourself.",
    epilog=build_epilog("connector", "add"),
)
@click.argument("name", metavar="CONNECTOR")
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="A value that is not a secret.")
@click.option(
    "--secrets",
    type=click.Path(allow_dash=True),
    metavar="FILE",
    help="Read secrets from a file with lines KEY=VALUE, or - for standard input.",
)
@click.option("--no-link", is_flag=True, help="Do not link your own account.")
@click.option(
    "--wait",
    type=float,
    metavar="SECONDS",
    help="How long to wait for the code in the chat; default 900 on a terminal, else 0.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def add(
    *,
    name: str,
    given: tuple[str, ...],
    secrets: str | None,
    no_link: bool,
    wait: float | None,
    as_json: bool,
) -> None:
    """Set up a connector, start it in the running daemon, and prove it with a message to yourself.

    CONNECTOR: telegram, whatsapp, matrix or slack.

    On a terminal it asks for what it needs. Secrets are never given as arguments: other programs could read
    them there.
    """
    patience = wait if wait is not None else (_PATIENCE if is_interactive() else 0.0)
    run_guarded(lambda: set_up(name, given, secrets, None if no_link else patience, as_json=as_json), as_json)


def set_up(
    name: str,
    given: tuple[str, ...] = (),
    secrets: str | None = None,
    patience: float | None = _PATIENCE,
    *,
    as_json: bool = False,
) -> int:
    """Set up one connector. `patience`: seconds to wait for the link code; None: do not link."""
    line = Options(as_json=as_json).line()
    fields = _read_fields(line, name)
    values = {**_read_given(name, given, fields), **_read_secrets(secrets)}
    values |= _ask_for_missing(fields, values)
    view = line.call(_ADD, {"connector": name, "values": values})
    told: dict[str, Any] = {**view, "code": None, "linked": False}
    if not as_json:
        account = f" as {view['account']}" if view.get("account") else ""
        print_out(f"{paint('connected', 'green')} to {name}{account}")
    if patience is not None:
        told |= _link_own_account(line, view, patience, as_json=as_json)
    if as_json:
        print_out(json.dumps(told))
    return 0


# -- values ------------------------------------------------------------------------------------------


def _read_fields(line: DaemonCall, name: str) -> list[dict[str, Any]]:
    """Return the fields of a connector; an unknown name is refused with the typed command, corrected."""
    try:
        return line.call(_SHOW, {"connector": name})["fields"]
    except RefusalError as problem:
        raise RefusalError(repeat_typed(problem.told, name, "connector")) from None


def _read_given(name: str, given: tuple[str, ...], fields: list[dict[str, Any]]) -> dict[str, str]:
    """Return the values of --set; a secret is refused there."""
    found: dict[str, str] = {}
    hidden = {one["name"] for one in fields if one.get("secret")}
    for text in given:
        key, equals, value = text.partition("=")
        if not equals:
            raise RefusalError.of("bad_request", f"expected KEY=VALUE, got '{text}'", field=text)
        if key in hidden:
            message = (
                f"{key} is a secret: other programs can read arguments. Type it when asked, or use --secrets"
            )
            again = build_remedy("connector.add", f"scout connector add {name} --secrets -")
            raise RefusalError.of("bad_request", message, field=key, remedies=[again])
        found[key] = value
    return found


def _read_secrets(source: str | None) -> dict[str, str]:
    """Return the lines KEY=VALUE of a file or of standard input."""
    if source is None:
        return {}
    try:
        text = sys.stdin.read() if source == "-" else Path(source).read_text("utf-8")
    except OSError as error:
        raise RefusalError.of("bad_request", f"{source}: {error.strerror}", field="secrets") from None
    pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
    return {key.strip(): value.strip() for key, _, value in pairs}


def _ask_for_missing(fields: list[dict[str, Any]], values: dict[str, str]) -> dict[str, str]:
    """Ask for what was not given, on a terminal; a script is told by the daemon what is missing."""
    if not is_interactive():
        return {}
    found: dict[str, str] = {}
    for one in fields:
        if one["name"] in values:
            continue
        known = one.get("value") or one.get("default")
        found[one["name"]] = click.prompt(
            one["question"],
            default=known if known is not None else None,
            show_default=bool(known),
            hide_input=bool(one.get("secret")),
        )
    return found


# -- your own account --------------------------------------------------------------------------------


def _link_own_account(
    line: DaemonCall, view: dict[str, Any], patience: float, *, as_json: bool
) -> dict[str, Any]:
    """Link the account of the person at this terminal by a code, and send a message there."""
    name, user = str(view["connector"]), str(line.call(ROUTES["whoami"], {})["path"]).split("/")[1]
    if _is_linked(line, user, name):
        return _send_proof(line, name, as_json=as_json)
    code = str(line.call(_LINK, {"user": user, "connector": name})["code"])
    where = view.get("account") or f"the bot on {name}"
    note(f"Send this text to {where}, from your own account. It is valid for 15 minutes:")
    if not as_json:
        print_out(paint(code, "bold"))
    if not _wait_for_link(line, user, name, patience):
        note(f"then send yourself a message: scout connector test {name}")
        return {"code": code}
    return {"code": code, **_send_proof(line, name, as_json=as_json)}


def _wait_for_link(line: DaemonCall, user: str, name: str, patience: float) -> bool:
    until = time.monotonic() + patience
    try:
        while time.monotonic() < until:
            if _is_linked(line, user, name):
                return True
            show_status(f"waiting for the code in the chat, {round(until - time.monotonic())} s left")
            time.sleep(_LOOK)
    finally:
        erase_status()
    return False


def _is_linked(line: DaemonCall, user: str, name: str) -> bool:
    return bool(line.call(_KEYS, {"user": user, "connector": name})["items"])


def _send_proof(line: DaemonCall, name: str, *, as_json: bool) -> dict[str, Any]:
    line.call(_TEST, {"connector": name})
    if not as_json:
        print_out(f"{paint('linked', 'green')}: a message is on its way to your chat")
    return {"linked": True}


# -- at the end of `scout setup` ---------------------------------------------------------------------


def offer_chat() -> None:
    """Offer to connect a chat, once Scout is set up on this machine and none is connected."""
    try:
        connectors = DaemonCall().call("GET /v1/connectors", {"all": True})["items"]
    except RefusalError:
        return
    if all(one["state"] == "off" for one in connectors):
        note("to approve from your phone: scout connector add telegram")
