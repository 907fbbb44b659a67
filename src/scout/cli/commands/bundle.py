"""A report to show to others: what helps to find a fault, and nothing that anybody said or may use."""

import io
import json
import platform
import re
import tarfile
import time
from pathlib import Path
from typing import Any

from scout import __version__
from scout.base.codec import plain
from scout.cli.connection.call import ROUTES, CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError
from scout.client.http import Lost
from scout.settings.load import read

_LINES = 500
_SECRETS = (
    re.compile(r"\bsct_[\w\-]+"),
    re.compile(r"(?i)(?<=bearer )[^\s\"',]+"),
    re.compile(r"(?i)(?<=token[=:] )\S+|(?<=token[=:])\S+"),
    re.compile(r"\b(?:sk|ghp|gho|xox[abp])[-_][\w\-]{8,}"),
)


def masked(text: str) -> str:
    """The text without what looks like a credential."""
    for secret in _SECRETS:
        text = secret.sub("…", text)
    return text


def write_bundle(file: Path, results: list[dict[str, Any]], caller: CliIdentity) -> None:
    """A .tar.gz, its owner's alone until they show it."""
    parts = {
        "about.json": {
            "scout": __version__,
            "python": platform.python_version(),
            "system": platform.platform(),
        },
        "doctor.json": results,
        "settings.json": _settings(),
        "daemon.json": _daemon(caller),
    }
    texts = {name: json.dumps(part, indent=2) for name, part in parts.items()}
    texts["scout.log"] = _log(Path(caller.where.home) / "logs" / "scout.log")
    file.touch(mode=0o600)
    with tarfile.open(file, "w:gz") as archive:
        for name, text in texts.items():
            _add(archive, f"scout-report/{name}", masked(text).encode("utf-8", "replace"))


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(data), int(time.time()), 0o600
    archive.addfile(info, io.BytesIO(data))


def _settings() -> dict[str, Any]:
    loaded = read()
    settings = plain(loaded.settings)
    # Whoever knows the whole address of a webhook may often post there.
    settings["notify"]["webhooks"] = [f"{one[:8]}…" for one in settings["notify"]["webhooks"]]
    return {
        "settings": settings,
        "sources": loaded.sources,
        "problems": [problem.message for problem in loaded.problems],
    }


def _daemon(caller: CliIdentity) -> dict[str, Any]:
    """Where it is and how much it holds; counts only, never contents."""
    line = DaemonCall(caller, start=False)
    try:
        now = line.call(ROUTES["now"], {})
        newest = line.call("GET /v1/log", {"newest": True, "limit": 1})["items"]
        status = line.call(ROUTES["status"], {})
    except (RefusalError, Lost, OSError) as error:
        return {"running": False, "why": str(error)}
    counts = {"agents": now["agents"], "open": len(now["open"]), "unread": now["unread"]}
    return {
        "running": True,
        "status": status,
        "counts": {**counts, "events": newest[-1]["seq"] if newest else 0},
    }


def _log(file: Path) -> str:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_LINES:])
