"""Registries built from the modules that define their classes, so that no class is listed twice."""

import inspect
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TypeVar

T = TypeVar("T")


def list_classes(
    modules: Iterable[ModuleType], base: type[T], is_entry: Callable[[type[T]], bool]
) -> tuple[type[T], ...]:
    """Return the subclasses of `base` in these modules that `is_entry` accepts, in source order."""
    return tuple(
        found
        for module in modules
        for found in vars(module).values()
        if inspect.isclass(found)
        and issubclass(found, base)
        and found.__module__ == module.__name__
        and is_entry(found)
    )
