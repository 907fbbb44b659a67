"""Attention items: what is to be decided, exactly, and the buttons that decide it."""

from scout.model.access.permission import PermissionRequest
from scout.model.attention import AttentionMove, AttentionState
from scout.protocol.attention import AttentionView
from scout.web.html import Child, Html, join, tag
from scout.web.parts import (
    build_button,
    link_flight,
    quote_text,
    show_address,
    show_risk,
    show_state,
    show_time,
)

_OPEN = (AttentionState.OPEN, AttentionState.NOTIFIED)
_ICONS = {AttentionMove.APPROVE: "approve", AttentionMove.DENY: "deny"}
_KEYS = {AttentionMove.APPROVE: "y", AttentionMove.DENY: "n", AttentionMove.DISMISS: "d"}
_DONE = {
    AttentionMove.APPROVE: "Approved.",
    AttentionMove.DENY: "Denied.",
    AttentionMove.DISMISS: "Dismissed.",
}


def show_item(item: AttentionView, *, selectable: bool = False, past: bool = False) -> Html:
    """Return one item as a card: the exact request first, then who asks, then the decision.

    `past`: it is shown as it was, and nobody decides it now.
    """
    is_open = item.state in _OPEN
    box = None
    if selectable and is_open and item.may_decide:
        box = tag(
            "input", type="checkbox", cls="select", data_select=item.id, aria_label=f"Select {item.title}"
        )
    head = tag(
        "header",
        box,
        tag("span", item.kind, cls="kind"),
        show_risk(item.risk),
        tag("span", "from ", show_address(item.agent_address, item.agent_node))
        if item.agent_id
        else tag("span", "from Scout"),
        link_flight(item.return_path.flight_id) if item.return_path.flight_id else None,
        show_time(item.created_at),
        cls="item-head",
    )
    decision = _build_decision(item, past=past) if is_open else _show_outcome(item)
    return tag(
        "article",
        head,
        tag("div", show_wish(item), cls="item-body"),
        tag("footer", decision, cls="item-foot"),
        cls="item",
        data_key=item.id,
        data_risk=item.risk,
        data_gone=not is_open,
        tabindex=-1,
        aria_label=f"{item.kind}: {item.title}",
    )


def show_wish(item: AttentionView) -> Html:
    """Return the request in full: the command or question first, then the program's own words."""
    wish = item.permission
    if wish is None:
        title, body = item.title, item.body
        repeated = body.startswith(title.removesuffix("…"))
        return join(None if repeated else tag("p", title, cls="wish"), quote_text(body) if body else None)
    said = wish.words or item.body
    return join(
        _describe_wish(wish),
        _list_warnings(wish),
        tag("p", "It says:", cls="quiet") if said else None,
        quote_text(said, "said") if said else None,
    )


def _describe_wish(wish: PermissionRequest) -> Html:
    tool = wish.tool or "the program"
    if wish.observed:
        return join(tag("p", "Seen on its screen:", cls="wish"), quote_text(wish.arguments))
    exact = wish.command if wish.command is not None else wish.path
    verb = "wants to run" if wish.command is not None else "wants"
    if exact is None:
        said = tag("p", f"{tool} wants to be used", cls="wish")
    else:
        said = join(tag("p", f"{tool} {verb}:", cls="wish"), quote_text(exact, "exact"))
    return join(
        said, join(tag("p", "With:", cls="quiet"), quote_text(wish.arguments)) if wish.arguments else None
    )


def _list_warnings(wish: PermissionRequest) -> list[Html]:
    found = list[Html]()
    if wish.hidden:
        words = "It contains hidden characters, shown here as \\x1b or \\u202e. You approve exactly that."
        found.append(tag("p", words, cls="warning"))
    if wish.cut:
        words = f"{wish.cut} more characters are not shown. Look at it in the session itself."
        found.append(tag("p", words, cls="warning"))
    return found


def _build_decision(item: AttentionView, *, past: bool) -> Child:
    moves = [number for number, action in enumerate(item.actions) if _may_move(item, action.move)]
    buttons = [_build_move(item, number) for number in moves]
    standing = _build_standing(item) if item.permission is not None and item.may_decide else None
    words = None if item.may_decide else tag("span", _explain_decider(item, past=past), cls="quiet")
    return [words, *buttons, standing]


def _may_move(item: AttentionView, move: AttentionMove) -> bool:
    return item.may_decide or (item.may_dismiss and move is AttentionMove.DISMISS)


def _explain_decider(item: AttentionView, *, past: bool) -> str:
    """Return who decides an item that the reader does not decide."""
    if past:
        return f"It was waiting for {item.user}."
    if item.raised_by_you:
        return "You raised it, and nobody approves their own request."
    return f"It is for {item.user}, who decides it."


def _build_move(item: AttentionView, number: int) -> Html:
    action = item.actions[number]
    ident: dict[str, object] = {"attentionId": item.id}
    if action.move is not AttentionMove.ANSWER:
        return build_button(
            action.label,
            f"attention.{action.move}",
            ident,
            icon=_ICONS.get(action.move, ""),
            cls="primary" if action.move is AttentionMove.APPROVE else "",
            key=_KEYS.get(action.move),
            done=_DONE.get(action.move),
            name=f"{action.label}: {item.title}",
        )
    if action.value is not None:
        answer = {**ident, "answer": action.value}
        return build_button(action.label, "attention.answer", answer, done="Answered.")
    return tag(
        "form",
        tag(
            "input",
            name="answer",
            cls="input",
            required=True,
            autocomplete="off",
            placeholder="Your answer",
            aria_label=f"Answer: {item.title}",
            data_draft=f"answer {item.id}",
        ),
        tag("button", "Answer", type="submit", cls="button primary"),
        cls="inline-form",
        data_form="attention.answer",
        data_parameters=f'{{"attentionId":"{item.id}"}}',
        data_done="Answered.",
    )


def _build_standing(item: AttentionView) -> Html:
    """Return the choices of a standing decision: approve now, and allow the same from now on."""
    scopes = (("session", "in this session"), ("agent", "for this agent"), ("project", "in this project"))
    choices = [
        build_button(
            f"Always {words}",
            "attention.approve",
            {"attentionId": item.id, "always": True, "scope": scope},
            done="Approved, and allowed from now on.",
            name=f"Approve and always allow {words}: {item.title}",
        )
        for scope, words in scopes
    ]
    return tag(
        "details", tag("summary", "Always…", cls="button"), tag("div", choices, cls="menu"), cls="standing"
    )


def _show_outcome(item: AttentionView) -> Child:
    by = join(" by ", show_address(item.decided_by_address)) if item.decided_by_address else None
    return [show_state(item.state), by, tag("span", item.answer, cls="quiet") if item.answer else None]
