"""The page's own files: styles, modules and icons, with their types and fingerprints."""

import functools
import hashlib
import json
from pathlib import Path
from typing import NamedTuple

from scout.base.codec import to_plain
from scout.protocol.keys import KEYS
from scout.protocol.operations import REQUESTS

_FOLDER = Path(__file__).parent / "assets"
_TYPES = {
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".json": b"application/json",
}


class StaticFile(NamedTuple):
    """One file as it is sent."""

    body: bytes
    media_type: bytes
    tag: bytes


@functools.cache
def load_files() -> dict[str, StaticFile]:
    """Read every file of the page, and add the tables of operations and keys that its modules use."""
    found = {
        path.name: (path.read_bytes(), _TYPES[path.suffix])
        for path in sorted(_FOLDER.iterdir())
        if path.suffix in _TYPES
    }
    found["tables.json"] = (_build_tables(), _TYPES[".json"])
    return {name: StaticFile(body, kind, _fingerprint(body)) for name, (body, kind) in found.items()}


def _fingerprint(body: bytes) -> bytes:
    return b'"%s"' % hashlib.sha256(body).hexdigest()[:16].encode()


def _build_tables() -> bytes:
    """Return the route of each operation, which remedies and buttons name, and the keys of the screens."""
    operations = {request.operation: request.route for request in REQUESTS if request.route}
    tables = {"operations": operations, "keys": to_plain(KEYS)}
    return json.dumps(tables, separators=(",", ":")).encode()
