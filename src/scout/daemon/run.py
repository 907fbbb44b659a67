"""From settings to a running daemon: the lock, the folders, the log, the sockets, then everything else."""
# ruff: noqa: PLC0415 (the sockets listen before the rest is imported, so that early clients can connect)

import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scout import __version__
from scout.base.codec import to_plain
from scout.base.refusal import Diagnostic, Family, Refused, Remedy
from scout.daemon import lock
from scout.daemon.log_file import open_log
from scout.daemon.port import format_url, listen_tcp, listen_unix, open_to_others
from scout.model.problems.request import Forbidden, StoreFull
from scout.settings.folder import prepare
from scout.settings.load import Loaded
from scout.settings.record import Settings
from scout.store.disk import Fault, classify_error
from scout.store.migrate import needs_upgrade

_LOG = logging.getLogger("scout.daemon")


def run(
    loaded: Loaded,
    *,
    foreground: bool = False,
    announce: bool = False,
    insecure: bool = False,
    tethered: bool = False,
) -> int:
    """Run until stopped, and return the exit code. A daemon that is already running is not an error.

    `announce`: print one line of JSON when the daemon is ready, or why it does not start.
    `tethered`: stop, with all sessions, when standard input closes.
    """
    settings = loaded.settings
    try:
        if not (insecure or settings.is_loopback):
            raise Refused(open_to_others(settings.host))
        prepare(settings)
        held = lock.take(settings.home)
        if held is None:
            _announce(announce, {"already": lock.read_facts(settings.home)})
            return 0
        try:
            _run(settings, held, foreground=foreground, announce=announce, tethered=tethered)
        finally:
            held.release()
    except Refused as refused:
        return refuse(refused.diagnostic, announce=announce)
    except Exception as error:  # noqa: BLE001 (the process that started the daemon gets any failure)
        problem = _find_disk_problem(error, settings)
        if problem is not None:
            return refuse(problem, announce=announce)
        return _fail(error, settings, announce=announce)
    return 0


def _run(settings: Settings, held: lock.Lock, *, foreground: bool, announce: bool, tethered: bool) -> None:
    handlers = open_log(Path(settings.logs) / "scout.log", level=settings.log_level, foreground=foreground)
    tcp = listen_tcp(settings.host, settings.port)
    unix = listen_unix(Path(settings.socket))
    where: dict[str, object] = {
        "url": format_url(tcp),
        "socket": settings.socket,
        "pid": os.getpid(),
        "version": __version__,
        "home": settings.home,
    }
    held.write_facts(where)

    def ready(status: object) -> None:
        facts = to_plain(status)
        held.write_facts(facts)
        _LOG.info("ready at %s and %s", where["url"], settings.socket)
        _announce(announce, {"ready": facts})

    _announce_upgrade(Path(settings.database), announce=announce)
    try:
        from scout.daemon.serve import serve

        serve(settings, [tcp, unix], str(where["url"]), ready, tethered=tethered)
    except Exception:
        _LOG.exception("the daemon failed")
        raise
    finally:
        for listening in (tcp, unix):
            listening.close()
        Path(settings.socket).unlink(missing_ok=True)
        for handler in handlers:
            logging.getLogger().removeHandler(handler)
            handler.close()


def _find_disk_problem(error: Exception, settings: Settings) -> Diagnostic | None:
    """Build the refusal of a full or read-only disk; none for other errors."""
    fault = classify_error(error)
    if fault is Fault.FULL:
        return StoreFull(path=settings.home)
    if fault is Fault.READ_ONLY:
        needs = (f"a data folder that you can write to ({error})",)
        remedy = Remedy(operation="up", parameters={}, why="after setting SCOUT_HOME to a folder of your own")
        return Forbidden(action="write", subject=settings.home, needs=needs, remedies=(remedy,))
    return None


def refuse(diagnostic: Diagnostic, *, announce: bool) -> int:
    """Report why the daemon does not start, and return the exit code."""
    from scout.api.responses import build_problem_document

    document = build_problem_document(diagnostic)
    _LOG.error("not started: %s", document["message"])
    _announce(announce, {"refused": document})
    if not announce:
        remedies = [one for one in document["remedies"] if "command" in one]
        tries = [f"try: {one['command']}  # {one['why']}\n" for one in remedies]
        sys.stderr.write(f"{document['code']}: {document['message']}\n{''.join(tries)}")
    return diagnostic.family.exit_code


def _fail(error: Exception, settings: Settings, *, announce: bool) -> int:
    """Report an unexpected error and the log file, and return the exit code."""
    problem = {
        "code": "internal",
        "message": f"the daemon failed: {error}",
        "log": f"{settings.logs}/scout.log",
    }
    _announce(announce, {"refused": problem})
    if not announce:
        sys.stderr.write(f"{problem['message']}\nsee {problem['log']}\n")
    return Family.FAILURE.exit_code


def _tell_starter(message: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(message, default=str) + "\n")
    sys.stdout.flush()


def _announce_upgrade(store: Path, *, announce: bool) -> None:
    """Report that the store is upgraded first, which may take longer than a start."""
    if not needs_upgrade(store):
        return
    size = store.stat().st_size
    _LOG.info("upgrading the store of %d MB", size >> 20)
    if announce:
        _tell_starter({"upgrading": {"bytes": size}})


def _announce(announce: bool, message: Mapping[str, Any]) -> None:
    """Print to the process that started the daemon, then close its pipes: the daemon outlives it."""
    if not announce:
        return
    _tell_starter(message)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
