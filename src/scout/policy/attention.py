"""Who reads what needs a person: the person it is for and the agent that raised it, nobody else."""

from scout.model.attention import Attention
from scout.model.token import TokenKind
from scout.policy.permit import Actor, is_person_for

__all__ = ["may_read_attention"]


def may_read_attention(actor: Actor, item: Attention) -> bool:
    """Whether an item, its question and its answer are shown to an actor."""
    if actor.kind is TokenKind.OPERATOR:
        return True
    if actor.kind is not TokenKind.AGENT:
        return False
    raised = actor.agent_id is not None and actor.agent_id == item.agent_id
    return raised or is_person_for(actor, item.user)
