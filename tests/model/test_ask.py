import pytest

from scout.base.codec import to_plain
from scout.base.refusal import Refused
from scout.model.ask import AskOrigin, AskReceipt, IfUnreachable, ReplyMode, SessionPolicy, check_ask
from tests.model.samples import an_ask


@pytest.mark.parametrize("policy", [SessionPolicy.NEW, SessionPolicy.REUSE])
def test_new_and_reuse_name_no_session(policy: SessionPolicy) -> None:
    ask = an_ask(session_policy=policy)
    assert check_ask(ask) is ask
    with pytest.raises(Refused, match="need a session"):
        check_ask(an_ask(session_policy=policy, target_session_id="ses_1"))


@pytest.mark.parametrize("policy", [SessionPolicy.EXISTING, SessionPolicy.FORK])
def test_existing_and_fork_name_one(policy: SessionPolicy) -> None:
    ask = an_ask(session_policy=policy, target_session_id="ses_1")
    assert check_ask(ask) is ask
    with pytest.raises(Refused, match="need a session"):
        check_ask(an_ask(session_policy=policy))


def test_a_client_may_have_its_own_names_for_an_ask_if_they_are_short() -> None:
    ask = an_ask(origin=AskOrigin(context_id="c" * 200, message_id="m"))
    assert check_ask(ask) is ask
    with pytest.raises(Refused, match="at most 200 characters"):
        check_ask(an_ask(origin=AskOrigin(context_id="c", message_id="m" * 201)))


def test_an_ask_is_refused_when_nothing_can_run_it_unless_it_says_queue() -> None:
    assert (an_ask().if_unreachable, an_ask().reply_mode) == (IfUnreachable.REFUSE, ReplyMode.INLINE)


def test_a_receipt_leaves_out_what_is_not_known() -> None:
    receipt = AskReceipt(
        conversation_id="cnv_1",
        message_id="msg_1",
        ask_id="ask_1",
        flight_id="flt_1",
        state="queued",
        phase="accepted",
        target="agt_1",
    )
    assert set(to_plain(receipt)) == {
        "conversationId",
        "messageId",
        "askId",
        "flightId",
        "state",
        "phase",
        "target",
    }
