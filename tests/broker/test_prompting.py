"""The contract that a program gets with each turn: whose it is, what is at hand, what it may use."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import astuple

from scout.adapters.echo import Echo
from scout.identity.reserved import HARNESSES
from scout.model.agent import ToolRole
from scout.policy.prompt import LIMIT, SYNTAX
from scout.ports import HarnessEvent, Prompt, SessionSpec
from scout.protocol.agents import ConfigureAgent
from scout.protocol.asks import MakeAsk
from scout.protocol.insight import ShowUsage
from scout.protocol.operations import OPERATIONS
from scout.protocol.questions import CreateQuestion
from scout.protocol.tools import ROLE_TOOLS
from scout.protocol.work import CreateWork
from tests.broker.rig import Rig, staged
from tests.broker.stage import program, set_up, until


class Heard(Echo):
    """Any harness that takes prompts: it keeps what it was told."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.prompts: list[Prompt] = []

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        self.prompts.append(prompt)
        async for event in super().deliver(spec, prompt):
            yield event


@pytest.mark.rows("R3.6-1", "R3.6-12")
@pytest.mark.parametrize("name", [one for one in HARNESSES if one not in ("command", "echo")])
def test_every_harness_that_takes_prompts_gets_the_contract(name: str, tmp_path: Path) -> None:
    heard = Heard(name)

    async def scene(rig: Rig) -> None:
        await rig.register("bow", harness=name)
        item = await rig.operator(CreateWork(title="Fix the parser", owner_id="@bow"))
        await until(lambda: heard.prompts)
        heard.prompts.clear()
        asked = await rig.operator(MakeAsk(to="@bow", body="Please\nfix it.", work_item_id=item.id, wait=20))
        (prompt,) = heard.prompts
        text = prompt.text
        assert text.startswith("# Scout contract\n")
        assert f"You are @bow (path /ada/agent/bow, role dev) in {name}, session ses_" in text
        assert f"Ask {asked.ask_id}, flight {asked.flight_id}. Question none." in text
        assert f"Work item {item.id} (Fix the parser): " in text
        assert "owner @bow, next move @bow." in text
        assert "\n> Please\n> fix it.\n" in text
        tools = "the `scout` command" if name == "tmux" else ", ".join(ROLE_TOOLS[ToolRole.DEV])
        assert f"\nTools: {tools}. Resources:" in text
        assert prompt.body == "Please\nfix it."
        usage = (await rig.operator(ShowUsage(agent="@bow"))).totals
        assert usage["protocol_overhead"].counters.dispatch_attempts == 2
        assert usage["protocol_overhead"].totals.total_tokens > 800

    set_up(scene, tmp_path, harnesses={name: heard})


def test_a_question_is_named_and_the_tools_are_those_of_the_role(tmp_path: Path) -> None:
    heard = Heard("claude")

    async def scene(rig: Rig) -> None:
        await rig.register("bow", harness="claude")
        await rig.operator(ConfigureAgent(address="@bow", tool_role=ToolRole.WORKER))
        question = await rig.operator(CreateQuestion(to="@bow", body="Which port?"))
        (prompt,) = await until(lambda: heard.prompts)
        assert f"Question {question.id}. Work item none." in prompt.text
        assert f"\nTools: {', '.join(ROLE_TOOLS[ToolRole.WORKER])}. Resources:" in prompt.text

    set_up(scene, tmp_path, harnesses={"claude": heard})


@staged
async def test_a_program_finds_the_contract_in_its_environment(rig: Rig) -> None:
    await rig.register("told", command=program(rig.home, "told", 'printf "%s" "$SCOUT_CONTRACT"'))
    asked = await rig.operator(MakeAsk(to="@told", body="secret words", wait=20))
    assert asked.output is not None
    assert asked.output.startswith("# Scout contract\n")
    assert "secret words" not in asked.output
    assert "Tools: the `scout` command. Resources:" in asked.output
    assert f"flight {asked.flight_id}" in asked.output
    assert len(asked.output) < LIMIT


@pytest.mark.parametrize("call", re.findall(r"`scout (.*?)`", " ".join(astuple(SYNTAX["command"]))))
def test_the_commands_of_the_contract_are_commands(call: str) -> None:
    words = [word for word in call.split() if word.islower() and not word.startswith("-")]
    operation = OPERATIONS.get(".".join(words[:2])) or OPERATIONS[words[0]]
    taken = {one.option for one in operation.parameters if not one.positional}
    assert {word for word in call.split() if word.startswith("--")} <= taken
    given = [word for word in call.split() if word.isupper()]
    needed = [one for one in operation.parameters if one.required]
    assert len(given) >= len(needed)
