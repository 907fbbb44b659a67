"""Asking a person: in the inbox, and in a form if the client supports forms. The first answer wins.

Only the inbox decides. A client runs under the agent's credential, so an answer from it could come from
the agent itself: it is returned to the agent, marked as answered at the client, and the agent withdraws
the item it raised. No record ever states that the person decided it.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from mcp.shared.exceptions import MCPError

from scout.base.refusal import Refused, WrongState
from scout.mcp.call import LONGEST, STEP, UNASKED, Call
from scout.mcp.tools.forms import ask_client, build_form, can_show_forms, has_sessions, read_answer
from scout.mcp.tools.result import build_call, drop_empty
from scout.model.attention import ATTENTION
from scout.model.problems.request import NotFound
from scout.protocol.attention import AttentionView, DismissAttention, GetAttention, Need

_ANSWER = "answer"
_SHOWN = ("id", "state", "title", "answer", "reason", "decidedBy", "expiresAt")


async def ask_person(call: Call, request: Need) -> dict[str, Any]:
    """Return the answer, or the open question when the wait times out."""
    item = await _open_item(call, request)
    if not can_show_forms(call.session.client_capabilities):
        return await _wait_for_decision(call, item)
    shown = {_ANSWER: build_form(request.question, request.options)}
    if has_sessions(call):
        return await _wait_for_first(call, item, ask_client(call, shown))
    said = read_answer((await ask_client(call, shown, item.id))[_ANSWER])
    return await (_withdraw(call, item, said) if said else _wait_for_decision(call, item))


async def _open_item(call: Call, request: Need) -> AttentionView:
    """Return the item that a retry resumes, or a new one; state returned by a client is only looked up."""
    ident = call.params.request_state
    if ident is None:
        return await call.scout.call(request)
    item = await call.scout.call(GetAttention(attention_id=ident))
    if item.source.id != call.caller.identity.agent_id:
        raise Refused(NotFound(noun="attention item", id=ident))
    return item


async def _wait_for_first(
    call: Call, item: AttentionView, asked: Coroutine[Any, Any, dict[str, Any]]
) -> dict[str, Any]:
    """Return the first answer, from the inbox or from the client's form."""
    shown = asyncio.ensure_future(asked)
    inbox = asyncio.ensure_future(_wait_for_decision(call, item))
    try:
        await asyncio.wait({shown, inbox}, return_when="FIRST_COMPLETED")
        said = _read_answer(shown) if shown.done() and not inbox.done() else None
        if said:
            return await _withdraw(call, item, said)
        told = await inbox
        shown.cancel()
        await asyncio.wait({shown})  # the form is withdrawn before the result ends the stream
        return told
    finally:
        shown.cancel()
        inbox.cancel()


async def _wait_for_decision(call: Call, item: AttentionView) -> dict[str, Any]:
    now = asyncio.get_running_loop().time
    until, steps = now() + (LONGEST if call.patient else UNASKED), 0
    while item.state not in ATTENTION.terminal and (left := until - now()) > 0:
        steps += 1
        await call.tell(steps, f"{item.id} waits for the person's answer")
        item = await call.ask(GetAttention(attention_id=item.id, wait=min(STEP, left)))
    told = drop_empty(item, _SHOWN)
    if item.state not in ATTENTION.terminal:
        return {**told, "next": build_call("messages_inbox", claim=True)}
    return told


async def _withdraw(call: Call, item: AttentionView, answer: str) -> dict[str, Any]:
    """Return the client's answer, unless the person decided in the inbox first."""
    try:
        reason = "answered at the agent's own client"
        item = await call.scout.call(DismissAttention(attention_id=item.id, reason=reason))
    except Refused as refused:
        if not isinstance(refused.diagnostic, WrongState):
            raise
        return await _wait_for_decision(call, await call.scout.call(GetAttention(attention_id=item.id)))
    return {**drop_empty(item, _SHOWN), "answer": answer, "answeredAt": "client"}


def _read_answer(shown: "asyncio.Future[dict[str, Any]]") -> str | None:
    """Return the form's answer; None if the client failed to show the form."""
    return None if isinstance(shown.exception(), MCPError) else read_answer(shown.result()[_ANSWER])
