"""What the tests of names ask of a refusal."""

from collections.abc import Callable

import pytest

from scout.base.refusal import Diagnostic, Refused
from scout.identity.problem import MalformedAddress

# Stands for "no reading to offer": then the refusal sends the reader to the manual.
NO_READING = ("explain",)


def expect_refusal(function: Callable[..., object], *arguments: object, **named: object) -> Diagnostic:
    """The diagnostic of a call that must be refused."""
    with pytest.raises(Refused) as caught:
        function(*arguments, **named)
    return caught.value.diagnostic


def expect_malformed(
    function: Callable[..., object], *arguments: object, **named: object
) -> MalformedAddress:
    """The diagnostic of a call that must be refused as malformed."""
    found = expect_refusal(function, *arguments, **named)
    assert isinstance(found, MalformedAddress)
    assert found.code == "malformed_address"
    return found


def list_offered(diagnostic: Diagnostic) -> tuple[str, ...]:
    """The texts to write instead, in order; an operation that takes none stands for itself."""
    return tuple(
        text for remedy in diagnostic.remedies for text in remedy.parameters.get("texts", [remedy.operation])
    )


def describe(diagnostic: MalformedAddress) -> tuple[int, str, str, tuple[str, ...]]:
    """Everything a malformed address says."""
    return diagnostic.position, diagnostic.problem, diagnostic.expected, list_offered(diagnostic)
