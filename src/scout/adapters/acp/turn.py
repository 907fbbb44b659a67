"""One turn with an agent, read from the files of its program: from its beginning, whoever comes to read."""

from collections.abc import AsyncIterator

from scout.adapters.acp.events import INTERRUPTED, AcpReader, chosen, problem_of, reason_of
from scout.adapters.persistent.pipe import PipeLine, Wire, WireLimits
from scout.adapters.persistent.rpc import Rpc, RpcError, is_call, message_of, result_of, tag_of_reply
from scout.adapters.transcript import Entry, inner, items, text
from scout.base.codec import encode
from scout.model.problems.session import Layer
from scout.ports import Failed, HarnessEvent, HumanAnswer, Limited, Prompt, RequestSettled

STOPPED = "the session was stopped"
_PERMISSION = "session/request_permission"
_YES = HumanAnswer(allow=True)


def cancel_tag(delivery_id: str) -> str:
    """Under which tag a turn is told to stop."""
    return f"cancel:{delivery_id}"


def request_name(wire: Wire, ident: object) -> str:
    """How a person's answer finds its way back: the program, and its own name for the request."""
    return f"{wire.run.folder.name}.{encode(ident).decode()}"


def open_request(wire: Wire, name: str) -> Entry | None:
    """The request of this name, unless it was answered."""
    for line in wire.said():
        message = message_of(line.text)
        if is_call(message) and request_name(wire, message["id"]) == name:
            return None if wire.begun_at(tag_of_reply(message["id"])) is not None else message
    return None


class TurnOn:
    """A turn that the program was told. It reads, and answers what needs no person."""

    def __init__(self, wire: Wire, prompt: Prompt, model: str | None, limits: WireLimits) -> None:
        self._wire = wire
        self._rpc = Rpc(wire)
        self._delivery = prompt.delivery_id
        self._limits = limits
        self._reader = AcpReader(prompt.text, model)
        told = next(one for one in wire.told() if one.tag == prompt.delivery_id)
        self.native_id = str(message_of(told.text)["params"]["sessionId"])
        self._begun = told.at
        self._open = dict[str, str]()  # what a person was asked, and the tag of its answer
        self._asked = False

    async def events(self) -> AsyncIterator[HarnessEvent]:
        """All that it tells, to its end."""
        async for line in self._wire.heard(self._begun):
            message = message_of(line.text)
            if message.get("id") == self._delivery and "method" not in message:
                for event in self._ended(message):
                    yield event
                return
            for event in (*self._settled(), *await self._meant(message)):
                yield event
            await self._bound(line)
        yield self._gone()

    async def answered(self) -> bool:
        """Wait until the turn is over; whether the program said so."""
        async for line in self._wire.heard(self._begun):
            if self._is_end(line):
                return True
        return False

    def is_over(self) -> bool:
        """Whether the program has said how the turn ended."""
        return any(self._is_end(line) for line in self._wire.said(self._begun))

    def open_requests(self) -> list[object]:
        """What the program still waits for."""
        calls = (message_of(line.text) for line in self._wire.said(self._begun))
        idents = (one["id"] for one in calls if is_call(one))
        return [ident for ident in idents if self._wire.begun_at(tag_of_reply(ident)) is None]

    def _is_end(self, line: PipeLine) -> bool:
        message = message_of(line.text)
        return message.get("id") == self._delivery and "method" not in message

    # -- what a message means --------------------------------------------------------------------

    async def _meant(self, message: Entry) -> list[HarnessEvent]:
        params = inner(message, "params")
        if is_call(message):
            return await self._request(message, params)
        if message.get("method") == "session/update" and params.get("sessionId") == self.native_id:
            return self._reader.update(inner(params, "update"))
        return []

    async def _request(self, message: Entry, params: Entry) -> list[HarnessEvent]:
        ident = message["id"]
        tag = tag_of_reply(ident)
        if message["method"] != _PERMISSION:
            await self._rpc.refuse(ident, f"no such method: {message['method']}")
            return []
        if self._reader.is_scouts(params):
            await self._rpc.reply(ident, {"outcome": chosen(items(params.get("options")), _YES)})
            return []
        self._asked = True
        name = request_name(self._wire, ident)
        shown = self._reader.asked(name, params)
        if self._wire.begun_at(tag) is not None:
            return shown[:-1]
        self._open[name] = tag
        return shown

    def _settled(self) -> list[HarnessEvent]:
        done = [name for name, tag in self._open.items() if self._wire.begun_at(tag) is not None]
        for name in done:
            del self._open[name]
        return [RequestSettled(request=name) for name in done]

    # -- ends ------------------------------------------------------------------------------------

    def _ended(self, message: Entry) -> list[HarnessEvent]:
        cancelled = self._wire.begun_at(cancel_tag(self._delivery)) is not None
        try:
            result_of(message)
        except RpcError as error:
            return [self._problem(error, cancelled=cancelled)]
        return self._reader.ended(inner(message, "result"), cancelled=cancelled, asked=self._asked)

    def _problem(self, error: RpcError, *, cancelled: bool) -> Failed | Limited:
        if cancelled:
            return Failed(layer=Layer.SESSION, reason=INTERRUPTED)
        kind = text(error.data, "errorKind")
        return problem_of(reason_of(str(error), error.data), error.code, kind)

    def _gone(self) -> Failed:
        """The program ended in the middle of the turn."""
        stopped, log = self._wire.run.stopped, str(self._wire.run.stderr)
        if stopped in (INTERRUPTED, STOPPED):
            return Failed(layer=Layer.SESSION, reason=stopped, log=log)
        return Failed(
            layer=Layer.PROCESS, reason=f"the agent ended during its turn: {self._wire.end}", log=log
        )

    async def _bound(self, line: PipeLine) -> None:
        if line.after > self._limits.output:
            await self._wire.stop(f"it wrote more than {self._limits.output} bytes", self._limits)
