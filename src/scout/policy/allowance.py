"""Standing permission decisions: whether one matches a request, its agent and its permission profile."""

import json
import re
from collections.abc import Iterable
from typing import Any, cast

from scout.base.record import Record
from scout.base.time import Time
from scout.model.access.allowance import Allowance, AllowanceKind, AllowanceScope, is_valid_allowance
from scout.model.access.permission import PermissionRequest
from scout.model.agent import PermissionProfile

# Read-only tools, by the names that the harnesses use.
_READS = frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "read", "search"})
# Arguments that do not change what a command does.
_NEUTRAL = frozenset({"timeout"})


class Asker(Record):
    """The agent that requests permission: its user, session, working directory and permission profile."""

    user: str
    agent_id: str | None = None
    session_id: str | None = None
    project_root: str | None = None
    directory: str | None = None
    profile: PermissionProfile = PermissionProfile.WORKSPACE_WRITE


def find_allowance(
    allowances: Iterable[Allowance], request: PermissionRequest, asker: Asker, now: Time
) -> Allowance | None:
    """Return the first decision that matches a request. Observed or truncated requests match none."""
    if request.observed or request.cut:
        return None
    return next((one for one in allowances if _is_decided_by(one, request, asker, now)), None)


def _is_decided_by(allowance: Allowance, request: PermissionRequest, asker: Asker, now: Time) -> bool:
    return (
        is_valid_allowance(allowance, now)
        and _is_for(allowance, asker)
        and _is_covered(allowance, request, asker)
        and is_within_profile(allowance, request, asker)
    )


def _is_for(allowance: Allowance, asker: Asker) -> bool:
    if allowance.user != asker.user:
        return False
    if allowance.scope is AllowanceScope.SESSION:
        return allowance.session_id is not None and allowance.session_id == asker.session_id
    if allowance.scope is AllowanceScope.AGENT:
        return allowance.agent_id == asker.agent_id
    in_project = asker.project_root is not None and allowance.project_root == asker.project_root
    return in_project or allowance.scope is AllowanceScope.EVERYWHERE


def _is_covered(allowance: Allowance, request: PermissionRequest, asker: Asker) -> bool:
    if allowance.tool is not None and allowance.tool != request.tool:
        return False
    if allowance.arguments is not None and not _is_same(allowance.arguments, request.arguments):
        return False
    if allowance.kind is AllowanceKind.COMMAND:
        return request.command is not None and allowance.command == request.command
    if allowance.kind is AllowanceKind.TOOL:
        return True
    path = _make_absolute(request.path, asker)
    is_file = request.command is None and path is not None
    return is_file and matches_path(allowance.path or "", path or "")


def _is_same(one: str, other: str) -> bool:
    return one == other or _drop_immaterial(one) == _drop_immaterial(other)


def _drop_immaterial(arguments: str) -> Any:
    """Return the arguments without those that do not change the action."""
    if not arguments.startswith("{"):
        return arguments or {}
    fields = cast("dict[str, Any]", json.loads(arguments))
    return {name: value for name, value in fields.items() if name not in _NEUTRAL}


def is_within_profile(allowance: Allowance, request: PermissionRequest, asker: Asker) -> bool:
    """Whether a standing decision stays within the asker's permission profile; otherwise a person decides.

    A read-only profile allows no command and no change. A workspace-write profile allows exact commands and
    requests, and files in its workspace.
    """
    if asker.profile is PermissionProfile.TRUSTED:
        return True
    if asker.profile is not PermissionProfile.WORKSPACE_WRITE:
        return request.command is None and request.tool in _READS
    if allowance.kind is AllowanceKind.COMMAND or allowance.arguments is not None or request.tool in _READS:
        return True
    return request.command is None and _is_in_workspace(request, asker)


def _is_in_workspace(request: PermissionRequest, asker: Asker) -> bool:
    path = _make_absolute(request.path, asker)
    roots = [root for root in (asker.project_root, asker.directory) if root]
    return path is not None and any(path.startswith(f"{root.rstrip('/')}/") for root in roots)


def _make_absolute(path: str | None, asker: Asker) -> str | None:
    """Return the absolute path; None if it contains `.`, `..` or empty segments."""
    if not path or (not path.startswith("/") and not asker.directory):
        return None
    whole = path if path.startswith("/") else f"{(asker.directory or '').rstrip('/')}/{path}"
    return None if {".", "..", ""} & set(whole.split("/")[1:]) else whole


def matches_path(pattern: str, path: str) -> bool:
    """Whether a pattern matches the whole path. The only wildcards are `*`, `?` and `**`."""
    return re.fullmatch(_build_expression(pattern), path, re.DOTALL) is not None


def _build_expression(pattern: str) -> str:
    words = {"**": r"[^/]+(?:/[^/]+)*"}
    names = [words.get(name) or "".join(map(_translate_letter, name)) for name in pattern.split("/")]
    whole = "/".join(names)
    return whole.replace(rf"/{words['**']}/", r"/(?:[^/]+/)*")


def _translate_letter(letter: str) -> str:
    return {"*": "[^/]*", "?": "[^/]"}.get(letter) or re.escape(letter)
