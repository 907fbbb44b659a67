"""The columns of every list: a head, and the field, with how it is read before a colon. Texts come last."""

from __future__ import annotations

# `name`: an agent by its address. `id`: short. `age`, `time`: from a moment. `line`: the beginning of a text.
# `path`: a folder as somebody here would say it. `a|b`: the first of them that is there.
# `presence`: an agent's status, or that it sleeps.
COLUMNS: dict[str, tuple[tuple[str, str], ...]] = {
    "who": (
        ("agent", "address"),
        ("status", "presence"),
        ("harness", "config.harness"),
        ("project", "path:projectRoot"),
        ("about", "line:description"),
    ),
    "flight.list": (
        ("flight", "id:id"),
        ("state", "state"),
        ("to", "targetAddress"),
        ("began", "age:createdAt"),
        ("asked", "line:body"),
    ),
    "message.list": (
        ("message", "id:id"),
        ("from", "senderAddress"),
        ("when", "age:createdAt"),
        ("says", "line:body"),
    ),
    "latest": (
        ("with", "name"),
        ("unread", "unread"),
        ("when", "age:message.createdAt"),
        ("newest", "line:message.body"),
    ),
    "search": (("found", "id:id"), ("when", "age:at"), ("words", "line:snippet")),
    "delivery.list": (
        ("delivery", "id:id"),
        ("state", "state"),
        ("attempts", "attempts"),
        ("since", "age:createdAt"),
        ("why", "line:reason"),
    ),
    "conversation.list": (
        ("conversation", "id:id"),
        ("kind", "kind"),
        ("unread", "unread"),
        ("with", "name|members"),
    ),
    "channel.list": (("channel", "name"), ("unread", "unread"), ("id", "id:id")),
    "alias.list": (("alias", "name"), ("means", "means"), ("state", "state")),
    "card.list": (
        ("card", "id:id"),
        ("state", "state"),
        ("uses", "uses"),
        ("until", "time:expiresAt"),
        ("name", "line:name"),
    ),
    "token.list": (
        ("token", "id:id"),
        ("kind", "kind"),
        ("state", "state"),
        ("for", "address"),
        ("label", "line:label"),
    ),
    "grant.list": (("grant", "id:id"), ("action", "action"), ("state", "state"), ("why", "line:reason")),
    "node.list": (("node", "name"), ("id", "id:id")),
    "session.list": (
        ("session", "id:id"),
        ("agent", "address"),
        ("harness", "harness"),
        ("state", "state"),
        ("last", "age:lastEventAt"),
        ("folder", "path:cwd"),
    ),
    "question.list": (
        ("question", "id:id"),
        ("state", "state"),
        ("asker", "askerAddress"),
        ("responder", "responderAddress"),
        ("since", "age:createdAt"),
        ("asked", "line:body"),
    ),
    "work.list": (
        ("work", "id:id"),
        ("state", "state"),
        ("owner", "ownerAddress"),
        ("next move", "nextMoveAddress"),
        ("done", "percent:progress.percent"),
        ("title", "line:title"),
    ),
}

EMPTY = {
    "who": "No agents yet. Try: scout agent register NAME --project .",
    "inbox": "Your inbox is empty.",
    "attention": "Nothing needs you.",
    "flight.list": "No flights.",
    "question.list": "No questions.",
    "work.list": "No work.",
    "session.list": "No sessions.",
    "channel.list": "No channels. Try: scout channel create NAME",
    "alias.list": "No aliases. Try: scout alias set NAME ADDRESS",
    "search": "Nothing found.",
}
