"""Take the pictures of the documentation: `./dev pictures`.

Each scene is played by the real commands in a terminal of tmux, with a Scout of its own in a temporary folder. What the
terminal shows becomes an SVG file. A picture whose text is the same but for ids and times is left as it is.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "pictures"

COLUMNS, ROWS, SCREEN_ROWS = 80, 40, 24
_WIDTH, _HEIGHT, _MARGIN = 8.4, 19, 16  # of a character, of a line, around the text
_PATIENCE = 40  # seconds for one scene

_WORDS = re.compile(r"\S+(?: \S+)*")
_SGR = re.compile(r"\x1b\[([0-9;]*)m")
_COLOURS = dict(
    enumerate(("#6e7681", "#ff7b72", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#c9d1d9"))
)
_CHANGING = re.compile(
    r"\b(?P<kind>[a-z]{3})_[0-9a-z]{8,}|\b\d\d:\d\d(?: UTC)?|\b\d+(?:\.\d+)?(?:ms|s|m|h)\b(?: ago)?|\b(?:just )?now\b"
)

# The agents of the scenes: a shell script each. `scout` inside a script acts as its agent.
AGENTS = {
    "talkie": "scout attention raise 'Publish 1.4.0 to npm?' --kind approval --risk high --wait 60 > /dev/null\n"
    "echo 'Published 1.4.0.'",
    "hudson": "exec sleep 60",
    "upper": "exec tr a-z A-Z",
}

_REGISTER = "".join(
    f"scout agent register {name} --command 'sh {name}.sh' > /dev/null 2>&1\n" for name in AGENTS
)

SCENES = {
    "now": (
        _REGISTER
        + "scout ask @upper 'Is the release ready?' > /dev/null 2>&1\n"
        + "scout ask @hudson 'Review our API.' --no-wait > /dev/null 2>&1\n"
        + "scout ask @talkie 'Publish the release.' --no-wait > /dev/null 2>&1\n"
        + "until scout attention 2>&1 | grep -q Publish; do sleep 0.1; done\n",
        ("scout", "scout approve", "scout wait last"),
    ),
    "refusal": (
        _REGISTER,
        ("scout ask @uper 'hello, scout'", "scout ask @upper 'hello, scout'", "scout why last"),
    ),
}

# Scenes that end in the terminal application: the keys pressed there, and what it shows then.
SCREENS = {
    "tui": (SCENES["now"][0], (), "IS THE RELEASE READY?"),
    "tui-inbox": (SCENES["now"][0], ("2",), "@talkie asks in flt_"),
}


class Style(NamedTuple):
    """How a piece of text looks; what a terminal calls SGR."""

    colour: str = ""
    bold: bool = False
    dim: bool = False
    reverse: bool = False

    def after(self, codes: str) -> "Style":
        """The style after the codes of one sequence."""
        style = self
        for code in map(int, codes.split(";") if codes else ["0"]):
            style = style.after_code(code)
        return style

    def after_code(self, code: int) -> "Style":
        if code in (0, 22):
            return Style() if code == 0 else self._replace(bold=False, dim=False)
        if code in (1, 2):
            return self._replace(bold=code == 1 or self.bold, dim=code == 2 or self.dim)
        if code in (7, 27):
            return self._replace(reverse=code == 7)
        if code % 10 < 8 and code // 10 in (3, 9):
            return self._replace(colour=_COLOURS[code % 10])
        return self._replace(colour="") if code == 39 else self

    @property
    def attributes(self) -> str:
        own = "#0d1117" if self.reverse else self.colour
        colour = f' fill="{own}"' if own else ""
        bold = ' font-weight="bold"' if self.bold else ""
        return f"{colour}{bold}" + (' opacity="0.7"' if self.dim else "")


def play(name: str) -> str:
    """What the terminal shows at the end of a scene, with its escape sequences."""
    if name in SCREENS:
        prepare, keys, text = SCREENS[name]
        return _play(prepare, "tmux wait-for -S shown\nexec scout tui\n", SCREEN_ROWS, keys, text)
    prepare, commands = SCENES[name]
    shown = "".join(f"printf '\\033[1;32m$\\033[0m %s\\n' \"{line}\"\n{line}\n" for line in commands)
    return _play(prepare, f"clear\n{shown}tmux wait-for -S shown\nexec sleep 60\n", ROWS)


def _play(prepare: str, shown: str, rows: int, keys: Sequence[str] = (), text: str = "") -> str:
    with tempfile.TemporaryDirectory(prefix="scout-") as folder:
        project = Path(folder) / "work"
        project.mkdir()
        for agent, script in AGENTS.items():
            (project / f"{agent}.sh").write_text(script)
        (Path(folder) / "scene.sh").write_text(
            f"cd {project}\nscout up > /dev/null\nscout config roots --add . > /dev/null 2>&1\n{prepare}{shown}"
        )
        return _film(folder, rows, keys, text)


def _film(folder: str, rows: int, keys: Sequence[str], text: str) -> str:
    tmux = ["tmux", "-S", f"{folder}/tmux", "-f", os.devnull]
    size = ["-x", str(COLUMNS), "-y", str(rows)]
    environ = {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": folder,
        "SCOUT_HOME": f"{folder}/scout",
        "SCOUT_PORT": "0",
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "TZ": "UTC",
    }
    try:
        start = [*tmux, "new-session", "-d", *size, f"sh {folder}/scene.sh"]
        subprocess.run(start, env=environ, check=True, timeout=_PATIENCE)
        subprocess.run([*tmux, "wait-for", "shown"], env=environ, check=True, timeout=_PATIENCE)
        if text:
            _await(tmux, environ, "● live")
            subprocess.run([*tmux, "send-keys", "", *keys], env=environ, check=True, timeout=_PATIENCE)
        return _await(tmux, environ, text)
    finally:
        stop = [Path(sys.executable).with_name("scout"), "down", "--stop"]
        subprocess.run(stop, env=environ, check=False, capture_output=True, timeout=_PATIENCE)
        subprocess.run([*tmux, "kill-server"], env=environ, check=False, capture_output=True)


def _await(tmux: list[str], environ: dict[str, str], text: str) -> str:
    """The screen, once it shows this."""
    until = time.monotonic() + _PATIENCE
    while True:
        view = [*tmux, "capture-pane", "-p", "-e"]
        told = subprocess.run(view, env=environ, check=True, capture_output=True, encoding="utf-8").stdout
        if text in _SGR.sub("", told):
            return told.rstrip()
        assert time.monotonic() < until, f"no {text!r} on this screen:\n{told}"
        time.sleep(0.1)


def draw(screen: str, title: str) -> str:
    """The screen as SVG. Each piece of text has its own place, so columns line up in any font."""
    lines = screen.splitlines()
    width, height = COLUMNS * _WIDTH + 2 * _MARGIN, len(lines) * _HEIGHT + 2 * _MARGIN
    text = "\n".join(_line(line, row) for row, line in enumerate(lines) if line.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">\n'
        f"<title>{escape(title)}</title>\n"
        f'<rect width="100%" height="100%" rx="8" fill="#0d1117"/>\n'
        f'<g font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14" fill="#e6edf3" xml:space="preserve">\n'
        f"{text}\n</g>\n</svg>\n"
    )


def _line(line: str, row: int) -> str:
    y = _MARGIN + row * _HEIGHT + 14
    backs = [_draw_back(column, row, piece, style) for column, piece, style in _pieces(line)]
    texts = [
        f'<text x="{_MARGIN + column * _WIDTH:g}" y="{y}" textLength="{len(run) * _WIDTH:g}"{style.attributes}>'
        f"{escape(run)}</text>"
        for column, run, style in _runs(line)
    ]
    return "".join([*backs, *texts])


def _runs(line: str) -> Iterator[tuple[int, str, Style]]:
    """The words of a line that look the same, without the blanks around them: a browser joins blanks."""
    for column, piece, style in _pieces(line):
        for found in _WORDS.finditer(piece):
            yield column + found.start(), found[0], style


def _draw_back(column: int, row: int, piece: str, style: Style) -> str:
    if not style.reverse:
        return ""
    x, y, width = _MARGIN + column * _WIDTH, _MARGIN + row * _HEIGHT - 1, len(piece) * _WIDTH
    fill = style.colour or "#e6edf3"
    return f'<rect x="{x:g}" y="{y}" width="{width:g}" height="{_HEIGHT}" fill="{fill}"/>'


def _pieces(line: str) -> Iterator[tuple[int, str, Style]]:
    """The pieces of a line that look the same, each with its column."""
    style, column = Style(), 0
    for number, part in enumerate(_SGR.split(line)):
        if number % 2:
            style = style.after(part)
        else:
            yield column, part, style
            column += len(part)


def words(screen: str) -> str:
    """The text of a screen without what differs from run to run: ids, times, colours, blanks and empty lines."""
    plain = _CHANGING.sub(
        lambda found: f"{found['kind']}_" if found["kind"] else "TIME", _SGR.sub("", screen)
    )
    return "\n".join(" ".join(line.split()) for line in plain.splitlines() if line.strip())


def words_of(picture: str) -> str:
    """The same, of a picture."""
    rows: dict[str, str] = {}
    for x, y, text in re.findall(r'<text x="([\d.]+)" y="(\d+)"[^>]*>([^<]*)</text>', picture):
        column = round((float(x) - _MARGIN) / _WIDTH)
        unescaped = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        rows[y] = rows.get(y, "").ljust(column) + unescaped
    return words("\n".join(rows.values()))


def main() -> None:
    """Play every scene, and write the pictures that changed."""
    FOLDER.mkdir(exist_ok=True)
    for name in (*SCENES, *SCREENS):
        file = FOLDER / f"{name}.svg"
        title = "; then ".join(SCENES[name][1]) if name in SCENES else "scout tui"
        picture = draw(play(name), title)
        if file.exists() and words_of(file.read_text("utf-8")) == words_of(picture):
            print(f"docs/pictures/{name}.svg is current")
        else:
            file.write_text(picture, "utf-8")
            print(f"docs/pictures/{name}.svg")


if __name__ == "__main__":
    main()
