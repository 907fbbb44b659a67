"""`python -m bench.mutants`: change the code in a seeded sample of places and see whether a test notices.

Works in a temporary copy of the tree. Exit 1 when fewer than 85 % of the mutants are noticed.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("bench", "examples", "src", "tests", "pyproject.toml", "README.md", "LICENSE")
GOAL = 0.85

SURVIVED, NO_TESTS = 0, 33  # mutmut's exit codes; every other one means that something noticed


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench.mutants", description="Measure the tests by mutation.")
    parser.add_argument("--count", type=int, default=400, help="how many mutants to try (default 400)")
    parser.add_argument("--seed", type=int, default=1, help="which sample to take (default 1)")
    parser.add_argument("--only", default="", help="only mutants whose name begins with this")
    parser.add_argument("--show", action="store_true", help="show the change that each survivor made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="scout-mutants-") as folder:
        tree = Path(folder)
        for name in COPIED:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, tree / name)
        return _measure(tree, options)


def _measure(tree: Path, options: argparse.Namespace) -> int:
    # The first run makes all mutants and learns which tests reach them; one mutant is enough for that.
    _mutmut(tree, "scout.identity.address.x_is_folded__mutmut_1")
    names = sorted(name for name in _results(tree) if name.startswith(options.only))
    sample = random.Random(options.seed).sample(names, min(options.count, len(names)))
    print(f"{len(names)} mutants, trying {len(sample)} (seed {options.seed})", flush=True)
    _mutmut(tree, *sample)
    results = _results(tree)
    lived = sorted(name for name in sample if results[name] in (SURVIVED, NO_TESTS, None))
    for name in lived:
        print(f"survived: {name}")
        if options.show:
            print(_mutmut(tree, name, command="show"))
    score = 1 - len(lived) / len(sample)
    verdict = "ok" if score >= GOAL else "MISSED"
    print(
        f"noticed {len(sample) - len(lived)} of {len(sample)} mutants: {score:.1%} (goal {GOAL:.0%}) {verdict}"
    )
    return 0 if score >= GOAL else 1


def _results(tree: Path) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    for meta in (tree / "mutants").rglob("*.meta"):
        found.update(json.loads(meta.read_text())["exit_code_by_key"])
    return found


def _mutmut(tree: Path, *names: str, command: str = "run") -> str:
    words = [sys.executable, "-m", "mutmut", command, *names]
    env = {**os.environ, "SCOUT_HYPOTHESIS": "mutants"}
    env.pop("PYTHONPATH", None)
    done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout[-3000:], done.stderr[-3000:])
        raise SystemExit(f"mutmut {command} failed")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
