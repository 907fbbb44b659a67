"""Machines of a mesh while the network between them, a daemon or the server fails: nothing is lost or doubled."""

import re
import time
from collections.abc import Generator

import pytest

from tests.daemon.daemons import eventually
from tests.stories.mesh_network import Fleet, clustered_fleet, fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
_BUSY = 5.0  # seconds that a busy machine may take longer


@pytest.fixture(scope="module")
def shared() -> Generator[Fleet]:
    """One mesh for all tests of a worker: each leaves it whole."""
    with fleet() as found:
        yield found


@pytest.fixture
def pair(shared: Fleet) -> Generator[Fleet]:
    yield shared
    shared.heal()


@pytest.mark.rows("R8.f-1")
def test_a_cut_connection_is_noticed_and_everything_is_whole_again(pair: Fleet) -> None:
    one, two = pair.machines
    with pair.talking(5):
        cut = time.time()
        two.host.cut()
        noticed = [one.time_of_loss("two") - cut, two.time_of_loss("one") - cut]
    waiting = pair.ask(one, two)
    two.host.heal()
    healed = one.time_until("two", "online"), two.time_until("one", "online")
    pair.settle()
    pair.check()
    assert max(noticed) < 5, noticed
    assert max(healed) < 5 + _BUSY, healed
    assert "node two" in one.say("why", waiting)


@pytest.mark.rows("R8.f-1")
def test_a_fifth_of_all_packets_lost_loses_nothing(pair: Fleet) -> None:
    _, two = pair.machines
    two.host.lose(0.2)
    with pair.talking(10):
        pass
    pair.settle()
    pair.check()


@pytest.mark.rows("R8.f-1")
def test_repeated_and_reordered_envelopes_take_effect_once_and_in_order(pair: Fleet) -> None:
    with pair.repeating(), pair.talking(10):
        pass
    pair.settle()
    pair.check()


@pytest.mark.rows("R8.f-1")
def test_a_slow_connection_loses_nothing(pair: Fleet) -> None:
    _, two = pair.machines
    two.host.slow()
    with pair.talking(10):
        pass
    pair.settle()
    pair.check()


@pytest.mark.rows("R8.f-1")
def test_a_killed_daemon_loses_and_doubles_nothing(pair: Fleet) -> None:
    for machine in pair.machines:
        with pair.talking(10):
            machine.kill()
            machine.start()
        pair.settle()
    pair.check()


@pytest.mark.rows("R8.f-1", "R8.s-2")
def test_a_killed_server_is_started_again(pair: Fleet) -> None:
    one, two = pair.machines
    with pair.talking(10):
        one.kill_server()
    pair.settle()
    assert one.time_until("two", "online") < 15
    assert two.time_until("one", "online") < 15
    pair.check()


@pytest.mark.rows("R8.c-1")
def test_clocks_that_are_hours_apart_and_put_right_change_nothing(pair: Fleet) -> None:
    one, two = pair.machines
    two.kill()
    one.time_until("two", "unreachable")
    one.set_clock(-5)
    two.set_clock(6)
    two.start()
    with pair.talking(6):
        one.time_until("two", "online")
    pair.settle()
    with pair.talking(6):
        two.host.cut()
        pair.send(two, one)
        two.kill()
        two.set_clock(0)
        two.start()  # with mail from the future that waits to be sent
        pair.send(two, one)
        one.time_until("two", "unreachable")
    two.host.heal()
    assert two.time_until("one", "online") < 15
    assert one.time_until("two", "online") < 15
    pair.settle()
    pair.check()


@pytest.mark.rows("R8.f-1")
def test_a_cluster_that_loses_a_server_loses_nothing() -> None:
    with clustered_fleet() as (pair, servers):
        one, two = pair.machines
        pair.talk(one, two, 1)
        pair.settle()
        leaders = servers.find_leaders()
        assert len(leaders) >= 5, "three buckets and a stream for each machine"
        with pair.talking(10):
            servers.kill(max(leaders, key=leaders.count))
        pair.settle()
        pair.check()


@pytest.mark.rows("R8.j-8")
def test_a_machine_that_has_not_synced_for_five_minutes_says_so(pair: Fleet) -> None:
    one, two = pair.machines
    two.host.cut()
    eventually(lambda: "not connected" in two.say("mesh", "status"))
    assert "out of date" not in two.say("mesh", "status")
    two.set_clock(0.1)  # six minutes later
    assert re.search(r"out of date: not synced since \d", two.say("mesh", "status"))
    two.set_clock(0)
    two.host.heal()
    one.time_until("two", "online")
    assert "out of date" not in two.say("mesh", "status")
