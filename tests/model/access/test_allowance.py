"""A standing decision: for whom and what, until when."""

from typing import Any

import pytest

from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.access.allowance import (
    Allowance,
    AllowanceKind,
    AllowanceScope,
    AllowanceState,
    check_allowance,
    is_valid_allowance,
    revoke_allowance,
)

NOW = Time(1_000_000)


def an_allowance(**changes: Any) -> Allowance:
    fields: dict[str, Any] = {
        "kind": AllowanceKind.COMMAND,
        "scope": AllowanceScope.EVERYWHERE,
        "command": "npm test",
        **changes,
    }
    return Allowance(id="alw_1", created_at=NOW, updated_at=NOW, user="ada", created_by="agt_ada", **fields)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"command": None}, "command"),
        ({"kind": AllowanceKind.TOOL}, "tool"),
        ({"kind": AllowanceKind.PATH}, "path"),
        ({"kind": AllowanceKind.PATH, "path": "src/**"}, "path"),
        ({"kind": AllowanceKind.PATH, "path": "/w/../etc/**"}, "path"),
        ({"kind": AllowanceKind.PATH, "path": "/w//x"}, "path"),
        ({"scope": AllowanceScope.PROJECT}, "project"),
        ({"scope": AllowanceScope.AGENT}, "agent"),
        ({"scope": AllowanceScope.SESSION}, "scope"),
    ],
)
def test_what_says_too_little_is_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(Refused) as caught:
        check_allowance(an_allowance(**changes))
    assert isinstance(caught.value.diagnostic, BadRequest)
    assert caught.value.diagnostic.field == field


def test_what_says_enough_is_taken() -> None:
    for one in (
        an_allowance(),
        an_allowance(scope=AllowanceScope.AGENT, agent_id="agt_1"),
        an_allowance(scope=AllowanceScope.PROJECT, project_root="/w"),
        an_allowance(kind=AllowanceKind.PATH, path="/w/**"),
    ):
        assert check_allowance(one) is one


def test_by_what_it_is_looked_for() -> None:
    assert an_allowance().subject == "npm test"
    assert an_allowance(command=None).subject == ""
    assert an_allowance(kind=AllowanceKind.TOOL, tool="Edit").subject == "Edit"
    assert an_allowance(kind=AllowanceKind.TOOL).subject == ""
    assert an_allowance(kind=AllowanceKind.PATH, path="/w").subject == ""


def test_it_holds_until_its_end_or_until_it_is_revoked() -> None:
    assert is_valid_allowance(an_allowance(), NOW)
    assert is_valid_allowance(an_allowance(expires_at=NOW.plus(1)), NOW)
    assert not is_valid_allowance(an_allowance(expires_at=NOW), NOW)
    gone = revoke_allowance(an_allowance(), NOW, reason="enough")
    assert (gone.state, gone.reason, gone.revision) == (AllowanceState.REVOKED, "enough", 2)
    assert not is_valid_allowance(gone, NOW)
