"""What Scout itself offers."""

from scout.mcp import prompts, resources
from scout.mcp.offer import Offer
from scout.mcp.tools.call_tool import called, listed

_INSTRUCTIONS = (
    "Scout connects coding agents. To have work done use `ask` and then the call under `next`; to find "
    "something out use `question_create`; to tell something use `messages_send`. What you were asked is in "
    "`messages_inbox`; `messages_reply` gives your result. A refusal names the next call under `remedies`."
)

OFFER = Offer(
    instructions=_INSTRUCTIONS,
    tools=listed,
    call=called,
    resources=resources.listed,
    templates=resources.TEMPLATES,
    read=resources.read,
    touched=resources.touched,
    prompts=prompts.PROMPTS,
    prompt=prompts.prompt,
)
