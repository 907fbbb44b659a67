"""Events of names and rights: aliases, cards, bindings, users, keys, schedules, grants, tokens, nodes."""

from collections.abc import Mapping

from scout.model.alias import Alias, AliasMove
from scout.model.card import Card, CardMove
from scout.model.events.envelope import Changed, Event
from scout.model.grant import Grant, GrantMove
from scout.model.node import Node, NodeMove
from scout.model.people.binding import Binding, BindingMove
from scout.model.people.schedule import Schedule, ScheduleMove
from scout.model.people.user import ConnectorKey, KeyMove, User, UserMove
from scout.model.token import Token, TokenMove


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


class UserDeleted(UserEvent, tag="collab.user.deleted"):
    """The user was deleted; the record is kept."""


class UserRestored(UserEvent, tag="collab.user.restored"):
    """The user was restored."""


USER_EVENTS: Mapping[UserMove, type[UserEvent]] = {
    UserMove.DELETE: UserDeleted,
    UserMove.RESTORE: UserRestored,
}


class KeyEvent(Event):
    payload: Changed[ConnectorKey]


class KeyLinked(KeyEvent, tag="collab.key.linked"):
    """An external id was linked to a user."""


class KeyFreed(KeyEvent, tag="collab.key.freed"):
    """The external id was unlinked from its user."""


KEY_EVENTS: Mapping[KeyMove, type[KeyEvent]] = {KeyMove.FREE: KeyFreed}


class ScheduleEvent(Event):
    payload: Changed[Schedule]


class ScheduleCreated(ScheduleEvent, tag="collab.schedule.created"):
    """A recurring ask was created."""


class ScheduleUpdated(ScheduleEvent, tag="collab.schedule.updated"):
    """The schedule's time or text changed."""


class ScheduleFired(ScheduleEvent, tag="collab.schedule.fired"):
    """The schedule started one run."""


class SchedulePaused(ScheduleEvent, tag="collab.schedule.paused"):
    """The schedule was paused."""


class ScheduleResumed(ScheduleEvent, tag="collab.schedule.resumed"):
    """The schedule was resumed."""


class ScheduleEnded(ScheduleEvent, tag="collab.schedule.ended"):
    """The schedule ended; there are no more runs."""


SCHEDULE_EVENTS: Mapping[ScheduleMove, type[ScheduleEvent]] = {
    ScheduleMove.CHANGE: ScheduleUpdated,
    ScheduleMove.FIRE: ScheduleFired,
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


NODE_EVENTS: Mapping[NodeMove, type[NodeEvent]] = {
    NodeMove.LOSE: NodeLost,
    NodeMove.RECOVER: NodeRecovered,
    NodeMove.LEAVE: NodeLeft,
    NodeMove.REMOVE: NodeRemoved,
    NodeMove.ADMIT: NodeAdmitted,
}
