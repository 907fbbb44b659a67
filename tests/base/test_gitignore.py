"""Patterns of .gitignore: what git itself says is what they match, and never slowly."""

import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from scout.base.gitignore import get_literal_path, matches, parse_pattern


@pytest.mark.parametrize(
    ("patterns", "path", "expected"),
    [
        ("main.py", "main.py", True),
        ("main.py", "src/deep/main.py", True),
        ("main.py", "main.pyc", False),
        ("/main.py", "src/main.py", False),
        ("/main.py", "main.py", True),
        ("src/main.py", "src/main.py", True),
        ("src/main.py", "a/src/main.py", False),
        ("src", "src/main.py", True),
        ("src/", "src/main.py", True),
        ("src/", "src", False),
        ("src/", "a/src/b", True),
        ("*.py", "a/b.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**", "src", False),
        ("src/**", "src/a/b.py", True),
        ("**", "anything/at/all", True),
        ("**/b", "b", True),
        ("**/b", "a/a/b", True),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/**/b", "a/x/y/c", False),
        ("a/***/b", "a/x/y/b", True),
        ("a/**b", "a/xb", True),
        ("a**/b", "ax/b", True),
        ("a**/b", "ab", False),
        ("a/**b", "a/x/b", False),
        ("?.py", "a.py", True),
        ("?.py", "ab.py", False),
        ("[a-c]x", "bx", True),
        ("[!a-c]x", "bx", False),
        ("[^a-c]x", "dx", True),
        ("[]a]x", "]x", True),
        ("[a-]x", "-x", True),
        ("[c-a]x", "bx", False),
        ("[!c-a]x", "bx", True),
        (r"[\]]x", "]x", True),
        ("[[:digit:][:upper:]]x", "7x", True),
        ("[[:digit:][:upper:]]x", "ax", False),
        ("[[:nonsense:]]x", "nx", False),
        ("a[/b]c", "abc", True),
        ("[a", "[a", False),
        ("[a", "a", False),
        (r"a\*", "a*", True),
        (r"a\*", "ab", False),
        ("a\\", "a", False),
        ("a\\", "a\\", False),
        (r"a\/b", "a/b", True),
        (r"\!a", "!a", True),
        (r"\#a", "#a", True),
        ("a ", "a", True),
        (r"a\ ", "a ", True),
        (r"a\\ ", "a\\", True),
        ("# a comment", "# a comment", False),
        ("", "a", False),
        ("/", "a", False),
        ("!a", "a", False),
        ("*.txt !keep.txt", "a/keep.txt", False),
        ("*.txt !keep.txt keep.txt", "keep.txt", True),
        ("src/ !src/a", "src/a", True),
        ("src/* !src/a", "src/a", False),
        ("* !src/ !src/**", "src/a", False),
        ("*é?", "caféx", True),
    ],
)
def test_what_a_pattern_matches(patterns: str, path: str, expected: bool) -> None:
    lines = (
        [patterns]
        if "\\ " in patterns or patterns[:1] == "#" or patterns.endswith(" ")
        else patterns.split(" ")
    )
    assert matches(lines, path) is expected


def test_what_names_nothing_is_no_pattern() -> None:
    assert [parse_pattern(text) for text in ("", "   ", "#x", "/", "!", "!/")] == [None] * 6
    assert parse_pattern("x") is not None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("src/a.py", "src/a.py"),
        ("/src/", "src"),
        ("a*", None),
        ("", None),
        ("!a", None),
        ("#a", None),
        ("[a]", None),
    ],
)
def test_a_pattern_without_wildcards_is_a_path(text: str, path: str | None) -> None:
    assert get_literal_path(text) == path


NAMES = st.text("ab.-", min_size=1, max_size=4).filter(lambda name: set(name) != {"."})
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = st.sampled_from(
    ["a", "b", ".", "-", "*", "**", "?", "/", "[ab]", "[!a]", "[a-b]", "\\a", "!", "**/", "/**"]
)
PATTERNS = st.lists(PARTS, min_size=1, max_size=6).map("".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ignored")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    patterns=st.lists(PATTERNS, min_size=1, max_size=3),
    paths=st.lists(PATHS, min_size=1, max_size=12, unique=True),
)
def test_git_says_the_same(repository: Path, patterns: list[str], paths: list[str]) -> None:
    """`git check-ignore` reads the patterns from a file and is asked about paths that do not exist."""
    assume(not any(".git" in path.split("/") for path in paths))
    assume(
        not any(re.search(r"[^/*]\*{2,}/", pattern) for pattern in patterns)
    )  # where git is not as its manual
    (repository / ".gitignore").write_text("".join(f"{one}\n" for one in patterns))
    asked = subprocess.run(
        ["git", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=repository,
        input="".join(f"{path}\0" for path in paths),
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode in (0, 1), asked.stderr
    said = set(asked.stdout.split("\0")[:-1])
    assert {path for path in paths if matches(patterns, path)} == said, patterns


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 200 + "*b", "a" * 4000),
        ("**/a/" * 80 + "b", "a/" * 250 + "x"),
        ("/**" * 100 + "/b", "a/" * 250 + "x"),
        ("[ab]*" * 90 + "c", "ab" * 1000),
    ],
)
def test_no_pattern_takes_long(pattern: str, path: str) -> None:
    start = time.process_time()
    assert not matches([pattern], path)
    assert time.process_time() - start < 2
