"""Which agent and which method a path of A2A means."""

import pytest

from scout.a2a.address import CARDS, PATHS, parse_path


@pytest.mark.parametrize(
    ("method", "path", "agent", "route"),
    [
        ("POST", b"/a2a/me/agent/arc", "/me/agent/arc", "/"),
        ("POST", b"/a2a/me/agent/arc/", "/me/agent/arc", "/"),
        ("POST", b"/a2a/me/agent/arc/message:send", "/me/agent/arc", "/message:send"),
        ("POST", b"/a2a/me/agent/arc/message:stream", "/me/agent/arc", "/message:stream"),
        ("POST", b"/a2a/me/agent/arc/tasks/flt_1:cancel", "/me/agent/arc", "/tasks/flt_1:cancel"),
        ("POST", b"/a2a/me/agent/arc/tasks/flt_1:subscribe", "/me/agent/arc", "/tasks/flt_1:subscribe"),
        ("GET", b"/a2a/me/agent/arc/tasks/flt_1:subscribe", "/me/agent/arc", "/tasks/flt_1:subscribe"),
        ("GET", b"/a2a/me/agent/arc/tasks/flt_1", "/me/agent/arc", "/tasks/flt_1"),
        ("GET", b"/a2a/me/agent/arc/tasks", "/me/agent/arc", "/tasks"),
        ("GET", b"/a2a/me/agent/arc/extendedAgentCard", "/me/agent/arc", "/extendedAgentCard"),
        (
            "DELETE",
            b"/a2a/me/agent/arc/tasks/flt_1/pushNotificationConfigs/2",
            "/me/agent/arc",
            "/tasks/flt_1/pushNotificationConfigs/2",
        ),
        # An agent may have any name.
        ("POST", b"/a2a/me/agent/tasks", "/me/agent/tasks", "/"),
        ("GET", b"/a2a/me/agent/tasks/tasks", "/me/agent/tasks", "/tasks"),
        ("GET", b"/a2a/me/agent/tasks/tasks/flt_1", "/me/agent/tasks", "/tasks/flt_1"),
        ("PUT", b"/a2a/me/agent/arc/tasks", "/me/agent/arc/tasks", "/"),
    ],
)
def test_a_path_names_an_agent_and_a_route(method: str, path: bytes, agent: str, route: str) -> None:
    assert PATHS.fullmatch(path)
    assert parse_path(method, path) == (agent, route)


def test_a_card_is_below_the_base_of_its_agent() -> None:
    found = CARDS.fullmatch(b"/a2a/me/agent/arc/sub/0/.well-known/agent-card.json")
    assert found is not None
    assert found[1] == b"/me/agent/arc/sub/0"
    assert not PATHS.fullmatch(b"/a2a/")
    assert not CARDS.fullmatch(b"/.well-known/agent-card.json")
