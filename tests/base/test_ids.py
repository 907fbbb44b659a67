import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typeid import TypeID

from scout.base.ids import (
    COUNTER,
    derive_id,
    make_id_series,
    mint,
    parse_prefix,
    read_milliseconds,
    split_series,
)
from scout.base.refusal import BadRequest, Refused

MILLISECONDS = st.integers(0, 2**48 - 1)
ENTROPY = st.binary(min_size=10, max_size=16)
PREFIXES = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=12)


# Its own types are generic over a parameter that nobody gives.
ORACLE: Any = TypeID


def _uuid(text: str) -> uuid.UUID:
    return uuid.UUID(str(ORACLE.from_string(text).uuid))


@pytest.mark.rows("R0-2")
@given(PREFIXES, MILLISECONDS, ENTROPY)
def test_a_typeid_library_reads_a_minted_id_as_uuid_7(prefix: str, milliseconds: int, entropy: bytes) -> None:
    text = mint(prefix, milliseconds, entropy)
    assert read_milliseconds(text) == milliseconds
    number = _uuid(text)
    assert ORACLE.from_string(text).prefix == prefix
    assert (number.version, number.variant) == (7, uuid.RFC_4122)
    assert number.int >> 80 == milliseconds
    assert str(ORACLE.from_uuid(number, prefix)) == text


@pytest.mark.rows("R0-2")
@given(MILLISECONDS, MILLISECONDS, ENTROPY, ENTROPY)
def test_ids_sort_by_the_time_they_were_made(one: int, other: int, chance: bytes, luck: bytes) -> None:
    if one < other:
        assert mint("agt", one, chance) < mint("agt", other, luck)


@given(MILLISECONDS, ENTROPY, PREFIXES)
def test_ids_of_a_series_differ_in_one_part(milliseconds: int, entropy: bytes, prefix: str) -> None:
    parts = [split_series(f"{prefix}_{text}") for text in make_id_series(milliseconds, entropy)]
    assert len({(head, rest) for head, _, rest in parts}) == 1
    assert {len(counter) for _, counter, _ in parts} == {COUNTER}
    assert len({counter for _, counter, _ in parts}) == len(parts)
    assert split_series("") == ("", "", "")


@pytest.mark.rows("R0-2")
@given(MILLISECONDS, ENTROPY)
def test_ids_of_one_moment_are_in_order_and_differ_early(milliseconds: int, entropy: bytes) -> None:
    texts = list(make_id_series(milliseconds, entropy))
    assert texts == sorted(texts)
    assert len({text[:13] for text in texts}) == len(texts) == 1024
    for text in (texts[0], texts[-1]):
        number = _uuid(f"agt_{text}")
        assert (number.version, number.variant) == (7, uuid.RFC_4122)
        assert number.int >> 80 == milliseconds


@given(st.binary(min_size=10, max_size=10), st.binary(min_size=10, max_size=10))
def test_chance_tells_ids_of_one_moment_apart(chance: bytes, luck: bytes) -> None:
    # 74 of the 80 bits are used.
    same = int.from_bytes(chance, "big") % 2**74 == int.from_bytes(luck, "big") % 2**74
    assert (mint("agt", 5, chance) == mint("agt", 5, luck)) == same


@pytest.mark.parametrize(("milliseconds", "entropy"), [(-1, b"0" * 10), (1 << 48, b"0" * 10), (1, b"0" * 9)])
def test_minting_refuses_a_time_or_chance_that_does_not_fit(milliseconds: int, entropy: bytes) -> None:
    with pytest.raises(Refused) as refused:
        mint("agt", milliseconds, entropy)
    assert isinstance(refused.value.diagnostic, BadRequest)


@given(PREFIXES, st.lists(st.text(), max_size=4))
def test_a_derived_id_is_the_same_everywhere(prefix: str, parts: list[str]) -> None:
    text = derive_id(prefix, *parts)
    assert text == derive_id(prefix, *parts)
    number = _uuid(text)
    assert (number.version, number.variant) == (8, uuid.RFC_4122)


def test_a_derived_id_never_changes_between_versions() -> None:
    assert derive_id("cnv", "dm", "a", "b") == "cnv_0feb4yhx0nhk59v52rcdw1xtsk"


def test_parts_are_kept_apart() -> None:
    assert derive_id("cnv", "ab", "c") != derive_id("cnv", "a", "bc")


def test_a_lone_surrogate_does_not_break_it() -> None:
    assert parse_prefix(derive_id("cnv", "\ud800")) == "cnv"


@given(PREFIXES, MILLISECONDS, ENTROPY)
def test_prefix_of_reads_what_was_minted(prefix: str, milliseconds: int, entropy: bytes) -> None:
    assert parse_prefix(mint(prefix, milliseconds, entropy)) == prefix


@pytest.mark.parametrize(
    "text",
    [
        "",
        "agt",
        "agt_",
        "_01h455vb4pex5vsknk084sn02q",
        "01h455vb4pex5vsknk084sn02q",
        "agt_01h455vb4pex5vsknk084sn02",
        "agt_01h455vb4pex5vsknk084sn02qq",
        "agt_81h455vb4pex5vsknk084sn02q",
        "agt_01h455vb4pex5vsknk084sn02u",
        "agt_01H455VB4PEX5VSKNK084SN02Q",
        "AGT_01h455vb4pex5vsknk084sn02q",
        "a1_01h455vb4pex5vsknk084sn02q",
        "ägt_01h455vb4pex5vsknk084sn02q",
    ],
)
def test_prefix_of_knows_what_is_no_id(text: str) -> None:
    assert parse_prefix(text) is None
