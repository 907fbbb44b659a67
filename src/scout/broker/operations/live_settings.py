"""Settings that a running daemon takes over from its file without a restart."""

from scout.broker.transaction.transaction import Turn
from scout.policy.permit import Deed, Subject
from scout.protocol.overview import ReloadSettings, SettingsReloaded

__all__ = ["reload"]


def reload(turn: Turn, request: ReloadSettings) -> SettingsReloaded:
    """Read the file again. Requests that have begun keep the rules they began with."""
    turn.permit(Deed.ADMINISTER, Subject(name=turn.world.node))
    fresh = turn.world.reload()
    return SettingsReloaded(changed=fresh.changed, needs_restart=fresh.needs_restart)
