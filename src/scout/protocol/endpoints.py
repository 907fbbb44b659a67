"""Requests about endpoints: the places where an agent can be reached."""

from typing import Annotated, ClassVar

from scout.model.agent import PermissionProfile, WakePolicy
from scout.model.endpoint import Endpoint, EndpointState, Transport
from scout.protocol.parameters import Revision, Words, describe
from scout.protocol.request import Request, Write


class RegisterEndpoint(Write[Endpoint]):
    """Register an endpoint for an agent. Each process, node or session has its own endpoint."""

    operation: ClassVar[str] = "endpoint.register"
    route: ClassVar[str] = "POST /v1/endpoints"
    status: ClassVar[int] = 201
    permission: ClassVar[str] = "the agent itself, or callers who control it"

    agent_id: Annotated[Words | None, describe("the agent; default: you")] = None
    harness: Words | None = None
    model: Words | None = None
    node: Words | None = None
    transport: Transport = Transport.PULL
    session_id: Words | None = None
    state: EndpointState = EndpointState.IDLE
    preferred: bool = False
    wake_policy: WakePolicy | None = None
    permission_profile: PermissionProfile | None = None


class Heartbeat(Request[Endpoint]):
    """Send a heartbeat for an endpoint."""

    operation: ClassVar[str] = "endpoint.heartbeat"
    route: ClassVar[str] = "POST /v1/endpoints/{endpointId}/heartbeat"
    words: ClassVar[tuple[str, ...]] = ("endpointId",)
    permission: ClassVar[str] = "the agent itself, or callers who control it"
    writes: ClassVar[bool] = True

    endpoint_id: Words


class UpdateEndpoint(Write[Endpoint]):
    """Change an endpoint's state or settings. Only allowed state changes are accepted."""

    operation: ClassVar[str] = "endpoint.update"
    route: ClassVar[str] = "PATCH /v1/endpoints/{endpointId}"
    words: ClassVar[tuple[str, ...]] = ("endpointId",)
    permission: ClassVar[str] = "the agent itself, or callers who control it"

    endpoint_id: Words
    state: EndpointState | None = None
    preferred: bool | None = None
    model: Words | None = None
    session_id: Words | None = None
    wake_policy: WakePolicy | None = None
    permission_profile: PermissionProfile | None = None
    reason: Annotated[Words, describe("why the endpoint failed or was lost")] = ""
    revision: Revision = None


class RemoveEndpoint(Write[Endpoint]):
    """Remove an endpoint. Its record is kept as stopped."""

    operation: ClassVar[str] = "endpoint.remove"
    route: ClassVar[str] = "DELETE /v1/endpoints/{endpointId}"
    words: ClassVar[tuple[str, ...]] = ("endpointId",)
    permission: ClassVar[str] = "the agent itself, or callers who control it"

    endpoint_id: Words
