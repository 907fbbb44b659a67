import pytest

from scout.base.codec import decode
from scout.base.refusal import BadRequest, Refused
from scout.model.people.user import (
    KEY,
    USER,
    ConnectorTarget,
    KeyState,
    QuietHours,
    UserKind,
    UserMove,
    UserState,
    check_user,
    count_quiet_minutes,
    free_key,
    get_target,
    move_user,
    read_quiet_hours,
    rename_user,
    set_quiet_hours,
    update_account,
)
from tests.model.samples import T1, a_key, a_user, ident
from tests.model.table import cells, check_cell

USERS = """
          retire   revive
active    retired  -
retired   -        active
"""
KEYS = """
         update   free
active   active   freed
freed    -        -
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


def test_retiring_keeps_the_record_and_what_was_retired_with_it() -> None:
    agents = (ident("agt"),)
    gone = move_user(a_user(), UserMove.RETIRE, T1, seen=1, reason="left", retired_agents=agents)
    assert (gone.state, gone.name) == (UserState.RETIRED, "u1")
    assert (gone.reason, gone.retired_agents) == ("left", agents)
    assert USER.settled == {UserState.RETIRED}
    back = move_user(gone, UserMove.REVIVE, T1)
    assert (back.state, back.reason, back.retired_agents) == (UserState.ACTIVE, "", ())


def test_the_word_of_older_logs_is_read() -> None:
    assert decode('"deleted"', UserState) is UserState.RETIRED
    with pytest.raises(Refused):
        decode('"gone"', UserState)


def test_nobody_is_their_own_sub_user() -> None:
    with pytest.raises(Refused):
        check_user(a_user(owner="u1"))
    assert check_user(a_user(owner="u2")).owner == "u2"


def test_what_is_shown_may_change() -> None:
    shown = rename_user(a_user(), "Ann", T1, seen=1)
    assert (shown.display_name, shown.name, shown.revision) == ("Ann", "u1", 2)


def test_a_freed_key_says_why_and_means_nobody() -> None:
    freed = free_key(a_key(), "the user is retired", T1, seen=1)
    assert (freed.state, freed.reason) == (KeyState.FREED, "the user is retired")


def test_an_account_may_get_another_name_and_chat() -> None:
    changed = update_account(a_key(), "c2", "Ann", T1)
    assert (changed.chat_id, changed.label, changed.external_id) == ("c2", "Ann", "123456")


# -- quiet hours -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [("22:00-07:00", 1320, 420), ("0:00-23:59", 0, 1439), ("9:05 - 17:30", 545, 1050)],
)
def test_quiet_hours_are_read(text: str, start: int, end: int) -> None:
    quiet = read_quiet_hours(text, "Europe/Berlin")
    assert (quiet.start, quiet.end, quiet.time_zone) == (start, end, "Europe/Berlin")


def test_quiet_hours_are_written_as_they_are_read() -> None:
    assert str(read_quiet_hours("22:00-7:00", "UTC")) == "22:00-07:00 UTC"


@pytest.mark.parametrize("text", ["", "22-7", "24:00-07:00", "22:60-07:00", "22:00", "07:00-07:00"])
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(Refused) as refused:
        read_quiet_hours(text, "UTC")
    assert isinstance(refused.value.diagnostic, BadRequest)


@pytest.mark.parametrize(
    ("minute", "left"),
    [(1319, 0), (1320, 540), (1439, 421), (0, 420), (419, 1), (420, 0), (720, 0)],
)
def test_quiet_hours_may_cross_midnight(minute: int, left: int) -> None:
    assert count_quiet_minutes(QuietHours(start=1320, end=420), minute) == left


@pytest.mark.parametrize(("minute", "left"), [(0, 0), (539, 0), (540, 60), (599, 1), (600, 0)])
def test_or_lie_within_a_day(minute: int, left: int) -> None:
    assert count_quiet_minutes(QuietHours(start=540, end=600), minute) == left


def test_quiet_hours_are_set_and_removed() -> None:
    quiet = QuietHours(start=0, end=60)
    changed = set_quiet_hours(a_key(), quiet, T1, seen=1)
    assert changed.quiet == quiet
    assert set_quiet_hours(changed, None, T1, seen=2).quiet is None


def test_a_key_is_where_a_reply_goes() -> None:
    assert get_target(a_key()) == ConnectorTarget(connector="telegram", target_id="123456")
