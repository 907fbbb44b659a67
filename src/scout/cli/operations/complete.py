"""Shell completion of addresses, ids and harnesses, from a running daemon; never starts one."""

import functools
import os
from typing import Any

import click
from click.shell_completion import BashComplete, CompletionItem, add_completion_class, split_arg_string

from scout.base.visible import make_visible
from scout.cli.connection.call import ROUTES, CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import join_words, shorten_ids
from scout.client.http import Lost
from scout.identity.reserved import HARNESSES

# Parameters that take an agent's address.
ADDRESSES = frozenset(
    {
        "to",
        "address",
        "agent",
        "target",
        "replyTo",
        "master",
        "members",
        "ownerId",
        "reviewerId",
        "nextMoveOwnerId",
        "from",
    }
)

# Parameters that take an id: the operation that lists them, and the field to show.
_IDS = {
    "flightId": ("flight.list", "body"),
    "sessionId": ("session.list", "address"),
    "attentionId": ("attention", "title"),
    "questionId": ("question.list", "body"),
    "workItemId": ("work.list", "title"),
    "reservationId": ("reserve.list", "why"),
    "scheduleId": ("cron.list", "body"),
}
ONLY = frozenset(_IDS)  # if omitted, they mean the only open record


def get_completion(name: str) -> dict[str, Any]:
    """Return click's keyword arguments for completing a parameter."""
    if name in ADDRESSES:
        return {"shell_complete": complete_addresses}
    if name in _IDS:
        return {"shell_complete": functools.partial(_complete_ids, name)}
    if name == "setting":
        return {"shell_complete": _complete_project_keys}
    return {"shell_complete": _complete_harnesses} if name == "harness" else {}


def complete_addresses(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Return the agents whose address starts with the incomplete word."""
    query = incomplete.removeprefix("@").partition(".")[0] or None
    found = [(str(item["address"]), str(item.get("status", ""))) for item in _list_items("who", query=query)]
    return [CompletionItem(name, help=status) for name, status in found if name.startswith(incomplete)]


def _complete_ids(
    name: str, ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    operation, says = _IDS[name]
    items = _list_items(operation)
    short = shorten_ids(str(item["id"]) for item in items)
    told = [(short[item["id"]], make_visible(join_words(item.get(says)))[:40]) for item in items]
    return [CompletionItem(ident, help=text) for ident, text in told if ident.startswith(incomplete)]


def _complete_harnesses(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    return [CompletionItem(name) for name in HARNESSES if name.startswith(incomplete)]


def _complete_project_keys(
    ctx: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from scout.settings.record import PROJECT_SETTINGS

    return [CompletionItem(key) for key in PROJECT_SETTINGS if key.startswith(incomplete)]


def _list_items(operation: str, **parameters: Any) -> list[dict[str, Any]]:
    try:
        return DaemonCall(CliIdentity(), start=False).call(ROUTES[operation], {**parameters, "limit": 50})[
            "items"
        ]
    except (RefusalError, Lost, OSError):
        return []


# Bash splits words at @, : and =, and would only replace the part after the last of them. So the line is
# read as a whole, and the part before that character is removed from each completion.
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' response completion type value
    local typed="${COMP_LINE:0:COMP_POINT}"
    local word="${typed##* }"
    local before="${word%%"${word##*[@:=]}"}"
    response=$(env COMP_WORDS="$typed" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete $1)
    for completion in $response; do
        IFS=',' read type value <<< "$completion"
        case $type in
            dir) COMPREPLY=(); compopt -o dirnames ;;
            file) COMPREPLY=(); compopt -o default ;;
            plain) COMPREPLY+=("${value#"$before"}") ;;
        esac
    done
    return 0
}
%(complete_func)s_setup() {
    complete -o nosort -F %(complete_func)s %(prog_name)s
}
%(complete_func)s_setup;
"""


class _Bash(BashComplete):
    """Bash completion with addresses."""

    name = "bash"
    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        typed = os.environ["COMP_WORDS"]
        words = split_arg_string(typed)
        begun = bool(words) and not typed[-1:].isspace()
        return (words[1:-1], words[-1]) if begun and len(words) > 1 else (words[1:], "")


add_completion_class(_Bash)
