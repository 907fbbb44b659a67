from scout.policy.queue import (
    PATIENCE,
    Queued,
    describe_place,
    describe_place_behind_target,
    format_ordinal,
    order_queue,
)


def names(waiting: list[Queued], now: float) -> list[str]:
    return [one.id for one in order_queue(waiting, now)]


def test_a_person_comes_first_and_then_the_longest_wait() -> None:
    waiting = [
        Queued(id="late", since=3),
        Queued(id="person", since=4, person=True),
        Queued(id="early", since=1),
        Queued(id="other person", since=5, person=True),
    ]
    assert names(waiting, 6) == ["person", "other person", "early", "late"]


def test_nobody_is_passed_over_for_more_than_a_minute() -> None:
    waiting = [Queued(id="agent", since=0), Queued(id="person", since=PATIENCE - 1, person=True)]
    assert names(waiting, PATIENCE - 0.5) == ["person", "agent"]
    assert names(waiting, PATIENCE) == ["agent", "person"]


def test_a_place_is_said_as_people_count() -> None:
    said = [format_ordinal(number) for number in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)]
    assert said == ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th"]
    assert describe_place(3, 2) == "3rd in line: 2 turns run at once (limits.runningTurns)"
    assert describe_place_behind_target(1) == "1st in line: its target works on another turn"
