"""Which records can be waited for, and until when: those whose answer somebody stands still for."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from scout.model.attention import ATTENTION, Attention
from scout.model.question import Question, QuestionState
from scout.protocol.attention import AttentionView, GetAttention
from scout.protocol.questions import GetQuestion, QuestionView
from scout.protocol.request import Request
from scout.store.ledger import Ledger


class Awaited(NamedTuple):
    """A kind of record, the states in which there is no answer yet, and how it is shown afterwards."""

    kind: type[Attention] | type[Question]
    unanswered: frozenset[str]
    show: Callable[[str], Request[Any]]

    def is_unanswered(self, ledger: Ledger, ident: str) -> bool:
        found = ledger.get(self.kind, ident)
        return found is not None and found.state in self.unanswered


def _item(ident: str) -> Request[Any]:
    return GetAttention(attention_id=ident)


def _question(ident: str) -> Request[Any]:
    return GetQuestion(question_id=ident)


# By what a request answers with: a request that makes or shows one of these may say how long it waits.
AWAITED: Mapping[type[Any], Awaited] = {
    AttentionView: Awaited(Attention, frozenset(ATTENTION.states) - ATTENTION.terminal, _item),
    QuestionView: Awaited(Question, frozenset({QuestionState.OPEN}), _question),
}
