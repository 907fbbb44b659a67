"""Memory and search agents exist from the first ask on, read their parent's transcripts, and sleep quietly."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from scout.model.agent import Lifecycle, PermissionProfile, ToolRole
from scout.model.ask import AskedChild
from scout.policy.roles import Roles
from scout.ports import Transcript
from scout.protocol.agents import ConfigureAgent, RetireAgent, ShowAgent
from scout.protocol.asks import MakeAsk
from tests.broker.puppet import Puppet
from tests.broker.rig import (
    Rig,
    advance_clock,
    event_name,
    expect_refusal,
    inbox_items,
    read_log,
    run_scene,
    wait_for_end,
)

ROLES = Roles(memory="acp/small/low", memory_search="acp/tiny")


class Keeper(Puppet):
    """A harness that says where its transcripts lie."""

    def locate_transcript(self, native_id: str, cwd: str | None) -> Transcript | None:
        return Transcript(file=f"/transcripts/{native_id}.jsonl", folder="/transcripts")


def play(scene: Callable[[Rig], Awaitable[None]], home: Path, keeper: Puppet) -> None:
    run_scene(scene, home, harnesses={"acp": keeper}, roles=ROLES)


def test_the_first_ask_makes_the_memory_of_an_agent(tmp_path: Path) -> None:
    keeper = Keeper()

    async def scene(rig: Rig) -> None:
        made = await rig.register("arc", harness="acp", project_root=str(tmp_path))
        await rig.operator(ConfigureAgent(address="@arc", config={"description": "builds the parser"}))
        first = await rig.operator(MakeAsk(to="@arc", body="work"))
        await wait_for_end(rig, first.flight_id)
        asked = await rig.operator(MakeAsk(to=f"{made.path}/memory", body="What did you do?", wait=20))
        assert (asked.state, asked.output) == ("completed", "done")
        assert (asked.harness_resolved, asked.model_resolved, asked.effort) == ("acp", "small", "low")
        assert (asked.harness_observed, asked.model_observed) == ("acp", "puppet-1")

        child = await rig.operator(ShowAgent(address=f"{made.path}/memory"))
        assert (child.kind, child.parent_id, child.tool_role) == ("memory", made.agent.id, ToolRole.WORKER)
        assert child.config.permission_profile is PermissionProfile.OBSERVE
        spec = keeper.specs[-1]
        assert (spec.model, spec.effort, spec.permission) == ("small", "low", PermissionProfile.OBSERVE)
        assert spec.readable == ("/transcripts", str(tmp_path))
        assert "past work of @arc (builds the parser)." in spec.instructions
        native = keeper.specs[0].session_id
        assert f"/transcripts/native-{native}.jsonl" in spec.instructions

        again = await rig.operator(MakeAsk(to="@arc", child=AskedChild.MEMORY, body="And then?", wait=20))
        assert again.target == child.id
        assert await inbox_items(rig, "arc") == []

    play(scene, tmp_path, keeper)


def test_every_search_takes_the_next_index(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        made = await rig.register("arc", harness="acp")
        wish = MakeAsk(to="@arc", child=AskedChild.SEARCH, body="Where is the parser?")
        receipts = await asyncio.gather(*(rig.operator(wish) for _ in range(20)))
        paths = sorted(str(one.address) for one in receipts)
        assert paths == sorted(f"{made.path}/search/{number}" for number in range(20))
        assert (await rig.operator(ShowAgent(address="@arc"))).next_search_index == 20
        for one in receipts:
            assert (await wait_for_end(rig, one.flight_id)).model_resolved == "tiny"
        named = await rig.operator(MakeAsk(to=f"{made.path}/search/20", body="And the lexer?"))
        assert named.address == f"{made.path}/search/20"
        known = await rig.operator(MakeAsk(to=f"{made.path}/search/3", body="Again."))
        assert known.address == f"{made.path}/search/3"
        far = await expect_refusal(rig.operator(MakeAsk(to=f"{made.path}/search/30", body="Where?")))
        assert (far.code, far.problem) == ("bad_request", f"the next one is {made.path}/search/21")

    play(scene, tmp_path, Keeper())


def test_an_agent_asks_its_own_memory(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        arc = await rig.agent("arc")
        receipt = await arc.call(MakeAsk(to="./memory", body="What did I decide?", wait=20))
        assert (receipt.output, receipt.address) == ("done", "/ada/agent/arc/memory")
        nobody = await expect_refusal(rig.operator(MakeAsk(to="/ada/agent/nobody/memory", body="x")))
        assert nobody.code == "unknown_target"
        await rig.operator(RetireAgent(address="/ada/agent/arc/memory"))
        gone = await expect_refusal(arc.call(MakeAsk(to="./memory", body="x")))
        assert gone.code == "retired_target"

    play(scene, tmp_path, Keeper())


def test_a_refused_ask_makes_no_child(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        made = await rig.register("arc", harness="acp")
        wish = MakeAsk(to=f"{made.path}/memory", body="x", harness="nothing")
        assert (await expect_refusal(rig.operator(wish))).code == "harness_unavailable"
        missing = await expect_refusal(rig.operator(ShowAgent(address=f"{made.path}/memory")))
        assert missing.code == "unknown_target"
        await rig.operator(RetireAgent(address="@arc"))
        gone = await expect_refusal(rig.operator(MakeAsk(to=f"{made.path}/memory", body="x")))
        assert gone.code == "retired_target"

    play(scene, tmp_path, Keeper())


def test_a_memory_that_falls_asleep_wakes_nothing(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        made = await rig.register("arc", harness="acp")
        for child in (AskedChild.MEMORY, AskedChild.SEARCH):
            await rig.operator(MakeAsk(to="@arc", child=child, body="x", wait=20))
        before = len(await read_log(rig))
        await advance_clock(rig, 700)
        after = (await read_log(rig))[before:]
        slept = [one for one in after if event_name(one) == "agent.sleeping"]
        assert len(slept) >= 2
        assert not [one for one in after if event_name(one).startswith(("delivery.", "message.", "flight."))]
        for path in (f"{made.path}/memory", f"{made.path}/search/0"):
            assert (await rig.operator(ShowAgent(address=path))).lifecycle is Lifecycle.SLEEPING
        assert await inbox_items(rig, "arc") == []

    play(scene, tmp_path, Keeper())
