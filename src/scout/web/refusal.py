"""A refusal as a document: the facts, and its remedies as buttons or commands."""

from scout.base.refusal import Diagnostic, get_status
from scout.protocol.correction import list_remedies
from scout.web.html import join, tag
from scout.web.layout import PageBody
from scout.web.parts import show_facts, show_remedy


def show_refusal(diagnostic: Diagnostic) -> PageBody:
    """Return the view of a request that was refused."""
    main = join(
        tag("p", diagnostic.message, cls="refusal"),
        show_facts((("Code", diagnostic.code),)),
        [tag("p", show_remedy(remedy)) for remedy in list_remedies(diagnostic)],
    )
    return PageBody("Refused", main, status=get_status(type(diagnostic)))
