"""Texts as Slack writes them: escaped, with links and mentions in angle brackets."""

import re

_BRACKETS = re.compile(r"<([^<>|]*)(?:\|([^<>]*))?>")
_AFTER_MENTION = re.compile(r"^[\s,:]+")


def read_text(text: str, user_id: str) -> str:
    """Return a text as it was typed, without the mention of the bot."""
    mention = f"<@{user_id}>"
    is_named = mention in text
    plain = _BRACKETS.sub(lambda found: _read_brackets(found, user_id), text)
    plain = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return _AFTER_MENTION.sub("", plain).rstrip() if is_named else plain


def escape_text(text: str) -> str:
    """Return a plain text as Slack shows it: nothing in it is a mention, a link or a command."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def is_mentioned(text: str, user_id: str) -> bool:
    """Whether a text names the bot."""
    return f"<@{user_id}>" in text or f"<@{user_id}|" in text


def _read_brackets(found: re.Match[str], user_id: str) -> str:
    target, label = found[1], found[2] or ""
    if target == f"@{user_id}":
        return ""
    if target[:1] in ("@", "#"):
        return f"{target[0]}{label.lstrip('@#') or target[1:]}"
    if target.startswith("!"):
        return label or f"@{target[1:].partition('^')[0]}"
    return _read_link(target, label)


def _read_link(url: str, label: str) -> str:
    """Return a link as its URL; with its label where that says something else."""
    address = re.sub(r"^(mailto:|tel:)", "", url)
    is_same = not label or label in (url, address, re.sub(r"^https?://", "", url).rstrip("/"))
    return address if is_same else f"{label} ({address})"
