"""Python runs this file at its start when its folder is on PYTHONPATH: a daemon that a test starts is watched.

The reports of the daemon are files beside this one; see `loop_guard.py`.
"""

import sys

if "scout.daemon" in sys.orig_argv:
    from pathlib import Path

    import loop_guard  # pyright: ignore[reportMissingImports] (it lies beside this file in the folder of a run)

    loop_guard.watch_servers(Path(__file__).parent)  # pyright: ignore[reportUnknownMemberType] (the same)
