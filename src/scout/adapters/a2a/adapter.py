"""The harness `a2a`: a turn is a task at an agent of another system, which Scout follows to its end.

A turn keeps the id of its task in its folder. After a restart it is followed from there, and nothing is
sent twice.
"""

import asyncio
import importlib
import importlib.util
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path

from msgspec.structs import replace

from scout.adapters.a2a.remote_task import (
    KeptTask,
    OtherAgent,
    RemoteProblem,
    RemoteState,
    RemoteTask,
    TurnFolder,
)
from scout.adapters.harness import INTERRUPTED, STOPPED, BasicHarness, check_id, refuse_attach
from scout.base.refusal import Refused, Remedy
from scout.model.delivery import InspectResult
from scout.model.endpoint import Transport
from scout.model.problems.session import HarnessUnavailable, Layer, Missing
from scout.ports import (
    Accepted,
    Asked,
    Capabilities,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    NeedsHuman,
    Probe,
    Prompt,
    SessionSpec,
    Started,
    TurnProgress,
)

_PACKAGE = "a2a"
_INSTALL = f"{sys.executable} -m pip install 'scout-broker[a2a]'"
_NOTES = (
    "the agent runs elsewhere: Scout sends it the text of messages, and enforces no permission profile there",
)
_CANCELLING = 10.0  # seconds for the cancel of a task
_Turn = tuple[str, str]
Connect = Callable[[str, str], Awaitable[OtherAgent]]


class A2a(BasicHarness):
    """Runs turns of agents of other systems. `read_secret` returns the text of a file that holds a token."""

    name = "a2a"
    capabilities = Capabilities(
        permissions=True, starts_programs=False, plain_body=True, hidden=True, transport=Transport.A2A
    )

    def __init__(self, sessions: Path, read_secret: Callable[[Path], str]) -> None:
        self._sessions = sessions.absolute()
        self._read_secret = read_secret
        self._running: dict[_Turn, RemoteTurn] = {}

    async def probe(self) -> Probe:
        if await asyncio.to_thread(importlib.util.find_spec, _PACKAGE) is None:
            return Probe(ready=False, missing=Missing.BINARY, hint=f"install its package: {_INSTALL}")
        return Probe(ready=True, notes=_NOTES)

    async def start(self, spec: SessionSpec) -> Started:
        """Return the session, which is a name for a sequence of tasks in one context."""
        if spec.url is None:
            raise Refused(_build_no_url(spec))
        return Started(native_ids={"session": spec.session_id})

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        if native_id != spec.session_id:
            reason = "an agent of another system has no session to attach"
            raise Refused(refuse_attach(self.name, spec, native_id, reason))
        return await self.start(spec)

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        folder = TurnFolder(self._sessions / check_id(spec.session_id), check_id(prompt.delivery_id))
        turn = RemoteTurn(folder, prompt)
        self._running[spec.session_id, prompt.delivery_id] = turn
        try:
            async with aclosing(turn.run(lambda: self._connect(spec))) as events:
                async for event in events:
                    yield event
        finally:
            del self._running[spec.session_id, prompt.delivery_id]

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        turns = [turn for (session, _), turn in self._running.items() if session == session_id]
        return any(turn.answer(request, answer) for turn in turns)

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        turn = self._running.get((session_id, delivery_id))
        if turn is None:
            return False
        await turn.stop(INTERRUPTED)
        return True

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        folder = TurnFolder(self._sessions / check_id(session_id), check_id(delivery_id))
        kept = await asyncio.to_thread(folder.read)
        if kept is None:
            return InspectResult.NOT_TAKEN
        return InspectResult.TAKEN if kept.task_id else InspectResult.UNKNOWN

    async def stop(self, session_id: str) -> None:
        for (session, _), turn in list(self._running.items()):
            if session == session_id:
                await turn.stop(STOPPED)

    async def _connect(self, spec: SessionSpec) -> OtherAgent:
        if spec.url is None:
            raise RemoteProblem("no URL is set for it")
        token = await self._read_token(spec)
        remote = await asyncio.to_thread(importlib.import_module, "scout.adapters.a2a.remote")
        connect: Connect = remote.connect
        return await connect(spec.url, token)

    async def _read_token(self, spec: SessionSpec) -> str:
        if spec.credential_file is None:
            return ""
        try:
            text = await asyncio.to_thread(self._read_secret, Path(spec.credential_file))
        except Refused as refused:
            raise RemoteProblem(refused.diagnostic.message, login=True) from None
        return text.strip()


class RemoteTurn:
    """One turn: a message, the task that it begins, and the answers to what the task asks."""

    def __init__(self, folder: TurnFolder, prompt: Prompt) -> None:
        self._folder = folder
        self._prompt = prompt
        self._remote: OtherAgent | None = None
        self._kept = KeptTask()
        self._answers: dict[str, asyncio.Future[HumanAnswer]] = {}
        self._reason = ""  # why it is stopped
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answer(self, request: str, answer: HumanAnswer) -> bool:
        """Whether the turn was waiting for this answer."""
        waiting = self._answers.get(request)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        return True

    async def stop(self, reason: str) -> None:
        """Cancel the task, then end the turn, even if the task cannot be cancelled."""
        self._reason = self._reason or reason
        if self._remote is not None:  # otherwise once it is connected
            await self._cancel_task(self._remote)
        if not self._stopped.done():
            self._stopped.set_result(None)

    async def _cancel_task(self, remote: OtherAgent) -> None:
        """Cancel the task, and keep that the turn was stopped: following it again ends in the same way."""
        if not self._kept.task_id:
            return
        self._kept = replace(self._kept, stopped=self._reason)
        await asyncio.to_thread(self._folder.write, self._kept)
        with suppress(RemoteProblem, TimeoutError):  # it has ended, or is out of reach
            async with asyncio.timeout(_CANCELLING):
                await remote.cancel(self._kept.task_id)

    async def run(self, connect: Callable[[], Awaitable[OtherAgent]]) -> AsyncGenerator[HarnessEvent]:
        """Yield the events of the turn. It is settled when its last event has been yielded."""
        kept = await asyncio.to_thread(self._folder.read)
        accepted = kept is not None and bool(kept.task_id)
        if accepted:
            yield Accepted()
        if kept is not None and kept.stopped:
            yield Failed(layer=Layer.SESSION, reason=kept.stopped)
            return
        self._kept = kept or KeptTask()
        try:
            self._remote = await connect()
            if self._reason:
                await self._cancel_task(self._remote)
            async with aclosing(self._exchange(self._remote)) as events:
                async for event in events:
                    accepted = accepted or isinstance(event, Accepted)
                    yield event
        except RemoteProblem as problem:
            yield _build_failure(problem, accepted=accepted)
        finally:
            if self._remote is not None:
                await self._remote.close()

    async def _exchange(self, remote: OtherAgent) -> AsyncGenerator[HarnessEvent]:
        """Send the message or follow its task, and answer its questions, until it ends."""
        has_begun = bool(self._kept.task_id)
        tasks = remote.follow(self._kept.task_id) if has_begun else await self._send(remote)
        while True:
            last = None
            async for task in self._until_stopped(tasks):
                await self._keep(task)
                if not has_begun:
                    has_begun = True
                    yield Accepted()
                if task.state is RemoteState.WORKING and task.text and task != last:
                    yield TurnProgress(text=task.text)
                last = task
            if last is None or last.state is not RemoteState.ASKING or self._reason:
                yield await self._build_end(last)
                return
            waiting = self._answers[last.question] = asyncio.get_running_loop().create_future()
            yield NeedsHuman(request=last.question, question=last.text, kind=Asked.QUESTION)
            await asyncio.wait({waiting, self._stopped}, return_when="FIRST_COMPLETED")
            if not waiting.done() or not waiting.result().allow:
                yield await self._give_up(remote, waiting)
                return
            key = f"{self._prompt.delivery_id}.{last.question}"
            tasks = remote.send(waiting.result().text, key=key, known=self._kept)

    async def _send(self, remote: OtherAgent) -> AsyncGenerator[RemoteTask]:
        """Begin the task. That the turn has begun is kept first: what happens next may be unknown later."""
        context = await asyncio.to_thread(self._folder.read_context)
        self._kept = KeptTask(context_id=context)
        await asyncio.to_thread(self._folder.write, self._kept)
        return remote.send(self._prompt.body, key=self._prompt.delivery_id, known=self._kept)

    async def _keep(self, task: RemoteTask) -> None:
        kept = replace(self._kept, task_id=task.task_id, context_id=task.context_id)
        if kept != self._kept:
            self._kept = kept
            await asyncio.to_thread(self._folder.write, kept)

    async def _until_stopped(self, tasks: AsyncGenerator[RemoteTask]) -> AsyncGenerator[RemoteTask]:
        """Yield the states of a task until it ends or asks, or until the turn is stopped."""
        async with aclosing(tasks):
            while not self._stopped.done():
                step = asyncio.ensure_future(anext(tasks, None))
                await asyncio.wait({step, self._stopped}, return_when="FIRST_COMPLETED")
                if not step.done():
                    step.cancel()
                    await asyncio.gather(step, return_exceptions=True)
                    return
                task = step.result()
                if task is None:
                    return
                yield task

    async def _give_up(self, remote: OtherAgent, waiting: "asyncio.Future[HumanAnswer]") -> Failed:
        """Return the end of a turn whose question gets no answer; its task is cancelled."""
        if not waiting.done():
            return Failed(layer=Layer.SESSION, reason=self._reason)
        with suppress(RemoteProblem):
            await remote.cancel(self._kept.task_id)
        reason = f"its question was not answered: {waiting.result().text or 'dismissed'}"
        return Failed(layer=Layer.SESSION, reason=reason)

    async def _build_end(self, task: RemoteTask | None) -> Completed | Failed:
        if self._reason:
            return Failed(layer=Layer.SESSION, reason=self._reason)
        match task:
            case RemoteTask(state=RemoteState.COMPLETED):
                return Completed(text=await asyncio.to_thread(self._build_answer, task))
            case RemoteTask(state=RemoteState.CANCELLED, text=text):
                return Failed(layer=Layer.HARNESS, reason=text or "the remote agent cancelled the task")
            case RemoteTask(text=text):
                return Failed(layer=Layer.HARNESS, reason=text or "the remote task failed")
            case None:
                return Failed(layer=Layer.HARNESS, reason="the remote agent answered nothing")

    def _build_answer(self, task: RemoteTask) -> str:
        """Return the text of an answer; files that came with it are stored, and named at its end."""
        stored = [f"[file {file.name}: {self._folder.store_file(file)}]" for file in task.files]
        return "\n\n".join(one for one in (task.text, "\n".join(stored)) if one)


def _build_failure(problem: RemoteProblem, *, accepted: bool) -> Failed:
    missing = Missing.LOGIN if problem.login else None
    return Failed(
        layer=Layer.HARNESS, reason=problem.reason, again=problem.again and not accepted, missing=missing
    )


def _build_no_url(spec: SessionSpec) -> HarnessUnavailable:
    wish = {"address": spec.address, "config": ["url=https://HOST/PATH"]}
    remedy = Remedy(operation="agent.config", parameters=wish, why="set where it answers")
    return HarnessUnavailable(
        harness=A2a.name, missing=Missing.BINARY, hint="no URL is set for it", remedies=(remedy,)
    )
