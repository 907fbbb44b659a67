"""The contract that a program gets with each turn: whose it is, what is at hand, what it may use."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import astuple

from scout.adapters.echo import Echo
from scout.identity.reserved import HARNESSES
from scout.model.agent import ToolRole
from scout.model.delivery import DeliveryState
from scout.model.events.envelope import get_record
from scout.model.usage import UsageLedger, ValueClass
from scout.policy.prompt import LIMIT, SYNTAX
from scout.ports import Capabilities, HarnessEvent, Prompt, SessionSpec
from scout.protocol.agents import ConfigureAgent
from scout.protocol.asks import MakeAsk
from scout.protocol.inbox import ListDeliveries
from scout.protocol.insight import ShowUsage
from scout.protocol.log import ReadLog
from scout.protocol.operations import OPERATIONS
from scout.protocol.questions import CreateQuestion
from scout.protocol.talk import Send
from scout.protocol.tools import ROLE_TOOLS
from scout.protocol.work import CreateWork
from tests.broker.rig import Rig, as_test, run_scene, wait_until, write_program


class Heard(Echo):
    """Any harness that takes prompts: it keeps what it was told."""

    capabilities = Capabilities(calls_back=True, starts_programs=False, calls_model=False)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.prompts: list[Prompt] = []
        self.specs: list[SessionSpec] = []

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        self.prompts.append(prompt)
        self.specs.append(spec)
        async for event in super().deliver(spec, prompt):
            yield event


@pytest.mark.rows("R3.6-1", "R3.6-12")
@pytest.mark.parametrize("name", [one for one in HARNESSES if one not in ("command", "echo")])
def test_every_harness_that_takes_prompts_gets_the_contract(name: str, tmp_path: Path) -> None:
    heard = Heard(name)

    async def scene(rig: Rig) -> None:
        await rig.register("bow", harness=name)
        item = await rig.operator(CreateWork(title="Fix the parser", owner_id="@bow"))
        await wait_until(lambda: heard.prompts)
        heard.prompts.clear()
        asked = await rig.operator(MakeAsk(to="@bow", body="Please\nfix it.", work_item_id=item.id, wait=20))
        (prompt,) = heard.prompts
        rules = heard.specs[-1].instructions
        assert rules.startswith("# Scout contract\n")
        assert f"You are @bow (path /ada/agent/bow, role dev) in {name}, session ses_" in rules
        tools = "the `scout` command" if name == "tmux" else ", ".join(ROLE_TOOLS[ToolRole.DEV])
        assert f"\nTools: {tools}. Resources:" in rules
        first = prompt.text.splitlines()[0]
        assert first.startswith("Scout: your user asks you. Conversation cnv_")
        assert f"Ask {asked.ask_id}, flight {asked.flight_id}." in first
        assert f"Work item {item.id} (Fix the parser): " in first
        assert "owner @bow, next move @bow." in first
        assert "\n> Please\n> fix it.\n" in prompt.text
        assert len(prompt.text) < 500
        assert prompt.body == "Please\nfix it."
        usage = (await rig.operator(ShowUsage(agent="@bow"))).totals
        assert usage["protocol_overhead"].counters.dispatch_attempts == 2
        assert usage["protocol_overhead"].totals.total_tokens > 600

    run_scene(scene, tmp_path, harnesses={name: heard}, exit_check="clean")


def test_a_question_is_named_and_the_tools_are_those_of_the_role(tmp_path: Path) -> None:
    heard = Heard("claude")

    async def scene(rig: Rig) -> None:
        await rig.register("bow", harness="claude")
        await rig.operator(ConfigureAgent(address="@bow", tool_role=ToolRole.WORKER))
        question = await rig.operator(CreateQuestion(to="@bow", body="Which port?"))
        (prompt,) = await wait_until(lambda: heard.prompts)
        assert f"Question {question.id}." in prompt.text
        rules = heard.specs[-1].instructions
        assert f"\nTools: {', '.join(ROLE_TOOLS[ToolRole.WORKER])}. Resources:" in rules

    run_scene(scene, tmp_path, harnesses={"claude": heard})


def test_what_an_agents_settings_say_is_part_of_its_contract(tmp_path: Path) -> None:
    heard = Heard("claude")

    async def scene(rig: Rig) -> None:
        await rig.register("bow", harness="claude")
        own = {"systemPrompt": "Answer in one sentence.", "workspaceDir": str(tmp_path)}
        await rig.operator(ConfigureAgent(address="@bow", config=own))
        await rig.operator(MakeAsk(to="@bow", body="x", wait=20))
        spec = heard.specs[-1]
        assert "Your user set for you:\n> Answer in one sentence.\n" in spec.instructions
        assert f"Your folder is {tmp_path}," in spec.instructions
        assert spec.cwd == str(tmp_path)

    run_scene(scene, tmp_path, harnesses={"claude": heard})


def test_mail_that_woke_nobody_rides_with_the_next_turn(tmp_path: Path) -> None:
    heard = Heard("claude")

    async def scene(rig: Rig) -> None:
        hudson = await rig.agent("hudson")
        await rig.register("bow", harness="claude")
        await hudson.call(Send(to="@bow", body="for your information"))
        await rig.operator(MakeAsk(to="@bow", body="Please.", wait=20))
        (prompt,) = heard.prompts
        assert prompt.text.index("> Please.") < prompt.text.index("> for your information")
        assert "@hudson writes:" in prompt.text
        await rig.operator(MakeAsk(to="@bow", body="Again.", wait=20))
        assert "information" not in heard.prompts[-1].text
        bow = await rig.operator(ListDeliveries(target="@bow"))
        assert {one.state for one in bow.items} == {DeliveryState.ACKED}

    run_scene(scene, tmp_path, harnesses={"claude": heard})


def test_a_message_of_the_user_rides_under_the_users_heading(tmp_path: Path) -> None:
    heard = Heard("claude")

    async def scene(rig: Rig) -> None:
        await rig.register("bow", harness="claude")
        await rig.operator(Send(to="@bow", body="use tabs"))
        await rig.operator(MakeAsk(to="@bow", body="Please.", wait=20))
        text = heard.prompts[-1].text
        assert "a message from your user" in text
        assert "Your user writes:\n> use tabs" in text
        assert "Mail from other agents" not in text

    run_scene(scene, tmp_path, harnesses={"claude": heard})


@as_test
async def test_mail_rides_with_a_plain_program_behind_its_message(rig: Rig) -> None:
    hudson = await rig.agent("hudson")
    await rig.register("cat", command=write_program(rig.home, "cat", "cat"))
    await rig.register("parrot", harness="echo")
    for name in ("@cat", "@parrot"):
        await hudson.call(Send(to=name, body="by the way"))
        first = (await rig.operator(MakeAsk(to=name, body="hello", wait=20))).output or ""
        assert first.startswith("hello\n\nMail from other agents")
        assert "> by the way" in first
        assert (await rig.operator(MakeAsk(to=name, body="hello", wait=20))).output == "hello"


@as_test
async def test_a_program_finds_the_contract_in_its_environment(rig: Rig) -> None:
    await rig.register("told", command=write_program(rig.home, "told", 'printf "%s" "$SCOUT_CONTRACT"'))
    asked = await rig.operator(MakeAsk(to="@told", body="secret words", wait=20))
    assert asked.output is not None
    assert asked.output.startswith("# Scout contract\n")
    assert "secret words" not in asked.output
    assert "Tools: the `scout` command. Resources:" in asked.output
    assert len(asked.output) < LIMIT + 200


@as_test
async def test_each_text_that_scout_adds_is_counted_by_its_worth(rig: Rig) -> None:
    hudson = await rig.agent("hudson")
    command = write_program(rig.home, "true", "cat")
    await rig.register("bow", command=command)
    await hudson.call(Send(to="@bow", body="by the way"))
    asked = await rig.operator(MakeAsk(to="@bow", body="one", wait=20))
    await rig.operator(MakeAsk(to="@bow", body="two", wait=20))
    log = await rig.operator(ReadLog(family="collab.usage.reported", limit=50))
    found = [get_record(one) for one in log.items]
    mine = [one for one in found if one.category is UsageLedger.PROTOCOL_OVERHEAD]
    worth = {one.value_class for one in mine if one.total_tokens}
    assert worth == {ValueClass.ONBOARDING, ValueClass.BOILERPLATE, ValueClass.WORK_CONTEXT}
    assert all(one.message_id and one.ask_id and one.flight_id for one in found)
    assert any(
        one.flight_id == asked.flight_id and one.category is UsageLedger.HARNESS_EXECUTION for one in found
    )


@pytest.mark.parametrize("call", re.findall(r"`scout (.*?)`", " ".join(astuple(SYNTAX["command"]))))
def test_the_commands_of_the_contract_are_commands(call: str) -> None:
    words = [word for word in call.split() if word.islower() and not word.startswith("-")]
    operation = OPERATIONS.get(".".join(words[:2])) or OPERATIONS[words[0]]
    taken = {one.option for one in operation.parameters if not one.positional}
    assert {word for word in call.split() if word.startswith("--")} <= taken
    given = [word for word in call.split() if word.isupper()]
    needed = [one for one in operation.parameters if one.required]
    assert len(given) >= len(needed)
