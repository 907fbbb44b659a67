"""The chat accounts of users: found by what a platform reports, listed, marked as used."""

from collections.abc import Iterable

from msgspec.structs import replace

from scout.base.refusal import BadRequest, Candidate, Refused
from scout.broker.routing import users
from scout.broker.transaction.transaction import Transaction
from scout.identity.path import AgentPath, is_segment
from scout.model.events.directory import KEY_EVENTS
from scout.model.people.user import ConnectorKey, KeyMove, KeyState, QuietHours, set_quiet_hours
from scout.policy.nearest import rank_names
from scout.policy.people.foreground import Outlet, choose_connector_target
from scout.store.ledger import LAST

_MANY = 1000


def check_connector(tx: Transaction, name: str) -> str:
    """Return the name of a connector that Scout can run; refuse another one with the nearest names."""
    known = tx.services.connectors
    if name in known and is_segment(name):
        return name
    near = tuple(Candidate(address=one) for one in rank_names(name, known, 3))
    problem = f"there is no connector '{name:.60}'; known connectors: {', '.join(known)}"
    if name == users.DIRECT:
        problem = "direct needs no link: it is the person at this Scout"
    raise Refused(BadRequest(problem=problem, field="connector", candidates=near))


def find_key(tx: Transaction, connector: str, external_id: str) -> ConnectorKey | None:
    """Return the key of an account that is linked now."""
    return tx.ledger.one(ConnectorKey, "key_linked", connector=connector, account=external_id)


def list_keys(tx: Transaction, user: str) -> list[ConnectorKey]:
    """Return the linked accounts of a user, newest first."""
    found = tx.ledger.many(ConnectorKey, "keys_of_user", user=user, before=LAST, limit=_MANY)
    return [key for key in found if key.state is KeyState.ACTIVE]


def list_candidates(keys: Iterable[ConnectorKey]) -> tuple[Candidate, ...]:
    """Return accounts as candidates of a refusal."""
    return tuple(Candidate(address=key.id, why=f"{key.connector} {key.label}".rstrip()) for key in keys)


def find_outlet(tx: Transaction, path: AgentPath, last_key_id: str | None = None) -> Outlet:
    """Return the account behind `/<user>/<connector>`, or refuse.

    `last_key_id`: the account that last spoke in the conversation.
    """
    keys = list_keys(tx, path.user) if path.user is not None else []
    return choose_connector_target(path, keys, last_key_id)


def mark_used(tx: Transaction, key: ConnectorKey) -> ConnectorKey:
    """Store that a message came from this account now; last use is volatile and has no event."""
    used = replace(key, last_used_at=tx.now)
    tx.ledger.refresh(used)
    return used


def change_quiet_hours(
    tx: Transaction, key: ConnectorKey, quiet: QuietHours | None, *, seen: int | None = None
) -> ConnectorKey:
    """Set or remove the quiet hours of an account."""
    changed = set_quiet_hours(key, quiet, tx.now, seen=seen)
    return tx.record(KEY_EVENTS[KeyMove.UPDATE], changed, move=KeyMove.UPDATE)
