"""Tools that need more than one request: long waits and combined results."""

import asyncio
from typing import Any

from scout.mcp.call import LONGEST, STEP, UNASKED, Call
from scout.mcp.tools.result import build_call, describe_flight, drop_empty
from scout.mcp.tools.tasks import build_task, can_use_tasks
from scout.model.ask import AskReceipt, ReplyMode
from scout.model.events.envelope import Event, get_record
from scout.model.events.event_types import get_event_type
from scout.model.flight import FLIGHT
from scout.protocol.agents import Identity, WhoAmI
from scout.protocol.asks import GetFlight, MakeAsk
from scout.protocol.channels import ChannelView, ListChannels
from scout.protocol.inbox import ClaimInbox, InboxItem, ListInbox, build_acknowledgements
from scout.protocol.log import ReadFeed
from scout.protocol.request import Page


async def identify_caller(call: Call, _: WhoAmI) -> dict[str, Any]:
    """Return the caller's identity, with the role that decides its tools."""
    identity: Identity = call.caller.identity
    return {**drop_empty(identity), "role": str(call.caller.role)}


async def ask(call: Call, request: MakeAsk) -> dict[str, Any]:
    """Return a task if the client supports tasks, else the receipt and the call that gets the result."""
    receipt: AskReceipt = await call.scout.call(request)
    if request.reply_mode is ReplyMode.INLINE and can_use_tasks(call.session):
        return await build_task(call, receipt.flight_id)
    after = build_call("invocations_wait", flightId=receipt.flight_id)
    if request.reply_mode is ReplyMode.NOTIFY:
        after = build_call("messages_inbox", claim=True)
    return {**drop_empty(receipt), "next": after}


async def show_flight(call: Call, request: GetFlight) -> dict[str, Any]:
    """Return a flight, and the call to wait for it while it is open."""
    return describe_flight(await call.scout.call(request))


async def wait_for_flight(call: Call, request: GetFlight) -> dict[str, Any]:
    """Wait until the flight is finished, up to the requested time; each change is reported as progress."""
    view = await call.scout.call(GetFlight(flight_id=request.flight_id))
    now = asyncio.get_running_loop().time
    until, steps = now() + min(request.wait or UNASKED, LONGEST), 0
    while view.state not in FLIGHT.terminal and (left := until - now()) > 0:
        steps += 1
        await call.tell(steps, f"{view.state} ({view.phase}): {view.reason}")
        seen = view.revision if call.patient else None
        view = await call.ask(GetFlight(flight_id=view.id, wait=min(STEP, left), seen=seen))
    return describe_flight(view)


async def read_inbox(call: Call, request: ListInbox | ClaimInbox) -> Page[dict[str, Any]]:
    """Return the inbox. Claimed items are acknowledged by this call and are not delivered again."""
    if isinstance(request, ClaimInbox):
        claimed = await call.scout.call(request)
        for taken in build_acknowledgements(claimed.items):
            await call.scout.call(taken)
        return Page(items=tuple(_describe_item(one) for one in claimed.items))
    page = await call.scout.call(request)
    return Page(items=tuple(_describe_item(one) for one in page.items), next=page.next)


async def list_channels(call: Call, request: ListChannels) -> Page[dict[str, Any]]:
    """Return the caller's channels with their members and unread counts."""
    page = await call.scout.call(request)
    return Page(items=tuple(_describe_channel(one) for one in page.items), next=page.next)


def _describe_channel(channel: ChannelView) -> dict[str, Any]:
    members = [one.address for one in channel.members]
    return {"channel": channel.name, "unread": channel.unread, "members": members}


async def read_feed(call: Call, request: ReadFeed) -> Page[dict[str, Any]]:
    """Return the events that concern an agent, in short form."""
    page = await call.scout.call(request)
    return Page(items=tuple(_describe_event(one) for one in page.items), next=page.next)


def _describe_item(item: InboxItem) -> dict[str, Any]:
    message = item.message
    return drop_empty(
        {
            "deliveryId": item.delivery_id,
            "messageId": message.id if message else None,
            "from": item.sender,
            "node": item.sender_node,
            "channel": item.channel,
            "broadcast": item.broadcast or None,
            "kind": message.kind if message else None,
            "body": message.body if message else item.prompt,
            "conversationId": message.conversation_id if message else None,
            "seq": item.seq,
            "about": item.about or None,
            "askId": message.ask_id if message else None,
            "flightId": message.flight_id if message else None,
            "workItemId": message.work_item_id if message else None,
            "at": message.created_at if message else None,
        }
    )


def _describe_event(event: Event) -> dict[str, Any]:
    record = get_record(event)
    names = ("state", "phase", "reason", "problem", "body", "text", "title", "answer", "output")
    about = {name: getattr(record, name, None) for name in names}
    move = getattr(event.payload, "move", None)
    return drop_empty(
        {
            "seq": event.seq,
            "at": event.time,
            "type": get_event_type(type(event)),
            "id": event.target.id,
            "move": move,
            **about,
        }
    )
