"""Links: a one-time code, typed in a chat, links the account of its sender to a user.

Each function is part of a transaction. A code that is not accepted is a result and not a refusal, because
the attempt is stored: a refusal would undo it.
"""

import hashlib

from scout.base.record import Record
from scout.broker.operations.lifecycle import revive_agent
from scout.broker.people.accounts import check_connector, find_key
from scout.broker.people.bindings import close_bindings_of_chat
from scout.broker.routing import attention_items, users
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath
from scout.model.agent import Agent, Lifecycle
from scout.model.attention import AttentionKind
from scout.model.events.directory import (
    KEY_EVENTS,
    KeyFreed,
    KeyLinked,
    LinkCodeIssued,
    LinkCodeRedeemed,
    LinkCodeRevoked,
)
from scout.model.people.link_code import (
    LinkCode,
    build_code,
    find_code,
    hash_code,
    is_open_code,
    redeem_code,
    revoke_code,
)
from scout.model.people.user import (
    ConnectorKey,
    KeyMove,
    User,
    UserKind,
    free_key,
    update_account,
)

_MANY = 1000
_MOST_LABEL = 120


class ChatAccount(Record):
    """The account that typed a code. `external_id`: the person's; `chat_id`: where it was typed.

    `group`: several people read the chat; a group is linked by its chat.
    """

    connector: str
    external_id: str
    chat_id: str
    label: str = ""
    group: bool = False


class Linked(Record):
    """The account belongs to `user` now. `agent`: the path of the agent that answers plain text.

    `taken_from`: the user that it belonged to before.
    """

    user: User
    key: ConnectorKey
    agent: str
    taken_from: str | None = None


class NotLinked(Record):
    """The code was not accepted; `reason` is for the chat. It does not tell a wrong code from a used one."""

    reason: str


# -- codes -------------------------------------------------------------------------------------------


def issue_code(tx: Transaction, user: User, connector: str) -> tuple[LinkCode, str]:
    """Issue a one-time code; it replaces an earlier one. The code itself is not stored."""
    connector = check_connector(tx, connector)
    for old in tx.ledger.many(LinkCode, "link_code_open", user=user.name, connector=connector):
        tx.record(LinkCodeRevoked, revoke_code(old, "a new code replaces it", tx.now), move="revoke")
    code = build_code(hashlib.sha256(tx.services.ids.secret().encode()).digest())
    record = LinkCode(
        id=tx.mint("lnk"),
        created_at=tx.now,
        updated_at=tx.now,
        user=user.name,
        connector=connector,
        hashed=hash_code(connector, code),
        expires_at=tx.now.plus(tx.rules.periods.link_code),
        created_by=tx.sender,
    )
    return tx.record(LinkCodeIssued, record, move="issue"), code


def revoke_codes(tx: Transaction, user: str, reason: str) -> None:
    """Withdraw the open codes of a user."""
    for code in tx.ledger.many(LinkCode, "link_codes_of_user", user=user, limit=_MANY):
        tx.record(LinkCodeRevoked, revoke_code(code, reason, tx.now), move="revoke", reason=reason)


def redeem(tx: Transaction, account: ChatAccount, text: str) -> Linked | NotLinked:
    """Link the account that typed a code. Call it for a text in which `find_code` finds one."""
    typed = find_code(text)
    blocked = _find_block(tx, account)
    if blocked is not None or typed is None:
        return blocked or NotLinked(reason=_WRONG)
    hashed = hash_code(account.connector, typed)
    code = tx.ledger.one(LinkCode, "link_code_hashed", hashed=hashed)
    user = users.find_user(tx, code.user) if code is not None else None
    if code is None or user is None or not is_open_code(code, tx.now) or not users.is_active(user):
        return _record_wrong_code(tx, account)
    if (user.kind is UserKind.GROUP) is not account.group:
        return _refuse_place(tx, code, user)
    return _link(tx, account, code, user)


_WRONG = "This code is not valid. Ask for a new one."


def _find_block(tx: Transaction, account: ChatAccount) -> NotLinked | None:
    """Return the refusal after too many wrong codes, in this chat or on the whole platform."""
    limits, window = tx.rules.limits, tx.rules.periods.link_code
    since = tx.now.plus(-window)
    values = {"connector": account.connector, "chat": _hash_chat(account), "since": int(since)}
    total, here = tx.ledger.rows("link_attempts", **values)[0]
    if here < limits.link_attempts and total < limits.link_attempts_total:
        return None
    return NotLinked(reason=f"Too many wrong codes. Try again in {max(round(window / 60), 1)} minutes.")


def _record_wrong_code(tx: Transaction, account: ChatAccount) -> NotLinked:
    since = tx.now.plus(-tx.rules.periods.link_code)
    tx.ledger.record_attempt(account.connector, _hash_chat(account), tx.now, since)
    return NotLinked(reason=_WRONG)


def _hash_chat(account: ChatAccount) -> str:
    """Return what is stored of the chat of a stranger."""
    return hashlib.sha256(f"{account.connector}\0{account.chat_id}".encode()).hexdigest()


def _refuse_place(tx: Transaction, code: LinkCode, user: User) -> NotLinked:
    """Refuse a code in the wrong kind of chat. A person's code that a group has read is withdrawn."""
    if user.kind is UserKind.GROUP:
        return NotLinked(reason="This code links a group. Type it in the group.")
    reason = "it was typed in a group"
    tx.record(LinkCodeRevoked, revoke_code(code, reason, tx.now), move="revoke", reason=reason)
    return NotLinked(reason="This code links a person, and others have seen it. Ask for a new one.")


def _link(tx: Transaction, account: ChatAccount, code: LinkCode, user: User) -> Linked:
    external_id = account.chat_id if account.group else account.external_id
    known = find_key(tx, account.connector, external_id)
    mine = known if known is not None and known.user == user.name else None
    taken = _take_over(tx, known, user) if known is not None and mine is None else None
    agent = _ensure_connector_agent(tx, user, account.connector)
    key = _refresh_key(tx, mine, account) if mine else _create_key(tx, account, user, external_id)
    tx.record(LinkCodeRedeemed, redeem_code(code, key.id, tx.now), move="redeem")
    return Linked(user=user, key=key, agent=str(agent.path), taken_from=taken)


def _create_key(tx: Transaction, account: ChatAccount, user: User, external_id: str) -> ConnectorKey:
    key = ConnectorKey(
        id=tx.mint("key"),
        created_at=tx.now,
        updated_at=tx.now,
        connector=account.connector,
        external_id=external_id,
        user=user.name,
        chat_id=account.chat_id,
        label=account.label[:_MOST_LABEL],
        last_used_at=tx.now,
        created_by=tx.sender,
    )
    return tx.record(KeyLinked, key, move="link")


def _refresh_key(tx: Transaction, key: ConnectorKey, account: ChatAccount) -> ConnectorKey:
    """Keep the key of an account that is linked again; its chat and its display name may be new."""
    changed = update_account(key, account.chat_id, account.label[:_MOST_LABEL], tx.now)
    return tx.record(KEY_EVENTS[KeyMove.UPDATE], changed, move=KeyMove.UPDATE)


def _take_over(tx: Transaction, key: ConnectorKey, user: User) -> str:
    """Free the key of the account's earlier user, and tell that user."""
    unlink(tx, key, f"linked to {user.name} by a code")
    account = f"{key.connector} account {key.label}".rstrip()
    attention_items.open_item(
        tx,
        AttentionKind.NOTIFY,
        user=key.user,
        source=tx.services.system_agent,
        agent_id=tx.services.system_agent,
        title=f"your {account} is now linked to another user",
        body=f"A link code of {user.name} was typed in its chat. If that was not you, tell the operator.",
        dedupe=f"taken:{key.id}",
    )
    return key.user


def _ensure_connector_agent(tx: Transaction, user: User, connector: str) -> Agent:
    """Return the agent that answers a user's plain text on a platform; the first key creates it."""
    agent = users.ensure_agent(tx, AgentPath.root(user.name, connector))
    return revive_agent(tx, agent) if agent.lifecycle is Lifecycle.RETIRED else agent


# -- unlinking ------------------------------------------------------------------------------------


def unlink(tx: Transaction, key: ConnectorKey, reason: str, *, seen: int | None = None) -> ConnectorKey:
    """Free a key, so that its account belongs to nobody, and close the bindings of its chat."""
    if key.chat_id is not None:
        close_bindings_of_chat(tx, key.connector, key.chat_id, reason)
    freed = free_key(key, reason, tx.now, seen=seen)
    return tx.record(KeyFreed, freed, move=KeyMove.FREE, reason=reason)
