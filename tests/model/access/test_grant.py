from typing import Any

import pytest

from scout.base.refusal import Refused
from scout.identity.path import AgentPath
from scout.model.access.grant import (
    GRANT,
    Action,
    GrantMove,
    GrantScope,
    GrantState,
    check_grant,
    end_grant,
    is_valid_grant,
)
from tests.model.samples import T1, a_grant
from tests.model.table import cells, check_cell

TABLE = """
          revoke   expire
active    revoked  expired
revoked   -        -
expired   -        -
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(GRANT, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(GRANT, state, move, after)


def test_the_actions() -> None:
    assert {str(action) for action in Action} == {"address", "ask", "spawn", "read", "control"}


@pytest.mark.parametrize(
    "scope",
    [
        GrantScope(path=AgentPath.parse("/u2/agent/x")),
        GrantScope(user="u2"),
        GrantScope(project_root="/p"),
        GrantScope(conversation_id="cnv_1"),
    ],
)
def test_a_grant_is_for_one_place(scope: GrantScope) -> None:
    grant = a_grant(scope=scope)
    assert check_grant(grant) is grant


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": GrantScope()},
        {"scope": GrantScope(user="u2", project_root="/p")},
        {"agent_id": None},
        {"user": "u1"},
    ],
)
def test_a_grant_without_one_place_and_one_holder_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="a grant is"):
        check_grant(a_grant(**changes))


def test_a_user_may_hold_a_grant() -> None:
    grant = a_grant(agent_id=None, user="u1")
    assert check_grant(grant) is grant


def test_a_grant_is_valid_while_active_and_in_time() -> None:
    assert is_valid_grant(a_grant(), T1)
    assert is_valid_grant(a_grant(expires_at=T1.plus(1)), T1)
    assert not is_valid_grant(a_grant(expires_at=T1), T1)
    revoked = end_grant(a_grant(), GrantMove.REVOKE, T1, reason="over", seen=1)
    assert (revoked.state, revoked.reason) == (GrantState.REVOKED, "over")
    assert not is_valid_grant(revoked, T1)
