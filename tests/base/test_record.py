import msgspec
import pytest

from scout.base.codec import to_plain
from scout.base.record import Record


class Door(Record):
    door_name: str = "front"
    is_open: bool


class Gate(Door):
    lock_code: int


def test_a_record_is_frozen() -> None:
    with pytest.raises(AttributeError):
        Door(is_open=True).is_open = False  # pyright: ignore[reportAttributeAccessIssue] (that is the test)


def test_a_record_takes_only_keywords_also_in_a_subclass() -> None:
    with pytest.raises(TypeError):
        Door(True)  # pyright: ignore[reportCallIssue] (that is the test)
    with pytest.raises(TypeError):
        Gate("front", True, 5)  # pyright: ignore[reportCallIssue] (that is the test)


def test_a_required_field_may_follow_an_optional_one() -> None:
    assert Gate(is_open=True, lock_code=5) == Gate(door_name="front", is_open=True, lock_code=5)


def test_names_are_camel_case_on_the_wire() -> None:
    assert to_plain(Gate(is_open=True, lock_code=5)) == {"doorName": "front", "isOpen": True, "lockCode": 5}


def test_a_class_may_still_choose_its_own_options() -> None:
    class Positional(Record, kw_only=False):
        size: int

    assert msgspec.structs.astuple(Positional(3)) == (3,)  # pyright: ignore[reportCallIssue] (not seen by it)
