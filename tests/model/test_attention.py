import pytest

from scout.base.refusal import BadRequest, Refused, WrongState
from scout.model.attention import (
    ATTENTION,
    AttentionKind,
    AttentionMove,
    AttentionState,
    ReturnPath,
    Risk,
    check_attention,
    decide_attention,
    expire_attention,
    is_blocking,
    list_actions,
    notify_attention,
)
from tests.model.samples import OPERATOR, T1, an_attention
from tests.model.table import cells, check_cell

TABLE = """
           notify    approve   deny    answer    expire   dismiss
open       notified  resolved  denied  answered  expired  dismissed
notified   notified  resolved  denied  answered  expired  dismissed
resolved   -         -         -       -         -        -
denied     -         -         -       -         -        -
answered   -         -         -       -         -        -
expired    -         -         -       -         -        -
dismissed  -         -         -       -         -        -
"""

K, M, S = AttentionKind, AttentionMove, AttentionState

OFFERED = {
    K.APPROVAL: "approve deny dismiss",
    K.QUESTION: "answer dismiss",
    K.PERMISSION: "approve deny dismiss",
    K.WAITING: "approve answer dismiss",
    K.REVIEW: "approve deny dismiss",
    K.FAILURE: "approve answer dismiss",
    K.SETUP: "approve dismiss",
    K.NOTIFY: "dismiss",
    K.CONSULT: "approve deny answer dismiss",
}


@pytest.mark.parametrize(("state", "move", "after"), cells(ATTENTION, TABLE))
def test_each_cell(state: str, move: str, after: str) -> None:
    check_cell(ATTENTION, state, move, after)


@pytest.mark.parametrize("kind", list(K))
@pytest.mark.parametrize("move", [M.APPROVE, M.DENY, M.ANSWER, M.DISMISS])
def test_each_kind_takes_its_own_actions(kind: AttentionKind, move: AttentionMove) -> None:
    item = an_attention(kind)
    if move in OFFERED[kind].split():
        decided = decide_attention(item, move, OPERATOR, T1, answer="yes", reason="fine", seen=1)
        assert decided.state is ATTENTION.after(S.OPEN, move)
        assert (decided.decided_by, decided.answer, decided.reason) == (OPERATOR, "yes", "fine")
        return
    with pytest.raises(Refused) as refused:
        decide_attention(item, move, OPERATOR, T1, answer="yes")
    problem = refused.value.diagnostic
    assert isinstance(problem, BadRequest)
    assert problem.problem == f"a {kind} takes {', '.join(OFFERED[kind].split())}, not {move}"


def test_options_become_answers() -> None:
    actions = list_actions(K.QUESTION, ("yes", "no"))
    assert [(action.move, action.label, action.value) for action in actions] == [
        (M.ANSWER, "yes", "yes"),
        (M.ANSWER, "no", "no"),
        (M.ANSWER, "Answer", None),
        (M.DISMISS, "Dismiss", None),
    ]


@pytest.mark.parametrize("answer", [None, "", "  "])
def test_an_answer_has_words(answer: str | None) -> None:
    with pytest.raises(Refused, match="an answer needs a text"):
        decide_attention(an_attention(K.QUESTION), M.ANSWER, OPERATOR, T1, answer=answer)


def test_the_first_decision_wins() -> None:
    denied = decide_attention(an_attention(), M.DENY, OPERATOR, T1)
    with pytest.raises(Refused) as refused:
        decide_attention(denied, M.APPROVE, OPERATOR, T1)
    assert isinstance(refused.value.diagnostic, WrongState)


def test_telling_a_person_is_no_decision() -> None:
    told = notify_attention(an_attention(), T1)
    assert (told.state, told.decided_by) == (S.NOTIFIED, None)
    assert decide_attention(told, M.APPROVE, OPERATOR, T1).state is S.RESOLVED


def test_a_consult_says_what_happens_without_an_answer() -> None:
    with pytest.raises(Refused, match="needs a default action"):
        check_attention(an_attention(K.CONSULT))
    consult = an_attention(K.CONSULT, default_action="merge")
    assert check_attention(consult) is consult
    expired = expire_attention(consult, T1)
    assert (expired.state, expired.answer) == (S.EXPIRED, "merge")
    plain_item = an_attention()
    assert check_attention(plain_item) is plain_item
    assert expire_attention(plain_item, T1).answer is None


@pytest.mark.parametrize("kind", list(K))
def test_notices_and_consults_block_nobody(kind: AttentionKind) -> None:
    blocks = kind not in {K.NOTIFY, K.CONSULT}
    assert is_blocking(an_attention(kind)) is blocks
    assert is_blocking(an_attention(kind, state=S.NOTIFIED)) is blocks
    assert not is_blocking(an_attention(kind, state=S.EXPIRED))


def test_an_item_carries_source_risk_actions_and_the_way_back() -> None:
    item = an_attention(
        K.PERMISSION, risk=Risk.HIGH, return_path=ReturnPath(session_id="ses_1", request="req-7")
    )
    assert (item.risk, item.return_path.session_id, item.return_path.request) == (Risk.HIGH, "ses_1", "req-7")
    assert item.source.startswith("agent:")
    assert item.actions == list_actions(K.PERMISSION)


def test_the_riskiest_item_is_the_most_urgent() -> None:
    ranks = [an_attention(risk=risk).urgency for risk in (Risk.HIGH, Risk.MEDIUM, Risk.LOW)]
    assert ranks == sorted({*ranks})
