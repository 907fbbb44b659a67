"""Reserved words and what each of them teaches."""

import pytest

from scout.identity.lexer import lex
from scout.identity.problem import ReservedName
from scout.identity.reserved import HARNESSES, KEYS, RESERVED, check_name
from tests.identity.refusals import expect_refusal, list_offered

WORDS = {
    "direct": "it is the person's own name, as in `/me/direct`; `operator` addresses the person",
    "system": "it names parts of Scout itself, as in `/system/sweeper`",
    "root": "it addresses the root agent of your project",
    "self": "it addresses you",
    "parent": "it addresses the agent that spawned you",
    "operator": "it addresses the person at this machine",
    "broadcast": "all agents are reached with `scout send --broadcast`",
    "channel": "a channel is addressed as `channel:NAME`",
    "session": "a session is addressed as `session:ID`",
    "ref": "references are ids such as `flt_…`",
    "id": "ids are addressed as they are, such as `agt_…`",
    "project": "a project is addressed as `project:DIR`",
    "alias": "an alias is addressed as `alias:NAME`",
    "target": "a target is named by its address",
    "lock": "git refuses branch names that end in it",
}


def check(word: str, teaches: str, *remedies: str) -> None:
    found = expect_refusal(check_name, word)
    assert isinstance(found, ReservedName)
    assert found.code == "reserved_name"
    assert (found.word, found.teaches) == (word, teaches)
    assert found.message == f"'{word}' is reserved: {teaches}"
    assert list_offered(found) == remedies
    for text in remedies:
        lex(text)


@pytest.mark.rows("R1.2-51", "R1.2-55")
@pytest.mark.parametrize(
    "word",
    ["workspace", "branch", "worktree", "profile", "persona", "harness", "runtime", "model", "node", "host"],
)
def test_the_dimension_keys_are_reserved(word: str) -> None:
    assert word in KEYS
    check(word, f"it is a qualifier, as in `@name.{word}:VALUE`", f"@my-{word}")


@pytest.mark.rows("R1.2-52", "R1.2-55")
@pytest.mark.parametrize(("word", "teaches"), WORDS.items())
def test_the_words_of_addresses_are_reserved(word: str, teaches: str) -> None:
    check(word, teaches, f"@my-{word}")


@pytest.mark.rows("R1.2-53", "R1.2-55", "R1.2-56")
@pytest.mark.parametrize(
    "word", ["claude", "codex", "acp", "tmux", "command", "echo", "gemini", "opencode", "cursor"]
)
def test_the_harness_names_are_reserved_and_teach_the_shorthand(word: str) -> None:
    teaches = f"a harness is chosen with `#{word}`, as in `@name#{word}`"
    check(word, teaches, f"@name#{word}", f"@my-{word}")
    assert [remedy.why for remedy in expect_refusal(check_name, word).remedies] == [
        "the harness of an agent",
        "a free name",
    ]


@pytest.mark.rows("R1.2-51", "R1.2-52", "R1.2-53")
def test_nothing_else_is_reserved() -> None:
    assert set(RESERVED) == set(KEYS) | set(WORDS) | set(HARNESSES)
    assert len(RESERVED) == 10 + 15 + 9


@pytest.mark.parametrize("name", ["arc", "codex-2", "my-root", "nodes", "rooted", "memory", ""])
def test_a_free_name_passes(name: str) -> None:
    assert check_name(name) == name
