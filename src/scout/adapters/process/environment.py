"""What a program gets from the broker's own environment: an allow-list, never everything."""

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

# Who and where the user is, how to speak and where programs keep their own files. No credentials, no SCOUT_*.
ALLOWED = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    }
)  # fmt: skip


def environment_for(
    given: Mapping[str, str],
    inherited: Mapping[str, str] = os.environ,
    also: Iterable[str] = (),
) -> dict[str, str]:
    """The environment of a program: what is allowed of the broker's, then what is `given` to this run.

    `also`: names beyond the common ones; a `*` at the end stands for any rest.
    """
    patterns = ("LC_*", *also)
    passed = {
        name: value
        for name, value in inherited.items()
        if name in ALLOWED or any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    return {"PATH": os.defpath, **passed, **given}
