"""The handshake with an agent: initialize, open the session, set mode and model.

Each call has its own tag, so repeating the handshake with the same program returns the same answers.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from scout.adapters.acp.events import LOGIN_NEEDED, extract_reason
from scout.adapters.harness import MCP_KEY, TurnImpossible
from scout.adapters.persistent.pipe import Pipe
from scout.adapters.persistent.rpc import Rpc, RpcError, parse_message
from scout.adapters.transcript import Entry, get_object, get_text, to_list
from scout.model.agent import PermissionProfile
from scout.model.problems.session import Layer, Missing
from scout.ports import SessionSpec

_VERSION = 1
_NO_SUCH_METHOD = -32601
_OPEN = "open"

# Mode names of agents, the best match for a profile first.
_WRITING = ("workspace-write", "acceptEdits", "auto-edit", "autoEdit", "build", "default")
_MODES = {
    PermissionProfile.OBSERVE: ("read-only", "plan"),
    PermissionProfile.REVIEW: ("read-only", "default", "plan"),
    PermissionProfile.WORKSPACE_WRITE: _WRITING,
    PermissionProfile.TRUSTED: ("agent-full-access", "full-access", "bypassPermissions", "yolo", *_WRITING),
}
_STRICT = {PermissionProfile.OBSERVE, PermissionProfile.REVIEW}

# Login methods that only need an environment variable, and no person.
_KEYS = {
    "api-key": ("CODEX_API_KEY", "OPENAI_API_KEY"),
    "codex-api-key": ("CODEX_API_KEY",),
    "openai-api-key": ("OPENAI_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "gemini-api-key": ("GEMINI_API_KEY",),
    "anthropic-api-key": ("ANTHROPIC_API_KEY",),
}


class AcpSession(NamedTuple):
    """The agent's session id, and the model that it reports."""

    native_id: str
    model: str | None = None


def has_no_context(pipes: list[Pipe]) -> bool:
    """Whether these programs only started a session and never got a turn, so that there is no context yet."""
    told = [parse_message(one.text).get("method") for pipe in pipes for one in pipe.read_sent_lines()]
    return "session/new" in told and not {"session/prompt", "session/load", "session/resume"} & set(told)


class AcpOpening:
    """The handshake from a started program to a session that takes prompts."""

    def __init__(self, rpc: Rpc, spec: SessionSpec, cwd: str, environment: Mapping[str, str]) -> None:
        self._rpc = rpc
        self._spec = spec
        self._cwd = cwd
        self._environment = environment

    async def open(self, native_id: str | None) -> AcpSession:
        """Open a new session, or exactly the given one."""
        try:
            hello = await self._rpc.call("initialize", "initialize", _GREETING)
            if hello.get("protocolVersion") != _VERSION:
                raise RpcError(f"the agent speaks version {hello.get('protocolVersion')} of the protocol")
            told, made = await self._open_session(hello, native_id)
            session = str(made.get("sessionId") or told)
            await self._set_mode(session, made)
            model = await self._set_model(session, made)
        except RpcError as error:
            raise _explain_error(error) from error
        return AcpSession(session, model)

    # -- which session ---------------------------------------------------------------------------

    async def _open_session(self, hello: Entry, native_id: str | None) -> tuple[str, Entry]:
        """Return the requested session id (empty for a new session) and the agent's answer."""
        can = get_object(hello, "agentCapabilities")
        more = get_object(can, "sessionCapabilities")
        before = self._find_earlier_request()
        named = before if before is not None else native_id or ""
        if not named and not self._spec.fork_of:
            return "", await self._request(hello, _OPEN, "session/new", {})
        if not named:
            if "fork" not in more:
                raise RpcError("the agent cannot fork a session")
            return "", await self._request(hello, _OPEN, "session/fork", {"sessionId": self._spec.fork_of})
        if "resume" in more:
            try:
                return named, await self._request(hello, _OPEN, "session/resume", {"sessionId": named})
            except RpcError as error:
                if error.code != _NO_SUCH_METHOD:  # some agents announce a method that they lack
                    raise
        if not can.get("loadSession"):
            raise RpcError("the agent can neither resume nor load a session")
        return named, await self._load(hello, named)

    def _find_earlier_request(self) -> str | None:
        """Return the session that was already requested; empty for a new one, None if none was."""
        for one in self._rpc.pipe.read_sent_lines():
            if one.tag == _OPEN:
                message = parse_message(one.text)
                known = message.get("method") in ("session/resume", "session/load")
                return get_text(get_object(message, "params"), "sessionId") if known else ""
        return None

    async def _load(self, hello: Entry, named: str) -> Entry:
        """Load a session. Its messages must be replayed: some agents open a new one for an unknown id."""
        made = await self._request(hello, "load", "session/load", {"sessionId": named})
        begun = self._rpc.pipe.find_position("load") or 0
        updates = [
            get_object(parse_message(line.text), "params") for line in self._rpc.pipe.read_lines(begun)
        ]
        kinds = {get_text(get_object(one, "update"), "sessionUpdate") for one in updates}
        if not kinds & {"user_message_chunk", "agent_message_chunk"}:
            raise RpcError(f"the agent has no messages of session {named}")
        return made

    async def _request(self, hello: Entry, tag: str, method: str, params: Entry) -> Entry:
        whole = {**params, "cwd": self._cwd, "mcpServers": self._list_servers(hello)}
        try:
            return await self._rpc.call(tag, method, whole) or {}
        except RpcError as error:
            way = self._choose_login(hello) if error.code == LOGIN_NEEDED else None
            if way is None:
                raise
        await self._rpc.call("authenticate", "authenticate", {"methodId": way})
        return await self._rpc.call(f"{tag}-again", method, whole) or {}

    def _list_servers(self, hello: Entry) -> list[Entry]:
        """Return Scout's MCP server, if the agent supports HTTP servers."""
        can = get_object(get_object(hello, "agentCapabilities"), "mcpCapabilities")
        door = self._spec.door
        if door is None or not can.get("http"):
            return []
        headers = [{"name": "Authorization", "value": f"Bearer {door.token}"}]
        return [{"type": "http", "name": MCP_KEY, "url": door.url, "headers": headers}]

    def _choose_login(self, hello: Entry) -> str | None:
        """Return the first login method whose environment variables are set."""
        for method in to_list(hello.get("authMethods")):
            ident = get_text(method, "id")
            given = [get_text(one, "name") for one in to_list(method.get("vars"))]
            if any(self._environment.get(name) for name in given or _KEYS.get(ident, ())):
                return ident
        return None

    # -- how it works ----------------------------------------------------------------------------

    async def _set_mode(self, session: str, made: Entry) -> None:
        profile = self._spec.permission
        modes = get_object(made, "modes")
        option = _find_option(made, "mode")
        offered = [get_text(one, "id") for one in to_list(modes.get("availableModes"))] or _list_values(
            option
        )
        mode = next((one for one in _MODES[profile] if one in offered), None)
        if mode is None:
            if profile in _STRICT:
                raise RpcError(f"the agent has no mode for the permission profile {profile}")
            return
        if mode == (get_text(modes, "currentModeId") or get_text(option, "currentValue")):
            return
        if modes:
            await self._rpc.call("mode", "session/set_mode", {"sessionId": session, "modeId": mode})
        else:
            await self._set_option(session, "mode", option, mode)

    async def _set_model(self, session: str, made: Entry) -> str | None:
        """Select the requested model; return the agent's name of the model in use."""
        option = _find_option(made, "model")
        current = (
            get_text(option, "currentValue") or get_text(get_object(made, "models"), "currentModelId") or None
        )
        wanted = self._spec.model
        if wanted is None or not option or wanted == current:
            return current
        for one in _list_choices(option):
            value = get_text(one, "value")
            if wanted.casefold() in (value.casefold(), get_text(one, "name").casefold()):
                await self._set_option(session, "model", option, value)
                return value
        names = ", ".join(_list_values(option)[:8])
        raise RpcError(f"the agent has no model {wanted}; it has {names}")

    async def _set_option(self, session: str, tag: str, option: Entry, value: str) -> None:
        params = {"sessionId": session, "configId": option["id"], "value": value}
        await self._rpc.call(tag, "session/set_config_option", params)


_GREETING = {
    "protocolVersion": _VERSION,
    "clientCapabilities": {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False},
    "clientInfo": {"name": "scout", "version": "1"},
}


def _explain_error(error: RpcError) -> TurnImpossible:
    reason = extract_reason(str(error), error.data)
    if error.code == LOGIN_NEEDED:
        return TurnImpossible(reason, Layer.PROVIDER, missing=Missing.LOGIN)
    return TurnImpossible(reason, Layer.HARNESS)


def _find_option(made: Entry, category: str) -> Entry:
    options = to_list(made.get("configOptions"))
    return next((one for one in options if get_text(one, "category") == category), Entry())


def _list_choices(option: Entry) -> list[Any]:
    """Return the values of an option; groups are flattened."""
    return [value for one in to_list(option.get("options")) for value in to_list(one.get("options")) or [one]]


def _list_values(option: Entry) -> list[str]:
    return [get_text(one, "value") for one in _list_choices(option)]
