"""Final texts: what cannot be stored is made visible, tokens are found and hidden, long ones are shortened."""

from hypothesis import given
from hypothesis import strategies as st

from scout.model.conversation import check_body
from scout.model.final_text import find_secrets, hide_secrets, make_storable, shorten

ONE, TWO = "sct_" + "a" * 43, "sct_" + "a" * 43 + "b"


@given(st.text(st.characters(codec=None), max_size=200))
def test_whatever_a_program_writes_can_be_stored(text: str) -> None:
    assert check_body(make_storable(text)) == make_storable(text)


def test_what_cannot_be_stored_is_made_visible() -> None:
    assert make_storable("important\0tail\udc80.") == "important␀tail�."
    assert make_storable("é 😀\n") == "é 😀\n"


def test_tokens_are_found_once_and_hidden_whole() -> None:
    text = f"token={ONE} and {TWO}, again {ONE}; not sct_short"
    assert find_secrets(text) == (ONE, TWO)
    assert hide_secrets(text, find_secrets(text)) == "token=sct_… and sct_…, again sct_…; not sct_short"
    assert find_secrets("nothing") == ()


@given(st.text(max_size=100), st.integers(0, 400))
def test_a_shortened_text_is_the_beginning_and_fits(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert text.startswith(short)
    assert len(short.encode()) <= limit
    assert short == text or len(text[: len(short) + 1].encode()) > limit
