"""The tools: one row each. Which role has which is said in `protocol.tools`."""

from collections.abc import Mapping
from typing import Any

from scout.mcp import acts, asking, lines
from scout.mcp.tool import Argument, Tool
from scout.model.agent import ToolRole
from scout.protocol import access, agents, asks, attention, inbox, insight, questions, talk, work
from scout.protocol.request import Request
from scout.protocol.tools import ROLE_TOOLS

__all__ = ["TOOLS", "tools_of"]

_LIMIT = "how many"
_AGENT = ("minimal", "canonical", "path", "status", "toolRole", "projectRoot", "label")
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


def _one(request: type[Request[Any]]) -> Mapping[str, type[Request[Any]]]:
    return {"": request}


def _arguments(*names: str, **others: Argument) -> dict[str, Argument]:
    """Arguments that are called as their fields, then those that are not or need other words."""
    return {**{name: Argument(name) for name in names}, **others}


_TABLE = (
    Tool(
        "whoami",
        "Who you are to Scout: your address, role and project.",
        _one(agents.WhoAmI),
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
        _one(asks.MakeAsk),
        _arguments(
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
        _one(asks.GetFlight),
        _arguments("flightId", timeoutSeconds=Argument("wait", "seconds; 50 unless said, 240 at most")),
        lines.flight,
        act=acts.wait_for_flight,
        also=("wait", "flight.wait"),
        main=True,
    ),
    Tool(
        "invocations_get",
        "How an ask stands now, and who owns the next move.",
        _one(asks.GetFlight),
        _arguments("flightId"),
        lines.flight,
        act=acts.show_flight,
    ),
    Tool(
        "flight_cancel",
        "Cancel an ask that nobody needs any more.",
        _one(asks.CancelFlight),
        _arguments("flightId", "reason"),
        lines.moved_flight,
        shows=("id", "state", "reason", "targetAddress"),
    ),
    Tool(
        "messages_send",
        "Tell an agent or a channel something. It starts no work: for that use ask.",
        _one(talk.Send),
        _arguments("to", "channel", "body", "kind", "followUp"),
        lines.sent,
        main=True,
    ),
    Tool(
        "messages_reply",
        "Answer what you were sent, in its conversation. The first answer to an ask is its result.",
        _one(talk.Reply),
        _arguments("body", "inReplyTo"),
        lines.sent,
        main=True,
    ),
    Tool(
        "messages_inbox",
        "What waits for you, oldest first. With `claim` you take it: it does not come again.",
        {"": inbox.ListInbox, "claim": inbox.ClaimInbox},
        _arguments(limit=Argument("limit", _LIMIT)),
        lines.inbox,
        act=acts.inbox,
        by="claim",
        main=True,
    ),
    Tool(
        "messages_channel",
        "The last messages of a channel.",
        _one(talk.ListMessages),
        _arguments("channel", limit=Argument("limit", _LIMIT)),
        lines.messages,
        shows=("id", "senderAddress", "kind", "body", "createdAt"),
        fixed={"newest": True},
    ),
    Tool(
        "agents_resolve",
        "What an address means, and why. Nothing is changed.",
        _one(agents.Resolve),
        _arguments("address"),
        lines.resolved,
    ),
    Tool(
        "question_create",
        "Ask another agent for information, not for work.",
        _one(questions.CreateQuestion),
        _arguments("to", "body", "options", "flightId", "workItemId"),
        lines.question,
        shows=_QUESTION,
    ),
    Tool(
        "question_answer",
        "Answer a question; work that it turned out to need may begin with it.",
        _one(questions.AnswerQuestion),
        _arguments("questionId", "answer", "spawnWork"),
        lines.question,
        shows=_QUESTION,
    ),
    Tool(
        "question_close",
        "Put a question of yours away.",
        _one(questions.CloseQuestion),
        _arguments("questionId", "reason"),
        lines.question,
        shows=_QUESTION,
    ),
    Tool(
        "work_create",
        "Create a work item: durable, with an owner who is told. For a single job use ask.",
        _one(work.CreateWork),
        _arguments("title", "ownerId", "description", "reviewerId", "priority", "labels", "blocks", "dueAt"),
        lines.work,
        shows=_WORK,
    ),
    Tool(
        "work_update",
        "Change a work item: its fields, or with `move` its state. "
        "`wait` takes on and ref, `hand_over` takes to, `submit` and `progress` take summary.",
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
        _arguments(
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
        ),
        lines.work,
        shows=_WORK,
    ),
    Tool("work_get", "A work item and its steps.", _one(work.GetWork), _arguments("workItemId"), lines.work),
    Tool(
        "work_list",
        "Work items, newest first; `owed`: those whose next move is yours.",
        _one(work.ListWork),
        _arguments("ownerId", "owed", "state", "label", limit=Argument("limit", _LIMIT)),
        lines.works,
        shows=_WORK,
    ),
    Tool(
        "operator_need",
        "Ask the person and wait: you cannot go on without the answer.",
        _one(attention.Need),
        _arguments("question", "options"),
        lines.needed,
        act=asking.need,
        main=True,
    ),
    Tool(
        "operator_consult",
        "Ask the person and go on: without an answer you do the default.",
        _one(attention.Consult),
        _arguments("question", "defaultAction"),
        lines.attention,
        shows=_ATTENTION,
    ),
    Tool(
        "operator_notify",
        "Tell the person something; nobody waits for an answer.",
        _one(attention.Notify),
        _arguments("message"),
        lines.attention,
        shows=_ATTENTION,
    ),
    Tool(
        "notify_parent",
        "Tell the agent that you work for how it goes.",
        _one(talk.Send),
        _arguments("body", status=Argument("kind", "status on the way, final at the end")),
        lines.sent,
        fixed={"to": "parent", "kind": "status"},
    ),
    Tool(
        "agents_search",
        "Agents whose names begin like this.",
        _one(agents.Who),
        _arguments("query", project=Argument("projectRoot"), limit=Argument("limit", _LIMIT)),
        lines.agents,
        shows=_AGENT,
    ),
    Tool(
        "broker_feed",
        "What concerned an agent, oldest first: messages, deliveries, flights, errors. "
        "Go on with `next` as since.",
        _one(agents.ReadFeed),
        _arguments(
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
        _one(insight.ReportUsage),
        _arguments(
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
    Tool(
        "sessions_inspect",
        "One harness session: its state and its process.",
        _one(agents.GetSession),
        _arguments("sessionId"),
        lines.session,
    ),
    Tool(
        "sessions_list",
        "Harness sessions, newest first.",
        _one(agents.ListSessions),
        _arguments("agent", limit=Argument("limit", _LIMIT)),
        lines.sessions,
        shows=("id", "agentId", "harness", "state", "modelObserved", "cwd", "reason"),
    ),
    Tool(
        "card_create",
        "Make a return address that others can use.",
        _one(access.CreateCard),
        _arguments("agent", "name", "expiresIn", "maxUses", "replyToSessionId"),
        lines.card,
    ),
    Tool(
        "agents_register",
        "Enter an agent in the directory; its token is shown once.",
        _one(agents.RegisterAgent),
        _arguments(
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
        shows=("address", "minimal", "path", "created", "token"),
    ),
    Tool(
        "aliases_list",
        "The person's short names.",
        _one(access.ListAliases),
        _arguments(limit=Argument("limit", _LIMIT)),
        lines.aliases,
        shows=("name", "means", "state"),
    ),
    Tool(
        "aliases_resolve",
        "What a short name stands for.",
        _one(access.ShowAlias),
        _arguments("name"),
        lines.alias,
    ),
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _TABLE}


def tools_of(role: ToolRole) -> tuple[Tool, ...]:
    """The tools of a role, in the order in which they are listed."""
    return tuple(TOOLS[name] for name in ROLE_TOOLS[role])
