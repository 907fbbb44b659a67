"""`scout web`: open the web page by a link that works once."""

import html
import os
import webbrowser
from pathlib import Path

import click

from scout.cli.connection.call import CliIdentity, DaemonCall
from scout.cli.connection.text import note, print_json, print_out
from scout.cli.operations.build import build_epilog, run_guarded

_FILE = "web-open.html"


@click.command("web", epilog=build_epilog("web"))
@click.option("--no-open", is_flag=True, help="Print the link instead of opening a browser.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object; with --no-open it has the link.")
def command(no_open: bool, as_json: bool) -> None:
    """Open the web page in your browser.

    The browser is signed in by a link that works once, within a minute.
    """

    def work() -> int:
        caller = CliIdentity()
        link = DaemonCall(caller).call("POST /v1/web/links", {})
        page = str(link["url"]).partition("/enter/")[0]
        opened = not no_open and open_page(Path(caller.where.home), str(link["url"]))
        if as_json:
            shown = {"url": page} if opened else {"url": link["url"], "expiresAt": link["expiresAt"]}
            print_json({**shown, "opened": opened})
        elif opened:
            print_out(f"opened {page}/")
        else:
            print_out(str(link["url"]))
            note("The link works once, within a minute, in a browser on this machine.")
        return 0

    run_guarded(work, as_json)


def open_page(home: Path, url: str) -> bool:
    """Open the link by way of a file that only you can read: arguments of programs are public."""
    file = home / _FILE
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as writing:
        target = html.escape(url)
        writing.write(
            f'<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0;url={target}"><title>Scout</title>'
            f'<p><a href="{target}">Open Scout</a></p>\n'
        )
    try:
        return webbrowser.open(file.as_uri())
    except webbrowser.Error:
        return False
