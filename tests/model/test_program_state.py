"""What a program does in one word: from its endpoint's state, or from what was seen on its screen."""

import pytest
from msgspec.structs import replace

from scout.base.time import Time
from scout.model.endpoint import (
    Endpoint,
    EndpointState,
    ProgramState,
    Transport,
    choose_program_state,
    get_program_state,
    observe_program,
)

NOW = Time(1_000_000_000_000)
HELD = Endpoint(
    id="ept_1",
    created_at=NOW,
    updated_at=NOW,
    agent_id="agt_1",
    node="vm",
    transport=Transport.PROCESS,
    held=True,
)


@pytest.mark.parametrize(
    ("state", "does"),
    [
        (EndpointState.IDLE, "idle"),
        (EndpointState.WORKING, "working"),
        (EndpointState.UNREACHABLE, "unknown"),
        (EndpointState.STALE, "unknown"),
        (EndpointState.WAKING, None),
        (EndpointState.STOPPED, None),
    ],
)
def test_the_state_of_an_endpoint_says_what_its_program_does(state: EndpointState, does: str | None) -> None:
    assert get_program_state(replace(HELD, state=state), NOW) == does


def test_a_silent_program_is_unknown() -> None:
    silent = replace(HELD, held=False, state=EndpointState.WORKING, last_seen=NOW)
    assert get_program_state(silent, NOW.plus(10)) is ProgramState.WORKING
    assert get_program_state(silent, NOW.plus(1000)) is ProgramState.UNKNOWN


def test_what_was_seen_on_the_screen_counts_more() -> None:
    idle = replace(HELD, state=EndpointState.IDLE)
    seen = observe_program(idle, ProgramState.WORKING, NOW.plus(1))
    assert get_program_state(seen, NOW.plus(1)) is ProgramState.WORKING
    assert (seen.revision, seen.updated_at) == (idle.revision + 1, NOW.plus(1))


def test_of_several_programs_the_one_that_needs_a_person_is_told_first() -> None:
    idle, working, waiting, unknown = (
        ProgramState.IDLE,
        ProgramState.WORKING,
        ProgramState.WAITING,
        ProgramState.UNKNOWN,
    )
    assert choose_program_state([idle, unknown, None]) is unknown
    assert choose_program_state([idle, working, unknown]) is working
    assert choose_program_state([working, waiting]) is waiting
    assert choose_program_state([None]) is None
