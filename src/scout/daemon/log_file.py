"""The daemon's log file: rotated, readable only by its owner, without secrets."""

import logging
import os
import re
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

_SECRET = re.compile(r"\bsct_[A-Za-z0-9_\-]+")
_BEARER = re.compile(r"(?i)\b(bearer\s+)[^\s\"',]+")
_SIZE = 5 * 1024 * 1024
_KEPT = 4


def redact(text: str) -> str:
    """Return the text with every credential masked."""
    return _BEARER.sub(r"\1…", _SECRET.sub("sct_…", text))


class Redacting(logging.Formatter):
    """Masks credentials anywhere in a log record: message, arguments or stack trace."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


class _Private(RotatingFileHandler):
    """Creates files that only the owner can read. The umask stays unchanged, because harnesses inherit it."""

    def _open(self) -> TextIOWrapper:
        def open_private(path: str, flags: int) -> int:
            return os.open(path, flags, 0o600)

        return open(self.baseFilename, self.mode, encoding=self.encoding, opener=open_private)  # type: ignore[return-value] (a mode that is text)


def open_log(file: Path, *, level: str, foreground: bool) -> list[logging.Handler]:
    """Log to the file, and to the terminal if the daemon runs in the foreground."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handlers: list[logging.Handler] = [_Private(file, maxBytes=_SIZE, backupCount=_KEPT, encoding="utf-8")]
    if foreground:
        handlers.append(logging.StreamHandler(sys.stderr))
    form = Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in handlers:
        handler.setFormatter(form)
        logging.getLogger().addHandler(handler)
    logging.getLogger().setLevel(level.upper())
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    # It logs the full URL of each request, and the URL of a webhook is often a secret.
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    return handlers
