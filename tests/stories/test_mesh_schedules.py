"""Random faults, one after the other, while all machines of a mesh talk: nothing is lost, doubled or out of order.

A schedule follows from its seed, which a failed test prints. `./dev soak` plays a hundred of them.
"""

import random
from collections.abc import Callable, Generator
from contextlib import ExitStack

import pytest

from tests.seeds import run_seed
from tests.soak import Soaked
from tests.stories.mesh_network import Fleet, NetworkMachine, fleet

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]
_FAULTS = 4  # of one schedule
_MESSAGES = 8  # from each machine to each other
_SOAK = 100


class Schedule:
    """The faults of one seed."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self._fleet = fleet
        self._chance = random.Random(seed)
        self.played: list[str] = []

    def play(self) -> None:
        with ExitStack() as stack:
            if self._chance.random() < 0.3:
                self.played.append("repeat")
                stack.enter_context(self._fleet.repeating())
            with self._fleet.talking(_MESSAGES):
                for _ in range(_FAULTS):
                    self._cause_fault()
        self._fleet.heal()
        self.played.append(f"settled in {self._fleet.settle():.1f} s")
        self._fleet.check()

    def _cause_fault(self) -> None:
        machine = self._chance.choice(self._fleet.machines)
        faults: tuple[Callable[[NetworkMachine], None], ...] = (
            self._cut,
            self._lose,
            self._slow,
            self._kill,
            self._kill,
            self._kill_server,
            self._skew,
        )
        fault = self._chance.choice(faults)
        self.played.append(f"{fault.__name__.strip('_')} {machine.name}")
        fault(machine)
        if self._chance.random() < 0.5:
            machine.host.heal()

    def _cut(self, machine: NetworkMachine) -> None:
        machine.host.cut()
        if self._chance.random() < 0.5:
            other = next(one for one in self._fleet.machines if one is not machine)
            other.time_until(machine.name, "unreachable")

    def _lose(self, machine: NetworkMachine) -> None:
        machine.host.lose(self._chance.choice((0.1, 0.2, 0.4)))

    def _slow(self, machine: NetworkMachine) -> None:
        machine.host.slow()

    def _kill(self, machine: NetworkMachine) -> None:
        machine.kill()
        machine.start()

    def _kill_server(self, _: NetworkMachine) -> None:
        self._fleet.machines[0].kill_server()

    def _skew(self, machine: NetworkMachine) -> None:
        machine.set_clock(self._chance.choice((-7, -1, 1, 7)))


@pytest.fixture(scope="module")
def shared() -> Generator[Fleet]:
    """One mesh for all schedules of a worker, so that each follows the damage of those before it."""
    with fleet() as found:
        yield found


@pytest.mark.rows("R8.f-1")
@pytest.mark.parametrize("number", range(5))
def test_a_random_schedule_of_faults_loses_and_doubles_nothing(shared: Fleet, number: int) -> None:
    seed = run_seed() + number
    schedule = Schedule(shared, seed)
    try:
        schedule.play()
    finally:
        shared.heal()
        print(f"seed {seed}: {', '.join(schedule.played)}")


@pytest.mark.soak
@pytest.mark.timeout(14_400)
def test_a_hundred_random_schedules_lose_and_double_nothing(soaked: Soaked) -> None:
    faults = 0
    for first in range(0, _SOAK, 10):  # a log is read again and again: a new mesh keeps it short
        with fleet(2 + first // 10 % 2) as found:
            for seed in range(run_seed() + first, run_seed() + first + 10):
                schedule = Schedule(found, seed)
                try:
                    schedule.play()
                finally:
                    print(f"seed {seed}: {', '.join(schedule.played)}", flush=True)
                faults += _FAULTS
        soaked(schedules=first + 10, faults=faults)
