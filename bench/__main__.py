"""`python -m bench [--json FILE]`: run every figure; exit 1 when a goal is missed."""

import argparse
import json
import sys
from pathlib import Path

from bench import decisions, names, store
from bench.figure import Figure, table


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description="Measure Scout.")
    parser.add_argument("--json", metavar="FILE", type=Path, help="store the figures, to compare two commits")
    options = parser.parse_args()
    figures: list[Figure] = [*names.figures(), *decisions.figures(), *store.figures()]
    print(table(figures))
    if options.json:
        options.json.write_text(json.dumps([figure.plain() for figure in figures], indent=2) + "\n")
    missed = [figure.name for figure in figures if not figure.met]
    print(f"\n{len(missed)} goals missed" + (f": {', '.join(missed)}" if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
