"""The promises of the compatibility checklist, and how each is tried with a throw-away Scout."""

import asyncio
import os
import secrets
import signal
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from scout.base.refusal import Refused, Remedy
from scout.broker.sessions.harness_checks import CheckWish
from scout.client.client import Scout
from scout.daemon.start import NotStarted
from scout.model.ask import AskReceipt
from scout.model.delivery import DeliveryState
from scout.model.flight import FLIGHT, FlightState
from scout.ports import UsageKind
from scout.protocol.agents import AgentDetail
from scout.protocol.asks import FlightView
from scout.protocol.attention import DenyAttention, ListAttention
from scout.protocol.inbox import GetDelivery
from scout.protocol.sessions import AttachSession, CheckLine, GetSession, SessionView, StartSession, Verdict
from scout.protocol.talk import ListMessages

_TURN = 180.0  # seconds for a turn of a model
_SOON = 30.0  # seconds for steps without a model
_STEP = 0.05
_NAME = "checked"
_SHOWN = 80  # characters of an answer

_COUNT = "Count from one to two thousand in words, one number a line. Use no tool, and do not stop early."
_BREAK = ("sh", "-c", "echo it broke >&2; exit 3")
_SLEEP = ("sleep", "600")


class TrialHome(Protocol):
    """The parts of the throw-away Scout that the checks use."""

    home: str
    work: str

    @property
    def token(self) -> str: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...


class _Failed(Exception):  # noqa: N818 (a verdict)
    """The promise is not kept."""


class _NotTried(Exception):  # noqa: N818 (a verdict)
    """The promise could not be tried."""


class _NotSupported(Exception):  # noqa: N818 (a verdict)
    """The harness does not claim it."""


class Play:
    """One running check: the throw-away Scout, its agent, and the results so far."""

    def __init__(self, trial: TrialHome, wish: CheckWish) -> None:
        self.trial = trial
        self.wish = wish
        self.can = wish.harness.capabilities
        self.scout = Scout(home=trial.home, token=trial.token, directory=trial.work)
        self.agent: AgentDetail | None = None
        self.session: SessionView | None = None
        self.first: tuple[AskReceipt, FlightView] | None = None
        self.restarted: FlightView | None = None  # the flight answered after a restart of the broker

    async def aclose(self) -> None:
        await self.scout.close()

    async def register(self, name: str, program: tuple[str, ...]) -> str:
        """Register a throw-away agent of the checked harness; return its address."""
        made = await self.scout.register(
            name, project_root=self.trial.work, harness=self.wish.harness.name, command=program or None
        )
        return made.agent.address

    @property
    def program(self) -> tuple[str, ...]:
        own = self.wish.program or (() if self.can.calls_model else ("cat",))
        return own if self.can.needs_command else ()

    async def need_agent(self) -> AgentDetail:
        if self.agent is None:
            self.agent = await self.scout.show(await self.register(_NAME, self.program))
        return self.agent

    def need_session(self) -> SessionView:
        if self.session is None:
            raise _NotTried("its session did not start")
        return self.session

    def need_first(self) -> tuple[AskReceipt, FlightView]:
        if self.first is None:
            raise _NotTried("its first ask has no result")
        return self.first

    async def ask(self, body: str, to: str | None = None) -> AskReceipt:
        return await self.scout.ask(to or (await self.need_agent()).address, body)

    async def finish(self, flight_id: str, within: float = _TURN) -> FlightView:
        """Return the flight once it is finished."""
        flight = await self.scout.wait(flight_id, within)
        if flight.state not in FLIGHT.terminal:
            raise _Failed(f"the flight was still {flight.state} after {within:g} s: {flight.reason}")
        return flight

    async def reach(self, flight_id: str, state: FlightState) -> FlightView:
        """Return the flight once it is in this state, or finished."""
        async with asyncio.timeout(_TURN):
            while True:
                flight = await self.scout.flight(flight_id)
                if flight.state is state or flight.state in FLIGHT.terminal:
                    return flight
                await asyncio.sleep(_STEP)

    async def hang(self) -> FlightView:
        """Start a turn that does not end soon, and return its running flight."""
        if not self.can.starts_programs:
            receipt = await self.ask("!hang")
        elif self.can.calls_model:
            receipt = await self.ask(_COUNT)
        else:
            receipt = await self.ask("wait", await self.register("sleeping", _SLEEP))
        flight = await self.reach(receipt.flight_id, FlightState.RUNNING)
        if flight.state is not FlightState.RUNNING:
            raise _NotTried(
                f"its turn was already {flight.state}: {_shorten(flight.reason or flight.output or '')}"
            )
        return flight


# -- each promise ------------------------------------------------------------------------------------


async def _check_ready(play: Play) -> str:
    probe = play.wish.probe
    return f"version {probe.version}" if probe.version else "found"


async def _check_identity(play: Play) -> str:
    """Check that the agent is the same before and after a restart of the broker."""
    before = await play.need_agent()
    await _restart_broker(play)
    after = await play.scout.show(before.address)
    if (after.id, after.address) != (before.id, before.address):
        raise _Failed(f"it was {before.address} and is {after.address} after a restart")
    return "the same agent under the same address after a restart of the broker"


async def _check_guidance(play: Play) -> str:
    await play.need_agent()
    problem = await _require_refusal(play.ask("hello", f"@{_NAME[:-1]}"))
    return f"an ask to a misspelt name was refused with {problem}"


async def _check_mismatch(play: Play) -> str:
    other = "echo" if play.wish.harness.name != "echo" else "command"
    wrong = AttachSession(session=play.need_session().id, harness=other)
    problem = await _require_refusal(play.scout.call(wrong))
    return f"an attach of its session as one of {other} was refused with {problem}"


async def _check_profiles(play: Play) -> str:
    """Check that every profile is enforced by the program, or that a note says what is not."""
    can, notes = play.can, play.wish.probe.notes
    if not can.native_profiles and not notes:
        raise _Failed("it enforces no permission profile and has no note about it")
    profiles = ", ".join(can.native_profiles) or "none"
    wake = "reaches an open session" if can.live_wake else "wakes its own sessions only"
    return f"enforces {profiles}; {len(notes)} notes; {wake}"


async def _check_endpoint(play: Play) -> str:
    agent = await play.need_agent()
    key = secrets.token_hex(8)
    start = StartSession(agent=agent.address, harness=play.wish.harness.name, idempotency_key=key)
    play.session = await play.scout.call(start)
    again = await play.scout.call(start)
    if again.id != play.session.id:
        raise _Failed("the same request started two sessions")
    shown = await play.scout.show(agent.address)
    if not any(one.session_id == play.session.id for one in shown.endpoints):
        raise _Failed("its session is not among the endpoints of its agent")
    return "its session started once for two requests, and is an endpoint of its agent"


async def _check_resolution(play: Play) -> str:
    session = play.need_session()
    seen = await play.scout.call(GetSession(session_id=session.id))
    if (seen.state, seen.harness) != ("live", play.wish.harness.name):
        raise _Failed(f"inspect says {seen.state} in {seen.harness}")
    taken = await play.scout.call(AttachSession(session=session.id))
    if taken.id != session.id:
        raise _Failed(f"attach gave another session: {taken.id}")
    return "start, inspect and attach gave the same live session"


async def _check_first_answer(play: Play) -> str:
    play.need_session()
    word = _make_word()
    receipt = await play.ask(_build_prompt(word))
    flight = await play.finish(receipt.flight_id)
    _check_answer(play, flight, word)
    play.first = receipt, flight
    return f"it answered: {_shorten(flight.output or '')}"


async def _check_conversation(play: Play) -> str:
    receipt, flight = play.need_first()
    agent = await play.need_agent()
    page = await play.scout.call(ListMessages(conversation=receipt.conversation_id, limit=200))
    replies = [one for one in page.items if one.ask_id == receipt.ask_id and one.sender == agent.id]
    if not replies:
        raise _Failed(f"no message of {agent.address} in the conversation of {flight.id}")
    return f"its reply is a message of {agent.address} in the ask's conversation"


async def _check_target(play: Play) -> str:
    _, flight = play.need_first()
    if "@" in flight.body:
        raise _Failed("the body of the ask has a mention")
    return "the ask that it answered has no mention in its body"


async def _check_imports(play: Play) -> str:
    receipt, _ = play.need_first()
    page = await play.scout.call(ListMessages(conversation=receipt.conversation_id, limit=200))
    if len(page.items) != 2:
        raise _Failed(f"{len(page.items)} messages are stored for one ask and its answer")
    return "only the ask and its answer are stored, no transcript"


async def _check_usage(play: Play) -> str:
    if play.can.usage is UsageKind.NONE:
        raise _NotSupported("it reports no usage")
    play.need_first()
    tokens = (await play.scout.call(GetSession(session_id=play.need_session().id))).tokens
    if not tokens.total_tokens:
        raise _Failed("its session has no tokens after a turn")
    if not tokens.estimated and play.can.usage is UsageKind.ESTIMATED:
        raise _Failed("its estimates are not marked as estimates")
    return (
        f"{tokens.total_tokens} tokens, {'estimated and marked so' if tokens.estimated else 'as it reports'}"
    )


async def _check_mail(play: Play) -> str:
    """Check that a note comes with the next turn, also after a restart of the broker."""
    play.need_first()
    agent, note, word = await play.need_agent(), _make_word(), _make_word()
    sent = await play.scout.send(agent.address, f"A note of the check, which needs no answer: {note}")
    await _restart_broker(play)
    flight = await play.finish((await play.ask(_build_prompt(word))).flight_id)
    _check_answer(play, flight, word)
    play.restarted = flight
    delivery = await play.scout.call(GetDelivery(delivery_id=sent.deliveries[0].delivery_id))
    if delivery.state is not DeliveryState.ACKED or delivery.carried_with is None:
        raise _Failed(f"the note is still {delivery.state} after the next turn")
    return "a note came with its next turn"


async def _check_recovery(play: Play) -> str:
    """Check that the turn after the restart was answered in the same session."""
    session = play.need_session()
    play.need_first()
    if play.restarted is None:
        seen = await play.scout.call(GetSession(session_id=session.id))
        raise _Failed(
            f"no answer came after a restart of the broker; its session is {seen.state}: {seen.reason}"
        )
    if play.restarted.session_id != session.id:
        raise _Failed(f"another session answered after a restart of the broker: {play.restarted.session_id}")
    return "after a restart of the broker the same session answered"


async def _check_cancel(play: Play) -> str:
    play.need_first()
    flight = await play.hang()
    await play.scout.cancel(flight.id, "the check cancels it")
    over = await play.finish(flight.id, _SOON)
    if over.state is not FlightState.CANCELLED:
        raise _Failed(f"the cancelled turn is {over.state}: {over.reason}")
    return "a turn was cancelled while it ran"


async def _check_waiting(play: Play) -> str:
    """Check that a command waits for a permission, which is denied."""
    if not play.can.permissions or not play.can.calls_model:
        raise _NotSupported("it never waits for a person")
    play.need_first()
    line = f"dd if=/dev/null of={play.trial.home}/scout-check"
    body = f"Run this shell command outside of any sandbox. Ask for the permission if you need it: {line}"
    receipt = await play.ask(body)
    flight = await play.reach(receipt.flight_id, FlightState.WAITING)
    if flight.state is not FlightState.WAITING:
        raise _NotTried(f"its turn asked for no permission: {_shorten(flight.output or flight.reason)}")
    for item in (await play.scout.call(ListAttention())).items:
        await play.scout.call(DenyAttention(attention_id=item.id, reason="this was a check"))
    over = await play.finish(receipt.flight_id)
    return f"its turn waited for a permission, which was denied; then it {over.state}"


async def _check_failure(play: Play) -> str:
    """Check that a broken turn fails; a program that calls a model is killed during a turn."""
    play.need_first()
    if not play.can.starts_programs:
        receipt = await play.ask("!fail it broke")
    elif not play.can.calls_model:
        receipt = await play.ask("break", await play.register("breaking", _BREAK))
    else:
        return await _check_killed(play)
    return _require_failure(await play.finish(receipt.flight_id, _SOON))


async def _check_killed(play: Play) -> str:
    flight = await play.hang()
    pid = (await play.scout.call(GetSession(session_id=play.need_session().id))).pid
    if pid is None:
        await play.scout.cancel(flight.id, "the check cannot kill it")
        raise _NotTried("its process is not known")
    os.killpg(os.getpgid(pid), signal.SIGKILL)  # this includes its keeper and child processes
    return f"its program was killed: {_require_failure(await play.finish(flight.id, _SOON))}"


# -- parts -------------------------------------------------------------------------------------------


async def _restart_broker(play: Play) -> None:
    await asyncio.to_thread(play.trial.stop)
    await asyncio.to_thread(play.trial.start)


async def _require_refusal(work: Awaitable[object]) -> str:
    """Return the code of a refusal; it must offer a remedy."""
    try:
        await work
    except Refused as refusal:
        told = refusal.diagnostic
        if not told.remedies:
            raise _Failed(f"{told.code} offers no next command") from None
        return f"{told.code} and a next command"
    raise _Failed("it was accepted")


def _check_answer(play: Play, flight: FlightView, word: str) -> None:
    if flight.state is not FlightState.COMPLETED:
        raise _Failed(f"the flight is {flight.state}: {_shorten(flight.reason)}")
    text = flight.output or ""
    if not text or (word not in text and play.can.calls_model):
        raise _Failed(f"it was asked for {word} and answered: {_shorten(text) or 'nothing'}")


def _require_failure(flight: FlightView) -> str:
    if flight.state is not FlightState.FAILED:
        raise _Failed(f"the broken turn is {flight.state}")
    if not flight.reason:
        raise _Failed("the broken turn failed without a reason")
    return f"its flight failed: {_shorten(flight.reason)}"


def _make_word() -> str:
    return str(100_000 + secrets.randbelow(900_000))


def _build_prompt(word: str) -> str:
    return f"Answer with this number and nothing else, without using a tool: {word}"


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


# -- the checklist -----------------------------------------------------------------------------------


class Promise(NamedTuple):
    """A line of the checklist, how it is tried, and whether that takes a session of the harness."""

    line: str
    try_it: Callable[[Play], Awaitable[str]]
    paid: bool = False


FREE = (
    Promise("ready on this machine", _check_ready),
    Promise("stable identity", _check_identity),
    Promise("guides senders by diagnostics", _check_guidance),
    Promise("documents its permission and wake behaviour", _check_profiles),
)
PAID = tuple(
    Promise(line, try_it, paid=True)
    for line, try_it in (
        ("registers or attaches an endpoint", _check_endpoint),
        ("deterministic start, attach and inspect", _check_resolution),
        ("reports harness and session mismatch with a remedy", _check_mismatch),
        ("receives an ask and gives a flight result", _check_first_answer),
        ("replies without losing actor and conversation", _check_conversation),
        ("needs no mentions in bodies", _check_target),
        ("imports no transcripts", _check_imports),
        ("reports usage or marked estimates", _check_usage),
        ("receives a message", _check_mail),
        ("recovers or explains after a restart", _check_recovery),
        ("cancels a turn", _check_cancel),
        ("reports waiting", _check_waiting),
        ("reports failed", _check_failure),
    )
)


def judge_without_trial(wish: CheckWish) -> list[CheckLine] | None:
    """Return the verdicts if nothing can be tried: the harness is not ready, or no program is given."""
    probe, can, name = wish.probe, wish.harness.capabilities, wish.harness.name
    ready, *others = (*FREE, *PAID)
    if not probe.ready:
        look = Remedy(operation="runtimes", parameters={}, why="after it is repaired")
        first = CheckLine(line=ready.line, verdict=Verdict.FAILED, because=probe.hint, remedies=(look,))
        reason = "it is not ready"
    elif can.needs_command and can.calls_model and not wish.program:
        first = CheckLine(line=ready.line, verdict=Verdict.PASSED, because=probe.version or "found")
        reason = f"name the program that it runs: scout runtimes --check {name} --command PROGRAM"
    else:
        return None
    return [first, *(CheckLine(line=one.line, verdict=Verdict.NOT_TRIED, because=reason) for one in others)]


async def judge(promise: Promise, play: Play, wish: CheckWish) -> CheckLine:
    """Try one promise; any failure is a verdict."""
    if promise.paid and wish.harness.capabilities.calls_model and not wish.consent:
        parameters = {"harness": wish.harness.name, "yes": True, "command": [*wish.program] or None}
        again = Remedy(operation="runtimes.check", parameters=parameters, why="allow its turns")
        return CheckLine(
            line=promise.line, verdict=Verdict.NOT_TRIED, because="needs consent", remedies=(again,)
        )
    verdict, because, remedies = await _judge_promise(promise, play)
    return CheckLine(line=promise.line, verdict=verdict, because=because, remedies=remedies)


async def _judge_promise(promise: Promise, play: Play) -> tuple[Verdict, str, tuple[Remedy, ...]]:
    next_step = _suggest_next_step(play.wish)
    try:
        return Verdict.PASSED, await promise.try_it(play), ()
    except _NotSupported as reason:
        return Verdict.NOT_SUPPORTED, str(reason), ()
    except _NotTried as reason:
        return Verdict.NOT_TRIED, str(reason), ()
    except Refused as refusal:
        because = f"{refusal.diagnostic.code}: {refusal.diagnostic.message}"
        return Verdict.FAILED, because, (next_step,)
    except TimeoutError:
        return Verdict.FAILED, f"nothing happened within {_TURN:g} s", (next_step,)
    except (_Failed, NotStarted, OSError) as problem:
        return Verdict.FAILED, str(problem), (next_step,)


def _suggest_next_step(wish: CheckWish) -> Remedy:
    """Return the same check without the given program, or the doctor."""
    if wish.program and not wish.harness.capabilities.calls_model:
        parameters = {"harness": wish.harness.name}
        return Remedy(operation="runtimes.check", parameters=parameters, why="with a program that answers")
    return Remedy(operation="doctor", parameters={}, why="what is wrong with this installation")
