"""Records that the design view shows: one of each kind, with every part filled in."""

from typing import Any

from scout.base.ids import derive_id
from scout.base.refusal import Remedy
from scout.base.time import Time
from scout.model.access.permission import PermissionRequest
from scout.model.agent import Lifecycle, ToolRole
from scout.model.attention import AttentionKind, AttentionState, Risk, list_actions
from scout.model.conversation import Attachment, DeliveryReceipt
from scout.model.moment import Moment
from scout.model.node import NodeState
from scout.model.ref import Ref
from scout.model.status import AgentStatus
from scout.model.usage import Counters, Totals
from scout.model.work_item import Priority, Progress, WorkState
from scout.policy.machine import MachinePart, MachineProblem
from scout.policy.usage import Account
from scout.protocol.attention import AttentionView
from scout.protocol.insight import (
    ExplainedDecision,
    Explanation,
    GroupBy,
    Spent,
    Step,
    UsageCaps,
    UsageReport,
)
from scout.protocol.mesh import MeshView, NodeView
from scout.protocol.observation import Tail, TailEntry
from scout.protocol.overview import Activity
from scout.protocol.talk import MessageLine, MessageView
from scout.protocol.tree.view import TreeAgent, TreeFacts
from scout.protocol.work import WorkView

WHEN = Time.parse("2026-01-02T08:41:00Z")

PROBLEM = MachineProblem(
    part=MachinePart.VERSION,
    says="Scout 1.1 is installed, and the daemon still runs 1.0.",
    remedies=(Remedy(operation="restart", parameters={}, why="running sessions keep running"),),
)
HINT = MachineProblem(part=MachinePart.HARNESS, says="codex: run `codex login`", hint=True)


def _build_item(kind: AttentionKind, title: str, risk: Risk, **more: Any) -> AttentionView:
    return AttentionView(
        id=f"att_{kind}_{risk}",
        created_at=WHEN,
        updated_at=WHEN,
        kind=kind,
        user="me",
        agent_id="agt_1",
        agent_address="@arc",
        source=Ref.to(derive_id("agt", "sample")),
        title=title,
        risk=risk,
        actions=list_actions(kind, ("main", "dev") if kind is AttentionKind.QUESTION else ()),
        **more,
    )


ITEMS = (
    _build_item(
        AttentionKind.PERMISSION,
        "Bash wants to run a command",
        Risk.HIGH,
        permission=PermissionRequest(
            tool="Bash", command="rm -rf build \u202e# safe", words="Clean the build.", hidden=True
        ),
        may_decide=True,
    ),
    _build_item(AttentionKind.QUESTION, "Which branch?", Risk.MEDIUM, may_decide=True),
    _build_item(AttentionKind.APPROVAL, "Merge it?", Risk.LOW, raised_by_you=True, may_dismiss=True),
    _build_item(
        AttentionKind.REVIEW,
        "Look at the plan.",
        Risk.LOW,
        state=AttentionState.DISMISSED,
        decided_by_address="/me/direct",
    ),
)


def _build_work(number: int, state: WorkState, title: str, **more: Any) -> WorkView:
    return WorkView(
        id=f"wrk_{number}",
        created_at=WHEN,
        updated_at=WHEN,
        title=title,
        requester_id="agt_1",
        owner_id="agt_1",
        next_move_owner_id="agt_1",
        owner_address="@arc",
        requester_address="/me/direct",
        next_move_address="@talkie",
        state=state,
        **more,
    )


WORK = {
    WorkState.OPEN: [_build_work(1, WorkState.OPEN, "Write the notes", labels=("release",))],
    WorkState.WORKING: [
        _build_work(
            2,
            WorkState.WORKING,
            "Move the writer",
            priority=Priority.URGENT,
            progress=Progress(done=3, total=7, percent=43, summary="the reader is done"),
        )
    ],
    WorkState.WAITING: [_build_work(3, WorkState.WAITING, "Rotate the keys", priority=Priority.HIGH)],
    WorkState.REVIEW: [_build_work(4, WorkState.REVIEW, "Measure the start", reason="41 ms")],
    WorkState.DONE: list[WorkView](),
    WorkState.CANCELLED: [_build_work(6, WorkState.CANCELLED, "Try another store")],
}

MESSAGE = MessageLine(
    id="msg_1",
    conversation_id="cnv_1",
    sender="agt_1",
    sender_address="@arc",
    body="The build is green.\nLook at main.",
    attachments=(Attachment(sha256="0" * 64, name="log.txt", size=120),),
    created_at=WHEN,
)

SEEN = MessageView(
    id=MESSAGE.id,
    conversation_id="cnv_1",
    sender="agt_1",
    body=MESSAGE.body,
    created_at=WHEN,
    deliveries=(
        DeliveryReceipt(
            delivery_id="dlv_1", target="agt_2", address="@talkie", state="acked", reason="leading mention"
        ),
    ),
)

TAIL = Tail(
    session_id="ses_1",
    lines=tuple(
        TailEntry(who=who, text=text, at=WHEN)
        for who, text in (
            ("user", "Review the last commit."),
            ("assistant", "I look at the writer first."),
            ("tool", "git show HEAD"),
        )
    ),
    next=3,
    source="a file of the harness",
)

PATCH = ("@@ -1,2 +1,2 @@", " kept", "-removed", "+added")

_MOVES = (("queued", 0), ("started", 2), ("waiting", 30), ("resumed", 50), ("completed", 70))
WHY = Explanation(
    noun="flight",
    id="flt_1",
    says="It is completed.",
    decisions=(
        ExplainedDecision(
            seq=1,
            at=WHEN,
            event_id="evt_1",
            action="wake",
            rule="target of the ask",
            holder="agt_1",
            reason="it was asked",
            facts={},
            outcome="woken",
        ),
    ),
    steps=tuple(
        Step(seq=number, at=WHEN.plus(seconds), type=f"collab.flight.{move}", reason="")
        for number, (move, seconds) in enumerate(_MOVES, 1)
    ),
)

ACTIVITY = Activity(
    first=Moment(at=WHEN, seq=1),
    last=Moment(at=WHEN.plus(3600), seq=90),
    events=90,
    from_=WHEN,
    to=WHEN.plus(3600),
    counts=(3, 0, 12, 40, 5, 0, 30),
)


def _build_account(tokens: int) -> Account:
    totals = Totals(reports=1, prompt_tokens=tokens, total_tokens=tokens)
    return Account(totals=totals, exact_tokens=tokens, counters=Counters())


USAGE = UsageReport(
    since=WHEN,
    until=WHEN,
    by=GroupBy.DAY,
    totals={"harness_execution": _build_account(90_000), "protocol_overhead": _build_account(6_000)},
    trend=tuple(
        Spent(
            key=f"2026-01-0{day}",
            harness_execution=_build_account(day * 10_000),
            protocol_overhead=_build_account(day * 700),
        )
        for day in (1, 2, 3, 4)
    ),
    caps=UsageCaps(tokens_per_day=100_000, spent_today=90_000, highest="@arc"),
)


def _build_tree_agent(number: int, depth: int, status: AgentStatus, **more: Any) -> TreeAgent:
    return TreeAgent(
        id=f"agt_{number}",
        address=f"@agent-{number}",
        path=f"/me/agent/agent-{number}",
        parent_id=f"agt_{number - 1}" if depth else None,
        depth=depth,
        role=ToolRole.DEV,
        lifecycle=Lifecycle.ACTIVE,
        status=status,
        birth_branch="main" if not depth else f"main.step-{number}",
        facts=TreeFacts(branch="main", ahead=number, uncommitted=1),
        **more,
    )


TREE = (
    _build_tree_agent(1, 0, AgentStatus.ONLINE, here=True),
    _build_tree_agent(2, 1, AgentStatus.NEEDS_ATTENTION),
    _build_tree_agent(3, 2, AgentStatus.UNREACHABLE),
    _build_tree_agent(4, 3, AgentStatus.OFFLINE),
    _build_tree_agent(5, 4, AgentStatus.WAITING),
    _build_tree_agent(6, 5, AgentStatus.WAKING),
)

MESH = MeshView(member=True, node="desk", url="tls://192.0.2.7:7433", founder=True, connected=True, nodes=3)
NODES = (
    NodeView(id="nod_1", name="desk", state=NodeState.ONLINE, here=True, founder=True, agents=4),
    NodeView(id="nod_2", name="mini", state=NodeState.ONLINE, agents=1),
    NodeView(id="nod_3", name="studio", state=NodeState.UNREACHABLE, agents=2, queued=3),
)
