"""Every example in the docs is run: a page that says what is not so fails the build.

- console: each `$ ` line is run; the lines below it are all that it prints, `…` being any lines
- python: runs in a fresh interpreter, with warnings as errors
- both: after `<!-- daemon -->`, a daemon is running already
- json, toml: parse
- mermaid: after `<!-- machine: package.module:NAME -->`, equals that machine's own diagram
- bash: is not run and says why on the line before: `<!-- not run: reason -->`
- text: is not code
- after `<!-- recipe: … -->`: tests/house/test_recipes.py follows it
"""

import contextlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from scout.daemon.start import start, stop

ROOT = Path(__file__).parents[2]
PAGES = [
    page for name in ("README.md", "CONTRIBUTING.md", "docs/**/*.md") for page in sorted(ROOT.glob(name))
]

_FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<language>[^`]*)")
_MACHINE = re.compile(r"<!-- machine: (?P<module>[\w.]+):(?P<name>\w+) -->")
_DAEMON = "<!-- daemon -->"
_RECIPE = "<!-- recipe: "
_NOT_RUN = re.compile(r"<!-- not run: \S.* -->")

_END = "(end of command)"
_CANNOT_RUN = {126, 127}  # the shell's own codes: a `…` must not hide a command that does not exist


class Untrue(Exception):  # noqa: N818 (a verdict on a page, not a fault of this program)
    """The page says something that is not so."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """A fenced block, and the line directly before it."""

    page: str
    line: int
    language: str
    before: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line} {self.language}"


def blocks(page: str, text: str) -> list[Block]:
    """The fenced blocks of a page. A fence inside a longer fence is text."""
    lines = text.splitlines()
    found: list[Block] = []
    at = 0
    while at < len(lines):
        if opening := _FENCE.fullmatch(lines[at]):
            indent, ticks, language = opening.group("indent", "ticks", "language")
            if indent + ticks not in lines[at + 1 :]:
                raise Untrue(f"{page}:{at + 1} opens a block that is never closed")
            end = lines.index(indent + ticks, at + 1)
            found.append(
                Block(
                    page=page,
                    line=at + 1,
                    language=language.strip(),
                    before=lines[at - 1].strip() if at else "",
                    text="\n".join(line.removeprefix(indent) for line in lines[at + 1 : end]),
                )
            )
            at = end
        at += 1
    return found


# ---------------------------------------------------------------------------------------- console


@dataclass(kw_only=True)
class _Turn:
    command: str
    expected: list[str] = field(default_factory=list[str])


def _turns(text: str) -> list[_Turn]:
    turns: list[_Turn] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            turns.append(_Turn(command=line.removeprefix("$ ")))
        elif not turns:
            raise Untrue("a console block begins with a command: `$ …`")
        elif turns[-1].command.endswith("\\"):
            turns[-1].command += f"\n{line}"
        else:
            turns[-1].expected.append(line)
    return turns


def _environment(home: str) -> dict[str, str]:
    """A reader's shell: this tree's `scout` first, and nothing of the machine that runs the test."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ours = {"SCOUT_HOME": home, "SCOUT_PORT": "0", "SCOUT_MCP_PRELOAD": "false"}
    return {"HOME": home, "LC_ALL": "C.UTF-8", "PATH": path, **ours}


def _run(commands: list[str], environ: dict[str, str]) -> list[tuple[str, int]]:
    """What each command printed and its status. One shell for all, so that `$?` and `cd` are kept."""
    mark = f"status=$?; printf '{_END}%d\\n' $status; (exit $status)"
    result = subprocess.run(
        ["bash", "-c", "".join(f"{command}\n{mark}\n" for command in commands)],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=50,
        check=False,
    )
    return [
        (text, int(status))
        for text, status in re.findall(rf"(?s)(.*?){re.escape(_END)}(\d+)\n", result.stdout)
    ]


def _matches(expected: list[str], printed: str) -> bool:
    pattern = "".join(r"(?:.*\n)*" if line == "…" else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed.splitlines())) is not None


def _check_console(block: Block) -> None:
    with _home() as home:
        if block.before == _DAEMON:
            start(home, environ=_environment(home))
        check_turns(block.text, _environment(home))


def check_turns(text: str, environ: dict[str, str]) -> None:
    """Run the commands of a console block in one shell, and compare what they print."""
    turns = _turns(text)
    results = _run([turn.command for turn in turns], environ)
    if len(results) != len(turns):
        raise Untrue(f"the shell ended after {len(results)} of {len(turns)} commands")
    for turn, (printed, status) in zip(turns, results, strict=True):
        if status in _CANNOT_RUN or not _matches(turn.expected, printed):
            expected = "\n".join(turn.expected)
            raise Untrue(f"$ {turn.command}\nexpected:\n{expected}\nprinted (exit {status}):\n{printed}")


# ------------------------------------------------------------------------------------- the others


@contextlib.contextmanager
def _home() -> Generator[str]:
    """A reader's folder; a daemon that was started there is stopped."""
    with tempfile.TemporaryDirectory() as home:
        try:
            yield home
        finally:
            stop(home)


def _check_python(block: Block) -> None:
    with _home() as home:
        if block.before == _DAEMON:
            start(home, environ=_environment(home))
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", block.text],
            cwd=ROOT,
            env=_environment(home),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=50,
            check=False,
        )
    if result.returncode:
        raise Untrue(result.stderr)


def _parses(parse: Callable[[str], object]) -> Callable[[Block], None]:
    def check(block: Block) -> None:
        try:
            parse(block.text)
        except ValueError as error:
            raise Untrue(str(error)) from error

    return check


def _check_mermaid(block: Block) -> None:
    if named := _MACHINE.fullmatch(block.before):
        machine = getattr(importlib.import_module(named["module"]), named["name"])
        if block.text != machine.mermaid():
            raise Untrue(f"the table of {named['name']} is now:\n{machine.mermaid()}")


def _check_bash(block: Block) -> None:
    if not _NOT_RUN.fullmatch(block.before):
        raise Untrue("the line before a bash block says why it is not run: `<!-- not run: reason -->`")


def _check_text(block: Block) -> None:
    """Text makes no claim that could be run."""


CHECKS: dict[str, Callable[[Block], None]] = {
    "bash": _check_bash,
    "console": _check_console,
    "json": _parses(json.loads),
    "mermaid": _check_mermaid,
    "python": _check_python,
    "text": _check_text,
    "toml": _parses(tomllib.loads),
}


def check(block: Block) -> None:
    """Raise `Untrue` unless the block is so."""
    if block.before.startswith(_RECIPE):
        return
    if block.language not in CHECKS:
        raise Untrue(f"{block} is of no known kind; the kinds are {', '.join(CHECKS)}")
    CHECKS[block.language](block)


@pytest.mark.rows("R2.2-7")
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, marks=[pytest.mark.slow] if block.before == _DAEMON else [], id=str(block))
        for page in PAGES
        for block in blocks(str(page.relative_to(ROOT)), page.read_text("utf-8"))
    ],
)
def test_what_a_page_shows_is_so(block: Block) -> None:
    check(block)


@pytest.mark.slow
def test_the_tour_of_the_demo_ends_well(tmp_path: Path) -> None:
    tour = [sys.executable, "examples/tour.py"]
    result = subprocess.run(
        tour, cwd=ROOT, env=_environment(str(tmp_path)), capture_output=True, encoding="utf-8", check=False
    )
    assert (result.returncode, result.stderr) == (0, ""), result.stdout


# --------------------------------------------------------------------------- the runner, on itself

HONEST = """
```console
$ echo one; echo two >&2
one
two
$ cd tests
$ ls -d house
house
$ printf '%s\\n' a b \\
  c
a
…
$ false
$ echo $?
1
```
- in a list:
  ```python
  assert 1 + 1 == 2
  ```
```json
{"a": [1]}
```
```toml
a = 1
```
<!-- not run: it is only an example -->
```bash
sleep 1d
```
````text
```python
assert False, "a fence inside a longer fence is text"
```
````
```mermaid
flowchart LR
```
<!-- machine: scout:DOOR -->
```mermaid
stateDiagram-v2
    [*] --> open
```
"""

UNTRUE = {
    "other output": ("```console\n$ echo one\ntwo\n```", "printed"),
    "missing output": ("```console\n$ true\none\n```", "printed"),
    "more output": ("```console\n$ echo one; echo two\none\n```", "printed"),
    "lines out of order": ("```console\n$ echo one; echo two\n…\ntwo\none\n```", "printed"),
    "a missing command": ("```console\n$ no-such-command-here\n…\n```", "exit 127"),
    "a shell that ends": ("```console\n$ exit 0\n$ true\n```", "after 0 of 2"),
    "no command": ("```console\nscout parse\n```", "begins with a command"),
    "a failing assertion": ("```python\nassert False\n```", "AssertionError"),
    "a warning": ("```python\nimport warnings\nwarnings.warn('old')\n```", "UserWarning"),
    "broken JSON": ("```json\n{a: 1}\n```", "property name"),
    "broken TOML": ("```toml\na =\n```", "Invalid value"),
    "bash without a reason": ("```bash\nls\n```", "why it is not run"),
    "bash with an empty reason": ("<!-- not run: -->\n```bash\nls\n```", "why it is not run"),
    "another diagram": ("<!-- machine: scout:DOOR -->\n```mermaid\nflowchart LR\n```", "--> open"),
    "no language": ("```\nls\n```", "no known kind"),
    "an unknown language": ("```shell\nls\n```", "no known kind"),
    "an open block": ("```text\nls", "never closed"),
}


class _Door:
    def mermaid(self) -> str:
        return "stateDiagram-v2\n    [*] --> open"


@pytest.fixture(autouse=True)
def a_machine_to_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scout.DOOR", _Door(), raising=False)


def _check_page(text: str) -> list[str]:
    found = blocks("page.md", text)
    for block in found:
        check(block)
    return [block.language for block in found]


def test_an_honest_page_passes() -> None:
    kinds = ["console", "python", "json", "toml", "bash", "text", "mermaid", "mermaid"]
    assert _check_page(HONEST) == kinds


@pytest.mark.parametrize(("page", "why"), UNTRUE.values(), ids=UNTRUE)
def test_an_untrue_page_fails(page: str, why: str) -> None:
    with pytest.raises(Untrue, match=why):
        _check_page(page)
