"""What a person and an agent see of a mesh: the node of every remote agent, and how far things have come."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from scout.daemon.start import find_running
from tests.daemon.daemons import Daemon, eventually
from tests.stories.mesh_machines import Machine, two_machines
from tests.surface.site import Agent, Site
from tests.tui.stage import Stage, play
from tests.web.visitor import Visitor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
COLUMNS = {"COLUMNS": "80"}


class Pair:
    """The machine at which the person sits, and the other one, with an agent each."""

    def __init__(self, one: Machine, two: Machine) -> None:
        self.one, self.two = one, two
        running = find_running(str(one.home))
        assert running is not None
        self.site = Site(one, Daemon(one.home, running))
        two.say("agent", "register", "hudson", "--harness", "echo", "--config", "description=reviews code")
        self.arc = Agent(self.site, one.data("agent", "register", "arc"))
        one.knows("@hudson")
        two.knows("@arc")

    def page(self, path: str) -> str:
        """A document of the page as text."""
        visitor = Visitor(self.site)
        visitor.enter()
        return re.sub(r"<[^>]+>", "", visitor.get(path).body.decode())


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Generator[Pair]:
    folder: Path = tmp_path_factory.mktemp("mesh")
    with two_machines(folder) as (one, two):
        yield Pair(one, two)


@pytest.mark.rows("R8.e-3", "R8.v-1")
def test_every_command_names_the_node_of_a_remote_agent(pair: Pair) -> None:
    one = pair.one
    listed = one.say("who", "--all-nodes", **COLUMNS)
    assert re.search(r"^AGENT +NODE +STATUS", listed, re.MULTILINE), listed
    assert re.search(r"^@hudson +two +online|offline", listed, re.MULTILINE), listed
    assert max(map(len, listed.splitlines())) <= 80
    assert "NODE" not in one.say("who", **COLUMNS)
    shown = one.say("show", "@hudson")
    assert shown.startswith("@hudson on two\n"), shown
    sent = one.type("send", "@hudson", "hello over there")
    assert re.match(r"sent msg_\w+ to @hudson on two \(", sent.stdout), sent.stdout
    assert "@hudson: the message waits to be sent to node two" in sent.stderr
    asked = one.say("ask", "@hudson", "how are you?", "--no-wait")
    flight = re.findall(r"flt_\w+", asked)[0]
    assert asked.startswith("asked @hudson on two: ")
    one.find_flight(flight, "completed")
    told = one.say("flight", "get", flight)
    assert "@hudson on two" in told
    assert re.search(r"on its way +the ask was (accepted by|delivered on) node two", told), told
    assert "@hudson on two" in one.say("flight", "list")
    assert "@hudson on two" in one.say()
    log = one.say("log", "--limit", "200")
    assert "you → @hudson on two: how are you?" in log
    assert "two joined the mesh" in log
    assert "ask was accepted by node two" in log
    assert "message from node" in pair.two.say("log", "--limit", "200")


@pytest.mark.rows("R8.v-1")
def test_mail_from_another_node_says_so(pair: Pair) -> None:
    pair.two.say("send", "@arc", "from the other side", "--as", "@hudson")
    found: Any = eventually(lambda: pair.arc.get("/v1/inbox")["items"])
    assert (found[0]["sender"], found[0]["senderNode"]) == ("@hudson", "two")
    assert "@hudson on two says" in pair.one.say("inbox", "--as", "@arc")
    inbox = pair.arc.tool("messages_inbox")
    assert inbox["items"][0]["node"] == "two"


@pytest.mark.rows("R8.v-2")
def test_an_agent_sees_the_node_through_mcp(pair: Pair) -> None:
    asked = pair.arc.result("ask", to="@hudson", body="by mcp")
    assert " on two; next: invocations_wait" in asked.content[0].text
    flight = asked.structured_content["flightId"]
    pair.one.find_flight(flight, "completed")
    assert pair.arc.tool("invocations_get", flightId=flight)["node"] == "two"
    sent = pair.arc.result("messages_send", to="@hudson", body="by mcp")
    assert "waits to be sent to node two" in sent.content[0].text


@pytest.mark.rows("R8.e-3", "R8.v-3", "R8.v-5")
def test_the_page_shows_the_same(pair: Pair) -> None:
    one = pair.one
    agents = pair.page("/agents")
    assert "@hudson on two" in agents
    agent = pair.page("/agents/@hudson")
    assert "Its sessions, settings and programs are on two. Run these there:" in agent
    assert "scout open @hudson.node:two" in agent
    assert ">Retire<" not in agent
    flight = one.data("ask", "@hudson", "for the page", "--no-wait")
    one.find_flight(flight["flightId"], "completed")
    shown = pair.page(f"/flights/{flight['flightId']}")
    assert "@hudson on two" in shown
    assert re.search(r"The ask was (accepted by|delivered on) node two\.", shown), shown
    assert f"scout diff {flight['flightId']}" in shown
    talk = pair.page(f"/conversations/{flight['conversationId']}")
    assert "@hudson on two" in talk
    mesh = pair.page("/mesh")
    for words in ("(here, founder)", "two", "nothing waits", "connected", "nats-server"):
        assert words in mesh, words
    on_two = re.sub(r"<[^>]+>", "", _read_page(pair.two, "/mesh"))
    assert f"Machines are invited and removed on {one.data('status')['node']}." in on_two


def _read_page(machine: Machine, path: str) -> str:
    running = find_running(str(machine.home))
    assert running is not None
    visitor = Visitor(Site(machine, Daemon(machine.home, running)))
    visitor.enter()
    return visitor.get(path).body.decode()


@pytest.mark.rows("R8.v-4", "R8.v-5")
def test_the_terminal_application_shows_the_same(pair: Pair) -> None:
    one = pair.one
    flight = one.data("ask", "@hudson", "for the terminal", "--no-wait")
    one.find_flight(flight["flightId"], "completed")

    async def scene(stage: Stage) -> None:
        await stage.shows("0 Mesh")
        await stage.press("0")
        await stage.shows("Machines  2", "two", "online · 1 agent · nothing waits", "(here, founder)")
        await stage.press("j", "j", "x")
        await stage.shows("Remove two from the mesh?")
        await stage.press("escape", "plus")
        await stage.shows("Invite a machine: its name")
        await stage.type("third")
        await stage.press("enter")
        await stage.shows("Run this on the other machine.", "scout mesh join")
        await stage.press("escape", "3")
        await stage.shows("@hudson on two")
        await stage.press("4")
        await stage.shows("@hudson on two", "for the terminal")
        stage.app.show_record(flight["flightId"])
        await stage.shows("the ask was", "node two")
        await stage.press("d")
        await stage.shows("It runs on two. Run it there: scout diff")

    play(one, scene)


def _find_waiting(shown: str) -> str | None:
    return shown if "oldest" in shown else None


@pytest.mark.rows("R8.d-3")
def test_a_machine_that_is_away_is_named_everywhere(pair: Pair) -> None:
    one, two = pair.one, pair.two
    two.stop()
    one.sees("two", "unreachable")
    now = one.say()
    assert re.search(r"two is unreachable since \d\d:\d\d UTC\.", now), now
    assert "scout mesh nodes" in now
    assert "note: node two is unreachable since" in one.type("show", "@hudson").stderr
    sent = one.type("send", "@hudson", "for later")
    assert "sent when the node is back" in sent.stderr
    shown = eventually(lambda: _find_waiting(one.say("mesh", "nodes", **COLUMNS)))
    assert re.search(r"^two +unreachable +1 +1, oldest (now|\d+\w+ ago) ", shown, re.MULTILINE), shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "not reachable: two" in one.say("status")
    page = pair.page("/mesh")
    assert "unreachable since" in page
    assert "1 not confirmed, the oldest" in page
    assert "two is unreachable since" in pair.page("/")
    two.start()
    one.sees("two", "online")
    assert "two is back" in one.say("log", "--limit", "200")
