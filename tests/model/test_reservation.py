"""A reservation: active until it is released or expires, and never again."""

from typing import Any

import pytest

from scout.base.time import Time
from scout.model.reservation import (
    RESERVATION,
    Reservation,
    ReservationScope,
    ReservationState,
    expire_reservation,
    is_active_reservation,
    release_reservation,
)
from tests.model.table import cells, check_cell

NOW = Time(1_000_000)

TABLE = """
          release   expire
active    released  expired
released  -         -
expired   -         -
"""


def a_reservation(**changes: Any) -> Reservation:
    fields: dict[str, Any] = {"globs": ("src/**",), "expires_at": NOW.plus(60), **changes}
    return Reservation(
        id="rsv_1",
        created_at=NOW,
        updated_at=NOW,
        agent_id="agt_1",
        scope=ReservationScope.WORK_TREE,
        root="/w",
        **fields,
    )


@pytest.mark.parametrize(("state", "move", "after"), cells(RESERVATION, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(RESERVATION, state, move, after)


def test_it_holds_until_its_end() -> None:
    one = a_reservation()
    assert one.exclusive
    assert is_active_reservation(one, NOW)
    assert not is_active_reservation(one, NOW.plus(60))
    released = release_reservation(one, NOW, reason="done")
    assert (released.state, released.reason, released.revision) == (ReservationState.RELEASED, "done", 2)
    expired = expire_reservation(one, NOW, reason="it expired")
    assert (expired.state, expired.reason) == (ReservationState.EXPIRED, "it expired")
    assert not is_active_reservation(released, NOW)
    assert not is_active_reservation(expired, NOW)
