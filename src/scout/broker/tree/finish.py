"""Finishing agents: previews, merges in the order of arrival, conflicts that go back, whole subtrees."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.broker.operations import agents
from scout.broker.routing import routes
from scout.broker.transaction import admission
from scout.broker.transaction.admission import Admitted
from scout.broker.transaction.call import CallContext
from scout.broker.transaction.transaction import Transaction
from scout.broker.tree.finish_facts import (
    FinishSubject,
    GitLook,
    build_finish_facts,
    find_finishable,
    look_at_tree,
    read_subject,
    run_git,
)
from scout.broker.tree.finish_steps import FinishBroker, Finishing, begin_finish, give_up, resume_finish
from scout.broker.tree.merges import FinishTask, MergePlace, wait_for
from scout.broker.tree.spawn import require_trees
from scout.model.agent import Agent, Lifecycle
from scout.model.ask import IfUnreachable, ReplyMode
from scout.model.flight import Flight, FlightState
from scout.model.problems.request import Busy
from scout.model.problems.tree import CheckFailed, UnfinishedWork
from scout.policy.permit import Deed
from scout.policy.tree.finish import (
    FinishChoice,
    FinishFacts,
    FinishPlan,
    build_conflict_ask,
    choose,
    describe_effect,
    merge_conflict,
    plan_finish,
)
from scout.policy.tree.projects import ProjectRules
from scout.ports import MergePreview
from scout.protocol.asks import MakeAsk
from scout.protocol.operations import build_command_line
from scout.protocol.tree.finish import (
    FinishAgent,
    FinishDone,
    FinishedTrees,
    FinishOption,
    FinishReport,
    FinishState,
    LeftAgent,
)

FinishCall = CallContext[FinishBroker]
_LONGEST = 60.0  # seconds of one wait
_ASKED_AGAIN = 8  # times that one conflict is sent to a resolver whose flights fail
_FAILED = (FlightState.FAILED, FlightState.CANCELLED)


# -- one agent -----------------------------------------------------------------------------------------


async def finish_agent(call: FinishCall, request: FinishAgent) -> FinishReport:
    """Show what an agent has, or finish it. A finish runs on if the caller does not wait for it."""
    choice = _choose_from(request)
    tx = call.glance()
    agent = find_finishable(tx, request.address)
    merges, what = call.broker.merges, str(choice)
    running = merges.find(agent.id, request.idempotency_key)
    if choice is None:
        return await preview_finish(call, agent, running)
    if running is None:
        if agent.lifecycle is Lifecycle.RETIRED:
            return await _finish_again(call, request, agent)
        running = _begin(call, request, agent, choice)
    elif running.what != what:
        raise Refused(Busy(reason=f"{tx.address(agent.id)} is being finished: {running.what}"))
    if await wait_for(running, min(request.wait, _LONGEST)):
        return running.task.result()
    return _build_running_report(tx.address(agent.id), agent, choice, running)


def _choose_from(request: FinishAgent) -> FinishChoice | None:
    return choose(request.address, merge=request.merge, keep=request.keep, discard=request.discard)


async def _finish_again(call: FinishCall, request: FinishAgent, agent: Agent) -> FinishReport:
    """Complete a finish that stopped halfway, or return the first answer of a repeated request."""
    for entry in await asyncio.to_thread(require_trees(call.services).journal.unfinished):
        if entry.what == "finish" and entry.agent_id == agent.id:
            finishing = Finishing(call.broker, call.who, entry)
            await resume_finish(finishing)
            return finishing.report()

    def refuse(tx: Transaction, _: object) -> FinishReport:
        raise Refused(routes.build_retired_refusal(tx, agent))

    return await call.write_once(request, refuse)


def _begin(call: FinishCall, request: FinishAgent, agent: Agent, choice: FinishChoice) -> FinishTask:
    """Start a finish; a merge takes its place in the line before anything else happens."""
    tx, merges = call.glance(), call.broker.merges
    parent = tx.agent(agent.parent_id)
    into = parent.birth_branch if parent is not None else None
    waits = choice is FinishChoice.MERGE and agent.birth_branch is not None and into is not None
    place = merges.enter(agent.project_root or "", into or "") if waits else None

    async def work(reason: list[str]) -> FinishReport:
        try:
            return await _finish(call, request, agent.id, place, reason)
        finally:
            if place is not None:
                place.leave()

    return merges.begin(agent.id, str(choice), request.idempotency_key, work)


async def _finish(
    call: FinishCall,
    request: FinishAgent,
    ident: str,
    place: MergePlace | None,
    reason: list[str],
) -> FinishReport:
    """Refuse at once what cannot be done; then wait for earlier merges, look again, and act."""
    choice = _choose_from(request) or FinishChoice.MERGE
    waits = place is not None and place.ahead > 0
    subject, look = await examine(call, ident)
    facts = build_finish_facts(subject, look)
    if waits:  # an earlier merge may be changing these files now
        facts = replace(facts, target_uncommitted=())
    plan = plan_finish(facts, choice, request.reason)
    if place is None or look is None:
        return await _carry_out(call, request, subject, plan, look)
    reason[:] = [f"it waits for {place.ahead} earlier merges into {subject.into}" if place.ahead else ""]
    async with place:
        subject, look = await examine(call, ident)
        facts = build_finish_facts(subject, look)
        plan = plan_finish(facts, choice, request.reason)
        preview = look.preview if look is not None else None
        if plan.conflicts and preview is not None:
            return await _send_conflict(call, request, subject, facts, preview)
        if plan.merges and preview is not None:
            reason[:] = ["its check command runs"]
            await _check(call, subject, preview)
        reason[:] = ["it is being merged"]
        return await _carry_out(call, request, subject, plan, look)


async def examine(call: FinishCall, address: str) -> tuple[FinishSubject, GitLook | None]:
    """Read the agent's records, and ask git about its work tree if it has one."""
    subject = await call.read(lambda tx: read_subject(tx, find_finishable(tx, address).id))
    if subject.agent.birth_branch is None or subject.parent is None:
        return subject, None
    trees = require_trees(call.services)
    return subject, await run_git(subject.root, look_at_tree, trees, subject)


async def _carry_out(
    call: FinishCall, request: FinishAgent, subject: FinishSubject, plan: FinishPlan, look: GitLook | None
) -> FinishReport:
    finishing = await asyncio.to_thread(begin_finish, call, request, subject, plan, look)
    if plan.merges and look is not None and look.preview is not None:
        await _merge(finishing, look.preview, subject)
    return await finishing.complete()


async def _merge(finishing: Finishing, preview: MergePreview, subject: FinishSubject) -> None:
    """Merge. If that fails before the branch has moved, nothing was done."""
    try:
        await finishing.merge(preview, str(subject.agent.path))
    except Refused:
        git, root = finishing.trees.work_trees, subject.root
        now = await run_git(root, git.find_commit, root, f"refs/heads/{preview.into}")
        if finishing.record.merged is None or now != finishing.record.merged:
            await asyncio.to_thread(finishing.trees.journal.end, finishing.entry.id)
            raise


async def _check(call: FinishCall, subject: FinishSubject, preview: MergePreview) -> None:
    """Run the operator's check command on the merged files; refuse if it fails."""
    rules = call.services.projects.get(subject.root, ProjectRules()).worktree
    if rules.check is None:
        return
    git, command = require_trees(call.services).work_trees, rules.check
    result = await run_git(subject.root, git.check_merge, subject.root, preview, command, rules.check_seconds)
    if result.exit_code == 0 and not result.timed_out:
        return
    body = (
        f"Your branch {preview.commit[:12]} merged into {preview.into} fails `{command}`:\n\n{result.output}"
    )
    repair = {"to": subject.address, "body": body}
    keep = {"address": subject.address, "merge": False, "keep": True}
    raise Refused(
        CheckFailed(
            command=command,
            exit_code=result.exit_code,
            seconds=result.seconds,
            output=result.output,
            timed_out=result.timed_out,
            remedies=(
                Remedy(operation="ask", parameters=repair, why="let it repair this"),
                Remedy(operation="finish", parameters=keep, why="its work tree and branch stay"),
            ),
        )
    )


# -- conflicts -----------------------------------------------------------------------------------------


async def _send_conflict(
    call: FinishCall,
    request: FinishAgent,
    subject: FinishSubject,
    facts: FinishFacts,
    preview: MergePreview,
) -> FinishReport:
    """Ask the agent of the branch, or the named resolver, to resolve the conflicts. Nothing is merged."""
    if request.ask is False:
        raise Refused(merge_conflict(facts))
    to = request.resolver or subject.agent.id
    body = build_conflict_ask(facts, request.resolver)
    key = f"conflict {subject.agent.id} {preview.commit} {preview.into_commit} {to}"
    flight = await _ask_once(call, to, body, key)
    report = describe(subject, None)
    return replace(
        report,
        state=FinishState.CONFLICT,
        choice=FinishChoice.MERGE,
        branch=facts.branch,
        into=preview.into,
        commit=preview.commit,
        conflicts=preview.conflicts,
        flight_id=flight.id,
        resolver=await call.read(lambda tx: tx.address(flight.target)),
    )


async def _ask_once(call: FinishCall, to: str, body: str, key: str) -> Flight:
    """Ask once for each conflict; ask again only if the earlier flight failed."""
    for again in range(_ASKED_AGAIN):
        wish = MakeAsk(
            to=to,
            body=body,
            reply_mode=ReplyMode.NOTIFY,
            if_unreachable=IfUnreachable.QUEUE,
            idempotency_key=f"{key} {again}"[:200],
        )
        receipt = await call.perform(wish)
        flight = await call.read(lambda tx, ident=receipt.flight_id: tx.need(Flight, "flight", ident))
        if flight.state not in _FAILED:
            return flight
    raise Refused(Busy(reason=f"{to} failed {_ASKED_AGAIN} times to resolve this conflict"))


# -- previews ------------------------------------------------------------------------------------------


async def preview_finish(call: FinishCall, agent: Agent, running: FinishTask | None) -> FinishReport:
    """Show what an agent has and what each choice would do. Changes nothing."""
    if agent.lifecycle is Lifecycle.RETIRED:
        raise Refused(await call.read(lambda tx: routes.build_retired_refusal(tx, agent)))
    subject, look = await examine(call, agent.id)
    facts = build_finish_facts(subject, look)
    report = replace(
        describe(subject, look), options=tuple(_build_option(facts, one) for one in FinishChoice)
    )
    if running is not None and not running.task.done():
        return replace(report, state=FinishState.RUNNING, reason=running.reason[-1])
    return report


def describe(subject: FinishSubject, look: GitLook | None) -> FinishReport:
    """Return an agent's work tree as a report."""
    report = FinishReport(
        address=subject.address,
        agent_id=subject.agent.id,
        state=FinishState.PREVIEW,
        folder=subject.folder or None,
        flights=subject.flights,
        work=subject.work,
        children=subject.children,
    )
    if look is None:
        return report
    state = look.state
    notes = (f"git: {state.problem}",) if state.problem else ()
    return replace(
        report,
        branch=look.branch,
        into=subject.into,
        commit=state.commit,
        uncommitted=state.uncommitted,
        more_uncommitted=state.more_uncommitted,
        unmerged=state.unmerged,
        unpushed=state.unpushed,
        ahead=state.ahead,
        behind=state.behind,
        operation=state.operation,
        conflicts=look.preview.conflicts if look.preview else (),
        notes=notes,
    )


def _build_option(facts: FinishFacts, choice: FinishChoice) -> FinishOption:
    """Return one choice with its command, and why it would be refused."""
    wish: dict[str, Any] = {"address": facts.address, str(choice): True}
    if choice is FinishChoice.DISCARD:
        wish["reason"] = "its work is not needed"
    problem = ""
    try:
        plan = plan_finish(facts, choice, str(wish.get("reason", "")))
    except Refused as refusal:
        problem = refusal.diagnostic.message
    else:
        problem = merge_conflict(facts).message if plan.conflicts else ""
    command = build_command_line(Remedy(operation="finish", parameters=wish))
    return FinishOption(choice=choice, does=describe_effect(facts, choice), command=command, problem=problem)


def _build_running_report(
    address: str, agent: Agent, choice: FinishChoice, running: FinishTask
) -> FinishReport:
    return FinishReport(
        address=address,
        agent_id=agent.id,
        state=FinishState.RUNNING,
        choice=choice,
        folder=agent.working_dir,
        branch=agent.birth_branch,
        reason=running.reason[-1],
    )


# -- a whole subtree -----------------------------------------------------------------------------------


async def finish_done(call: FinishCall, request: FinishDone) -> FinishedTrees:
    """Finish every agent below an address that is done, leaves first."""
    tx = call.glance()
    top, below = _find_top(tx, request)
    ident, key = f"done {top.id}", request.idempotency_key
    running = call.broker.merges.find(ident, key)
    if running is None:

        async def work(_: list[str]) -> FinishedTrees:
            answer = await _finish_all(call, request, below)
            return await call.write_once(request, lambda _, __: answer)

        running = call.broker.merges.begin(ident, "done", key, work)
    if await wait_for(running, min(request.wait, _LONGEST)):
        return running.task.result()
    return FinishedTrees(state=FinishState.RUNNING)


def _find_top(tx: Transaction, request: FinishDone) -> tuple[Agent, list[str]]:
    """Return the agent to begin below, and the ids of the agents to finish, leaves first."""
    own = tx.agent(tx.actor.agent_id)
    if request.address is not None:
        top = agents.find(tx, request.address, Deed.CONTROL)
    else:
        top = own if own is not None and own.birth_branch is not None else tx.resolve("root").agent
    below = list_below(tx, top)
    includes = request.address is not None and top.parent_id is not None and top.id != tx.actor.agent_id
    return top, [*below, *((top.id,) if includes else ())]


def list_below(tx: Transaction, top: Agent) -> list[str]:
    """Return the live agents below one, each after those below it."""
    found: list[str] = []
    for child in tx.ledger.many(Agent, "children_live", parent=top.id):
        found += [*list_below(tx, child), child.id]
    return found


async def _finish_all(call: FinishCall, request: FinishDone, below: list[str]) -> FinishedTrees:
    items: list[FinishReport] = []
    left: list[LeftAgent] = []
    for ident in below:
        subject, look = await examine(call, ident)
        try:
            if reason := _explain_not_done(subject, look):
                left.append(_build_left_agent(subject, reason))
                continue
            wish = FinishAgent(address=ident, merge=True, resolver=request.resolver, ask=request.ask)
            running = call.broker.merges.find(ident, None)
            running = running or _begin(call, wish, subject.agent, FinishChoice.MERGE)
            items.append(await asyncio.shield(running.task))
        except Refused as refusal:
            left.append(_build_left_agent(subject, refusal.diagnostic))
    return FinishedTrees(state=FinishState.FINISHED, items=tuple(items), left=tuple(left))


def _explain_not_done(subject: FinishSubject, look: GitLook | None) -> Diagnostic | str | None:
    """Return why an agent is not done yet; None if it is."""
    if subject.owes:
        return UnfinishedWork(address=subject.address, owes=subject.owes)
    has_commits = look is not None and look.preview is not None and look.preview.needed
    return None if subject.has_worked or has_commits else "it has not worked yet"


def _build_left_agent(subject: FinishSubject, why: Diagnostic | str) -> LeftAgent:
    if isinstance(why, str):
        return LeftAgent(address=subject.address, agent_id=subject.agent.id, code="", reason=why)
    return LeftAgent(
        address=subject.address,
        agent_id=subject.agent.id,
        code=why.code,
        reason=why.message,
        remedies=why.remedies,
    )


# -- after a restart -----------------------------------------------------------------------------------


async def resume_finishes(broker: FinishBroker, call_as: Callable[[Admitted], FinishCall]) -> None:
    """Continue the finishes that a stop interrupted. Those that had not changed anything begin again."""
    if broker.services.trees is None:
        return
    for entry in await asyncio.to_thread(broker.services.trees.journal.unfinished):
        if entry.what == "finish":
            finishing = Finishing(broker, admission.admit_system(broker.services), entry)
            finishing.who = admission.admit_system(broker.services, finishing.record.by)
            try:
                if not await resume_finish(finishing):
                    await _begin_again(call_as(finishing.who), finishing)
            except Refused as problem:
                await give_up(finishing, problem)


async def _begin_again(call: FinishCall, finishing: Finishing) -> None:
    """Start a finish again that stopped before anything changed. It runs while Scout starts."""
    agent = call.glance().get(Agent, finishing.agent_id)
    if agent is not None and agent.lifecycle is not Lifecycle.RETIRED:
        request = msgspec.json.decode(finishing.record.request, type=FinishAgent)
        _begin(call, request, agent, finishing.record.choice)
