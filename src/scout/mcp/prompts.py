"""Prompts that a person picks in a host: how to delegate, to have something reviewed, to hand over."""

from collections.abc import Mapping
from typing import NamedTuple

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from scout.base.refusal import Refused
from scout.identity.route import find_route
from scout.mcp.call import Call

_TO = "to"
_WHOM = "whom: any address; or begin the other argument with >> and the address"


class _Template(NamedTuple):
    says: str
    arguments: Mapping[str, str]
    text: str


_TEMPLATES = {
    "delegate": _Template(
        "Have another agent do a task, and wait for its result.",
        {_TO: _WHOM, "task": "what is to be done"},
        "Delegate this to {to}: {task}\n\n"
        "Use the Scout tool `ask` with everything the other agent must know: it does not see this talk. "
        "Then make the call under `next` until the flight is finished, and tell me the result. "
        "If Scout refuses, do what its first remedy says.",
    ),
    "review": _Template(
        "Have another agent review something.",
        {_TO: _WHOM, "what": "what to look at: files, a branch, a commit"},
        "Have {to} review {what}.\n\n"
        "Use the Scout tool `ask`. Say which files or commits, what they are for, and that you want findings "
        "in order of weight, each with its place. Wait by the call under `next`, then show me the findings "
        "and what you would do about each.",
    ),
    "hand_over": _Template(
        "Give your work to another agent.",
        {_TO: _WHOM, "work": "the work: an item's id, or in words"},
        "Hand {work} over to {to}.\n\n"
        "If it is a work item, use the Scout tool `work_update` with `move` hand_over; if not, make one "
        "with `work_create` and `ownerId` {to}. Put into the description what is done, what is not, where it "
        "is, and what you would do next.",
    ),
}

PROMPTS = [
    Prompt(
        name=name,
        description=one.says,
        arguments=[
            PromptArgument(name=word, description=says, required=word != _TO)
            for word, says in one.arguments.items()
        ],
    )
    for name, one in _TEMPLATES.items()
]


async def prompt(call: Call) -> GetPromptResult:
    """A prompt with its blanks filled."""
    name, arguments = call.params.name, call.params.arguments or {}
    template = _TEMPLATES.get(name)
    if template is None:
        raise MCPError(INVALID_PARAMS, f"no prompt {name[:60]}; there are {', '.join(_TEMPLATES)}")
    filled = _with_route(template, arguments)
    missing = [word for word in template.arguments if not filled.get(word)]
    if missing:
        raise MCPError(INVALID_PARAMS, f"{name} needs {', '.join(missing)}")
    text = template.text.format(**{word: filled[word] for word in template.arguments})
    content = TextContent(text=text)
    return GetPromptResult(description=template.says, messages=[PromptMessage(role="user", content=content)])


def _with_route(template: _Template, arguments: Mapping[str, str]) -> Mapping[str, str]:
    """The arguments, with the target of a text that begins with the route operator."""
    words = [arguments[word] for word in template.arguments if arguments.get(word)]
    text = " ".join(words).lstrip()
    if not text.startswith(">>"):
        return arguments
    try:
        route = find_route(text)
    except Refused as refusal:
        raise MCPError(INVALID_PARAMS, f"{refusal.diagnostic.code}: {refusal.diagnostic.message}") from None
    return dict(zip(template.arguments, (route.address, route.body), strict=True)) if route else arguments
