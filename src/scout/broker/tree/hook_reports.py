"""Hook events of sessions in work trees: before one stops, git is asked about uncommitted files."""

from scout.broker.effects.exit_check import NO_FILES, find_uncommitted
from scout.broker.operations import hooks
from scout.broker.tree.finish import FinishCall
from scout.model.session import Session
from scout.protocol.enrolment import HookAnswer, HookEvent, ReportHook


async def report_hook(call: FinishCall, request: ReportHook) -> HookAnswer:
    """Handle one hook event of an enrolled session."""
    files = NO_FILES
    if request.event is HookEvent.STOP:
        session = call.glance().get(Session, request.session_id)
        files = await find_uncommitted(call.services, session.cwd if session is not None else None)
    return await call.write_once(request, lambda tx, event: hooks.report_hook(tx, event, files))
