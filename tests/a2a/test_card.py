"""What a card says, and that it is one for the SDK."""

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.utils.proto_utils import validate_proto_required_fields

from scout.a2a.card import build_card
from scout.base.time import Time
from scout.protocol.agents import Publication


def published(description: str) -> Publication:
    return Publication(
        address="@arc",
        path="/me/agent/arc",
        name="arc",
        description=description,
        url="http://127.0.0.1:7432/a2a/me/agent/arc",
        card_url="",
        changed_at=Time(0),
    )


@pytest.mark.parametrize(
    ("description", "skills"),
    [
        ("", [("The agent arc.", "The agent arc.")]),
        ("Reviews code.\nAnd tests.", [("Reviews code", "Reviews code. And tests.")]),
        (
            "Does:\n- Reviews: finds faults\n* Tests\n-",
            [("Reviews", "Reviews: finds faults"), ("Tests", "Tests")],
        ),
        ("- " + "x" * 100, [("x" * 60, "x" * 100)]),
    ],
)
def test_skills_are_the_bullets_of_a_description_or_the_whole(
    description: str, skills: list[tuple[str, str]]
) -> None:
    card = build_card(published(description), "1.2.3")
    assert [(one["name"], one["description"]) for one in card["skills"]] == skills


def test_the_sdk_reads_it_and_misses_nothing() -> None:
    card = parse_agent_card(build_card(published("Reviews code."), "1.2.3"))
    validate_proto_required_fields(card)
    assert card.version == "1.2.3"
    assert card.capabilities.streaming
    assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "Bearer"
    assert [one.protocol_version for one in card.supported_interfaces] == ["1.0", "1.0"]
