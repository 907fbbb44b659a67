import pytest

from scout.base.refusal import Refused
from scout.model.waiting import WaitingKind, WaitingOn, check_waiting
from tests.model.samples import BOB, T1


def test_waiting_names_who_or_what_ends_it() -> None:
    condition = WaitingOn(kind=WaitingKind.CONDITION, ref="the build is green")
    quota = WaitingOn(kind=WaitingKind.QUOTA, until=T1)
    assert check_waiting(condition, BOB) is condition
    assert check_waiting(quota, None) is quota
    for nobody in (None, ""):
        with pytest.raises(Refused, match="a next move owner"):
            check_waiting(condition, nobody)
