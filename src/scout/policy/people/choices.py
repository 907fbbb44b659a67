"""How an attention item is decided from a chat: by buttons, by reactions, or by a reply."""

import re
from collections.abc import Sequence

from scout.base.record import Record
from scout.base.visible import make_visible
from scout.model.access.allowance import AllowanceScope
from scout.model.attention import Attention, AttentionKind, AttentionMove
from scout.model.people.chat import Button
from scout.model.people.chat_post import ChatChoice
from scout.policy.people.chat_texts import quote_text

_APPROVE, _DENY = AttentionMove.APPROVE, AttentionMove.DENY
_YES = ChatChoice(label="Approve", move=_APPROVE, word="yes", reaction="👍")
_ONCE = ChatChoice(label="Once", move=_APPROVE, word="once", reaction="👍")
_SESSION = ChatChoice(
    label="This session", move=_APPROVE, word="session", reaction="🔁", scope=AllowanceScope.SESSION
)
_ALWAYS = ChatChoice(label="Always", move=_APPROVE, word="always", reaction="♾️", scope=AllowanceScope.AGENT)
_NO = ChatChoice(label="Deny", move=_DENY, word="no", reaction="👎")
_DONE = ChatChoice(label="Done", move=_APPROVE, word="done", reaction="👍")
_DISMISS = ChatChoice(label="Dismiss", move=AttentionMove.DISMISS, word="dismiss", reaction="👎")

_BY_KIND = {
    AttentionKind.APPROVAL: (_YES, _NO),
    AttentionKind.REVIEW: (_YES, _NO),
    AttentionKind.WAITING: (_DONE, _DISMISS),
    AttentionKind.FAILURE: (_DONE, _DISMISS),
    AttentionKind.SETUP: (_DONE, _DISMISS),
    AttentionKind.QUESTION: (),
    AttentionKind.CONSULT: (_YES, _NO),
    AttentionKind.NOTIFY: (),
}
# Words that people type for the same.
_SAME = {
    **dict.fromkeys(("y", "yep", "ok", "okay", "approve", "approved", "allow", "sure", "👍"), "yes"),
    **dict.fromkeys(("n", "nope", "deny", "denied", "stop", "👎"), "no"),
}
_VARIANT = "\ufe0f"


def list_choices(item: Attention) -> tuple[ChatChoice, ...]:
    """Return how an item can be decided by one tap; a question without options is answered by a reply."""
    options = [one for one in item.actions if one.move is AttentionMove.ANSWER and one.value]
    if options:
        return tuple(
            ChatChoice(
                label=make_visible(one.label).strip() or str(number),
                move=AttentionMove.ANSWER,
                word=str(number),
                reaction=f"{number}{_VARIANT}\u20e3" if number <= 9 else "",
                answer=one.value,
            )
            for number, one in enumerate(options, 1)
        )
    if item.kind is not AttentionKind.PERMISSION:
        return _BY_KIND[item.kind]
    return _list_permission_choices(item)


def _list_permission_choices(item: Attention) -> tuple[ChatChoice, ...]:
    """Return the choices of a permission; only a request that is known in full can be allowed for longer."""
    wish = item.permission
    if wish is None or wish.observed or wish.cut:
        return (_YES, _NO)
    session = (_SESSION,) if item.return_path.session_id else ()
    return (_ONCE, *session, _ALWAYS, _NO)


def takes_reply(item: Attention) -> bool:
    """Whether any text answers the item."""
    return any(one.move is AttentionMove.ANSWER for one in item.actions)


# -- what is shown -----------------------------------------------------------------------------------


class OfferedChoices(Record):
    """What stands below a post: buttons, and lines that say what else can be typed or reacted.

    Where a platform has no buttons, these are the reactions that the bot gives itself, to be tapped.
    """

    buttons: tuple[Button, ...] = ()
    lines: tuple[str, ...] = ()


def offer_choices(
    post_id: str,
    choices: Sequence[ChatChoice],
    *,
    buttons: int,
    label_limit: int,
    reactions: bool,
    replies: bool,
) -> OfferedChoices:
    """Return how choices are offered on a platform with this many buttons."""
    shown = _fit(choices, buttons)
    labels = _shorten_labels(shown, label_limit)
    made = [
        Button(label=label, value=build_value(post_id, choices.index(one)))
        for one, label in zip(shown, labels, strict=True)
    ]
    if reactions and not buttons:
        made = [Button(label=one.label, value=one.reaction) for one in choices if one.reaction]
    rest = [one for one in choices if one not in shown or len(one.label) > label_limit]
    return OfferedChoices(buttons=tuple(made), lines=tuple(_list_lines(rest, reactions, replies)))


def _shorten_labels(choices: Sequence[ChatChoice], limit: int) -> list[str]:
    """Return the labels of buttons; with their words in front where they would look the same."""
    labels = [shorten_label(one.label, limit) for one in choices]
    if len(set(labels)) < len(labels):
        return [shorten_label(f"{one.word} {one.label}", limit) for one in choices]
    return labels


def _fit(choices: Sequence[ChatChoice], buttons: int) -> tuple[ChatChoice, ...]:
    """Return the choices that get a button: all, or the first ones and the last, which refuses."""
    if len(choices) <= buttons:
        return tuple(choices)
    return (*choices[: buttons - 1], choices[-1]) if buttons > 1 else ()


def _list_lines(rest: Sequence[ChatChoice], reactions: bool, replies: bool) -> list[str]:
    if reactions:
        lines = [f"{one.reaction} {quote_text(one.label)}" for one in rest if one.reaction]
        lines += [_describe_word(one) for one in rest if not one.reaction]
    else:
        lines = [_describe_word(one) for one in rest]
    return [*lines, *(["Reply to this message to answer."] if replies else [])]


def _describe_word(choice: ChatChoice) -> str:
    return f"Reply {choice.word}: {quote_text(choice.label)}"


def shorten_label(label: str, limit: int) -> str:
    """Return a label of at most this many characters."""
    return label if len(label) <= limit else f"{label[: limit - 1]}…"


def build_value(post_id: str, index: int) -> str:
    """Return the value of a button: the post and the place of the choice in it."""
    return f"{post_id}:{index}"


# -- what comes back ---------------------------------------------------------------------------------


def read_value(value: str) -> tuple[str, int] | None:
    """Return the post and the place of the choice of a pressed button; None for another value."""
    post_id, colon, index = value.rpartition(":")
    return (post_id, int(index)) if colon and index.isdecimal() and len(index) < 5 else None


def find_reaction(choices: Sequence[ChatChoice], reaction: str) -> ChatChoice | None:
    """Return the choice that a reaction stands for."""
    wanted = _bare(reaction)
    return next((one for one in choices if one.reaction and _bare(one.reaction) == wanted), None)


def find_reply(choices: Sequence[ChatChoice], text: str) -> ChatChoice | None:
    """Return the choice that a reply names: its word, its label, its number, or a common synonym."""
    typed = re.sub(r"[\s.!]+$", "", text.strip()).casefold()
    for one in choices:
        if typed in (one.word.casefold(), one.label.casefold()):
            return one
    meant = _SAME.get(_bare(typed), typed)
    if meant == "yes":
        return next((one for one in choices if one.move is _APPROVE), None)
    return next((one for one in choices if one.move is _DENY), None) if meant == "no" else None


def _bare(sign: str) -> str:
    """Return a sign without its variant and its skin colour."""
    return re.sub("[\ufe0f\U0001f3fb-\U0001f3ff]", "", sign.strip())
