"""The target of a message: the structured target first, then the leading mention, never a guess."""

from collections.abc import Callable

from scout.base.record import Record
from scout.base.refusal import PLACEHOLDER, BadRequest, Diagnostic, Refused, Remedy
from scout.identity.mention import Mention, find_mentions
from scout.policy.resolve import Resolution

ResolveAddress = Callable[[str], Resolution]


class Targeting(Record):
    """The target and the rule that decided; soft mentions are hints, `unresolved` is noted in the receipt.

    `leading`: the agent mentioned at the start of the body, even if the target was given separately.
    """

    rule: str
    target: Resolution | None = None
    leading: Resolution | None = None
    soft: tuple[str, ...] = ()
    unresolved: tuple[Diagnostic, ...] = ()


def decide_target(body: str, to: str | None, elsewhere: bool, resolve: ResolveAddress) -> Targeting:
    """Return the target of a body. `elsewhere`: a channel, conversation or broadcast replaces `to`."""
    mentions = find_mentions(body)
    soft = tuple(mention.address.canonical for mention in mentions.soft if mention.address)
    if to is not None:
        found, (leading, noted) = resolve(to), _try_mention(mentions.leading, resolve)
        return Targeting(rule="structured target", target=found, leading=leading, soft=soft, unresolved=noted)
    if mentions.leading is not None:
        found = _resolve_mention(mentions.leading, resolve)
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


def _resolve_mention(mention: Mention, resolve: ResolveAddress) -> Resolution:
    if mention.problem is not None:
        raise Refused(mention.problem)
    return resolve(mention.text)


def _try_mention(
    mention: Mention | None, resolve: ResolveAddress
) -> tuple[Resolution | None, tuple[Diagnostic, ...]]:
    """Resolve a mention beside a structured target; a mention that fails is noted, not refused."""
    if mention is None:
        return None, ()
    try:
        return _resolve_mention(mention, resolve), ()
    except Refused as refusal:
        return None, (refusal.diagnostic,)
