"""What a harness that cannot do a thing says about it: adapters begin from here and add what theirs can."""

from scout.base.refusal import Refused, Remedy
from scout.model.problems.session import Layer, SessionNotAttachable
from scout.ports import HumanAnswer, Observed, OpenedSession, SessionSpec, Tailed


class Plain:
    """A harness without a program that goes on: nothing to answer, to open or to look at."""

    name: str

    async def is_warm(self, session_id: str) -> bool:
        return False

    async def steer(self, session_id: str, text: str) -> bool:
        return False

    async def respond(self, session_id: str, request: str, answer: HumanAnswer) -> bool:
        return False

    async def knock(self, native_id: str, text: str) -> bool:
        return False

    async def open(self, spec: SessionSpec) -> OpenedSession:
        reason = f"{self.name} has no session that a person could go on with in a terminal"
        raise Refused(not_attachable(self.name, spec, spec.session_id, reason))

    async def observe(self) -> list[Observed]:
        return []

    async def tail(self, spec: SessionSpec, after: int, limit: int) -> Tailed:
        reason = f"{self.name} keeps no transcript"
        raise Refused(not_attachable(self.name, spec, spec.session_id, reason))


def not_attachable(harness: str, spec: SessionSpec, native_id: str, reason: str) -> SessionNotAttachable:
    """The refusal of exactly this session; a new one is the way on."""
    start = {"agent": spec.address, "harness": harness}
    remedy = Remedy(operation="session.start", parameters=start, why="a new session")
    return SessionNotAttachable(session_id=native_id, layer=Layer.HARNESS, reason=reason, remedies=(remedy,))
