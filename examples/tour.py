"""A tour of what Scout answers offline. `./dev demo` plays it."""

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
        "A name that cannot be read is refused with the place and what was probably meant.",
        "scout parse '@arc.dev.mini'",
        2,
    ),
    (
        "A fleet is a file of agents. In this one the bare name finds the base agent, not its worktree.",
        "scout resolve --fleet examples/fleet.json @talkie",
        0,
    ),
    (
        "Where a name fits two agents, Scout does not guess. It offers the shortest names that differ.",
        "scout resolve --fleet examples/fleet.json @hudson",
        4,
    ),
    (
        "The same question, with the rule that decided and who was considered.",
        "scout resolve --fleet examples/fleet.json --explain '@arc#claude'",
        0,
    ),
    (
        "Every refusal has a code, and every code an explanation.",
        "scout explain ambiguous_target",
        0,
    ),
    (
        "The rules of working together, as every harness gets them with its work.",
        "scout contract",
        0,
    ),
]

NEXT = """
Try next:
  ./dev scout --help
  ./dev scout parse 'main.feature.auth' --root-branch main
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
    """Play every stop, even after one that strayed."""
    strayed = [command for words, command, expected in STOPS if not play(words, command, expected)]
    print(NEXT)
    return len(strayed)


sys.exit(main())
