"""`scout doctor`: check this installation, show how to fix it, and write a report to show to others."""

import io
import json
import platform
import re
import tarfile
import time
from pathlib import Path
from typing import Any

import click

from scout import __version__
from scout.base.codec import to_plain
from scout.cli.commands.checks import CHECKS, Result
from scout.cli.connection.call import ROUTES, CliIdentity, DaemonCall
from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import note, paint, print_out
from scout.cli.operations.build import build_epilog, run_guarded
from scout.client.http import Lost
from scout.settings.load import read

_UNWELL = 9


@click.command("doctor", epilog=build_epilog("doctor"))
@click.option("--fix", is_flag=True, help="Fix what can be fixed without your decision.")
@click.option(
    "--bundle", type=click.Path(path_type=Path), metavar="FILE", help="Write a report without secrets."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(fix: bool, bundle: Path | None, as_json: bool) -> None:
    """Check this installation, and show how to fix it.

    --bundle writes a .tar.gz to show to others: versions, settings, results, counts and the end of the
    log, with credentials masked; no message bodies and no tokens.
    """

    def work() -> int:
        results = run_checks(fix)
        if bundle is not None:
            _save_bundle(bundle, results)
        if as_json:
            print_out(
                json.dumps({"well": _is_healthy(results), "checks": [one.to_json() for one in results]})
            )
        else:
            _show_results(results)
            if bundle is not None:
                print_out(f"written: {bundle}")
        return 0 if _is_healthy(results) else _UNWELL

    run_guarded(work, as_json)


def run_checks(fix: bool = False) -> list[Result]:
    """Run all checks, in the order of their dependencies."""
    caller = CliIdentity()
    return [result for check in CHECKS for result in check(caller, fix)]


def _is_healthy(results: list[Result]) -> bool:
    return all(one.well for one in results)


def _show_results(results: list[Result]) -> None:
    width = max(len(one.name) for one in results)
    for one in results:
        mark, colour = (
            ("problem", "red") if not one.well else (("hint", "yellow") if one.hint else ("ok", "green"))
        )
        print_out(f"{paint(f'{mark:<7}', colour)}  {one.name:<{width}}  {one.says}")
    remedies = list(dict.fromkeys(one.remedy for one in results if not one.well and one.remedy))
    for remedy in remedies:
        note(f"try: {remedy}")
    if not _is_healthy(results) and not remedies:
        note("try: scout doctor --fix")


def _save_bundle(file: Path, results: list[Result]) -> None:
    told: list[dict[str, Any]] = [one.to_json() for one in results]
    try:
        write_bundle(file, told, CliIdentity())
    except OSError as error:
        raise RefusalError.of("bad_request", f"{file} cannot be written: {error.strerror}") from None


_LINES = 500
_SECRETS = (
    re.compile(r"\bsct_[\w\-]+"),
    re.compile(r"(?i)(?<=bearer )[^\s\"',]+"),
    re.compile(r"(?i)(?<=token[=:] )\S+|(?<=token[=:])\S+"),
    re.compile(r"\b(?:sk|ghp|gho|xox[abp])[-_][\w\-]{8,}"),
)


def mask_secrets(text: str) -> str:
    """Return the text without anything that looks like a credential."""
    for secret in _SECRETS:
        text = secret.sub("…", text)
    return text


def write_bundle(file: Path, results: list[dict[str, Any]], caller: CliIdentity) -> None:
    """Write a .tar.gz that only its owner can read."""
    parts = {
        "about.json": {
            "scout": __version__,
            "python": platform.python_version(),
            "system": platform.platform(),
        },
        "doctor.json": results,
        "settings.json": _read_settings(),
        "daemon.json": _describe_daemon(caller),
    }
    texts = {name: json.dumps(part, indent=2) for name, part in parts.items()}
    texts["scout.log"] = _read_log(Path(caller.where.home) / "logs" / "scout.log")
    file.touch(mode=0o600)
    with tarfile.open(file, "w:gz") as archive:
        for name, text in texts.items():
            _add_file(archive, f"scout-report/{name}", mask_secrets(text).encode("utf-8", "replace"))


def _add_file(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mtime, info.mode = len(data), int(time.time()), 0o600
    archive.addfile(info, io.BytesIO(data))


def _read_settings() -> dict[str, Any]:
    loaded = read()
    settings = to_plain(loaded.settings)
    # The full URL of a webhook is often a secret.
    settings["notify"]["webhooks"] = [f"{one[:8]}…" for one in settings["notify"]["webhooks"]]
    return {
        "settings": settings,
        "sources": loaded.sources,
        "problems": [problem.message for problem in loaded.problems],
    }


def _describe_daemon(caller: CliIdentity) -> dict[str, Any]:
    """Return the daemon's address and counts, never contents."""
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


def _read_log(file: Path) -> str:
    try:
        lines = file.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-_LINES:])
