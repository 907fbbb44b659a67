"""Asking from anywhere: completion, the receipt at once, and refusals whose remedies run."""

import pytest

from tests.tui.stage import Fleet, Stage, play


@pytest.mark.rows("R4.4t-7")
def test_an_ask_is_composed_with_completion_and_followed(fleet: Fleet) -> None:
    fleet.register("echo-one", harness="echo")

    async def scene(stage: Stage) -> None:
        await stage.press("c")
        await stage.shows("Ask", "Enter sends")
        await stage.type("@echo-o")
        await stage.shows("▌○ @echo-one")
        await stage.press("tab")
        await stage.shows("▌ @echo-one")
        await stage.press("tab")
        await stage.type("hello [b]you[/b]")
        await stage.press("ctrl+j")
        await stage.type("and more")
        await stage.press("enter")
        await stage.shows("✓ completed", "Answer", "│ hello [b]you[/b]", "│ and more")

    play(fleet.shell, scene)


def test_a_draft_is_kept_until_it_is_sent(fleet: Fleet) -> None:
    async def scene(stage: Stage) -> None:
        await stage.press("c")
        await stage.shows("Enter sends")
        await stage.type("@nobody-here")
        await stage.press("enter")
        await stage.type("a long thought")
        await stage.press("escape")
        await stage.hides("Enter sends")
        await stage.press("c")
        await stage.shows("@nobody-here", "a long thought")

    play(fleet.shell, scene)


@pytest.mark.rows("R4.4t-8")
def test_a_refusal_shows_its_remedies_and_a_number_runs_one(fleet: Fleet) -> None:
    fleet.register("hubert", harness="echo")

    async def scene(stage: Stage) -> None:
        await stage.press("c")
        await stage.shows("Enter sends")
        await stage.type("@hubertt")
        await stage.hides("@hubert ")
        await stage.press("enter")
        await stage.type("Good evening.")
        await stage.press("enter")
        screen = await stage.shows("Refused: unknown_target", "scout ask @hubert 'Good evening.'")
        line = next(line for line in screen.splitlines() if "scout ask @hubert" in line)
        await stage.press(line.strip("│ ")[0])
        await stage.shows("✓ completed", "│ Good evening.")

    play(fleet.shell, scene)


@pytest.mark.rows("R4.4t-10")
def test_a_conversation_takes_asks_and_messages(fleet: Fleet) -> None:
    fleet.register("chatty", harness="echo")
    conversation = fleet.ask("@chatty", "first words")["conversationId"]

    async def scene(stage: Stage) -> None:
        stage.app.show_record(conversation)
        await stage.shows("│ first words", "Enter sends an ask")
        await stage.type("second words for @chat")
        await stage.press("tab")
        await stage.shows("for @chatty")
        await stage.press("enter")
        await stage.until(lambda: stage.screen.count("│ second words for @chatty") == 2)
        await stage.press("ctrl+t")
        await stage.shows("Enter sends a message")
        await stage.type("just so you know")
        await stage.press("enter")
        await stage.shows("│ just so you know", "Sent.")

    play(fleet.shell, scene)
    assert fleet.call("GET", f"/v1/conversations/{conversation}")["unread"] == 0


def test_ctrl_k_finds_agents_flights_and_verbs(fleet: Fleet) -> None:
    fleet.register("findme", harness="echo")
    fleet.ask("@findme", "An unusual zebra.")

    async def scene(stage: Stage) -> None:
        await stage.press("ctrl+k")
        await stage.type("zebra")
        await stage.shows("▌✓", "An unusual zebra.")
        await stage.press("enter")
        await stage.shows("Timeline", "│ An unusual zebra.")
        await stage.press("ctrl+k")
        await stage.type("findme")
        await stage.shows("▌● ", "@findme")
        await stage.press("enter")
        await stage.shows("Feed", "/me/agent/findme")
        await stage.press("ctrl+k")
        await stage.type("list the keys")
        await stage.shows("▌?")
        await stage.press("enter")
        await stage.shows("Keys", "Ctrl-K")

    play(fleet.shell, scene)
