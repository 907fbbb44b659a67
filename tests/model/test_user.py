import pytest

from scout.base.refusal import BadRequest, Refused
from scout.model.people.user import (
    KEY,
    USER,
    ConnectorTarget,
    KeyState,
    UserKind,
    UserMove,
    UserState,
    check_user,
    free_key,
    get_target,
    move_user,
    rename_user,
)
from tests.model.samples import T1, a_key, a_user
from tests.model.table import cells, check_cell

USERS = """
          delete   restore
active    deleted  -
deleted   -        active
"""
KEYS = """
         free
active   freed
freed    -
"""


@pytest.mark.parametrize(("state", "move", "after"), cells(USER, USERS))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(USER, state, move, after)


@pytest.mark.parametrize(("state", "move", "after"), cells(KEY, KEYS))
def test_each_cell_of_a_key(state: str, move: str, after: str) -> None:
    check_cell(KEY, state, move, after)


def test_a_user_is_a_person_or_a_group() -> None:
    assert {str(kind) for kind in UserKind} == {"person", "group"}
    assert a_user().kind is UserKind.PERSON


@pytest.mark.parametrize("name", ["u1", "Ann.Lee", "x~y", "me"])
def test_a_user_id_may_begin_a_path(name: str) -> None:
    assert check_user(a_user(name=name)).name == name


@pytest.mark.parametrize("name", ["", "a b", "a/b", "system", "agent", "..", "é"])
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(Refused) as refused:
        check_user(a_user(name=name))
    assert isinstance(refused.value.diagnostic, BadRequest)


def test_deleting_keeps_the_record() -> None:
    gone = move_user(a_user(), UserMove.DELETE, T1, seen=1)
    assert (gone.state, gone.name) == (UserState.DELETED, "u1")
    assert USER.settled == {UserState.DELETED}


def test_what_is_shown_may_change() -> None:
    shown = rename_user(a_user(), "Ann", T1, seen=1)
    assert (shown.display_name, shown.name, shown.revision) == ("Ann", "u1", 2)


def test_a_freed_key_says_why_and_means_nobody() -> None:
    freed = free_key(a_key(), "the user was deleted", T1)
    assert (freed.state, freed.reason) == (KeyState.FREED, "the user was deleted")


def test_a_key_is_where_a_reply_goes() -> None:
    assert get_target(a_key()) == ConnectorTarget(connector="telegram", target_id="123456")
