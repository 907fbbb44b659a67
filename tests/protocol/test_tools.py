"""Which roles have which tools."""

from scout.protocol.tools import list_roles


def test_a_tool_is_listed_for_its_roles() -> None:
    assert list_roles("whoami") == ("worker", "dev", "tl", "host")
    assert list_roles("sessions_start") == ("host",)
    assert list_roles("no_such_tool") == ()
