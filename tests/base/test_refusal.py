from typing import ClassVar

import pytest

from scout.base.codec import decode, encode
from scout.base.refusal import (
    BadRequest,
    Diagnostic,
    Family,
    Refused,
    WrongRevision,
    WrongState,
    get_code,
    get_status,
)


class Soaked(Diagnostic, tag="soaked"):
    family: ClassVar[Family] = Family.LIMIT
    status: ClassVar[int | None] = 418

    cups: int


def test_each_family_has_its_own_exit_code() -> None:
    codes = [family.exit_code for family in Family]
    assert codes == [2, 3, 4, 5, 6, 7, 8, 9]
    assert Family.UNREACHABLE.status == 503


def test_a_code_may_have_its_own_status() -> None:
    assert (get_status(Soaked), get_status(BadRequest), get_status(WrongState)) == (418, 400, 409)


def test_the_code_is_the_tag() -> None:
    assert Soaked(cups=2).code == get_code(Soaked) == "soaked"
    assert decode(encode(Soaked(cups=2)), Soaked) == Soaked(cups=2)
    assert encode(Soaked(cups=2)).startswith(b'{"code":"soaked"')


def test_a_diagnostic_must_have_words() -> None:
    with pytest.raises(NotImplementedError):
        _ = Soaked(cups=2).message


@pytest.mark.parametrize(
    ("diagnostic", "text"),
    [
        (BadRequest(problem="too odd"), "bad_request: too odd"),
        (BadRequest(problem="too odd", field="size"), "bad_request: too odd (at size)"),
        (
            WrongRevision(noun="flight", id="flt_1", seen=2, current=3),
            "wrong_revision: flight flt_1 is at revision 3; you read 2",
        ),
    ],
)
def test_a_refusal_reads_as_code_and_sentence(diagnostic: Diagnostic, text: str) -> None:
    assert str(Refused(diagnostic)) == text
    assert Refused(diagnostic).diagnostic is diagnostic
