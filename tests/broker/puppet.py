"""A harness that does what the lines of its prompt say: it asks, waits, is limited, is told things."""

import asyncio
from collections.abc import AsyncIterator

from scout.adapters.harness import BasicHarness, refuse_attach
from scout.base.refusal import Refused
from scout.base.time import Time
from scout.model.delivery import InspectResult
from scout.model.problems.session import Layer, Missing
from scout.ports import (
    Accepted,
    Asked,
    Capabilities,
    Completed,
    Failed,
    HarnessEvent,
    HumanAnswer,
    Identified,
    Limited,
    NeedsHuman,
    Probe,
    Prompt,
    RequestSettled,
    SessionSpec,
    Started,
    ToolUse,
    TurnUsage,
    UsageKind,
)

__all__ = ["Puppet"]


class Puppet(BasicHarness):
    """Its lines: `tool NAME`, `permit WHAT`, `question WHAT | option | …`, `settle`, `limit SECONDS`, `login`, `wait`.

    Its reply is what it was answered and told meanwhile, else `done`. What a broker hands it is kept in
    `specs` and `prompts`; `answers` outlives a broker, as a real program would.
    """

    name = "acp"
    capabilities = Capabilities(
        resume=True,
        fork=True,
        steer=True,
        permissions=True,
        usage=UsageKind.EXACT,
        calls_back=True,
        keeps_process=True,
    )

    def __init__(self) -> None:
        self.specs: list[SessionSpec] = []
        self.prompts: dict[str, Prompt] = {}
        self.answers: dict[tuple[str, str], HumanAnswer] = {}
        self.told: dict[str, list[str]] = {}
        self.warm: set[str] = set()
        self.stopped: list[str] = []
        self.logged_in = True
        self.deaf = False  # whether nothing reaches the program
        self.late = False  # whether a text reaches it only after its turn
        self._news = asyncio.Condition()
        self._interrupted: set[str] = set()
        self._ended = asyncio.Event()

    async def probe(self) -> Probe:
        return Probe(ready=True, version="1")

    async def start(self, spec: SessionSpec) -> Started:
        self.specs.append(spec)
        self.warm.add(spec.session_id)
        native = {"thread": spec.native_ids.get("thread") or f"native-{spec.session_id}"}
        return Started(native_ids=native, pid=1, pid_started="1", model=spec.model)

    async def attach(self, spec: SessionSpec, native_id: str) -> Started:
        if not native_id.startswith("native"):
            raise Refused(refuse_attach(self.name, spec, native_id, "there is no such session"))
        return Started(native_ids={"thread": native_id}, model=spec.model)

    async def is_warm(self, session_id: str) -> bool:
        return session_id in self.warm

    async def deliver(self, spec: SessionSpec, prompt: Prompt) -> AsyncIterator[HarnessEvent]:
        self.specs.append(spec)
        self.warm.add(spec.session_id)
        self.prompts[prompt.delivery_id] = prompt
        yield Accepted(pid=1, pid_started="1")
        yield Identified(native_ids={"thread": f"native-{spec.session_id}"}, model="puppet-1")
        said = list[str]()
        for number, line in enumerate(prompt.body.splitlines()):
            word, _, rest = line.partition(" ")
            request = f"{prompt.delivery_id}-{number}"
            match word:
                case "tool":
                    yield ToolUse(name=rest, detail="quickly")
                case "permit" | "question":
                    asked, *options = (part.strip() for part in rest.split("|"))
                    kind = Asked.PERMISSION if word == "permit" else Asked.QUESTION
                    yield NeedsHuman(
                        request=request, question=asked, kind=kind, detail="rm -r x", options=tuple(options)
                    )
                    answer = await self._answer(spec.session_id, request)
                    said.append(f"{'yes' if answer.allow else 'no'} {answer.text}".strip())
                    yield RequestSettled(request=request)
                case "settle":
                    yield NeedsHuman(request=request, question=rest)
                    yield RequestSettled(request=request)
                case "limit" if self.prompts[prompt.delivery_id] is prompt and rest:
                    yield Limited(reason="5-hour limit", until=Time.parse(rest))
                    return
                case "login" if not self.logged_in:
                    reason = "not logged in: run /login"
                    yield Failed(layer=Layer.PROVIDER, reason=reason, missing=Missing.LOGIN)
                    return
                case "wait":
                    async with self._news:
                        await self._news.wait_for(
                            lambda: self.told.get(spec.session_id) or prompt.delivery_id in self._interrupted
                        )
                    if prompt.delivery_id in self._interrupted:
                        yield Failed(layer=Layer.SESSION, reason="interrupted")
                        return
                    said += self.told.pop(spec.session_id)
                case _:
                    pass
        yield TurnUsage(prompt_tokens=7, completion_tokens=5, estimated=False)
        try:
            yield Completed(text="\n".join(said) or "done")
        finally:
            self._ended.set()

    async def _answer(self, session_id: str, request: str) -> HumanAnswer:
        async with self._news:
            await self._news.wait_for(lambda: (session_id, request) in self.answers)
        return self.answers[session_id, request]

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        if self.deaf:
            return False
        async with self._news:
            self.answers.setdefault((session_id, request), answer)
            self._news.notify_all()
        return True

    async def steer(self, session_id: str, text: str) -> bool:
        if self.deaf:
            return False
        if self.late:
            await self.end_turn(session_id, "I wait.")
            await self._ended.wait()
            return True
        await self.end_turn(session_id, text)
        return True

    async def end_turn(self, session_id: str, text: str) -> None:
        """Let a turn that waits end with this text."""
        async with self._news:
            self.told.setdefault(session_id, []).append(text)
            self._news.notify_all()

    async def interrupt(self, session_id: str, delivery_id: str) -> bool:
        async with self._news:
            self._interrupted.add(delivery_id)
            self._news.notify_all()
        return True

    async def inspect(self, session_id: str, delivery_id: str) -> InspectResult:
        return InspectResult.TAKEN if delivery_id in self.prompts else InspectResult.NOT_TAKEN

    async def stop(self, session_id: str) -> None:
        self.stopped.append(session_id)
        self.warm.discard(session_id)
