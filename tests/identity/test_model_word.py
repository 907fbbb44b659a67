"""Model words: which asked word means which model."""

import pytest

from scout.identity.model_word import VENDORS, list_model_words, matches_model


@pytest.mark.rows("R1.2-46")
def test_the_vendors() -> None:
    assert {"claude", "gpt", "openai", "anthropic", "gemini", "google"} == VENDORS


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt-5-5", {"gpt-5-5", "5-5"}),
        ("gpt-5.5", {"gpt-5-5", "5-5"}),  # an instance's model may still be as its vendor writes it
        ("gpt-5", {"gpt-5", "5"}),
        ("claude-sonnet-4-6", {"claude-sonnet-4-6", "sonnet-4-6", "sonnet"}),
        ("gpt-4-1-mini", {"gpt-4-1-mini", "4-1-mini", "mini"}),
        ("gemini-2-5-pro", {"gemini-2-5-pro", "2-5-pro", "pro"}),
        ("google-gemini-2-5-pro", {"google-gemini-2-5-pro", "gemini-2-5-pro", "2-5-pro", "pro"}),
        ("claude-3-7-sonnet", {"claude-3-7-sonnet", "3-7-sonnet", "sonnet"}),
        ("o3-mini", {"o3-mini", "mini"}),
        ("llama-gpt-7", {"llama-gpt-7", "llama"}),  # a vendor word in the middle is no word
        ("big-red-dog", {"big-red-dog", "red-dog", "big", "red", "dog"}),
        ("gpt", {"gpt"}),
        ("openai-gpt", {"openai-gpt"}),
        ("5", {"5"}),
        ("sonnet", {"sonnet"}),
    ],
)
def test_the_words_that_ask_for_a_model(model: str, words: set[str]) -> None:
    assert list_model_words(model) == words


MATCHES = [
    ("gpt-5-5", "gpt-5-5"),
    ("5-5", "gpt-5-5"),
    ("5", "gpt-5"),
    ("sonnet", "claude-sonnet-4-6"),
    ("sonnet-4-6", "claude-sonnet-4-6"),
    ("mini", "gpt-4-1-mini"),
    ("gpt", "gpt"),
]
MISSES = [
    ("5", "gpt-5-5"),
    ("5-5", "gpt-5"),
    ("gpt", "gpt-5-5"),
    ("gpt", "gpt-5"),
    ("gpt", "openai-gpt"),
    ("claude", "claude-sonnet-4-6"),
    ("claude-sonnet", "claude-sonnet-4-6"),
    ("sonnet-4", "claude-sonnet-4-6"),
    ("4-6", "claude-sonnet-4-6"),
    ("4", "claude-sonnet-4-6"),
    ("son", "claude-sonnet-4-6"),
    ("gpt-5-5", "5-5"),
    ("", "gpt-5"),
]


@pytest.mark.rows("R1.2-44", "R1.2-45", "R1.2-47", "R1.2-48", "R1.2-49")
@pytest.mark.parametrize(("asked", "model"), MATCHES)
def test_an_asked_word_that_matches(asked: str, model: str) -> None:
    assert matches_model(asked, model)


@pytest.mark.rows("R1.2-49", "R1.2-50")
@pytest.mark.parametrize(("asked", "model"), MISSES)
def test_an_asked_word_that_does_not_match(asked: str, model: str) -> None:
    assert not matches_model(asked, model)
