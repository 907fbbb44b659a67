"""The eight lifecycles of 2.2 as literal tables, with the functions that make their moves.

A table names all states and all moves; a cell is the state after the move, or `-` where it is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from scout.base.refusal import Refused, WrongState
from scout.model.agent import AgentMove, Lifecycle, move_agent
from scout.model.attention import (
    AttentionKind,
    AttentionMove,
    AttentionState,
    decide_attention,
    expire_attention,
    notify_attention,
)
from scout.model.delivery import (
    DeliveryState,
    ack,
    cancel_delivery,
    dead_letter,
    expire,
    lease,
    nack,
    renew,
)
from scout.model.endpoint import EndpointMove, EndpointState, move_endpoint
from scout.model.flight import (
    FlightError,
    FlightState,
    cancel_flight,
    complete_flight,
    fail_flight,
    resume_flight,
    start_flight,
    wait_flight,
)
from scout.model.question import (
    QuestionState,
    answer_question,
    close_question,
    decline_question,
    reopen_question,
)
from scout.model.ref import RefKind
from scout.model.session import (
    SessionState,
    end_session,
    lose_session,
    mark_ready,
    resume_session,
)
from scout.model.waiting import WaitingKind, WaitingOn
from scout.model.work_item import (
    Progress,
    WorkState,
    accept_work,
    cancel_work,
    hand_over_work,
    reopen_work,
    resume_work,
    start_work,
    submit_work,
    update_progress,
    wait_work,
)
from tests.model.samples import (
    BACK_OFF,
    CAROL,
    OPERATOR,
    T1,
    a_delivery,
    a_flight,
    a_question,
    a_session,
    a_work_item,
    an_agent,
    an_attention,
    an_endpoint,
)

ON = WaitingOn(kind=WaitingKind.ACTOR, ref=CAROL)
ERROR = FlightError(code="session_failed", message="it broke")
M = AttentionMove


@dataclass(frozen=True)
class Story:
    """One noun: a record in a given state, its moves, and the table of what they lead to."""

    record: Callable[[str], Any]
    moves: Mapping[str, Callable[[Any], Any]]
    table: str
    field: str = "state"

    def cells(self) -> list[tuple[str, str, str]]:
        """(state, move, state after or `-`), for every pair."""
        moves, *rows = (line.split() for line in self.table.strip().splitlines())
        return [
            (state, move, cell) for state, *after in rows for move, cell in zip(moves, after, strict=True)
        ]

    def accepted(self, state: str) -> set[str]:
        return {move for here, move, after in self.cells() if here == state and after != "-"}

    def check(self, state: str, move: str, after: str) -> None:
        """The move leads there, or is refused with what would be accepted; the record itself stays as it was."""
        before = self.record(state)
        kept = msgspec.structs.asdict(before)
        if after != "-":
            reached = self.moves[move](before)
            assert (str(getattr(reached, self.field)), reached.revision) == (after, before.revision + 1)
            assert (reached.id, reached.created_at) == (before.id, before.created_at)
        else:
            with pytest.raises(Refused) as caught:
                self.moves[move](before)
            told = caught.value.diagnostic
            assert isinstance(told, WrongState)
            assert (told.state, told.move, set(told.accepts)) == (state, move, self.accepted(state))
            assert told.terminal is not bool(self.accepted(state))
        assert msgspec.structs.asdict(before) == kept


AGENT = Story(
    lambda state: an_agent(lifecycle=Lifecycle(state)),
    {move: lambda one, move=move: move_agent(one, AgentMove(move), T1) for move in AgentMove},
    """
            sleep     wake    retire   revive
active      sleeping  -       retired  -
sleeping    -         active  retired  -
retired     -         -       -        active
""",
    field="lifecycle",
)

FLIGHT = Story(
    lambda state: a_flight(state=FlightState(state)),
    {
        "start": lambda one: start_flight(one, T1),
        "wait": lambda one: wait_flight(one, ON, T1, next_move_owner_id=CAROL),
        "resume": lambda one: resume_flight(one, T1),
        "complete": lambda one: complete_flight(one, "done", T1),
        "fail": lambda one: fail_flight(one, ERROR, T1),
        "cancel": lambda one: cancel_flight(one, "not needed", T1),
    },
    """
            start    wait     resume   complete   fail    cancel
queued      running  -        -        -          failed  cancelled
running     -        waiting  -        completed  failed  cancelled
waiting     -        -        running  completed  failed  cancelled
completed   -        -        -        -          -       -
failed      -        -        -        -          -       -
cancelled   -        -        -        -          -       -
""",
)

ENDPOINT = Story(
    lambda state: an_endpoint(state=EndpointState(state)),
    {move: lambda one, move=move: move_endpoint(one, EndpointMove(move), T1) for move in EndpointMove},
    """
             attach     wake    ready  claim    release  lose         fail    expire  stop     recover
registered   attaching  waking  idle   -        -        unreachable  failed  -       stopped  -
attaching    -          waking  idle   -        -        unreachable  failed  stale   stopped  -
waking       -          -       idle   -        -        unreachable  failed  stale   stopped  -
idle         -          -       -      working  -        unreachable  failed  stale   stopped  -
working      -          -       -      -        idle     unreachable  failed  stale   stopped  -
unreachable  -          -       -      -        -        -            failed  stale   stopped  attaching
failed       -          -       -      -        -        -            -       -       stopped  waking
stale        -          -       -      -        -        -            failed  -       stopped  attaching
stopped      -          -       -      -        -        -            -       -       -        -
""",
)

SESSION = Story(
    lambda state: a_session(state=SessionState(state)),
    {
        "ready": lambda one: mark_ready(one, T1),
        "end": lambda one: end_session(one, "it was closed", T1),
        "lose": lambda one: lose_session(one, "silent", T1),
        "resume": lambda one: resume_session(one, T1),
    },
    """
           ready  end    lose  resume
starting   live   ended  lost  -
live       -      ended  lost  -
ended      -      -      -     starting
lost       -      ended  -     starting
""",
)

DELIVERY = Story(
    lambda state: a_delivery(state=DeliveryState(state), leased_by="d", attempts=1),
    {
        "lease": lambda one: lease(one, "d", T1),
        "renew": lambda one: renew(one, "d", T1),
        "ack": lambda one: ack(one, "d", T1),
        "nack": lambda one: nack(one, "d", T1, rule=BACK_OFF),
        "expire": lambda one: expire(one, T1, BACK_OFF),
        "dead_letter": lambda one: dead_letter(one, "no way", T1),
        "cancel": lambda one: cancel_delivery(one, "not needed", T1),
    },
    """
                lease   renew   ack    nack     expire   dead_letter    cancel
pending         leased  -       -      -        -        dead_lettered  cancelled
leased          -       leased  acked  pending  pending  dead_lettered  cancelled
acked           -       -       -      -        -        -              -
dead_lettered   -       -       -      -        -        -              -
cancelled       -       -       -      -        -        -              -
""",
)

QUESTION = Story(
    lambda state: a_question(state=QuestionState(state)),
    {
        "answer": lambda one: answer_question(one, "7432", T1),
        "decline": lambda one: decline_question(one, "not mine", T1),
        "close": lambda one: close_question(one, T1),
        "reopen": lambda one: reopen_question(one, T1),
    },
    """
           answer    decline   close   reopen
open       answered  declined  closed  -
answered   -         -         closed  open
closed     -         -         -       open
declined   -         -         closed  open
""",
)

WORK = Story(
    lambda state: a_work_item(state=WorkState(state)),
    {
        "start": lambda one: start_work(one, T1),
        "progress": lambda one: update_progress(one, Progress(done=1), T1),
        "wait": lambda one: wait_work(one, ON, CAROL, T1),
        "resume": lambda one: resume_work(one, T1),
        "submit": lambda one: submit_work(one, T1),
        "accept": lambda one: accept_work(one, T1),
        "reopen": lambda one: reopen_work(one, "not yet", T1),
        "hand_over": lambda one: hand_over_work(one, CAROL, T1),
        "cancel": lambda one: cancel_work(one, "not needed", T1),
    },
    """
           start    progress  wait     resume   submit  accept  reopen   hand_over  cancel
open       working  -         waiting  -        review  -       -        open       cancelled
working    -        working   waiting  -        review  -       -        working    cancelled
waiting    -        waiting   -        working  -       -       -        waiting    cancelled
review     -        -         -        -        -       done    working  review     cancelled
done       -        -         -        -        -       -       working  -          -
cancelled  -        -         -        -        -       -       -        -          -
""",
)

ATTENTION = Story(
    # A consult offers every decision.
    lambda state: an_attention(AttentionKind.CONSULT, state=AttentionState(state), default_action="merge"),
    {
        "notify": lambda one: notify_attention(one, T1),
        "approve": lambda one: decide_attention(one, M.APPROVE, OPERATOR, T1),
        "deny": lambda one: decide_attention(one, M.DENY, OPERATOR, T1),
        "answer": lambda one: decide_attention(one, M.ANSWER, OPERATOR, T1, answer="yes"),
        "expire": lambda one: expire_attention(one, T1),
        "dismiss": lambda one: decide_attention(one, M.DISMISS, OPERATOR, T1),
    },
    """
           notify    approve   deny    answer    expire   dismiss
open       notified  resolved  denied  answered  expired  dismissed
notified   notified  resolved  denied  answered  expired  dismissed
resolved   -         -         -       -         -        -
denied     -         -         -       -         -        -
answered   -         -         -       -         -        -
expired    -         -         -       -         -        -
dismissed  -         -         -       -         -        -
""",
)

STORIES = {
    RefKind.AGENT: AGENT,
    RefKind.FLIGHT: FLIGHT,
    RefKind.ENDPOINT: ENDPOINT,
    RefKind.SESSION: SESSION,
    RefKind.DELIVERY: DELIVERY,
    RefKind.QUESTION: QUESTION,
    RefKind.WORK: WORK,
    RefKind.ATTENTION: ATTENTION,
}
