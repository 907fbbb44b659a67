"""Chat posts: what Scout shows in a chat. Each is stored before the platform is called for it."""

from enum import StrEnum

from msgspec.structs import replace

from scout.base.machine import Machine, Mutable, change_record, move_record
from scout.base.record import Record
from scout.base.refusal import BadRequest, Refused
from scout.base.time import Time
from scout.model.access.allowance import AllowanceScope
from scout.model.attention import AttentionMove
from scout.model.people.chat import ChatPlace


class PostState(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"
    REPLACED = "replaced"


class PostMove(StrEnum):
    SEND = "send"
    SHOW = "show"
    CONFIRM = "confirm"
    RETRY = "retry"
    DELAY = "delay"
    FAIL = "fail"
    DECIDE = "decide"
    REPLACE = "replace"


CHAT_POST = Machine(
    "chat post",
    PostState.QUEUED,
    {
        PostState.QUEUED: {
            PostMove.SEND: PostState.SENDING,
            PostMove.DELAY: PostState.QUEUED,
            PostMove.FAIL: PostState.FAILED,
            PostMove.REPLACE: PostState.REPLACED,
        },
        PostState.SENDING: {
            PostMove.SHOW: PostState.SENDING,
            PostMove.CONFIRM: PostState.SENT,
            PostMove.RETRY: PostState.QUEUED,
            PostMove.FAIL: PostState.FAILED,
            PostMove.DECIDE: PostState.SENDING,
            PostMove.REPLACE: PostState.REPLACED,
        },
        PostState.SENT: {
            PostMove.DECIDE: PostState.QUEUED,
            PostMove.FAIL: PostState.FAILED,  # the platform reports it afterwards
        },
        PostState.FAILED: {},
        PostState.REPLACED: {},
    },
)


class ChatChoice(Record, omit_defaults=True):
    """One way to decide an attention item from a chat: a button, a reaction, or a word of a reply.

    `scope`: a standing decision, as wide as this. `answer`: the text that answers a question.
    """

    label: str
    move: AttentionMove
    word: str = ""
    reaction: str = ""
    answer: str | None = None
    scope: AllowanceScope | None = None


class ChatPost(Mutable):
    """One post in one chat. Its text is that of a message, of an attention item, or `text` of Scout itself.

    A message and an item are referred to and not copied, so that a redacted text is gone. `parts`: the ids on
    the platform of what is shown, one for each part of a long text. `outcome`: the words that replace the
    buttons once the item is decided. `reply_to`: the message on the platform that it answers. `author`: the
    agent whose words these are, named at the beginning. `uncertain`: an attempt ended without an answer, so
    the next one may show the part again.
    """

    connector: str
    place: ChatPlace
    user: str
    key_id: str | None = None
    message_id: str | None = None
    attention_id: str | None = None
    text: str = ""
    choices: tuple[ChatChoice, ...] = ()
    reply_to: str | None = None
    author: str | None = None
    urgent: bool = False
    state: PostState = PostState.QUEUED
    parts: tuple[str, ...] = ()
    outcome: str = ""
    attempts: int = 0
    uncertain: bool = False
    next_attempt_at: Time
    problem: str = ""
    created_by: str

    @property
    def chat_id(self) -> str:
        return self.place.chat_id


def check_post(post: ChatPost) -> ChatPost:
    """Return the post; refuse one without exactly one source."""
    sources = (post.message_id, post.attention_id, post.text or None)
    if sum(one is not None for one in sources) != 1:
        raise Refused(BadRequest(problem="a chat post shows a message, an attention item or a text"))
    return post


def is_due_post(post: ChatPost, now: Time) -> bool:
    """Whether the post may be sent now."""
    return post.state is PostState.QUEUED and post.next_attempt_at <= now


def is_edit(post: ChatPost) -> bool:
    """Whether what is shown is to be replaced, instead of a new message sent."""
    return bool(post.outcome)


def start_attempt(post: ChatPost, now: Time) -> ChatPost:
    """Start the next attempt; it is counted before the platform is called."""
    return move_record(CHAT_POST, post, PostMove.SEND, now, attempts=post.attempts + 1)


def add_part(post: ChatPost, part: str, now: Time) -> ChatPost:
    """Record that one more part is shown; the attempt continues with the next."""
    return move_record(
        CHAT_POST, post, PostMove.SHOW, now, parts=(*post.parts, part), uncertain=False, problem=""
    )


def confirm_post(post: ChatPost, part: str | None, now: Time) -> ChatPost:
    """Record that the last part is shown. An item that was decided meanwhile is queued to be replaced."""
    parts = post.parts if part is None else (*post.parts, part)
    shown = move_record(CHAT_POST, post, PostMove.CONFIRM, now, parts=parts, uncertain=False, problem="")
    return _requeue(shown, now) if post.outcome else shown


def retry_post(post: ChatPost, problem: str, at: Time, now: Time, *, uncertain: bool) -> ChatPost:
    """Put a failed attempt back in the queue. `uncertain`: the platform may have shown it nevertheless.

    An item that was decided before anything of it was shown needs no other attempt.
    """
    if post.outcome and not post.parts:
        return move_record(CHAT_POST, post, PostMove.REPLACE, now, problem=problem)
    return move_record(
        CHAT_POST, post, PostMove.RETRY, now, problem=problem, next_attempt_at=at, uncertain=uncertain
    )


def delay_post(post: ChatPost, at: Time, now: Time, *, reason: str) -> ChatPost:
    """Wait until a moment, such as the end of quiet hours."""
    return move_record(CHAT_POST, post, PostMove.DELAY, now, next_attempt_at=at, problem=reason)


def fail_post(post: ChatPost, problem: str, now: Time) -> ChatPost:
    """Give the post up."""
    return move_record(CHAT_POST, post, PostMove.FAIL, now, problem=problem)


def decide_post(post: ChatPost, outcome: str, now: Time) -> ChatPost:
    """Record that the item was decided: what is shown is replaced, and what is not shown yet is not sent."""
    if post.state is PostState.SENT:
        return _requeue(replace(post, outcome=outcome), now)
    if post.state is PostState.SENDING:
        return move_record(CHAT_POST, post, PostMove.DECIDE, now, outcome=outcome)
    if post.parts:
        return change_record(CHAT_POST.noun, post, now, outcome=outcome)
    return move_record(CHAT_POST, post, PostMove.REPLACE, now, outcome=outcome)


def replace_post(post: ChatPost, now: Time) -> ChatPost:
    """Record that the outcome is shown."""
    return move_record(CHAT_POST, post, PostMove.REPLACE, now, problem="")


def _requeue(post: ChatPost, now: Time) -> ChatPost:
    return move_record(CHAT_POST, post, PostMove.DECIDE, now, attempts=0, next_attempt_at=now)
