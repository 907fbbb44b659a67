"""The environment of programs that Scout starts for the user: an allow-list, without credentials."""

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

# The user, the language and the folders of programs. No credentials, no SCOUT_*.
ALLOWED = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    }
)  # fmt: skip


def build_environment(
    given: Mapping[str, str],
    inherited: Mapping[str, str] = os.environ,
    also: Iterable[str] = (),
) -> dict[str, str]:
    """Return the environment of a program: allowed variables of the broker, then those `given` to this run.

    `also`: further allowed names; a `*` at the end matches any rest.
    """
    patterns = ("LC_*", *also)
    passed = {
        name: value
        for name, value in inherited.items()
        if name in ALLOWED or any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    return {"PATH": os.defpath, **passed, **given}
