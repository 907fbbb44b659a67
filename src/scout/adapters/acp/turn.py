"""One turn with an agent, read from the beginning of its program's files."""

from collections.abc import AsyncIterator

from scout.adapters.acp.events import AcpReader, choose_option, classify_error, extract_reason
from scout.adapters.harness import INTERRUPTED
from scout.adapters.persistent.harness import accept, describe_end
from scout.adapters.persistent.pipe import Pipe
from scout.adapters.persistent.rpc import Rpc, RpcError, build_reply_tag, get_result, is_call, parse_message
from scout.adapters.transcript import Entry, get_object, get_text, to_list
from scout.base.codec import encode
from scout.model.problems.session import Layer
from scout.ports import Failed, HarnessEvent, HumanAnswer, Identified, Limited, RequestSettled

_PERMISSION = "session/request_permission"
_YES = HumanAnswer(allow=True)


def _build_cancel_tag(delivery_id: str) -> str:
    """Return the tag of the line that cancels a turn."""
    return f"cancel:{delivery_id}"


def build_request_name(pipe: Pipe, ident: object) -> str:
    """Return the name by which a person's answer finds the request: program and request id."""
    return f"{pipe.run.folder.name}.{encode(ident).decode()}"


def find_request(pipe: Pipe, name: str) -> Entry | None:
    """Return the request of this name; None if it was answered."""
    for line in pipe.read_lines():
        message = parse_message(line.text)
        if is_call(message) and build_request_name(pipe, message["id"]) == name:
            return None if pipe.find_position(build_reply_tag(message["id"])) is not None else message
    return None


class AcpTurn:
    """A turn that was sent to the program. Reads its output, and answers requests that need no person."""

    def __init__(self, pipe: Pipe, delivery_id: str, text: str = "", model: str | None = None) -> None:
        self._pipe = pipe
        self._rpc = Rpc(pipe)
        self._delivery = delivery_id
        self._model = model
        self._reader = AcpReader(text, model)
        sent = next(one for one in pipe.read_sent_lines() if one.tag == delivery_id)
        self._native_id = str(parse_message(sent.text)["params"]["sessionId"])
        self._begun = sent.at
        self._open = dict[str, str]()  # open requests to a person, each with the tag of its answer
        self._asked = False

    @property
    def is_waiting(self) -> bool:
        return bool(self._open)

    async def events(self) -> AsyncIterator[HarnessEvent]:
        yield accept(self._pipe)
        yield Identified(native_ids={"session": self._native_id}, model=self._model)
        async for line in self._pipe.follow_lines(self._begun):
            message = parse_message(line.text)
            if self._is_end(message):
                for event in self._read_end(message):
                    yield event
                return
            for event in (*self._settle(), *await self._read(message)):
                yield event
        yield describe_end(self._pipe)

    async def cancel(self) -> None:
        """Cancel the turn, and wait until it has ended."""
        await self._rpc.notify(
            "session/cancel", {"sessionId": self._native_id}, _build_cancel_tag(self._delivery)
        )
        for ident in self._list_requests():
            await self._rpc.reply(ident, {"outcome": {"outcome": "cancelled"}})
        async for line in self._pipe.follow_lines(self._begun):
            if self._is_end(parse_message(line.text)):
                return

    def is_over(self) -> bool:
        """Whether the program has reported the end of the turn."""
        return any(self._is_end(parse_message(line.text)) for line in self._pipe.read_lines(self._begun))

    def _list_requests(self) -> list[object]:
        """Return the ids of the requests that have no answer."""
        calls = (parse_message(line.text) for line in self._pipe.read_lines(self._begun))
        idents = (one["id"] for one in calls if is_call(one))
        return [ident for ident in idents if self._pipe.find_position(build_reply_tag(ident)) is None]

    def _is_end(self, message: Entry) -> bool:
        return message.get("id") == self._delivery and "method" not in message

    # -- what a message means --------------------------------------------------------------------

    async def _read(self, message: Entry) -> list[HarnessEvent]:
        params = get_object(message, "params")
        if is_call(message):
            return await self._read_request(message, params)
        if message.get("method") == "session/update" and params.get("sessionId") == self._native_id:
            return self._reader.read_update(get_object(params, "update"))
        return []

    async def _read_request(self, message: Entry, params: Entry) -> list[HarnessEvent]:
        ident = message["id"]
        tag = build_reply_tag(ident)
        if message["method"] != _PERMISSION:
            await self._rpc.refuse(ident, f"no such method: {message['method']}")
            return []
        if self._reader.is_scouts(params):
            await self._rpc.reply(ident, {"outcome": choose_option(to_list(params.get("options")), _YES)})
            return []
        self._asked = True
        name = build_request_name(self._pipe, ident)
        shown = self._reader.read_request(name, params)
        if self._pipe.find_position(tag) is not None:
            return shown[:-1]
        self._open[name] = tag
        return shown

    def _settle(self) -> list[HarnessEvent]:
        done = [name for name, tag in self._open.items() if self._pipe.find_position(tag) is not None]
        for name in done:
            del self._open[name]
        return [RequestSettled(request=name) for name in done]

    # -- ends ------------------------------------------------------------------------------------

    def _read_end(self, message: Entry) -> list[HarnessEvent]:
        cancelled = self._pipe.find_position(_build_cancel_tag(self._delivery)) is not None
        try:
            get_result(message)
        except RpcError as error:
            return [self._build_failure(error, cancelled=cancelled)]
        return self._reader.read_end(get_object(message, "result"), cancelled=cancelled, asked=self._asked)

    def _build_failure(self, error: RpcError, *, cancelled: bool) -> Failed | Limited:
        if cancelled:
            return Failed(layer=Layer.SESSION, reason=INTERRUPTED)
        kind = get_text(error.data, "errorKind")
        return classify_error(extract_reason(str(error), error.data), error.code, kind)
