"""Parsed addresses as plain data, the same on every surface."""

from typing import Any

from scout.base.codec import render, to_plain
from scout.identity.lexer import lex
from scout.identity.mention import Mention, find_mentions
from scout.identity.name import (
    BranchName,
    HandleName,
    IdName,
    Name,
    PathName,
    ProjectName,
    RelativeName,
    SessionName,
)


def describe(text: str, root_branch: str | None = None) -> dict[str, Any]:
    """Return the form of an address, its canonical text and its parts; refuse text that is no address."""
    name = lex(text, root_branch)
    form = str(name.__struct_config__.tag)
    return {"input": text, "form": form, "canonical": name.canonical, **_list_parts(name)}


def _list_parts(name: Name) -> dict[str, Any]:
    match name:
        case HandleName(address=address):
            return {"dimensions": to_plain(address)}
        case PathName(path=path):
            return {
                "kind": path.kind,
                "modelRole": path.model_role,
                "userId": path.user,
                "parent": path.parent,
                "connector": path.connector,
            }
        case BranchName(branch=branch) if branch is not None:
            return {"depth": branch.depth, "parent": branch.parent.text if branch.parent else None}
        case RelativeName(up=up, suffix=suffix):
            return {"base": "parent" if up else "self", "suffix": suffix or None}
        case IdName(kind=kind):
            return {"kind": kind}
        case SessionName():
            return {key: value for key, value in to_plain(name).items() if value and key != "form"}
        case ProjectName(directory=directory):
            return {"directory": directory}
        case _:
            return {}


def describe_mentions(text: str) -> dict[str, Any]:
    """Return the mentions of a body; `error` holds the problem of an unreadable leading mention."""
    found = find_mentions(text)
    leading = found.leading
    described: dict[str, Any] = {
        "input": text,
        "leading": _get_canonical(leading),
        "soft": [_get_canonical(mention) for mention in found.soft],
    }
    if leading is not None and leading.problem is not None:
        described["error"] = render(leading.problem)
    return described


def _get_canonical(mention: Mention | None) -> str | None:
    return mention.address.canonical if mention and mention.address else None
