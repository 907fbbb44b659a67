"""The named queries of `sql/queries.sql`, by name."""

import re
from importlib import resources

_NAMED = re.compile(r"^-- (?P<name>[a-z_]+): .+\n(?P<statement>(?:(?!--).*\n?)+)", re.MULTILINE)


def _read() -> dict[str, str]:
    text = (resources.files("scout.store") / "sql" / "queries.sql").read_text()
    return {found["name"]: found["statement"].strip().rstrip(";") for found in _NAMED.finditer(text)}


QUERIES: dict[str, str] = _read()
