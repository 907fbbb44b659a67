"""Replaces the reader's own name by `you`.

Agents and `--json` see the name as an address has it. Only a person has such a name, so for agents, and for
answers without it, the daemon is not called.
"""

from __future__ import annotations

import json

from scout.cli.connection.call import ROUTES
from scout.cli.connection.refusal import RefusalError
from scout.policy.sentences import rephrase

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from scout.cli.connection.call import DaemonCall

_PERSON = "/direct"
# Fields that hold a name, besides those ending in `Address`, and fields with sentences written by Scout.
_NAMES = frozenset({"address", "by", "holder", "sender", "target", "waitingForMe"})
_SENTENCES = frozenset({"message", "notes", "reason", "says"})
_KEPT = frozenset({"me", "remedies", "next"})  # the caller's identity, and commands to paste


def say_you(line: DaemonCall, answer: Any) -> Any:
    """Return the answer with `you` where it names the caller."""
    if _PERSON not in json.dumps(answer):
        return answer
    try:
        name = line.call(ROUTES["whoami"], {}).get("address")
    except RefusalError:
        return answer
    return _rename(answer, name, "") if name and name.endswith(_PERSON) else answer


def _rename(value: Any, name: str, field: str) -> Any:
    inner = _INNER.get(value.__class__)
    if inner is not None:
        return inner(value, name, field)
    if type(value) is not str:
        return value
    if field in _SENTENCES:
        return rephrase(value, name)
    return "you" if value == name and (field in _NAMES or field.endswith("Address")) else value


def _rename_fields(record: dict[str, Any], name: str, field: str) -> dict[str, Any]:
    return {key: one if key in _KEPT else _rename(one, name, key) for key, one in record.items()}


def _rename_items(items: list[Any], name: str, field: str) -> list[Any]:
    return [_rename(one, name, field) for one in items]


_INNER: dict[type, Callable[[Any, str, str], Any]] = {dict: _rename_fields, list: _rename_items}
