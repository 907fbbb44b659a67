"""Sending posts through one connector: each attempt is on disk before the platform is called.

After a crash an attempt without an answer is made again: as it is where the platform shows a repeated message
once, else with the note "(may be a repeat)". Posts of one chat keep their order: while one of them
waits for another attempt, those behind it wait too.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from scout.base.refusal import Refused
from scout.base.time import Time
from scout.broker.people.chat_messages import (
    GONE,
    PostContent,
    build_edit,
    build_messages,
    mark_repeat,
    read_content,
)
from scout.broker.people.chat_posts import record_post
from scout.broker.routing import posts
from scout.broker.transaction.services import Services
from scout.broker.transaction.transaction import Transaction
from scout.model.attention import Attention, AttentionMove, AttentionState, notify_attention
from scout.model.conversation import Message, MessageKind
from scout.model.delivery import back_off
from scout.model.events.envelope import Metadata
from scout.model.events.talk import AttentionNotified
from scout.model.people.chat_post import (
    ChatPost,
    PostState,
    add_part,
    confirm_post,
    delay_post,
    fail_post,
    is_due_post,
    is_edit,
    replace_post,
    retry_post,
    start_attempt,
)
from scout.model.people.user import ConnectorKey, KeyState
from scout.policy.people.quiet_hours import find_quiet_end
from scout.ports.connector import Connector, ConnectorError, FailureKind, OutboundText
from scout.store.ledger import Ledger

T = TypeVar("T")
_LOG = logging.getLogger("scout.connectors")
_AT_ONCE = 50
_MANY = 10_000
_END = (1 << 63) - 1
_LONGEST = 30.0  # seconds between two looks at the queue
_UNLINKED = "the chat account is no longer linked"


class SendingBroker(Protocol):
    """The broker as a sender needs it."""

    services: Services

    async def read(self, work: Callable[[Ledger], T]) -> T: ...
    async def as_system(self, work: Callable[[Transaction], T]) -> T: ...


class _Attempt(NamedTuple):
    post: ChatPost
    content: PostContent


class ChatSender:
    """Sends the posts of one connector until a failure of its credentials ends it."""

    def __init__(self, broker: SendingBroker, connector: Connector) -> None:
        self._broker = broker
        self._services = broker.services
        self._connector = connector
        self._news = asyncio.Event()
        self._blocked: dict[str, Time] = {}  # chats that the platform asked to wait with, until when
        self._waits_until: Time | None = None  # the platform is out of reach
        self._suspects = set[str]()  # chats whose posts failed, which are tried after the others
        self._failures = 0
        self._busy = asyncio.Lock()  # held while a post is sent

    def wake(self) -> None:
        """Look at the queue now."""
        self._news.set()

    async def run(self) -> None:
        """Send what is due, again and again."""
        await self._recover()
        while True:
            self._news.clear()
            await self._send_due()
            await self._rest()

    async def finish(self) -> None:
        """Wait until what is being sent is sent, and send nothing more."""
        await self._busy.acquire()

    async def settle(self) -> None:
        """Wait until what is being sent now is recorded, so that its ids on the platform are known."""
        async with self._busy:
            pass

    async def _recover(self) -> None:
        """Put back what was being sent when the broker ended."""
        name = self._connector.name

        def put_back(tx: Transaction) -> list[ChatPost]:
            for post in tx.ledger.many(ChatPost, "chat_posts_sending", connector=name, limit=_MANY):
                reason = "Scout was restarted while it was sent"
                record_post(tx, retry_post(post, reason, tx.now, tx.now, uncertain=True))
            return tx.ledger.many(ChatPost, "chat_posts_due", connector=name, now=_END, limit=_MANY)

        waiting = await self._broker.as_system(put_back)
        self._blocked = {
            one.chat_id: one.next_attempt_at for one in waiting if one.attempts and not one.uncertain
        }

    async def _send_due(self) -> None:
        while not self._is_waiting() and (found := await self._find_due()):
            for post in found:
                if not self._is_waiting() and not self._is_blocked(post.chat_id):
                    await self._send(post)

    def _is_waiting(self) -> bool:
        return self._waits_until is not None and self._services.clock.now() < self._waits_until

    async def _find_due(self) -> list[ChatPost]:
        """Return the next posts; each chat in the order in which they were queued."""
        now = self._services.clock.now()
        values = {"connector": self._connector.name, "now": int(now), "limit": _AT_ONCE}
        found = await self._broker.read(lambda ledger: ledger.many(ChatPost, "chat_posts_due", **values))
        return [one for one in sorted(found, key=lambda one: one.id) if not self._is_blocked(one.chat_id)]

    def _is_blocked(self, chat_id: str) -> bool:
        until = self._blocked.get(chat_id)
        if until is not None and until <= self._services.clock.now():
            del self._blocked[chat_id]
            return False
        return until is not None

    async def _rest(self) -> None:
        """Wait until there is something to send, or time has passed."""
        name = self._connector.name
        next_at = await self._broker.read(lambda ledger: ledger.value("chat_posts_next", connector=name))
        now = self._services.clock.now()
        moments = [Time(next_at)] if next_at is not None and Time(next_at) > now else []
        moments += [*self._blocked.values(), *([self._waits_until] if self._waits_until else [])]
        seconds = min([one.since(now) for one in moments] + [_LONGEST])
        try:
            async with asyncio.timeout(max(seconds, 0.02)):
                await self._news.wait()
        except TimeoutError:
            return

    # -- one post ----------------------------------------------------------------------------------

    async def _send(self, post: ChatPost) -> None:
        async with self._busy:
            await self._attempt(post)

    async def _attempt(self, post: ChatPost) -> None:
        quiet = await self._find_quiet_end(post)
        attempt = await self._broker.as_system(lambda tx: self._begin(tx, post.id, quiet))
        if attempt is None:
            return
        try:
            await (self._replace(attempt) if is_edit(attempt.post) else self._show(attempt))
            self._failures = 0
        except ConnectorError as problem:
            error = problem
            await self._broker.as_system(lambda tx: _record_failure(tx, post.id, error))
            if error.kind is FailureKind.CREDENTIALS:
                raise
            if error.kind is FailureKind.RETRY:
                self._hold_back(post.chat_id, error)

    async def _find_quiet_end(self, post: ChatPost) -> Time | None:
        """Return when the quiet hours of the chat end; nothing that is urgent or already shown waits."""
        if post.urgent or post.parts or is_edit(post) or post.key_id is None:
            return None
        key = await self._broker.read(lambda ledger: ledger.get(ConnectorKey, post.key_id))
        if key is None or key.quiet is None:
            return None
        try:
            zone = await asyncio.to_thread(self._services.zones.load, key.quiet.time_zone)
        except Refused as unknown:  # the machine knows it no longer
            _LOG.warning("quiet hours of %s: %s", key.id, unknown)
            return None
        return find_quiet_end(key.quiet, zone, self._services.clock.now())

    def _begin(self, tx: Transaction, post_id: str, quiet: Time | None) -> _Attempt | None:
        """Count the attempt before it is made; or find that it is not to be made now."""
        post = tx.get(ChatPost, post_id)
        if post is None or not is_due_post(post, tx.now):
            return None
        if quiet is not None:
            record_post(tx, delay_post(post, quiet, tx.now, reason="quiet hours"))
            return None
        problem = self._find_problem(tx, post)
        content = read_content(tx, post, self._connector.capabilities)
        if problem or content is None:
            give_up(tx, post, problem or GONE)
            return None
        return _Attempt(record_post(tx, start_attempt(post, tx.now)), content)

    def _find_problem(self, tx: Transaction, post: ChatPost) -> str:
        """Return why a post is never sent: its account was unlinked, or it is too old."""
        key = tx.get(ConnectorKey, post.key_id)
        if post.key_id is not None and (key is None or key.state is not KeyState.ACTIVE):
            return _UNLINKED
        is_old = tx.now.since(post.created_at) > tx.rules.periods.chat_expiry and not is_edit(post)
        return post.problem or "it could not be sent in time" if is_old and post.attempts else ""

    async def _show(self, attempt: _Attempt) -> None:
        """Send the parts that are not shown yet, and record each."""
        post = attempt.post
        messages = await asyncio.to_thread(
            build_messages, post, attempt.content, self._connector.capabilities, self._services.blobs
        )
        for number in range(len(post.parts), len(messages)):
            message = self._mark(post, messages[number]) if number == len(post.parts) else messages[number]
            shown = (await self._connector.send(message)).message_id
            is_last = number == len(messages) - 1
            await self._broker.as_system(
                lambda tx, part=shown, last=is_last: _record_part(tx, post.id, part, last)
            )
        if len(post.parts) >= len(messages):
            await self._broker.as_system(lambda tx: _record_part(tx, post.id, None, True))

    def _mark(self, post: ChatPost, message: OutboundText) -> OutboundText:
        repeats = post.uncertain and not self._connector.capabilities.repeats_safely
        return mark_repeat(message) if repeats else message

    async def _replace(self, attempt: _Attempt) -> None:
        """Show the outcome instead of the buttons; where a platform cannot edit, as a new message."""
        post, able = attempt.post, self._connector.capabilities
        message = await asyncio.to_thread(build_edit, post, attempt.content, able)
        if able.edits:
            await self._connector.edit(post.parts[-1], message)
        await self._broker.as_system(lambda tx: _record_replaced(tx, post.id))

    # -- failures ----------------------------------------------------------------------------------

    def _hold_back(self, chat_id: str, error: ConnectorError) -> None:
        """Wait as long as the platform says, with this chat; if it is out of reach, with all of them."""
        now = self._services.clock.now()
        _LOG.warning("%s", error.reason)
        if error.retry_after is not None:
            self._blocked[chat_id] = now.plus(error.retry_after)
            return
        self._failures += 1
        pause = back_off(self._failures, self._services.rules.back_off)
        self._waits_until = now.plus(pause)
        # It may be only this post that the platform cannot handle, so the other chats are tried first.
        self._blocked[chat_id] = now.plus(2 * pause)
        self._suspects.add(chat_id)

    def resume(self) -> None:
        """Try again at once: the platform answers."""
        self._waits_until = None
        for chat_id in self._suspects:
            self._blocked.pop(chat_id, None)
        self._suspects.clear()
        self.wake()


def _record_failure(tx: Transaction, post_id: str, error: ConnectorError) -> None:
    post = tx.get(ChatPost, post_id)
    if post is None or post.state is not PostState.SENDING:
        return
    if error.kind is FailureKind.REFUSED:
        give_up(tx, post, error.reason)
        return
    at = tx.now.plus(error.retry_after or 0)
    record_post(tx, retry_post(post, error.reason, at, tx.now, uncertain=error.uncertain))


def _record_part(tx: Transaction, post_id: str, part: str | None, is_last: bool) -> None:
    post = tx.need(ChatPost, "chat post", post_id)
    if not is_last and part is not None:
        record_post(tx, add_part(post, part, tx.now))
        return
    shown = record_post(tx, confirm_post(post, part, tx.now))
    item = tx.get(Attention, shown.attention_id)
    if item is not None and item.state is AttentionState.OPEN:
        tx.record(AttentionNotified, notify_attention(item, tx.now), move=AttentionMove.NOTIFY)


def _record_replaced(tx: Transaction, post_id: str) -> None:
    post = tx.need(ChatPost, "chat post", post_id)
    if post.state is PostState.SENDING:
        record_post(tx, replace_post(post, tx.now))


def give_up(tx: Transaction, post: ChatPost, problem: str) -> None:
    """Fail a post, and tell the sender of a message that was not shown."""
    record_post(tx, fail_post(post, problem, tx.now))
    message = tx.get(Message, post.message_id)
    if message is None or is_edit(post) or message.sender in tx.services.own_agents:
        return
    own = tx.services.system_agent
    place = posts.ensure_direct_conversation(tx, own, message.sender)
    notice = posts.post_message(
        tx,
        place.id,
        f"not shown in the {post.connector} chat of {post.user}: {problem}",
        sender=own,
        kind=MessageKind.STATUS,
        metadata=Metadata(target_agents=(message.sender,)),
    )
    posts.create_delivery(
        tx, notice, message.sender, rule="notice", reason="a message was not shown in a chat"
    )
