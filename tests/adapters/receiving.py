"""What stands at the other end of a notice: a program that shows it, and a receiver of webhooks."""

import contextlib
import http.server
import stat
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

from scout.adapters.sinks.webhook import sign


def stand_in(folder: Path, name: str = "notify-send", code: int = 0) -> dict[str, str]:
    """An environment whose PATH has a program that writes its arguments to a file, one per line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(
        "#!/bin/sh\n"
        f'for word in "$@"; do printf "%s\\n" "$word" >>"{folder}/{name}.said"; done\n'
        f"echo it went wrong >&2\nexit {code}\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return {"PATH": f"{folder}:/usr/bin:/bin", "DISPLAY": ":0", "SECRET": "not for programs"}


def read_arguments(folder: Path, name: str = "notify-send") -> list[str]:
    """The arguments so far."""
    file = folder / f"{name}.said"
    return file.read_text().splitlines() if file.exists() else []


class Receiver:
    """A server on the loopback that answers with the given codes, then with 204; `bodies` is what it took."""

    def __init__(self, url: str, codes: list[int]) -> None:
        self.url = url
        self.codes = codes
        self.seen: list[tuple[dict[str, str], bytes]] = []

    def is_signed_with(self, secret: str) -> bool:
        """Whether every signature is what its receiver computes."""
        return all(_is_signed(headers, body, secret) for headers, body in self.seen)


def _is_signed(headers: dict[str, str], body: bytes, secret: str) -> bool:
    told = headers["Scout-Signature"]
    seconds = int(dict(part.split("=") for part in told.split(","))["t"])
    return told == sign(secret, seconds, body)


@contextlib.contextmanager
def receiver(*codes: int) -> Generator[Receiver]:
    """The same for as long as this is open."""
    made = Receiver("", list(codes))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.seen.append((dict(self.headers.items()), body))
            self.send_response(made.codes.pop(0) if made.codes else 204)
            self.send_header("Location", made.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the base's name)
            """Nothing is written to the terminal."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    made.url = f"http://127.0.0.1:{server.server_address[1]}/hook/s3cret"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
