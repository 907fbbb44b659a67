"""A tour of Scout: what it answers offline, then the main job on a daemon of its own. `./dev demo` plays it."""

import shlex
import subprocess
import sys

SHOWN = 24  # lines of one answer: a tour, not a manual

# What to look at, the command, and the exit code it must end with: a tour that strays fails.
STOPS = [
    (
        "An agent has one name and several spellings. This reads any of them and needs no daemon.",
        "scout parse '@arc.main#codex?5.5' /ada/agent/arc/sub/0 project:../talkie",
        0,
    ),
    (
        "Where a name fits two agents, Scout does not guess. It offers the shortest names that differ.",
        "scout resolve --fleet examples/fleet.json @hudson",
        4,
    ),
    (
        "Every refusal has a code, and every code an explanation.",
        "scout explain ambiguous_target",
        0,
    ),
]

NEXT = """
Try next:
  ./dev scout up
  ./dev scout --help
  ./dev scout resolve --fleet examples/fleet.json @hudsn     (a slip of the pen)
  ./dev test                                                 (everything that is checked)
"""


def play(words: str, command: str, expected: int) -> bool:
    """Run one stop; tell whether it ended as it should."""
    print(f"\n{words}\n\n$ {command}", flush=True)
    run = subprocess.run(
        shlex.split(command), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False
    )
    lines = run.stdout.splitlines()
    print("\n".join(lines[:SHOWN]))
    if len(lines) > SHOWN:
        print(f"… {len(lines) - SHOWN} more lines")
    if run.returncode != expected:
        print(f"this should have ended with exit code {expected}, not {run.returncode}")
    return run.returncode == expected


def main() -> int:
    """Play every stop, even after one that strayed; then the main job."""
    strayed = [command for words, command, expected in STOPS if not play(words, command, expected)]
    print("\nNow the main job, on a daemon of its own: $ scout demo", flush=True)
    if subprocess.run(["scout", "demo"], check=False).returncode:
        strayed.append("scout demo")
    print(NEXT)
    return len(strayed)


sys.exit(main())
