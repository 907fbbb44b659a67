"""The tools: one row each. Which role has which is said in `protocol.tools`."""

from collections.abc import Mapping
from typing import Any

from scout.base.refusal import Refused
from scout.identity.lexer import lex
from scout.identity.name import HandleName, OperatorName, PathName
from scout.mcp.tools import acts, asking, lines
from scout.mcp.tools.session_tools import SESSION_TOOLS
from scout.mcp.tools.tool import Argument, Tool, arguments, one
from scout.model.agent import ToolRole
from scout.model.waiting import WaitingKind
from scout.protocol import (
    access,
    agents,
    asks,
    attention,
    channels,
    inbox,
    insight,
    questions,
    talk,
    work,
)
from scout.protocol.tools import ROLE_TOOLS

_MOVES: Mapping[str, str] = {
    "waiting": "wait",
    "review": "submit",
    "working": "start",
    "done": "accept",
    "cancelled": "cancel",
}


def _read_question(given: dict[str, Any]) -> dict[str, Any]:
    """Without a target, a question goes to the one who asked in the flight."""
    return given if "to" in given or "flightId" not in given else {**given, "to": given["flightId"]}


def _read_work(given: dict[str, Any]) -> dict[str, Any]:
    """A state is the move that leads to it; a next owner alone is a handover."""
    rest = dict(given)
    if "move" not in rest and "state" in rest:
        state = rest.pop("state")
        rest["move"] = _MOVES.get(str(state), state)
    if "move" not in rest and "nextMoveOwnerId" in rest:
        rest.update(move="hand_over", to=rest.pop("nextMoveOwnerId"))
    if "waitingOn" in rest:
        on = rest.pop("waitingOn")
        rest.update(on=_kind_of(str(on)), ref=on)
    return rest


def _kind_of(text: str) -> WaitingKind:
    """What a text names that something waits for."""
    if text.startswith("wrk_"):
        return WaitingKind.WORK_ITEM
    try:
        name = lex(text)
    except Refused:
        return WaitingKind.CONDITION
    names_agent = isinstance(name, HandleName | PathName | OperatorName) and " " not in text.strip()
    return WaitingKind.ACTOR if names_agent else WaitingKind.CONDITION


_LIMIT = "how many"
_AGENT = (
    "address",
    "alias",
    "canonical",
    "path",
    "status",
    "lifecycle",
    "toolRole",
    "projectRoot",
    "label",
    "description",
)
_WORK = (
    "id",
    "title",
    "state",
    "ownerAddress",
    "nextMoveAddress",
    "priority",
    "progress",
    "waitingOn",
    "dueAt",
    "revision",
    "notes",
)
_QUESTION = (
    "id",
    "state",
    "body",
    "answer",
    "options",
    "askerAddress",
    "responderAddress",
    "flightId",
    "workItem",
    "revision",
    "notes",
)
_ATTENTION = ("id", "state", "title", "answer", "reason", "defaultAction", "decidedBy", "expiresAt")


_TABLE = (
    Tool(
        "whoami",
        "Who you are to Scout: your address, role and project.",
        one(agents.WhoAmI),
        {},
        lines.identity,
        act=acts.who_am_i,
        main=True,
    ),
    Tool(
        "ask",
        "Have another agent or project do something, tracked until it is done. "
        "Returns at once; `next` is the call that waits for the result. "
        "For information only use question_create, for a note messages_send.",
        one(asks.MakeAsk),
        arguments(
            "to",
            "projectPath",
            "targetSessionId",
            "body",
            "harness",
            "model",
            "replyMode",
            "replyToSessionId",
            session=Argument("sessionPolicy"),
            workItem=Argument("workItemId"),
        ),
        lines.asked,
        act=acts.ask,
        main=True,
    ),
    Tool(
        "invocations_wait",
        "Wait for the result of an ask. To stop waiting never stops the work.",
        one(asks.GetFlight),
        arguments("flightId", timeoutSeconds=Argument("wait", "seconds; 50 unless said, 240 at most")),
        lines.flight,
        act=acts.wait_for_flight,
        also=("wait", "flight.wait"),
        main=True,
    ),
    Tool(
        "invocations_get",
        "How an ask stands now, and who owns the next move.",
        one(asks.GetFlight),
        arguments("flightId"),
        lines.flight,
        act=acts.show_flight,
    ),
    Tool(
        "flight_cancel",
        "Cancel an ask that nobody needs any more.",
        one(asks.CancelFlight),
        arguments("flightId", "reason"),
        lines.moved_flight,
        shows=("id", "state", "reason", "targetAddress"),
    ),
    Tool(
        "messages_send",
        "Tell an agent or a channel something. It starts no work: for that use ask.",
        one(talk.Send),
        arguments("to", "channel", "body", "kind", "followUp"),
        lines.sent,
        main=True,
    ),
    Tool(
        "messages_reply",
        "Answer what you were sent, in its conversation. The first answer to an ask is its result.",
        one(talk.Reply),
        arguments("body", "inReplyTo"),
        lines.sent,
        main=True,
    ),
    Tool(
        "messages_inbox",
        "What waits for you, oldest first. With `claim` you take it: it does not come again.",
        {"": inbox.ListInbox, "claim": inbox.ClaimInbox},
        arguments(limit=Argument("limit", _LIMIT)),
        lines.inbox,
        act=acts.inbox,
        by="claim",
        main=True,
    ),
    Tool(
        "messages_channel",
        "The last messages of a channel.",
        one(talk.ListMessages),
        arguments("channel", limit=Argument("limit", _LIMIT)),
        lines.messages,
        shows=("id", "senderAddress", "kind", "body", "createdAt"),
        fixed={"newest": True},
    ),
    Tool(
        "channels_list",
        "The channels that you take part in, and how much is unread there.",
        one(channels.ListChannels),
        arguments(limit=Argument("limit", _LIMIT)),
        lines.channels,
        fixed={"joined": True},
        act=acts.list_channels,
    ),
    Tool(
        "agents_resolve",
        "What an address means, and why. Nothing is changed.",
        one(agents.Resolve),
        arguments("address"),
        lines.resolved,
    ),
    Tool(
        "question_create",
        "Ask another agent for information, not for work. Without `to`: the one who asked in `flightId`.",
        one(questions.CreateQuestion),
        arguments("to", "body", "options", "flightId", "workItemId"),
        lines.question,
        shows=_QUESTION,
        read=_read_question,
        optional=("to",),
    ),
    Tool(
        "question_answer",
        "Answer a question; work that it turned out to need may begin with it.",
        one(questions.AnswerQuestion),
        arguments("questionId", "answer", "spawnWork"),
        lines.question,
        shows=_QUESTION,
    ),
    Tool(
        "question_close",
        "Put a question of yours away.",
        one(questions.CloseQuestion),
        arguments("questionId", "reason"),
        lines.question,
        shows=_QUESTION,
    ),
    Tool(
        "work_create",
        "Create a work item: durable, with an owner who is told. For a single job use ask.",
        one(work.CreateWork),
        arguments("title", "ownerId", "description", "reviewerId", "priority", "labels", "blocks", "dueAt"),
        lines.work,
        shows=_WORK,
    ),
    Tool(
        "work_update",
        "Change a work item: its fields, or its state. `state` waiting takes waitingOn (an address, a work "
        "item or a sentence), review takes summary; nextMoveOwnerId alone hands it over; `move` is a step.",
        {
            "": work.UpdateWork,
            "start": work.StartWork,
            "progress": work.ProgressWork,
            "wait": work.WaitWork,
            "resume": work.ResumeWork,
            "submit": work.SubmitWork,
            "accept": work.AcceptWork,
            "reopen": work.ReopenWork,
            "hand_over": work.HandOverWork,
            "cancel": work.CancelWork,
        },
        arguments(
            "workItemId",
            "title",
            "description",
            "priority",
            "labels",
            "reviewerId",
            "dueAt",
            "summary",
            "percent",
            "on",
            "ref",
            "to",
            "reason",
            "revision",
            "nextMoveOwnerId",
            state=Argument("", "waiting, review, working, done or cancelled"),
            waitingOn=Argument("", "an address, a work item's id, or what must happen"),
        ),
        lines.work,
        shows=_WORK,
        read=_read_work,
    ),
    Tool("work_get", "A work item and its steps.", one(work.GetWork), arguments("workItemId"), lines.work),
    Tool(
        "work_list",
        "Work items, newest first; `owed`: those whose next move is yours.",
        one(work.ListWork),
        arguments("ownerId", "owed", "state", "label", limit=Argument("limit", _LIMIT)),
        lines.works,
        shows=_WORK,
    ),
    Tool(
        "operator_need",
        "Ask the person and wait: you cannot go on without the answer.",
        one(attention.Need),
        arguments("question", "options"),
        lines.needed,
        act=asking.need,
        main=True,
    ),
    Tool(
        "operator_consult",
        "Ask the person and go on: without an answer you do the default.",
        one(attention.Consult),
        arguments("question", "defaultAction"),
        lines.attention,
        shows=_ATTENTION,
    ),
    Tool(
        "operator_notify",
        "Tell the person something; nobody waits for an answer.",
        one(attention.Notify),
        arguments("message"),
        lines.attention,
        shows=_ATTENTION,
    ),
    Tool(
        "notify_parent",
        "Tell the agent that you work for how it goes.",
        one(talk.Send),
        arguments("body", status=Argument("kind", "status on the way, final at the end")),
        lines.sent,
        fixed={"to": "parent", "kind": "status"},
    ),
    Tool(
        "agents_search",
        "Agents whose names begin like this.",
        one(agents.Who),
        arguments("query", project=Argument("projectRoot"), limit=Argument("limit", _LIMIT)),
        lines.agents,
        shows=_AGENT,
    ),
    Tool(
        "broker_feed",
        "What concerned an agent, oldest first: messages, deliveries, flights, errors. "
        "Go on with `next` as since.",
        one(agents.ReadFeed),
        arguments(
            agent=Argument("address", "whose; yours unless said"),
            since=Argument("after"),
            limit=Argument("limit", _LIMIT),
        ),
        lines.feed,
        fixed={"address": "self"},
        act=acts.feed,
    ),
    Tool(
        "usage_report",
        "Report tokens that you spent.",
        one(insight.ReportUsage),
        arguments(
            "promptTokens",
            "completionTokens",
            "totalTokens",
            "model",
            "harness",
            "category",
            "valueClass",
            "usageSource",
            "flightId",
            "workItemId",
        ),
        lines.usage,
    ),
    *SESSION_TOOLS,
    Tool(
        "card_create",
        "Make a return address that others can use.",
        one(access.CreateCard),
        arguments("agent", "name", "expiresIn", "maxUses", "replyToSessionId"),
        lines.card,
    ),
    Tool(
        "agents_register",
        "Enter an agent in the directory. One without a harness gets a token, shown once.",
        one(agents.RegisterAgent),
        arguments(
            "definitionId",
            "workspace",
            "profile",
            "projectRoot",
            "toolRole",
            "harness",
            "model",
            "wakePolicy",
            "permissionProfile",
        ),
        lines.registered,
        shows=("address", "canonical", "path", "created", "token"),
    ),
    Tool(
        "aliases_list",
        "The person's short names.",
        one(access.ListAliases),
        arguments(limit=Argument("limit", _LIMIT)),
        lines.aliases,
        shows=("name", "means", "state"),
    ),
    Tool(
        "aliases_resolve",
        "What a short name stands for.",
        one(access.ShowAlias),
        arguments("name"),
        lines.alias,
    ),
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _TABLE}


def tools_of(role: ToolRole) -> tuple[Tool, ...]:
    """The tools of a role, in the order in which they are listed."""
    return tuple(TOOLS[name] for name in ROLE_TOOLS[role])
