"""From nothing to the first decision on a phone: docs/how-to/chat.md with a real homeserver and a client library."""

import json
from collections.abc import Iterator

import pytest

from tests.connectors.synapse import Synapse, require_synapse
from tests.live.machine import Machine, a_machine
from tests.live.terminals import tmux_here
from tests.stories.matrix_client import MatrixPhone, a_matrix_phone
from tests.stories.panes import a_pane

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COMMAND = "dd if=/dev/null of=made"


@pytest.fixture(scope="module")
def synapse() -> Iterator[Synapse]:
    server = Synapse(require_synapse())
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.mark.rows(
    "R9.connectors-3", "R9.connectors-4", "R9.out-3", "R9.out-6", "R9.keys-7", "R9.in-2", "R9.in-3"
)
def test_from_nothing_to_the_first_decision_on_my_phone(synapse: Synapse) -> None:
    tmux_here()
    bot, _ = synapse.register("scout")
    person, _ = synapse.register("ada")
    with a_machine("claude") as machine, a_matrix_phone(synapse.url, person, "pw-ada") as phone:
        connect(machine, synapse, phone, bot)
        decide(machine, phone)
        ask(machine, phone)


def connect(machine: Machine, synapse: Synapse, phone: MatrixPhone, bot: str) -> None:
    """Steps 1 to 3: the account of the bot, its values on a terminal, and the code in the chat."""
    with a_pane(machine, "connector", "add", "matrix") as pane:
        answers = {
            "URL of the homeserver": synapse.url,
            "Access token": "",
            "User of the bot": bot,
            "Password of the bot": "pw-scout",
            "Whose invitations": "",
        }
        for question, value in answers.items():
            pane.shows(question)
            pane.type(*([value] if value else []), "Enter")
        screen = pane.shows("waiting for the code")
        assert f"connected to matrix as {bot}" in screen
        assert "pw-scout" not in screen
        phone.open_chat(bot)
        phone.say(next(word for word in screen.split() if word.startswith("scout-")))
        pane.shows("a message is on its way to your chat")
        pane.shows("ended with 0")
    phone.shows("is linked to me")
    phone.shows("Scout is connected.")


def decide(machine: Machine, phone: MatrixPhone) -> None:
    """Steps 4 and 5: Claude Code asks before it acts, and one tap decides."""
    talkie = machine.repository("talkie", "claude")
    wish = json.dumps({"command": COMMAND, "description": "try"})
    flight = machine.ask(talkie, f"<<tool Bash {wish}>> <<say done>>")
    shown = phone.shows(COMMAND)
    assert not (talkie / "made").exists()
    phone.react(shown.event_id, "👍")
    assert machine.ended(flight)["output"] == "done"
    assert (talkie / "made").exists()
    phone.shows("Approved by /me/direct")
    assert machine.data("attention")["items"] == []
    assert "you resolved “Bash: dd" in machine.say("log", "--newest", "--limit", "200")


def ask(machine: Machine, phone: MatrixPhone) -> None:
    """An agent by its name, and the agent of the chat, which the only ready harness runs."""
    phone.say("@talkie <<say it turns voice notes into issues>>")
    phone.shows("it turns voice notes into issues")
    phone.say("<<say good morning>>")
    phone.shows("good morning")
    phone.say("/who")
    phone.shows("@talkie")
