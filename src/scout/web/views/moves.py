"""The moves of a work item as buttons: those that its state allows, in the order of its life."""

import json

from scout.model.waiting import WaitingKind
from scout.model.work_item import WORK_ITEM, WorkMove
from scout.protocol.work import WorkView
from scout.web.html import Child, Html, tag
from scout.web.parts import build_button

_WAITS = (
    WaitingKind.ACTOR,
    WaitingKind.WORK_ITEM,
    WaitingKind.APPROVAL,
    WaitingKind.ARTIFACT,
    WaitingKind.CONDITION,
)
_DONE = {
    WorkMove.START: "Started.",
    WorkMove.RESUME: "Resumed.",
    WorkMove.SUBMIT: "Submitted for review.",
    WorkMove.ACCEPT: "Accepted.",
    WorkMove.CANCEL: "Cancelled.",
}
# Moves of one press: the label, the key, and the class.
_BUTTONS = {
    WorkMove.START: ("Start", "s", ""),
    WorkMove.RESUME: ("Resume", "s", ""),
    WorkMove.ACCEPT: ("Accept", "y", "primary"),
    WorkMove.SUBMIT: ("Submit", "u", ""),
}


def build_moves(item: WorkView) -> list[Html]:
    """Return the moves for a card: buttons, and a reason or an address where the move needs one."""
    allowed = WORK_ITEM.accepts(item.state)
    shown = [_build_press(item, move) for move in _BUTTONS if move in allowed]
    if WorkMove.REOPEN in allowed:
        reason = _build_field(item, "reason", "What is missing?")
        shown.append(_build_form(item, "Reopen", "n", "work.reopen", "Reopened.", reason))
    return shown


def build_more_moves(item: WorkView) -> list[Html]:
    """Return the other moves: progress, wait, hand over, cancel."""
    allowed = WORK_ITEM.accepts(item.state)
    shown = list[Html]()
    if WorkMove.PROGRESS in allowed:
        summary = _build_field(item, "summary", "Progress in one sentence")
        shown.append(_build_form(item, "Progress", "p", "work.progress", "Noted.", summary))
    if WorkMove.WAIT in allowed:
        shown.append(_build_form(item, "Wait", "e", "work.wait", "Waiting.", *_build_wait_fields(item)))
    if WorkMove.HAND_OVER in allowed:
        to = _build_field(item, "to", "@NAME")
        shown.append(_build_form(item, "Hand over", "h", "work.hand-over", "Handed over.", to))
    if WorkMove.CANCEL in allowed:
        shown.append(
            build_button(
                "Cancel",
                "work.cancel",
                {"workItemId": item.id},
                cls="danger",
                key="x",
                confirm=f"Cancel {item.title[:200]}? This cannot be undone.",
                done=_DONE[WorkMove.CANCEL],
                name=f"Cancel: {item.title}",
            )
        )
    return shown


def _build_press(item: WorkView, move: WorkMove) -> Html:
    label, key, cls = _BUTTONS[move]
    return build_button(
        label,
        f"work.{move}",
        {"workItemId": item.id},
        cls=cls,
        key=key,
        done=_DONE[move],
        name=f"{label}: {item.title}",
    )


def _build_form(item: WorkView, label: str, key: str, operation: str, done: str, *fields: Child) -> Html:
    """Return a button that opens the fields of a move."""
    form = tag(
        "form",
        *fields,
        tag("button", label, type="submit", cls="button primary"),
        cls="move-form",
        data_form=operation,
        data_parameters=json.dumps({"workItemId": item.id}, separators=(",", ":")),
        data_done=done,
    )
    summary = tag("summary", f"{label}…", cls="button", data_key_press=key, aria_keyshortcuts=key)
    return tag(
        "details",
        summary,
        tag("div", form, cls="menu"),
        cls="move",
        data_focus=True,
        data_key=f"{label} {item.id}",
    )


def _build_field(item: WorkView, name: str, words: str, *, required: bool = True) -> Html:
    return tag(
        "input",
        name=name,
        cls="input",
        required=required,
        autocomplete="off",
        placeholder=words,
        aria_label=f"{words} {item.title[:80]}",
        data_draft=f"{name} {item.id}",
    )


def _build_wait_fields(item: WorkView) -> tuple[Html, Html]:
    options = [tag("option", kind.replace("_", " "), value=kind) for kind in _WAITS]
    kind = tag("select", options, name="on", aria_label=f"What {item.title[:80]} waits for")
    return kind, _build_field(item, "ref", "An address, an id, a file or a sentence", required=False)
