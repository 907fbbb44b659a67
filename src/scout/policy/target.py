"""Whom a message is for: the structured target first, then the leading mention, never a guess."""

from collections.abc import Callable

from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, BadRequest, Diagnostic, Refused, Remedy
from scout.identity.mention import Mention, find_mentions
from scout.policy.resolve import Resolution

ResolveAddress = Callable[[str], Resolution]


class Targeting(Record):
    """Who is meant and why; soft mentions are hints, `unresolved` is what the receipt notes.

    `leading`: whom the body begins with, also where the target was named beside it.
    """

    rule: str
    target: Resolution | None = None
    leading: Resolution | None = None
    soft: tuple[str, ...] = ()
    unresolved: tuple[Diagnostic, ...] = ()


def decide_target(body: str, to: str | None, elsewhere: bool, resolve: ResolveAddress) -> Targeting:
    """The target of a body. `elsewhere`: a channel, conversation or broadcast was named instead of `to`."""
    mentions = find_mentions(body)
    soft = tuple(mention.address.canonical for mention in mentions.soft if mention.address)
    if to is not None:
        found, (leading, noted) = resolve(to), _noted(mentions.leading, resolve)
        return Targeting(rule="structured target", target=found, leading=leading, soft=soft, unresolved=noted)
    if mentions.leading is not None:
        found = _mentioned(mentions.leading, resolve)
        return Targeting(rule="leading mention", target=found, leading=found, soft=soft)
    if elsewhere:
        return Targeting(rule="conversation", soft=soft)
    raise Refused(
        BadRequest(
            problem="no target: name an agent or a channel, or begin the body with a mention",
            field="to",
            remedies=(
                Remedy(operation="who", parameters={}, why="list agents"),
                Remedy(operation="send", parameters={"to": PLACEHOLDER, "body": PLACEHOLDER}),
            ),
        )
    )


def _mentioned(mention: Mention, resolve: ResolveAddress) -> Resolution:
    if mention.problem is not None:
        raise Refused(mention.problem)
    return resolve(mention.text)


def _noted(
    mention: Mention | None, resolve: ResolveAddress
) -> tuple[Resolution | None, tuple[Diagnostic, ...]]:
    """With a structured target a mention that leads nowhere is no reason to refuse."""
    if mention is None:
        return None, ()
    try:
        return _mentioned(mention, resolve), ()
    except Refused as refusal:
        return None, (refusal.diagnostic,)
