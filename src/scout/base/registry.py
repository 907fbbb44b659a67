"""Registries that are read off the modules which define their classes, so that nothing is listed twice."""

import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def classes_in(
    modules: Iterable[ModuleType], base: type[T], is_entry: Callable[[type[T]], bool]
) -> tuple[type[T], ...]:
    """The subclasses of `base` in these modules that `is_entry` accepts, in the order of the files."""
    return tuple(
        found
        for module in modules
        for found in vars(module).values()
        if inspect.isclass(found)
        and issubclass(found, base)
        and found.__module__ == module.__name__
        and is_entry(found)
    )
