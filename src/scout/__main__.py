"""`python -m scout` and the command `scout`."""

import sys


def main() -> None:
    """Try the warm path first; it leaves everything else to the full command line."""
    from scout.cli.fast import end_quietly, move_json, prepare

    prepare()
    sys.argv[1:] = move_json(sys.argv[1:])
    try:
        code = _run()
    except BrokenPipeError:
        code = end_quietly()
    sys.exit(code)


def _run() -> int | None:
    from scout.cli.fast import run

    try:
        code = run(sys.argv[1:])
        if code is None:
            from scout.cli.main import main as full

            full()
    finally:
        sys.stdout.flush()
    return code


if __name__ == "__main__":
    main()
