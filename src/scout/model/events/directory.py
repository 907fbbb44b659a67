"""Events of what is kept about names and rights: aliases, cards, bindings, users, keys and the like."""

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
    """A person gave a name."""


class AliasRetargeted(AliasEvent, tag="collab.alias.retargeted"):
    """The name means something else from here on."""


class AliasBrokenEvent(AliasEvent, tag="collab.alias.broken"):
    """The name no longer means one thing."""


class AliasRepaired(AliasEvent, tag="collab.alias.repaired"):
    """The name means its target again."""


class AliasRemoved(AliasEvent, tag="collab.alias.removed"):
    """The name is free."""


ALIAS_EVENTS: Mapping[AliasMove, type[AliasEvent]] = {
    AliasMove.RETARGET: AliasRetargeted,
    AliasMove.BREAK: AliasBrokenEvent,
    AliasMove.REPAIR: AliasRepaired,
    AliasMove.REMOVE: AliasRemoved,
}


class CardEvent(Event):
    payload: Changed[Card]


class CardCreated(CardEvent, tag="collab.card.created"):
    """A return address was handed out."""


class CardUsed(CardEvent, tag="collab.card.used"):
    """It was used, perhaps for the last time."""


class CardExpired(CardEvent, tag="collab.card.expired"):
    """Its time is over."""


class CardRevoked(CardEvent, tag="collab.card.revoked"):
    """It was taken back."""


CARD_EVENTS: Mapping[CardMove, type[CardEvent]] = {
    CardMove.USE: CardUsed,
    CardMove.USE_UP: CardUsed,
    CardMove.EXPIRE: CardExpired,
    CardMove.REVOKE: CardRevoked,
}


class BindingEvent(Event):
    payload: Changed[Binding]


class BindingCreated(BindingEvent, tag="collab.binding.created"):
    """Something outside leads inside."""


class BindingClosed(BindingEvent, tag="collab.binding.closed"):
    """It no longer does."""


class BindingReopened(BindingEvent, tag="collab.binding.reopened"):
    """It does again."""


BINDING_EVENTS: Mapping[BindingMove, type[BindingEvent]] = {
    BindingMove.CLOSE: BindingClosed,
    BindingMove.REOPEN: BindingReopened,
}


class UserEvent(Event):
    payload: Changed[User]


class UserCreated(UserEvent, tag="collab.user.created"):
    """A person or group is known."""


class UserUpdated(UserEvent, tag="collab.user.updated"):
    """What is shown of them changed."""


class UserDeleted(UserEvent, tag="collab.user.deleted"):
    """They are gone; the record stays."""


class UserRestored(UserEvent, tag="collab.user.restored"):
    """They are back."""


USER_EVENTS: Mapping[UserMove, type[UserEvent]] = {
    UserMove.DELETE: UserDeleted,
    UserMove.RESTORE: UserRestored,
}


class KeyEvent(Event):
    payload: Changed[ConnectorKey]


class KeyLinked(KeyEvent, tag="collab.key.linked"):
    """An external id means a user."""


class KeyFreed(KeyEvent, tag="collab.key.freed"):
    """It no longer does."""


KEY_EVENTS: Mapping[KeyMove, type[KeyEvent]] = {KeyMove.FREE: KeyFreed}


class ScheduleEvent(Event):
    payload: Changed[Schedule]


class ScheduleCreated(ScheduleEvent, tag="collab.schedule.created"):
    """Something is to be asked again and again."""


class ScheduleUpdated(ScheduleEvent, tag="collab.schedule.updated"):
    """Its time or text changed."""


class ScheduleFired(ScheduleEvent, tag="collab.schedule.fired"):
    """One run was made."""


class SchedulePaused(ScheduleEvent, tag="collab.schedule.paused"):
    """No runs for now."""


class ScheduleResumed(ScheduleEvent, tag="collab.schedule.resumed"):
    """Runs again."""


class ScheduleEnded(ScheduleEvent, tag="collab.schedule.ended"):
    """No more runs."""


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
    """A permission was given."""


class GrantRevoked(GrantEvent, tag="collab.grant.revoked"):
    """It was taken back."""


class GrantExpired(GrantEvent, tag="collab.grant.expired"):
    """Its time is over."""


GRANT_EVENTS: Mapping[GrantMove, type[GrantEvent]] = {
    GrantMove.REVOKE: GrantRevoked,
    GrantMove.EXPIRE: GrantExpired,
}


class TokenEvent(Event):
    """The record holds the hash of the secret; the secret is in no event."""

    payload: Changed[Token]


class TokenCreated(TokenEvent, tag="collab.token.created"):
    """A credential was made."""


class TokenRevoked(TokenEvent, tag="collab.token.revoked"):
    """It is not valid any more."""


class TokenExpired(TokenEvent, tag="collab.token.expired"):
    """Its time is over."""


TOKEN_EVENTS: Mapping[TokenMove, type[TokenEvent]] = {
    TokenMove.REVOKE: TokenRevoked,
    TokenMove.EXPIRE: TokenExpired,
}


class NodeEvent(Event):
    payload: Changed[Node]


class NodeCreated(NodeEvent, tag="collab.node.created"):
    """A machine is known: this one at first start, another when it joins."""


class NodeUpdated(NodeEvent, tag="collab.node.updated"):
    """Its version, address or key changed."""


class NodeLost(NodeEvent, tag="collab.node.lost"):
    """It does not answer."""


class NodeRecovered(NodeEvent, tag="collab.node.recovered"):
    """It answers again."""


class NodeLeft(NodeEvent, tag="collab.node.left"):
    """It went, or was silent for long."""


class NodeRemoved(NodeEvent, tag="collab.node.removed"):
    """It is refused from here on."""


class NodeAdmitted(NodeEvent, tag="collab.node.admitted"):
    """A removed machine was invited again."""


class NodePaused(NodeEvent, tag="collab.node.paused"):
    """It starts no turn and wakes nobody from here on."""


class NodeResumed(NodeEvent, tag="collab.node.resumed"):
    """It starts turns again."""


NODE_EVENTS: Mapping[NodeMove, type[NodeEvent]] = {
    NodeMove.LOSE: NodeLost,
    NodeMove.RECOVER: NodeRecovered,
    NodeMove.LEAVE: NodeLeft,
    NodeMove.REMOVE: NodeRemoved,
    NodeMove.ADMIT: NodeAdmitted,
}
