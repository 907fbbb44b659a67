"""A refusal as a document: the facts, and its remedies as buttons or commands."""

from scout.base.refusal import Diagnostic, Refused, Remedy, get_status
from scout.protocol.correction import list_remedies
from scout.protocol.operations import build_command_line
from scout.web.html import Html, join, tag
from scout.web.layout import PageBody
from scout.web.parts import show_command, show_facts


def show_refusal(diagnostic: Diagnostic) -> PageBody:
    """Return the view of a request that was refused."""
    main = join(
        tag("p", diagnostic.message, cls="refusal"),
        show_facts((("Code", diagnostic.code),)),
        [_show_remedy(remedy) for remedy in list_remedies(diagnostic)],
    )
    return PageBody("Refused", main, status=get_status(type(diagnostic)))


def _show_remedy(remedy: Remedy) -> Html | None:
    try:
        command = build_command_line(remedy)
    except Refused:
        return None
    return tag("p", show_command(command), tag("span", remedy.why, cls="quiet"))
