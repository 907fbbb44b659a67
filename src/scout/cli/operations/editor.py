"""A body written in the person's own editor."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from scout.cli.connection.refusal import RefusalError


def edit() -> str:
    """What was saved; an empty text means that nothing is sent."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise _nothing("there is no text, and EDITOR is not set to write it in")
    with tempfile.TemporaryDirectory(prefix="scout-") as folder:
        file = Path(folder) / "message.md"
        file.touch(mode=0o600)
        status = subprocess.run([*shlex.split(editor), str(file)], check=False).returncode
        text = file.read_text("utf-8") if file.exists() else ""
    if status or not text.strip():
        raise _nothing("nothing was written, so nothing is sent")
    return text


def _nothing(problem: str) -> RefusalError:
    return RefusalError.of("bad_request", problem, problem=problem, field="body")
