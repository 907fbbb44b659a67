"""A pytest plugin for `bench.mutants`: mutmut reads a private name that this pytest no longer has."""

import pytest

if not hasattr(pytest.Item, "_nodeid"):
    setattr(pytest.Item, "_nodeid", property(lambda item: item.nodeid))  # noqa: B010 (not a declared name)
