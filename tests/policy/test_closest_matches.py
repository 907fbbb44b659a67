"""Which agents a handle means when only names count: the exact ones, else those with more qualifiers."""

import pytest

from scout.model.agent import Agent
from scout.policy.directory import Wanted
from scout.policy.resolver.handle import find_closest
from tests.policy.fleets import agent

BARE = agent("arc")
ONE, TWO = agent("arc", workspace="one"), agent("arc", workspace="two")
OTHER = agent("bow", workspace="one")


@pytest.mark.parametrize(
    ("wanted", "known", "found"),
    [
        (Wanted(definition_id="arc"), [BARE, ONE, TWO], [BARE]),
        (Wanted(definition_id="arc"), [ONE, TWO, OTHER], [ONE, TWO]),
        (Wanted(definition_id="arc", workspace="two"), [BARE, ONE, TWO], [TWO]),
        (Wanted(definition_id="arc", node="elsewhere"), [BARE, ONE], []),
        (Wanted(definition_id="cod"), [BARE, OTHER], []),
    ],
)
def test_the_closest(wanted: Wanted, known: list[Agent], found: list[Agent]) -> None:
    assert find_closest(wanted, known) == found
