"""Events of names and rights: aliases, cards, bindings, users, keys, schedules, grants, tokens and nodes."""

from collections.abc import Mapping

from scout.model.access.grant import Grant, GrantMove
from scout.model.access.token import Token, TokenMove
from scout.model.alias import Alias, AliasMove
from scout.model.card import Card, CardMove
from scout.model.events.envelope import Changed, Event
from scout.model.mesh.member import Invitation, InvitationMove
from scout.model.node import Node, NodeMove
from scout.model.people.binding import Binding, BindingMove
from scout.model.people.link_code import LinkCode, LinkCodeMove
from scout.model.people.schedule import Schedule, ScheduleMove
from scout.model.people.user import ConnectorKey, KeyMove, User, UserMove


class AliasEvent(Event):
    payload: Changed[Alias]


class AliasCreated(AliasEvent, tag="collab.alias.created"):
    """An alias was created."""


class AliasRetargeted(AliasEvent, tag="collab.alias.retargeted"):
    """The alias points to another target."""


class AliasBrokenEvent(AliasEvent, tag="collab.alias.broken"):
    """The alias no longer names exactly one target."""


class AliasRepaired(AliasEvent, tag="collab.alias.repaired"):
    """The alias points to its target again."""


class AliasRemoved(AliasEvent, tag="collab.alias.removed"):
    """The alias was removed; its name is free."""


ALIAS_EVENTS: Mapping[AliasMove, type[AliasEvent]] = {
    AliasMove.RETARGET: AliasRetargeted,
    AliasMove.BREAK: AliasBrokenEvent,
    AliasMove.REPAIR: AliasRepaired,
    AliasMove.REMOVE: AliasRemoved,
}


class CardEvent(Event):
    payload: Changed[Card]


class CardCreated(CardEvent, tag="collab.card.created"):
    """A card (a return address) was issued."""


class CardUsed(CardEvent, tag="collab.card.used"):
    """The card was used, possibly for the last time."""


class CardExpired(CardEvent, tag="collab.card.expired"):
    """The card expired."""


class CardRevoked(CardEvent, tag="collab.card.revoked"):
    """The card was revoked."""


CARD_EVENTS: Mapping[CardMove, type[CardEvent]] = {
    CardMove.USE: CardUsed,
    CardMove.USE_UP: CardUsed,
    CardMove.EXPIRE: CardExpired,
    CardMove.REVOKE: CardRevoked,
}


class BindingEvent(Event):
    payload: Changed[Binding]


class BindingCreated(BindingEvent, tag="collab.binding.created"):
    """An external chat, thread or peer was linked to a conversation or an agent."""


class BindingClosed(BindingEvent, tag="collab.binding.closed"):
    """The link was closed."""


class BindingReopened(BindingEvent, tag="collab.binding.reopened"):
    """The link was reopened."""


BINDING_EVENTS: Mapping[BindingMove, type[BindingEvent]] = {
    BindingMove.CLOSE: BindingClosed,
    BindingMove.REOPEN: BindingReopened,
}


class UserEvent(Event):
    payload: Changed[User]


class UserCreated(UserEvent, tag="collab.user.created"):
    """A person or group was added."""


class UserUpdated(UserEvent, tag="collab.user.updated"):
    """The user's display name changed."""


class UserRetired(UserEvent, tag="collab.user.retired"):
    """The user was retired, with its agents; the record is kept."""


class UserRevived(UserEvent, tag="collab.user.revived"):
    """The user was revived, with the agents that were retired with it."""


USER_EVENTS: Mapping[UserMove, type[UserEvent]] = {
    UserMove.RETIRE: UserRetired,
    UserMove.REVIVE: UserRevived,
}


class KeyEvent(Event):
    payload: Changed[ConnectorKey]


class KeyLinked(KeyEvent, tag="collab.key.linked"):
    """An external id was linked to a user."""


class KeyUpdated(KeyEvent, tag="collab.key.updated"):
    """The quiet hours, the chat or the display name of the account changed."""


class KeyFreed(KeyEvent, tag="collab.key.freed"):
    """The external id was unlinked from its user."""


KEY_EVENTS: Mapping[KeyMove, type[KeyEvent]] = {KeyMove.UPDATE: KeyUpdated, KeyMove.FREE: KeyFreed}


class LinkCodeEvent(Event):
    """The record holds the hash of the code; no event contains the code."""

    payload: Changed[LinkCode]


class LinkCodeIssued(LinkCodeEvent, tag="collab.key.code_issued"):
    """A one-time code was issued that links a chat account to a user."""


class LinkCodeRedeemed(LinkCodeEvent, tag="collab.key.code_redeemed"):
    """The code was typed in a chat and linked its account."""


class LinkCodeRevoked(LinkCodeEvent, tag="collab.key.code_revoked"):
    """The code was withdrawn before it was used."""


LINK_CODE_EVENTS: Mapping[LinkCodeMove, type[LinkCodeEvent]] = {
    LinkCodeMove.REDEEM: LinkCodeRedeemed,
    LinkCodeMove.REVOKE: LinkCodeRevoked,
}


class ScheduleEvent(Event):
    payload: Changed[Schedule]


class ScheduleCreated(ScheduleEvent, tag="collab.schedule.created"):
    """A recurring ask was created."""


class ScheduleUpdated(ScheduleEvent, tag="collab.schedule.updated"):
    """The schedule's time, target, text or policy changed."""


class ScheduleFired(ScheduleEvent, tag="collab.schedule.fired"):
    """The schedule started one run."""


class ScheduleSkipped(ScheduleEvent, tag="collab.schedule.skipped"):
    """A run did not take place: it was missed, or the previous one had not ended."""


class ScheduleHeld(ScheduleEvent, tag="collab.schedule.held"):
    """A run waits for the previous one to end."""


class ScheduleFailed(ScheduleEvent, tag="collab.schedule.failed"):
    """A run could not start; its owner is told why."""


class SchedulePaused(ScheduleEvent, tag="collab.schedule.paused"):
    """The schedule was paused."""


class ScheduleResumed(ScheduleEvent, tag="collab.schedule.resumed"):
    """The schedule was resumed."""


class ScheduleEnded(ScheduleEvent, tag="collab.schedule.ended"):
    """The schedule ended; there are no more runs."""


SCHEDULE_EVENTS: Mapping[ScheduleMove, type[ScheduleEvent]] = {
    ScheduleMove.CHANGE: ScheduleUpdated,
    ScheduleMove.FIRE: ScheduleFired,
    ScheduleMove.SKIP: ScheduleSkipped,
    ScheduleMove.HOLD: ScheduleHeld,
    ScheduleMove.FAIL: ScheduleFailed,
    ScheduleMove.PAUSE: SchedulePaused,
    ScheduleMove.RESUME: ScheduleResumed,
    ScheduleMove.END: ScheduleEnded,
}


class GrantEvent(Event):
    payload: Changed[Grant]


class GrantCreated(GrantEvent, tag="collab.grant.created"):
    """A permission was granted."""


class GrantRevoked(GrantEvent, tag="collab.grant.revoked"):
    """The grant was revoked."""


class GrantExpired(GrantEvent, tag="collab.grant.expired"):
    """The grant expired."""


GRANT_EVENTS: Mapping[GrantMove, type[GrantEvent]] = {
    GrantMove.REVOKE: GrantRevoked,
    GrantMove.EXPIRE: GrantExpired,
}


class TokenEvent(Event):
    """The record holds the hash of the secret; no event contains the secret."""

    payload: Changed[Token]


class TokenCreated(TokenEvent, tag="collab.token.created"):
    """A token was created."""


class TokenRevoked(TokenEvent, tag="collab.token.revoked"):
    """The token was revoked."""


class TokenExpired(TokenEvent, tag="collab.token.expired"):
    """The token expired."""


TOKEN_EVENTS: Mapping[TokenMove, type[TokenEvent]] = {
    TokenMove.REVOKE: TokenRevoked,
    TokenMove.EXPIRE: TokenExpired,
}


class NodeEvent(Event):
    payload: Changed[Node]


class NodeCreated(NodeEvent, tag="collab.node.created"):
    """A node was added: this machine at its first start, another when it joins."""


class NodeUpdated(NodeEvent, tag="collab.node.updated"):
    """The node's version, address or key changed."""


class NodeLost(NodeEvent, tag="collab.node.lost"):
    """The node does not respond."""


class NodeRecovered(NodeEvent, tag="collab.node.recovered"):
    """The node responds again."""


class NodeLeft(NodeEvent, tag="collab.node.left"):
    """The node left, or was silent for too long."""


class NodeRemoved(NodeEvent, tag="collab.node.removed"):
    """The node was removed; its requests are refused."""


class NodeAdmitted(NodeEvent, tag="collab.node.admitted"):
    """A removed node was admitted again."""


class NodePaused(NodeEvent, tag="collab.node.paused"):
    """The node was paused: it starts no turns and wakes no agents."""


class NodeResumed(NodeEvent, tag="collab.node.resumed"):
    """The node starts turns again."""


class NodeRenamed(NodeEvent, tag="collab.node.renamed"):
    """The node has another name; its agents keep their ids."""


class NodeKeyRotated(NodeEvent, tag="collab.node.key_rotated"):
    """The node logs in to the mesh with another key."""


class NodeRefused(NodeEvent, tag="collab.node.refused"):
    """Something in the name of the node was refused: it was not signed by it, or not its own."""


class InvitationEvent(Event):
    """The record holds a hash of the secret; no event contains the secret."""

    payload: Changed[Invitation]


class InvitationCreated(InvitationEvent, tag="collab.invitation.created"):
    """A machine was invited to the mesh."""


class InvitationUsed(InvitationEvent, tag="collab.invitation.used"):
    """A machine joined with the invitation."""


class InvitationExpired(InvitationEvent, tag="collab.invitation.expired"):
    """The invitation was not used in time."""


class InvitationRevoked(InvitationEvent, tag="collab.invitation.revoked"):
    """The invitation was withdrawn."""


INVITATION_EVENTS: Mapping[InvitationMove, type[InvitationEvent]] = {
    InvitationMove.USE: InvitationUsed,
    InvitationMove.EXPIRE: InvitationExpired,
    InvitationMove.REVOKE: InvitationRevoked,
}

NODE_EVENTS: Mapping[NodeMove, type[NodeEvent]] = {
    NodeMove.LOSE: NodeLost,
    NodeMove.RECOVER: NodeRecovered,
    NodeMove.LEAVE: NodeLeft,
    NodeMove.REMOVE: NodeRemoved,
    NodeMove.ADMIT: NodeAdmitted,
}
