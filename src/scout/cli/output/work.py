"""How questions and work are shown: whose move it is, and how it came to that."""

from __future__ import annotations

from scout.cli.connection.text import age, columns, cut, fields, indent, local_time, out, paint

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _show_question(question: dict[str, Any]) -> None:
    """What was asked, what was answered, and what came of it."""
    work: dict[str, Any] = question.get("workItem") or {}
    shown = {
        "state": question["state"],
        "asker": question["askerAddress"],
        "responder": question["responderAddress"],
        "since": age(question["createdAt"]),
        "options": ", ".join(question.get("options") or ()),
        "answer": question.get("answer"),
        "reason": question.get("reason"),
        "flight": question.get("flightId"),
        "work": f"{work['id']}  {work['state']}  {work['title']}" if work else None,
    }
    out(paint(str(question["id"]), "bold"))
    out(indent(str(question["body"])))
    _show(shown, question)


def _show_work(item: dict[str, Any]) -> None:
    """Who owns it, whose move it is, how far it is, and every step where they are told."""
    on: dict[str, Any] = item.get("waitingOn") or {}
    shown = {
        "state": item["state"],
        "owner": item["ownerAddress"],
        "next move": item.get("nextMoveAddress"),
        "requester": item["requesterAddress"],
        "waits for": " ".join(str(part) for part in (on.get("kind"), on.get("ref")) if part),
        "progress": _progress(item.get("progress") or {}),
        "priority": item["priority"] if item["priority"] != "normal" else None,
        "labels": ", ".join(item.get("labels") or ()),
        "due": local_time(item["dueAt"]) if item.get("dueAt") else None,
        "reason": item.get("reason"),
        "acceptance": item["acceptance"],
    }
    out(f"{paint(str(item['id']), 'bold')}  {item['title']}")
    if item.get("description"):
        out(indent(str(item["description"])))
    _show(shown, item)
    for relation in item.get("relations") or ():
        out(f"  {relation['kind']} {relation['workItemId']}")
    for relation in item.get("relatedBy") or ():
        out(f"  {relation['workItemId']} {relation['kind']} it")
    for step in item.get("steps") or ():
        why = f": {step['reason']}" if step.get("reason") else ""
        moved = f"{step['move']:<10}  {step['state']:<9}  {step['by']}{why}"
        out(cut(f"  {step['revision']:>3}  {local_time(step['at'])}  {moved}", columns()))


def _progress(progress: dict[str, Any]) -> str:
    steps = f"{progress.get('done')} of {progress['total']}" if progress.get("total") else ""
    percent = f"{progress['percent']:g} %" if progress.get("percent") is not None else ""
    return ", ".join(part for part in (steps, percent, progress.get("summary")) if part)


def _show(shown: dict[str, Any], record: dict[str, Any]) -> None:
    """The fields that say something, and what the broker has to say beside them."""
    out(fields("", {name: value for name, value in shown.items() if value}))
    for one in record.get("notes") or ():
        out(f"  note: {one}")


_QUESTIONS = ("create", "show", "answer", "decline", "close", "reopen")
_MOVES = ("start", "progress", "wait", "resume", "submit", "accept", "reopen", "hand-over", "cancel")

WORK: dict[str, Callable[[Any], None]] = {
    **{f"question.{move}": _show_question for move in _QUESTIONS},
    **{f"work.{move}": _show_work for move in ("create", "show", *_MOVES, "update", "relate")},
}
