"""`scout tree guard`: a git hook that refuses to commit files that another agent has reserved."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import click

from scout.cli.connection.refusal import RefusalError
from scout.cli.connection.text import note, paint, print_json, print_out
from scout.cli.hosts.hosts import find_scout_program
from scout.cli.operations.build import build_epilog, run_guarded

_MARK = "# Scout's guard"
_KEPT = "pre-commit.before-scout"
_SCRIPT = """#!/bin/sh
{mark}: refuses a commit of files that another agent has reserved. Remove it: scout tree guard remove
if [ -x {program} ]; then
    {check} || exit
fi
kept=${{0%/*}}/{kept}
if [ -x "$kept" ]; then
    exec "$kept" "$@"
fi
"""


@click.group("guard", epilog=build_epilog("tree"))
def guard() -> None:
    """Refuse commits of files that another agent has reserved, by a git hook in this repository."""


@guard.command("install", epilog=build_epilog("tree"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def install(as_json: bool) -> None:
    """Install the guard as the pre-commit hook. An existing hook is kept and runs after it."""
    run_guarded(lambda: _report(_install(_find_hooks()), as_json), as_json)


@guard.command("remove", epilog=build_epilog("tree"))
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def remove(as_json: bool) -> None:
    """Remove the guard. The hook that was there before is put back as it was."""
    run_guarded(lambda: _report(_remove(_find_hooks()), as_json), as_json)


def _report(done: dict[str, Any], as_json: bool) -> int:
    if as_json:
        print_json(done)
        return 0
    word, hook, kept = done["done"], done["hook"], done["kept"]
    print_out(f"{paint(word, 'green')} {hook}" if done["changed"] else f"{word} already: {hook}")
    if kept and word == "installed":
        note(f"the hook that was there is kept and runs after it: {kept}")
    if done["everywhere"]:
        note(
            f"core.hooksPath points to {Path(hook).parent}: the guard works for all repositories that use it"
        )
    return 0


def _install(hooks: Path) -> dict[str, Any]:
    hook, kept = hooks / "pre-commit", hooks / _KEPT
    script = _build_script()
    if _is_ours(hook):
        changed = hook.read_text() != script
    else:
        if _is_present(hook) and _is_present(kept):
            _refuse(f"{kept} is in the way: move it away, then install the guard again")
        if hook.is_dir():
            _refuse(f"{hook} is a folder, so git runs no hook there: move it away")
        changed = True
    if changed:
        try:
            hooks.mkdir(parents=True, exist_ok=True)
            _replace_hook(hook, kept, script)
        except OSError as error:
            _refuse(f"{hook} cannot be written: {error.strerror}")
    return _describe("installed", hook, kept, changed=changed)


def _replace_hook(hook: Path, kept: Path, script: str) -> None:
    """Write the script, then put it in place; a hook of somebody else's is kept under another name."""
    fresh = hook.with_name(f".pre-commit.scout-{os.getpid()}")
    fresh.write_text(script)
    fresh.chmod(0o755)
    if _is_present(hook) and not _is_ours(hook):
        hook.rename(kept)
    fresh.replace(hook)


def _remove(hooks: Path) -> dict[str, Any]:
    hook, kept = hooks / "pre-commit", hooks / _KEPT
    ours = _is_ours(hook)
    if _is_present(hook) and not ours and _is_present(kept):
        _refuse(
            f"{hook} was replaced by something else, and {kept} is the hook from before the guard: "
            "keep the one that you want as pre-commit and delete the other"
        )
    changed = ours or (_is_present(kept) and not _is_present(hook))
    try:
        if _is_present(kept) and changed:
            kept.replace(hook)
        elif changed:
            hook.unlink()
    except OSError as error:
        _refuse(f"{hook} cannot be changed: {error.strerror}")
    return _describe("removed", hook, kept, changed=changed)


def _describe(word: str, hook: Path, kept: Path, *, changed: bool) -> dict[str, Any]:
    return {
        "done": word,
        "changed": changed,
        "hook": str(hook),
        "kept": str(kept) if _is_present(kept) else None,
        "everywhere": not hook.is_relative_to(_ask_git_for_path("--git-common-dir")),
    }


def _build_script() -> str:
    program = find_scout_program(os.environ)
    check = program.line("reserve", "check", "--staged")
    return _SCRIPT.format(mark=_MARK, program=shlex.quote(program.words[0]), check=check, kept=_KEPT)


def _is_ours(hook: Path) -> bool:
    try:
        return not hook.is_symlink() and _MARK in hook.read_text(errors="replace")[:200]
    except OSError:
        return False


def _is_present(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _find_hooks() -> Path:
    """Return the folder of this repository's hooks; git knows about core.hooksPath and linked work trees."""
    hooks = _ask_git_for_path("--git-path", "hooks")
    if hooks == Path(os.devnull):
        _refuse("core.hooksPath is /dev/null, so git runs no hooks here: git config --unset core.hooksPath")
    return hooks


def _ask_git_for_path(*words: str) -> Path:
    """Ask git for a path, and return it without links in its folders."""
    try:
        done = subprocess.run(["git", "rev-parse", *words], capture_output=True, text=True, check=False)
    except OSError as error:
        _refuse(f"git cannot be run: {error.strerror}")
    if done.returncode:
        _refuse(done.stderr.strip().partition("\n")[0] or "this is not a git repository")
    path = Path(done.stdout.removesuffix("\n"))
    return path if path == Path(os.devnull) else path.resolve()


def _refuse(problem: str) -> NoReturn:
    raise RefusalError.of("bad_request", problem)
