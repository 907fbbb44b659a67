"""`scout demo`: the main job, run for real on a temporary daemon."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from scout.cli.connection.text import paint, print_out, print_text
from scout.cli.operations.build import build_epilog
from scout.client.environment import SESSION_MARKS
from scout.daemon.start import stop

_SHOWN = 16  # maximum lines shown of one output
_REVIEWER = 'read task; echo "reviewed: $(ls | wc -l) file(s), nothing to complain about"'

# Explanation, command, directory, and expected exit code.
_STOPS: tuple[tuple[str, str, str, int], ...] = (
    ("Scout's daemon, for this demo alone: its own folder, any free port.", "scout up --port 0", "arc", 0),
    (
        "Two projects, an agent in each: one echoes, one runs a program of ours.",
        "scout agent register arc --project . --harness echo",
        "arc",
        0,
    ),
    (
        "",
        f"scout agent register talkie --project . --harness command --command {shlex.quote('sh review.sh')}",
        "talkie",
        0,
    ),
    ("Who is there?", "scout who", "arc", 0),
    ("A message is on disk before Scout acknowledges it.", "scout send @arc 'The build is green.'", "arc", 0),
    ("An ask is tracked until it is answered.", "scout ask @arc 'Say hello.'", "arc", 0),
    (
        "From one project into the other, by its folder: its agent runs, and this is its reply.",
        "scout ask --project ../talkie 'Review this.'",
        "arc",
        0,
    ),
    (
        "An unknown name is refused, with the nearest name and the command for it.",
        "scout ask @talki 'Review this.'",
        "arc",
        3,
    ),
)


_LAST = ("And what happened, in order:", "scout log --newest --limit 6")


@click.command("demo", epilog=build_epilog("demo"))
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object: each command with its exit code and output."
)
@click.option("--web", is_flag=True, help="Start a fleet that works by itself, and open its web page.")
@click.option("--no-open", is_flag=True, help="With --web: print the link instead of opening a browser.")
def command(*, as_json: bool, web: bool, no_open: bool) -> None:
    """Play the main job with two agents in two projects: a message, two asks, a refusal and its remedy.

    Everything happens in a temporary folder with its own daemon. Nothing of yours is touched.
    """
    if web:
        from scout.cli.commands.demo.fleet import show_fleet

        sys.exit(show_fleet(no_open=no_open, as_json=as_json))
    if not as_json:
        sys.exit(play(_print_step))
    steps: list[DemoStep] = []
    code = play(steps.append)
    print_out(json.dumps({"succeeded": code == 0, "steps": [step._asdict() for step in steps]}))
    sys.exit(code)


class DemoStep(NamedTuple):
    """One command of the demo: its explanation, directory and result."""

    says: str
    directory: str
    command: str
    expected: int
    code: int
    output: str
    seconds: float


def play(show: Callable[[DemoStep], None]) -> int:
    """Run every step and show its result; 0 if each ended as expected."""
    with _set_up_projects() as (folder, environ):
        tried = ""
        for words, typed, place, expected in _STOPS:
            step = _run_step(words, typed, folder / place, environ, expected)
            show(step)
            if step.code != expected:
                return 1
            tried = next((line for line in step.output.splitlines() if line.startswith("try: ")), "")
        pasted = tried.removeprefix("try: ").partition("  #")[0] or "scout who"
        for words, typed in (("So paste it:", pasted), _LAST):
            step = _run_step(words, typed, folder / "arc", environ)
            show(step)
            if step.code:
                return step.code
    return 0


@contextmanager
def _set_up_projects() -> Generator[tuple[Path, dict[str, str]]]:
    """Create two projects and a data folder for the daemon; remove everything afterwards."""
    with tempfile.TemporaryDirectory(prefix="scout-demo-") as name:
        folder = Path(name).resolve()
        for project in ("arc", "talkie"):
            (folder / project / ".scout").mkdir(parents=True)
            (folder / project / ".scout/project.toml").write_text(f'name = "{project}"\n')
        (folder / "talkie/review.sh").write_text(f"{_REVIEWER}\n")
        home = folder / "home"
        home.mkdir(mode=0o700)
        environ = {name: value for name, value in os.environ.items() if not _is_ours(name)}
        environ |= {"SCOUT_HOME": str(home), "SCOUT_AUTOSTART": "0", "SCOUT_PORT": "0", "NO_COLOR": "1"}
        (home / "config.toml").write_text(f"roots = ['{folder}']\n")
        try:
            yield folder, environ
        finally:
            stop(str(home))


def _is_ours(name: str) -> bool:
    return name.startswith("SCOUT_") or name in SESSION_MARKS


def _run_step(words: str, typed: str, place: Path, environ: dict[str, str], expected: int = 0) -> DemoStep:
    """Run one command."""
    command = [sys.executable, "-m", "scout", *shlex.split(typed)[1:]]
    began = time.monotonic()
    done = subprocess.run(
        command,
        cwd=place,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    said = "\n".join(_hide_secret(line) for line in done.stdout.splitlines())
    took = round(time.monotonic() - began, 3)
    return DemoStep(words, place.name, typed, expected, done.returncode, said, took)


def _print_step(step: DemoStep) -> None:
    """Print one command and its output."""
    if step.says:
        print_out("")
        print_out(step.says)
    print_out("")
    print_out(f"{paint(f'{step.directory}$', 'dim')} {paint(step.command, 'bold')}")
    lines = step.output.splitlines()
    print_text("\n".join(lines[:_SHOWN]))
    if len(lines) > _SHOWN:
        print_out(f"… {len(lines) - _SHOWN} more lines")
    print_out(paint(f"({step.seconds:.1f} s)", "dim"))
    if step.code != step.expected:
        print_out(paint(f"this should have ended with exit code {step.expected}, not {step.code}", "red"))
    if (step.says, step.command) == _LAST:
        print_text(_NEXT)
    sys.stdout.flush()


def _hide_secret(line: str) -> str:
    return "token  … (shown once, to you)" if line.startswith("token  ") else line


_NEXT = """
That ran on a temporary daemon, which has been removed. Try next, on yours:
  scout up
  scout agent register upper --command 'tr a-z A-Z'
  scout ask @upper 'make this loud'
  scout                    (what needs you, who works, what is new)
  scout --help"""
