"""Prompts that a person picks in a host: delegate, review, hand over."""

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
_WHOM = "the agent's address; or begin the other argument with >> and the address"


class _Template(NamedTuple):
    says: str
    arguments: Mapping[str, str]
    text: str


_TEMPLATES = {
    "delegate": _Template(
        "Have another agent do a task and wait for the result.",
        {_TO: _WHOM, "task": "what to do"},
        "Delegate this to {to}: {task}\n\n"
        "Use the Scout tool `ask` with everything the other agent must know: it cannot see this chat. "
        "Repeat the call under `next` until the flight is finished, then tell me the result. "
        "If Scout refuses, do what its first remedy says.",
    ),
    "review": _Template(
        "Have another agent review something.",
        {_TO: _WHOM, "what": "what to review: files, a branch, a commit"},
        "Have {to} review {what}.\n\n"
        "Use the Scout tool `ask`. Name the files or commits and their purpose, and ask for findings "
        "ordered by severity, each with its place. Wait with the call under `next`, then show the findings "
        "and what you suggest for each.",
    ),
    "hand_over": _Template(
        "Hand work over to another agent.",
        {_TO: _WHOM, "work": "a work item's id, or a description"},
        "Hand {work} over to {to}.\n\n"
        "If it is a work item, use the Scout tool `work_update` with `move` hand_over; otherwise create one "
        "with `work_create` and `ownerId` {to}. Describe what is done, what is left, where it "
        "is, and the next step.",
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


async def build_prompt(call: Call) -> GetPromptResult:
    """Return a prompt with its arguments filled in."""
    name, arguments = call.params.name, call.params.arguments or {}
    template = _TEMPLATES.get(name)
    if template is None:
        raise MCPError(
            INVALID_PARAMS, f"there is no prompt '{name[:60]}'; available: {', '.join(_TEMPLATES)}"
        )
    filled = _apply_route(template, arguments)
    missing = [word for word in template.arguments if not filled.get(word)]
    if missing:
        raise MCPError(INVALID_PARAMS, f"{name} needs {', '.join(missing)}")
    text = template.text.format(**{word: filled[word] for word in template.arguments})
    content = TextContent(text=text)
    return GetPromptResult(description=template.says, messages=[PromptMessage(role="user", content=content)])


def _apply_route(template: _Template, arguments: Mapping[str, str]) -> Mapping[str, str]:
    """Return the arguments, with the target taken from a text that begins with the route operator."""
    words = [arguments[word] for word in template.arguments if arguments.get(word)]
    text = " ".join(words).lstrip()
    if not text.startswith(">>"):
        return arguments
    try:
        route = find_route(text)
    except Refused as refusal:
        raise MCPError(INVALID_PARAMS, f"{refusal.diagnostic.code}: {refusal.diagnostic.message}") from None
    return dict(zip(template.arguments, (route.address, route.body), strict=True)) if route else arguments
