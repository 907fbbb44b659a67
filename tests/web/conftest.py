"""One daemon for the tests of the page: each uses names that no other uses."""

from tests.surface.conftest import site as site  # noqa: PLC0414 (a fixture under its own name)
