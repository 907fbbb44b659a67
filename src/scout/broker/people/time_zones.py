"""Time zones that a request names. A refusal repeats the request as it may be meant."""

import asyncio
from collections.abc import Sequence
from datetime import tzinfo
from typing import Any

from msgspec.structs import replace

from scout.base.refusal import Diagnostic, Refused, Remedy
from scout.broker.transaction.call import CallBroker, CallContext
from scout.protocol.correction import list_parameters
from scout.protocol.request import Request


async def load_zone(call: CallContext[CallBroker], request: Request[Any], name: str) -> tzinfo:
    """Return a time zone; a refusal repeats the request with the zones that may be meant."""
    try:
        return await asyncio.to_thread(call.services.zones.load, name)
    except Refused as refusal:
        problem = refusal.diagnostic
        near = [{"timeZone": one.address} for one in problem.candidates]
        raise Refused(repeat_request(request, problem, near)) from None


def repeat_request(
    request: Request[Any], problem: Diagnostic, changes: Sequence[dict[str, str]]
) -> Diagnostic:
    """Return a refusal whose remedies repeat the request, each with other parameters."""
    own = list_parameters(request)
    remedies = [Remedy(operation=request.operation, parameters={**own, **one}) for one in changes]
    return replace(problem, remedies=tuple(remedies))
