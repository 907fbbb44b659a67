"""Whose text a turn's last text is."""

import pytest

from scout.model.session import LiveTurn
from scout.policy.live_turn import TurnStep, choose_step


@pytest.mark.parametrize(
    ("turn", "text", "step"),
    [
        (LiveTurn(alone_for="flt_1"), "It is 4.", TurnStep.REPLY),
        (LiveTurn(alone_for="flt_1"), " \n", TurnStep.REMIND),
        (LiveTurn(alone_for="flt_2"), "It is 4.", TurnStep.REMIND),
        (LiveTurn(), "It is 4.", TurnStep.REMIND),
        (LiveTurn(reminded=("flt_1",)), "It is 4.", TurnStep.WAIT),
        (LiveTurn(alone_for="flt_1", reminded=("flt_1",)), "It is 4.", TurnStep.REPLY),
    ],
)
def test_only_the_text_of_a_turn_that_the_ask_alone_began_is_its_answer(
    turn: LiveTurn, text: str, step: TurnStep
) -> None:
    assert choose_step(turn, "flt_1", text) is step
