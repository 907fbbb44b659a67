"""Which roles have which tools."""

from scout.protocol.tools import roles_with


def test_a_tool_is_listed_for_its_roles() -> None:
    assert roles_with("whoami") == ("worker", "dev", "tl", "host")
    assert roles_with("sessions_start") == ("host",)
    assert roles_with("no_such_tool") == ()
