"""Settings that a running daemon takes over from its file without a restart."""

from scout.broker.transaction.transaction import Transaction
from scout.policy.permit import Deed, Subject
from scout.protocol.overview import ReloadSettings, SettingsReloaded


def reload(tx: Transaction, request: ReloadSettings) -> SettingsReloaded:
    """Read the file again. Requests that have begun keep the rules they began with."""
    tx.permit(Deed.ADMINISTER, Subject(name=tx.services.node))
    fresh = tx.services.reload()
    return SettingsReloaded(changed=fresh.changed, needs_restart=fresh.needs_restart)
