"""Checks of settings that name something: the harnesses, the program of the router, the roots.

The values are well-formed; here they are compared with what this machine has.
"""

import os
import shlex
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.daemon.harnesses import build_harnesses
from scout.policy.nearest import rank_names
from scout.settings.load import Loaded
from scout.settings.record import SETTINGS, Settings, list_values


def check_value(key: str, value: Any, settings: Settings) -> None:
    """Refuse a value that names something this machine does not have."""
    check = _CHECKS.get(key)
    problem = check(key, value, settings) if check is not None and value is not None else None
    if problem is not None:
        raise Refused(problem)


def list_problems(loaded: Loaded) -> Iterator[BadRequest]:
    """Yield the settings that name something this machine does not have, with the layer that set each."""
    values = list_values(loaded.settings)
    # A removed project may stay a root, and a host may be away for a while.
    for key in ("harness", "router", *_ROLES):
        try:
            check_value(key, values[key], loaded.settings)
        except Refused as refusal:
            problem, source = refusal.diagnostic, loaded.sources[key]
            assert isinstance(problem, BadRequest)  # the only refusal of a check
            yield problem if source.startswith("file ") else _build_layer_refusal(problem, source)


def _build_layer_refusal(problem: BadRequest, source: str) -> BadRequest:
    """Return a problem that no file holds: the remedy is to change its layer."""
    look = Remedy(operation="config", parameters={}, why=f"after you have changed {source}")
    return BadRequest(
        problem=f"{problem.problem} ({source})",
        field=problem.field,
        candidates=problem.candidates,
        remedies=(look,),
    )


def _check_harness(key: str, value: str, settings: Settings) -> BadRequest | None:
    """Check a harness; in a role, a model and an effort may follow it."""
    known, (harness, *rest) = build_harnesses(settings), value.split("/")
    if harness in known:
        return None
    near = rank_names(harness[:60], known, 3)
    texts = ["/".join([name, *rest]) for name in near]
    right = [Remedy(operation="config.set", parameters={"key": key, "value": text}) for text in texts]
    return BadRequest(
        problem=f"there is no harness '{harness[:60]}'; choose one of {', '.join(known)}",
        field=key,
        candidates=tuple(Candidate(address=name) for name in near),
        remedies=(*right, Remedy(operation="runtimes", parameters={}, why="which harnesses are ready")),
    )


def _check_router(key: str, value: str, settings: Settings) -> BadRequest | None:
    try:
        words = shlex.split(value)
    except ValueError as error:
        return _build_value_refusal(key, f"{value[:60]!r} cannot be read as a command line: {error}")
    if not words:
        return _build_value_refusal(key, "the command line is empty")
    return (
        None
        if shutil.which(words[0])
        else _build_value_refusal(key, f"there is no program '{words[0][:120]}'")
    )


def _check_roots(key: str, value: tuple[str, ...], settings: Settings) -> BadRequest | None:
    missing = [root for root in value if not Path(os.path.expanduser(root)).is_dir()]  # noqa: PTH111 (text in, text out)
    if not missing:
        return None
    kept = [root for root in value if root not in missing]
    return _build_value_refusal(key, f"{missing[0][:200]} is no directory", kept)


def _build_value_refusal(key: str, problem: str, kept: list[str] | None = None) -> BadRequest:
    """Return the refusal of a value, with the command that sets the valid part of it, or the default."""
    value = SETTINGS[key].format(tuple(kept) if kept else SETTINGS[key].default)
    why = "those that exist" if kept else "the default"
    remedy = Remedy(operation="config.set", parameters={"key": key, "value": value}, why=why)
    return BadRequest(problem=problem, field=key, remedies=(remedy,))


def _check_host(key: str, value: str, settings: Settings) -> BadRequest | None:
    try:
        socket.getaddrinfo(value, None)
    except OSError as error:
        return _build_value_refusal(key, f"the host '{value[:120]}' has no address: {error.strerror}")
    return None


_ROLES = tuple(key for key in SETTINGS if key.startswith("roles."))
_CHECKS: dict[str, Callable[[str, Any, Settings], BadRequest | None]] = {
    **dict.fromkeys(("harness", *_ROLES), _check_harness),
    "host": _check_host,
    "router": _check_router,
    "roots": _check_roots,
}
