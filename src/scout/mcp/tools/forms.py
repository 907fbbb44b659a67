"""Forms that the client shows to its person, in both generations of the protocol."""

from collections.abc import Mapping
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from scout.base.codec import encode
from scout.mcp.call import Call

_ANSWER = "answer"
_RESULTS: Mapping[type[Any], type[Any]] = {
    ElicitRequest: ElicitResult,
    CreateMessageRequest: CreateMessageResult,
    ListRootsRequest: ListRootsResult,
}


class FormRequest(Exception):  # noqa: N818 (an answer, not a fault)
    """A call that the client has to repeat with the requested input."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("the client is asked")
        self.result = result


def has_sessions(call: Call) -> bool:
    """Whether the server can send a request to the client while the client's own request is running."""
    return call.session.protocol_version not in MODERN_PROTOCOL_VERSIONS


def can_show_forms(offered: ClientCapabilities | None) -> bool:
    """Whether a client can show a form."""
    forms = offered.elicitation if offered else None
    return forms is not None and (forms.form is not None or forms.url is None)


def check_offered(call: Call, needed: ClientCapabilities) -> None:
    """Refuse a client without the capabilities that a call needs."""
    if not call.session.check_client_capability(needed):
        facts = {"requiredCapabilities": needed.model_dump(by_alias=True, mode="json", exclude_none=True)}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "the client lacks a required capability", facts)


async def ask_client(
    call: Call, requests: Mapping[str, InputRequest], state: str | None = None
) -> dict[str, Any]:
    """Return the client's responses: requested directly in a session, else taken from its repeated call."""
    if has_sessions(call):
        about = ServerMessageMetadata(related_request_id=call.request_id)
        return {
            name: await call.session.send_request(one, _RESULTS[type(one)], metadata=about)
            for name, one in requests.items()
        }
    given = call.params.input_responses or {}
    found = {name: given[name] for name in requests if name in given}
    if len(found) < len(requests):
        raise FormRequest(InputRequiredResult(input_requests=dict(requests), request_state=state))
    return found


def build_form(message: str, options: tuple[str, ...] = ()) -> ElicitRequest:
    """Return a form with one answer, as free text or one of the options."""
    choice: dict[str, Any] = {"enum": [*options]} if options else {}
    schema = {"type": "object", "properties": {_ANSWER: {"type": "string", **choice}}, "required": [_ANSWER]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def read_answer(result: object) -> str | None:
    """Return the answer to a form; content without an answer field is returned as JSON."""
    if not isinstance(result, ElicitResult) or result.action != "accept" or not result.content:
        return None
    if _ANSWER in result.content:
        return str(result.content[_ANSWER] or "").strip() or None
    return encode(result.content).decode()
