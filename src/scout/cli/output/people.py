"""Output of users, their chat accounts and grants, connectors, and bindings."""

from __future__ import annotations

from scout.cli.connection.text import format_age, format_local_time, note, paint, print_out, shorten_id
from scout.cli.output.fields import read_holder, read_scope, show_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.output.fields import Field

USER: tuple[Field, ...] = (
    ("name", "displayName"),
    ("kind", "kind"),
    ("state", lambda user: None if user["state"] == "active" else user["state"]),
    ("reason", "reason"),
    ("operator", lambda user: "yes" if user.get("operator") else None),
    ("owner", "owner"),
    ("gateway", "gateway"),
    ("address", "address"),
    ("agents", "agents"),
    ("sub-users", "list:subusers"),
)

_GRANT: tuple[Field, ...] = (
    ("holder", read_holder),
    ("may", "action"),
    ("of", read_scope),
    ("state", "state"),
    ("until", "time:expiresAt"),
    ("why", "reason"),
)

_CONNECTOR: tuple[Field, ...] = (
    ("state", "state"),
    ("account", "account"),
    ("since", "age:since"),
    ("waiting", lambda one: one.get("waiting") or None),
    ("problem", "problem"),
)


def show_user(user: dict[str, Any]) -> None:
    """Show a user, the chat accounts with their last use, and open link codes."""
    show_fields(user["name"], user, USER)
    for key in user.get("keys") or ():
        print_out(f"  {format_key(key)}")
    for code in user.get("codes") or ():
        until = format_local_time(code["expiresAt"])
        print_out(f"  {code['connector']}: a link code was issued and not used yet; it expires at {until}")
    for text in user.get("notes") or ():
        note(f"note: {text}")


def format_key(key: dict[str, Any]) -> str:
    """Return one line about a chat account."""
    used = f"last used {format_age(key['lastUsedAt'])}" if key.get("lastUsedAt") else "never used"
    name = f"{key['label']} ({key['externalId']})" if key.get("label") else key["externalId"]
    parts = [f"{shorten_id(key['id'])}  {key['connector']} {name}", used]
    if key.get("quiet"):
        parts.append(f"quiet {format_hours(key['quiet'])}")
    if key["state"] != "active":
        parts.append(f"unlinked: {key['reason']}")
    return ", ".join(parts)


def format_hours(quiet: dict[str, Any]) -> str:
    """Return quiet hours as they are typed, with their time zone."""
    start, end = (f"{minute // 60:02}:{minute % 60:02}" for minute in (quiet["start"], quiet["end"]))
    return f"{start}-{end} {quiet['timeZone']}"


def _show_code(issued: dict[str, Any]) -> None:
    where = "the group" if issued["kind"] == "group" else "a private chat with the bot"
    print_out(issued["code"] or "(the code was shown once, with the first answer)")
    until = format_local_time(issued["expiresAt"])
    note(f"type it in {where} on {issued['connector']}; it works once, until {until}")


def _show_unlinked(key: dict[str, Any]) -> None:
    account = f"{key['connector']} {key['label'] or key['externalId']}"
    print_out(f"{paint('unlinked', 'green')} {account} of {key['user']}")
    note(f"link it again with: scout user link {key['user']} {key['connector']}")


def _show_quiet(key: dict[str, Any]) -> None:
    quiet = key.get("quiet")
    hours = f"is quiet {format_hours(quiet)}" if quiet else "has no quiet hours"
    print_out(f"{key['connector']} {key['label'] or key['externalId']} of {key['user']} {hours}")


def _show_target(target: dict[str, Any]) -> None:
    key = f", account {shorten_id(target['keyId'])}" if target.get("keyId") else ""
    print_out(f"{target['connector']}:{target['targetId']}  ({target['rule']}{key})")


def _show_key(key: dict[str, Any]) -> None:
    print_out(f"{format_key(key)}, of {key['user']}")


def _show_binding(binding: dict[str, Any]) -> None:
    closed = f"  (closed: {binding['reason']})" if binding["state"] != "active" else ""
    print_out(f"{shorten_id(binding['id'])}  {format_place(binding)} ↔ {binding['target']}{closed}")


def format_place(binding: dict[str, Any]) -> str:
    """Return the chat of a binding, with its thread."""
    thread = f" thread {binding['topicId']}" if binding.get("topicId") else ""
    return f"{binding['name']} {binding['externalId']}{thread}"


def _show_connector(connector: dict[str, Any]) -> None:
    """Show a connector, and each value that it needs; secrets are never shown."""
    show_fields(connector["connector"], connector, _CONNECTOR)
    for one in connector.get("fields") or ():
        print_out(f"  {one['name']}: {one['question']} ({_describe_value(one)})")


def _describe_value(field: dict[str, Any]) -> str:
    if field.get("secret"):
        return "a secret"
    if field.get("value"):
        return str(field["value"])
    if field.get("default") is None:
        return "needed"
    return f"default {field['default']}" if field["default"] else "optional"


_USERS = ("add", "show", "rename", "retire", "revive")
PRINTERS: dict[str, Callable[[Any], None]] = {
    **{f"user.{verb}": show_user for verb in _USERS},
    "binding.show": _show_binding,
    "connector.show": _show_connector,
    "grant.add": lambda grant: show_fields("", grant, _GRANT),
    "user.link": _show_code,
    "user.unlink": _show_unlinked,
    "user.quiet": _show_quiet,
    "user.target": _show_target,
    "user.key": _show_key,
}
