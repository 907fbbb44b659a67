"""The contract for a harness without a system prompt: it comes with the first prompt, and never again."""

from scout.ports import Prompt, SessionSpec


def first_prompt(spec: SessionSpec, prompt: Prompt, *, had_turns: bool) -> str:
    """What is said in a turn. `had_turns`: Scout spoke to this session before, so it knows the contract."""
    if had_turns or not spec.instructions:
        return prompt.text
    return f"{spec.instructions}\n{prompt.text}"
