"""Registries that are read off modules."""

from types import ModuleType

from scout.base.registry import list_classes


def _module(name: str, source: str) -> ModuleType:
    module = ModuleType(name)
    exec(source, vars(module))
    return module


class Base:
    named = ""


SOURCE = """
class First(Base):
    named = "first"
class Between(Base): ...
class Second(Between):
    named = "second"
class Unrelated:
    named = "other"
text = "no class"
"""


def test_a_registry_holds_the_entries_of_its_modules_in_their_order() -> None:
    one = _module("one", f"from {__name__} import Base\n{SOURCE}")
    two = _module("two", f"from {__name__} import Base\nclass Third(Base):\n    named = 'third'\n")
    vars(two)["First"] = vars(one)["First"]  # imported there, and defined elsewhere
    found = list_classes((two, one), Base, lambda entry: bool(entry.named))
    assert [entry.__name__ for entry in found] == ["Third", "First", "Second"]
