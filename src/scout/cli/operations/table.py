"""The rows of the operation table, one at a time: a command imports only the file with its own requests.

The whole table, in `scout.protocol.operations`, takes longer to import than most commands take to run.
"""

import functools
import importlib

from scout.base.registry import list_classes
from scout.protocol.operation import Operation, build_operation
from scout.protocol.request import Request

# The first word of an operation, and the file of `scout.protocol` that holds it.
FILES = {
    "agent": "agents",
    "alias": "access",
    "allow": "allowances",
    "archive": "overview",
    "ask": "asks",
    "attachment": "talk",
    "attention": "attention",
    "binding": "people.bindings",
    "brief": "insight",
    "card": "access",
    "channel": "channels",
    "connector": "people.connectors",
    "consult": "attention",
    "conversation": "channels",
    "cron": "people.schedules",
    "delivery": "inbox",
    "endpoint": "endpoints",
    "feed": "log",
    "finish": "tree.finish",
    "flight": "asks",
    "grant": "access",
    "inbox": "inbox",
    "interrupt": "sessions",
    "latest": "talk",
    "log": "log",
    "mesh": "mesh",
    "message": "talk",
    "need": "attention",
    "notify": "attention",
    "parse": "agents",
    "post": "people.connectors",
    "project": "tree.spawn",
    "question": "questions",
    "redact": "talk",
    "reply": "talk",
    "reserve": "reservations",
    "resolve": "agents",
    "runtimes": "sessions",
    "search": "talk",
    "send": "talk",
    "session": "sessions",
    "show": "agents",
    "spawn": "tree.spawn",
    "task": "people.tasks",
    "token": "access",
    "tree": "tree.view",
    "user": "people.users",
    "wake": "sessions",
    "watch": "log",
    "web": "access",
    "who": "agents",
    "whoami": "agents",
    "work": "work",
}


def find_operation(name: str) -> Operation:
    """Return the row of an operation; `KeyError` if there is none."""
    file = FILES.get(name.partition(".")[0])
    row = _build_rows(file).get(name) if file else None
    if row is not None:
        return row
    from scout.protocol.operations import OPERATIONS

    return OPERATIONS[name]


@functools.cache
def _build_rows(file: str) -> dict[str, Operation]:
    module = importlib.import_module(f"scout.protocol.{file}")
    requests = list_classes((module,), Request, lambda request: bool(request.operation))
    return {request.operation: build_operation(request) for request in requests}
