"""A session that is about to be used, and a turn that is under way in one, as they are in memory."""

from dataclasses import dataclass

from scout.ports import Prompt, SessionSpec


@dataclass(kw_only=True)
class SessionOpening:
    """A session about to be used. `fresh`: it has yet to be started."""

    harness: str
    spec: SessionSpec
    endpoint_id: str
    fresh: bool = False


@dataclass(kw_only=True)
class PreparedTurn(SessionOpening):
    """One turn under way, with what else is told in it. `unwanted`: its flight is over."""

    prompt: Prompt
    delivery_id: str
    flight_id: str | None
    also: tuple[str, ...] = ()
    token_id: str | None = None
    accepted: bool = False
    unwanted: bool = False
    done: bool = False
