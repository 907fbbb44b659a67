"""The shortest address, given what resolves."""

from collections.abc import Callable

import pytest

from scout.identity.address import Address
from scout.identity.grammar import parse_handle
from scout.identity.minimal import shorten_address

FULL = parse_handle("@arc.main.profile:dev.harness:claude.model:sonnet.node:mini")


def needs(*dimensions: str) -> Callable[[Address], bool]:
    """An address means the same as long as it has these dimensions."""
    return lambda address: all(getattr(address, name) for name in dimensions)


@pytest.mark.rows("R1.3-40")
@pytest.mark.parametrize(
    ("dimensions", "text"),
    [
        ((), "@arc"),
        (("workspace_qualifier",), "@arc.main"),
        (("profile",), "@arc.profile:dev"),
        (("harness",), "@arc.harness:claude"),
        (("model",), "@arc.model:sonnet"),
        (("node",), "@arc.node:mini"),
        (("workspace_qualifier", "node"), "@arc.main.node:mini"),
        (
            ("workspace_qualifier", "profile", "harness", "model", "node"),
            "@arc.main.profile:dev.harness:claude.model:sonnet.node:mini",
        ),
    ],
)
def test_only_what_is_needed_is_kept(dimensions: tuple[str, ...], text: str) -> None:
    assert shorten_address(FULL, needs(*dimensions)) == text


@pytest.mark.rows("R1.3-39", "R1.3-40")
def test_dimensions_are_tried_in_canonical_order() -> None:
    tried: list[str] = []

    def means_the_same(address: Address) -> bool:
        tried.append(address.canonical)
        return address.workspace_qualifier is not None or address.node is not None

    assert shorten_address(FULL, means_the_same) == "@arc.node:mini"
    assert tried == [
        "@arc.profile:dev.harness:claude.model:sonnet.node:mini",
        "@arc.harness:claude.model:sonnet.node:mini",
        "@arc.model:sonnet.node:mini",
        "@arc.node:mini",
        "@arc",
    ]


def test_what_is_absent_is_not_tried() -> None:
    tried: list[str] = []

    def means_the_same(address: Address) -> bool:
        tried.append(address.canonical)
        return False

    assert shorten_address(parse_handle("@arc#claude"), means_the_same) == "@arc.harness:claude"
    assert tried == ["@arc"]
    assert shorten_address(parse_handle("@arc"), means_the_same) == "@arc"
    assert tried == ["@arc"]


@pytest.mark.rows("R1.3-42")
@pytest.mark.parametrize(
    ("aliases", "text"),
    [
        ((), "@arc"),
        (("a",), "@a"),
        (("bo", "ab"), "@ab"),  # of two equally short ones the first by name
        (("abc",), "@arc"),  # not shorter
        (("longer",), "@arc"),
        (("longer", "x"), "@x"),
    ],
)
def test_a_shorter_alias_is_preferred(aliases: tuple[str, ...], text: str) -> None:
    assert shorten_address(FULL, needs(), aliases) == text
    assert shorten_address(FULL, needs(), iter(aliases)) == text
