"""Who edits what: each edited path is decided by itself, and nobody is kept from what is its own."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scout.base.gitignore import matches
from scout.base.refusal import BadRequest, Refused, Remedy
from scout.base.time import Time
from scout.model.problems.request import RateLimited
from scout.model.reservation import Reservation, ReservationScope, ReservationState
from scout.policy.limits import Limits, Periods, check_reservations
from scout.policy.reservation import (
    Editor,
    check_why,
    decide_edit,
    find_overlaps,
    is_own_reservation,
    lease_until,
    place_globs,
    show_text,
    tell_holder,
    tell_same_files,
)

NOW = Time(1_700_000_000_000_000)
ARC, BOW = Editor(agent_id="agt_arc"), Editor(agent_id="agt_bow")


def a_reservation(*globs: str, number: int = 1, **changes: Any) -> Reservation:
    fields: dict[str, Any] = {"agent_id": "agt_arc", "expires_at": NOW.plus(600), **changes}
    return Reservation(
        id=f"rsv_{number}",
        created_at=NOW,
        updated_at=NOW,
        globs=globs or ("src/**",),
        scope=ReservationScope.WORK_TREE,
        root="/w",
        **fields,
    )


def decide(path: str, *held: Reservation, editor: Editor = BOW) -> tuple[list[str], str | None]:
    found = decide_edit(held, path, [path], editor, NOW)
    assert found.path == path
    return [one.id for one in found.held], found.blocked_by.id if found.blocked_by else None


# -- an edit ---------------------------------------------------------------------------------------------


def test_an_exclusive_path_is_blocked_and_a_shared_one_is_shown() -> None:
    assert decide("src/a.py", a_reservation()) == (["rsv_1"], "rsv_1")
    assert decide("b.py", a_reservation()) == ([], None)
    shared = a_reservation(number=1, exclusive=False)
    assert decide("src/a.py", shared) == (["rsv_1"], None)
    both = (a_reservation("*.py", number=3), a_reservation(number=2), shared)
    assert decide("src/a.py", *both) == (["rsv_1", "rsv_2", "rsv_3"], "rsv_2")


def test_nobody_is_kept_from_its_own_files() -> None:
    assert decide("src/a.py", a_reservation(), editor=ARC) == ([], None)
    bound = a_reservation(session_id="ses_1")
    one, two = (Editor(agent_id="agt_arc", session_id=ident) for ident in ("ses_1", "ses_2"))
    assert is_own_reservation(bound, one)
    assert decide("src/a.py", bound, editor=one) == ([], None)
    assert decide("src/a.py", bound, editor=two) == (["rsv_1"], "rsv_1")  # another session of the agent
    assert decide("src/a.py", a_reservation(), editor=two) == ([], None)


def test_what_has_ended_holds_nothing() -> None:
    assert decide("src/a.py", a_reservation(expires_at=NOW)) == ([], None)
    assert decide("src/a.py", a_reservation(state=ReservationState.RELEASED)) == ([], None)


def test_a_link_is_held_by_either_of_its_names() -> None:
    found = decide_edit([a_reservation("real.py")], "link.py", ["link.py", "real.py"], BOW, NOW)
    assert found.blocked_by is not None
    assert decide_edit([a_reservation("real.py")], "link.py", [], BOW, NOW).held == ()


NAMES = st.sampled_from(["a.py", "b.py", "src", "doc", "x.md"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
GLOBS = st.sampled_from(["*.py", "src/**", "/src", "doc/", "**", "x.md", "!b.py", "src/*.py", "a.py"])
HELD = st.builds(
    a_reservation,
    GLOBS,
    GLOBS,
    number=st.integers(1, 99),
    agent_id=st.sampled_from(["agt_arc", "agt_bow"]),
    session_id=st.sampled_from([None, "ses_1", "ses_2"]),
    exclusive=st.booleans(),
    state=st.sampled_from(ReservationState),
    expires_at=st.sampled_from([NOW, NOW.plus(1)]),
)
EDITORS = st.builds(
    Editor,
    agent_id=st.sampled_from(["agt_arc", "agt_bow"]),
    session_id=st.sampled_from([None, "ses_1", "ses_2"]),
)


@given(held=st.lists(HELD, max_size=4), path=PATHS, editor=EDITORS)
def test_a_path_is_held_by_exactly_those_whose_globs_match_it(
    held: list[Reservation], path: str, editor: Editor
) -> None:
    found = decide_edit(held, path, [path], editor, NOW)
    expected = [
        one
        for one in held
        if one.state is ReservationState.ACTIVE
        and one.expires_at > NOW
        and matches(one.globs, path)
        and not (one.agent_id == editor.agent_id and one.session_id in (None, editor.session_id))
    ]
    assert sorted(one.id for one in expected) == [one.id for one in found.held]
    assert (found.blocked_by is None) == (not any(one.exclusive for one in expected))


@given(held=st.lists(HELD, max_size=4), paths=st.lists(PATHS, min_size=1, max_size=4), editor=EDITORS)
def test_each_path_is_decided_by_itself(held: list[Reservation], paths: list[str], editor: Editor) -> None:
    alone = [decide_edit(held, path, [path], editor, NOW) for path in paths]
    assert alone == [decide_edit(list(reversed(held)), path, [path], editor, NOW) for path in paths] or len(
        {one.id for one in held}
    ) < len(held)


# -- overlaps --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "shared"),
    [
        ("src/**", "src/**", "src/**"),
        ("src/a.py", "src/**", "src/a.py"),
        ("src/**", "/src/a.py", "src/a.py"),
        ("*.py", "src/**", ""),  # nobody knows before a file is edited
        ("a.py", "b.py", ""),
        ("!a.py", "!a.py", ""),
    ],
)
def test_an_overlap_is_told_where_it_is_certain(ours: str, theirs: str, shared: str) -> None:
    found = find_overlaps([ours, "z/z"], [a_reservation(theirs)], BOW, NOW)
    assert [one.shared for one in found] == ([shared] if shared else [])


def test_own_and_ended_ones_do_not_overlap() -> None:
    assert find_overlaps(["src/**"], [a_reservation()], ARC, NOW) == ()
    assert find_overlaps(["src/**"], [a_reservation(expires_at=NOW)], BOW, NOW) == ()


# -- reserving -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("glob", "folder", "placed"),
    [
        ("src/**", "/w", "src/**"),
        ("*.py", "/w", "*.py"),
        ("*.py", "/w/sub", "/sub/**/*.py"),
        ("/a.py", "/w/sub", "/sub/a.py"),
        ("in/a.py", "/w/sub", "/sub/in/a.py"),
        ("in/", "/w/sub", "/sub/**/in/"),
        ("!*.py", "/w/sub", "!/sub/**/*.py"),
        ("./a.py", "/w/sub", "/sub/a.py"),
        ("../a.py", "/w/sub", "/a.py"),
        ("./a/", "/w", "/a/"),
        (".", "/w", "**"),
        ("..", "/w/sub", "**"),
        ("/w/src/a.py", "/w/sub", "/src/a.py"),
        ("/w", "/w/sub", "**"),
        ("/w/", "/w", "**"),
        ("!/w/src", "/w", "!/src"),
        ("*.py", "/w/a[b] c", r"/a\[b\]\ c/**/*.py"),
        ("./x", "/w/a*", r"/a\*/x"),
    ],
)
def test_globs_are_relative_to_the_folder(glob: str, folder: str, placed: str) -> None:
    assert place_globs([glob, "keep"], "/w", folder)[0] == placed


def test_a_glob_is_taken_once() -> None:
    assert place_globs(["a", "a", "b"], "/w", "/w") == ("a", "b")
    assert place_globs(["x"], "/", "/sub") == ("/sub/**/x",)


@pytest.mark.parametrize(
    ("globs", "says"),
    [
        ([], "which files?"),
        (["x"] * 51, "51 globs are too many"),
        ([""], "a glob is empty"),
        (["  "], "a glob is empty"),
        (["#x"], "is a comment"),
        (["/"], "'/' matches nothing"),
        (["!x"], "only takes files out"),
        (["../x"], "is outside of the work tree"),
        (["./../x"], "is outside of the work tree"),
        (["a/../x"], "matches nothing"),
        (["x" * 501], "501 characters are too many"),
        (["a\x1bb"], r"control characters cannot be used: a\x1bb"),
    ],
)
def test_a_glob_that_names_nothing_is_refused(globs: list[str], says: str) -> None:
    with pytest.raises(Refused) as caught:
        place_globs(globs, "/w", "/w")
    problem = caught.value.diagnostic
    assert isinstance(problem, BadRequest)
    assert says in problem.problem
    assert problem.field == "globs"


def test_the_purpose_is_one_printable_text() -> None:
    assert check_why(" moving it ") == "moving it"
    with pytest.raises(Refused, match="control characters"):
        check_why("two\nlines")
    with pytest.raises(Refused, match="501 characters"):
        check_why("x" * 501)


def test_it_lasts_as_long_as_it_may() -> None:
    periods = Periods(reservation=60, reservation_most=100)
    assert lease_until(["x"], None, NOW, periods) == NOW.plus(60)
    assert lease_until(["x"], 100, NOW, periods) == NOW.plus(100)
    assert lease_until(["x"], None, NOW, Periods(reservation=60, reservation_most=10)) == NOW.plus(10)
    with pytest.raises(Refused, match="longer than 0 seconds"):
        lease_until(["x"], 0, NOW, periods)
    with pytest.raises(Refused, match="the maximum is 100") as caught:
        lease_until(["x"], 101, NOW, periods)
    (remedy,) = caught.value.diagnostic.remedies
    assert (remedy.operation, remedy.parameters) == ("reserve.add", {"globs": ["x"], "seconds": 100})


def test_an_agent_has_so_many_and_no_more() -> None:
    assert check_reservations("@arc", 1, Limits(reservations=2)).used == 1
    with pytest.raises(Refused) as caught:
        check_reservations("@arc", 2, Limits(reservations=2))
    problem = caught.value.diagnostic
    assert isinstance(problem, RateLimited)
    assert problem.remedies[0] == Remedy(
        operation="reserve.list", parameters={"agent": "@arc"}, why="release one of these"
    )


# -- words -----------------------------------------------------------------------------------------------


def test_the_holder_is_told_with_the_way_to_ask() -> None:
    held = a_reservation(why="moving it", expires_at=NOW.plus(90))
    told = tell_holder("src/it's.py", held, "@arc", NOW)
    assert told.startswith("src/it's.py is reserved by @arc until 22:14 UTC (in 2 min): moving it. To ask: ")
    assert told.endswith("""scout ask @arc 'May I edit src/it'"'"'s.py?'""")
    person = tell_holder("a\x1b.py", a_reservation(expires_at=NOW.plus(1)), "a person", NOW, person=True)
    assert person.startswith(
        r"a\x1b.py is reserved by a person until 22:13 UTC (in 1 min). To ask: scout need "
    )


def test_both_agents_are_told_the_files() -> None:
    one = tell_same_files(["a.py"], "@bow", "flt_1", "/w")
    assert one.splitlines()[:2] == ["@bow (flt_1) worked in /w while you did; this file changed:", "- a.py"]
    assert "scout ask @bow" in one
    many = tell_same_files([f"{number}\n.py" for number in range(25)], "@bow", "flt_1", "/w")
    assert "these files changed" in many
    assert "- … and 5 more" in many
    assert r"- 0\n.py" in many


def test_no_text_drives_a_terminal() -> None:
    assert show_text("a\u202eb\x07é") == r"a\u202eb\x07é"
