"""Which runs and pictures are removed when they take too much room."""

from hypothesis import given
from hypothesis import strategies as st

from scout.policy.disk import StoredFolder, choose_removals


def folder(name: str, ended: float | None, size: int = 10) -> StoredFolder:
    return StoredFolder(session_id="ses_1", name=name, size=size, ended=ended)


def test_the_oldest_ended_ones_go_first_and_no_more_than_must() -> None:
    stored = [folder("c", 3.0), folder("a", 1.0), folder("b", 2.0), folder("d", None)]
    assert [one.name for one in choose_removals(stored, 25, lambda _: False)] == ["a", "b"]
    assert choose_removals(stored, 40, lambda _: False) == ()


def test_live_and_needed_ones_stay_whatever_the_cap() -> None:
    stored = [folder("a", 1.0), folder("b", None), folder("c", 2.0)]
    assert [one.name for one in choose_removals(stored, 0, lambda one: one.name == "a")] == ["c"]


@given(
    st.lists(st.tuples(st.none() | st.floats(0, 9), st.integers(0, 50)), max_size=8),
    st.integers(0, 300),
)
def test_the_cap_holds_or_nothing_ended_is_left(made: list[tuple[float | None, int]], cap: int) -> None:
    stored = [folder(str(number), ended, size) for number, (ended, size) in enumerate(made)]
    gone = choose_removals(stored, cap, lambda _: False)
    left = [one for one in stored if one not in gone]
    assert sum(one.size for one in left) <= cap or all(one.ended is None for one in left)
    assert all(one.ended is not None for one in gone)
