"""`python -m scout.daemon`: the command that `scout up` and unit files run."""

import argparse
import os
import sys
from collections.abc import Sequence

from scout.base.refusal import Refused
from scout.daemon.run import refuse, run
from scout.settings.load import load


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the daemon with the settings of this environment."""
    parser = argparse.ArgumentParser(prog="scout.daemon", description="Run the Scout daemon.")
    parser.add_argument("--foreground", action="store_true", help="log to the terminal too")
    parser.add_argument(
        "--announce", action="store_true", help="print one line of JSON when ready or refused"
    )
    parser.add_argument(
        "--tethered", action="store_true", help="stop, with all sessions, when standard input closes"
    )
    parser.add_argument("--host", help="the address to listen on")
    parser.add_argument("--port", help="the port to listen on; 0 picks a free one")
    parser.add_argument(
        "--insecure-bind",
        action="store_true",
        default=os.environ.get("SCOUT_INSECURE_BIND") == "1",
        help="listen on an address that other machines can reach, without encryption",
    )
    given = parser.parse_args(arguments)
    flags = {key: getattr(given, key) for key in ("host", "port") if getattr(given, key) is not None}
    try:
        loaded = load(flags)
    except Refused as refused:
        return refuse(refused.diagnostic, announce=given.announce)
    return run(
        loaded,
        foreground=given.foreground,
        announce=given.announce,
        insecure=given.insecure_bind,
        tethered=given.tethered,
    )


if __name__ == "__main__":
    sys.exit(main())
