"""The tool table. `protocol.tools` lists the tools of each role."""

from collections.abc import Mapping
from typing import Any

from scout.base.refusal import Refused
from scout.identity.lexer import lex
from scout.identity.name import HandleName, OperatorName, PathName
from scout.mcp.tools import acts, asking, lines
from scout.mcp.tools.family_tools import FAMILY_TOOLS
from scout.mcp.tools.session_tools import SESSION_TOOLS
from scout.mcp.tools.tool import Argument, Tool, build_arguments, map_request
from scout.mcp.tools.tree_tools import TREE_TOOLS
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
    log,
    questions,
    reservations,
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
    """Send a question without a target to the requester of its flight."""
    return given if "to" in given or "flightId" not in given else {**given, "to": given["flightId"]}


def _read_work(given: dict[str, Any]) -> dict[str, Any]:
    """Read a state as the move that leads to it, and a next owner alone as a handover."""
    rest = dict(given)
    if "move" not in rest and "state" in rest:
        state = rest.pop("state")
        rest["move"] = _MOVES.get(str(state), state)
    if "move" not in rest and "nextMoveOwnerId" in rest:
        rest.update(move="hand_over", to=rest.pop("nextMoveOwnerId"))
    if "waitingOn" in rest:
        on = rest.pop("waitingOn")
        rest.update(on=_read_kind(str(on)), ref=on)
    return rest


def _read_kind(text: str) -> WaitingKind:
    """Return the kind of dependency a text names."""
    if text.startswith("wrk_"):
        return WaitingKind.WORK_ITEM
    try:
        name = lex(text)
    except Refused:
        return WaitingKind.CONDITION
    names_agent = isinstance(name, HandleName | PathName | OperatorName) and " " not in text.strip()
    return WaitingKind.ACTOR if names_agent else WaitingKind.CONDITION


def _read_minutes(given: dict[str, Any]) -> dict[str, Any]:
    """Read minutes as seconds."""
    minutes = given.get("minutes")
    return {**given, "minutes": 60 * minutes} if isinstance(minutes, int | float) else given


def _read_release(given: dict[str, Any]) -> dict[str, Any]:
    """Release the only reservation if no id is given."""
    return {"reservationId": "only", **given}


_LIMIT = "maximum number"
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
_RESERVATION = ("id", "state", "address", "globs", "exclusive", "scope", "root", "why", "expiresAt")
_ATTENTION = ("id", "state", "title", "answer", "reason", "defaultAction", "decidedBy", "expiresAt")


_TABLE = (
    Tool(
        "whoami",
        "Show who you are to Scout: your address, role and project.",
        map_request(agents.WhoAmI),
        {},
        lines.format_identity,
        act=acts.identify_caller,
        main=True,
    ),
    Tool(
        "ask",
        "Ask another agent or project to do something; tracked until done. "
        "Returns at once; `next` is the call that waits for the result. "
        "For information use question_create; for a note, messages_send.",
        map_request(asks.MakeAsk),
        build_arguments(
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
        lines.format_ask,
        act=acts.ask,
        main=True,
    ),
    Tool(
        "invocations_wait",
        "Wait for the result of an ask. Stopping the wait does not stop the work.",
        map_request(asks.GetFlight),
        build_arguments("flightId", timeoutSeconds=Argument("wait", "seconds; default 50, maximum 240")),
        lines.format_flight,
        act=acts.wait_for_flight,
        also=("wait", "flight.wait"),
        main=True,
    ),
    Tool(
        "invocations_get",
        "Show an ask's state and who owns the next move.",
        map_request(asks.GetFlight),
        build_arguments("flightId"),
        lines.format_flight,
        act=acts.show_flight,
    ),
    Tool(
        "flight_cancel",
        "Cancel an ask.",
        map_request(asks.CancelFlight),
        build_arguments("flightId", "reason"),
        lines.format_flight_state,
        shows=("id", "state", "reason", "targetAddress"),
    ),
    Tool(
        "messages_send",
        "Send a message to an agent or channel. It starts no work; for that use ask.",
        map_request(talk.Send),
        build_arguments("to", "channel", "body", "kind", "followUp"),
        lines.format_message_receipt,
        main=True,
    ),
    Tool(
        "messages_reply",
        "Reply in the same conversation. The first reply to an ask is its result.",
        map_request(talk.Reply),
        build_arguments("body", "inReplyTo"),
        lines.format_message_receipt,
        main=True,
    ),
    Tool(
        "messages_inbox",
        "Read your inbox, oldest first. `claim` removes what you read.",
        {"": inbox.ListInbox, "claim": inbox.ClaimInbox},
        build_arguments(limit=Argument("limit", _LIMIT)),
        lines.format_inbox,
        act=acts.read_inbox,
        by="claim",
        main=True,
    ),
    Tool(
        "messages_channel",
        "Read a channel's latest messages.",
        map_request(talk.ListMessages),
        build_arguments("channel", limit=Argument("limit", _LIMIT)),
        lines.format_messages,
        shows=("id", "senderAddress", "senderNode", "kind", "body", "createdAt"),
        fixed={"newest": True},
    ),
    Tool(
        "channels_list",
        "List your channels and their unread counts.",
        map_request(channels.ListChannels),
        build_arguments(limit=Argument("limit", _LIMIT)),
        lines.format_channels,
        fixed={"joined": True},
        act=acts.list_channels,
    ),
    Tool(
        "agents_resolve",
        "Show which agent an address resolves to, and why. Changes nothing.",
        map_request(agents.Resolve),
        build_arguments("address"),
        lines.format_resolution,
    ),
    Tool(
        "question_create",
        "Ask another agent for information, not work. Without `to`: asks the requester of `flightId`.",
        map_request(questions.CreateQuestion),
        build_arguments("to", "body", "options", "flightId", "workItemId"),
        lines.format_question,
        shows=_QUESTION,
        read=_read_question,
        optional=("to",),
    ),
    Tool(
        "question_answer",
        "Answer a question, optionally starting a work item.",
        map_request(questions.AnswerQuestion),
        build_arguments("questionId", "answer", "spawnWork"),
        lines.format_question,
        shows=_QUESTION,
    ),
    Tool(
        "question_close",
        "Close a question you asked.",
        map_request(questions.CloseQuestion),
        build_arguments("questionId", "reason"),
        lines.format_question,
        shows=_QUESTION,
    ),
    Tool(
        "work_create",
        "Create a durable work item and notify its owner. For a single job use ask.",
        map_request(work.CreateWork),
        build_arguments(
            "title", "ownerId", "description", "reviewerId", "priority", "labels", "blocks", "dueAt"
        ),
        lines.format_work,
        shows=_WORK,
    ),
    Tool(
        "work_update",
        "Change a work item: its fields, or its state. `state` waiting takes waitingOn (an address, a work "
        "item or a sentence), review takes summary; nextMoveOwnerId alone hands it over.",
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
        build_arguments(
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
            waitingOn=Argument("", "an address, a work item's id, or a condition"),
        ),
        lines.format_work,
        shows=_WORK,
        read=_read_work,
    ),
    Tool(
        "work_get",
        "Show a work item and its history.",
        map_request(work.GetWork),
        build_arguments("workItemId"),
        lines.format_work,
    ),
    Tool(
        "work_list",
        "List work items, newest first; `owed`: only where the next move is yours.",
        map_request(work.ListWork),
        build_arguments("ownerId", "owed", "state", "label", limit=Argument("limit", _LIMIT)),
        lines.format_work_items,
        shows=_WORK,
    ),
    Tool(
        "files_reserve",
        "Reserve files before you edit them; others are kept from exclusive ones. Globs as in .gitignore.",
        map_request(reservations.AddReservation),
        build_arguments("globs", "exclusive", "why", "repo", minutes=Argument("seconds", "default 30")),
        lines.format_reserved,
        shows=(*_RESERVATION, "notes"),
        read=_read_minutes,
    ),
    Tool(
        "files_release",
        "Release reserved files. Without an id: your only reservation.",
        map_request(reservations.ReleaseReservation),
        build_arguments("reservationId"),
        lines.format_reservation,
        shows=_RESERVATION,
        read=_read_release,
        optional=("reservationId",),
    ),
    Tool(
        "files_status",
        "List the files that agents have reserved.",
        map_request(reservations.ListReservations),
        build_arguments("agent", limit=Argument("limit", _LIMIT)),
        lines.format_reservations,
        shows=_RESERVATION,
    ),
    Tool(
        "operator_need",
        "Ask the person and wait for the answer.",
        map_request(attention.Need),
        build_arguments("question", "options"),
        lines.format_need,
        act=asking.ask_person,
        main=True,
    ),
    Tool(
        "operator_consult",
        "Ask the person and continue; without an answer, do the default.",
        map_request(attention.Consult),
        build_arguments("question", "defaultAction"),
        lines.format_attention,
        shows=_ATTENTION,
    ),
    Tool(
        "operator_notify",
        "Notify the person. No answer is expected.",
        map_request(attention.Notify),
        build_arguments("message"),
        lines.format_attention,
        shows=_ATTENTION,
    ),
    Tool(
        "notify_parent",
        "Report your status to your parent agent.",
        map_request(talk.Send),
        build_arguments("body", status=Argument("kind", "status while working, final when done")),
        lines.format_message_receipt,
        fixed={"to": "parent", "kind": "status"},
    ),
    Tool(
        "agents_search",
        "Find agents by the beginning of their name.",
        map_request(agents.Who),
        build_arguments("query", project=Argument("projectRoot"), limit=Argument("limit", _LIMIT)),
        lines.format_agents,
        shows=_AGENT,
    ),
    Tool(
        "broker_feed",
        "Read an agent's history, oldest first: messages, deliveries, flights, errors. "
        "Pass `next` as since to continue.",
        map_request(log.ReadFeed),
        build_arguments(
            agent=Argument("address", "default: you"),
            since=Argument("after"),
            limit=Argument("limit", _LIMIT),
        ),
        lines.format_feed,
        fixed={"address": "self"},
        act=acts.read_feed,
    ),
    Tool(
        "usage_report",
        "Report token usage.",
        map_request(insight.ReportUsage),
        build_arguments(
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
        lines.format_usage,
    ),
    *SESSION_TOOLS,
    *TREE_TOOLS,
    *FAMILY_TOOLS,
    Tool(
        "card_create",
        "Create a return address that others can use.",
        map_request(access.CreateCard),
        build_arguments("agent", "name", "expiresIn", "maxUses", "replyToSessionId"),
        lines.format_card,
    ),
    Tool(
        "agents_register",
        "Register an agent. Without a harness it gets a token, shown once.",
        map_request(agents.RegisterAgent),
        build_arguments(
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
        lines.format_registration,
        shows=("address", "canonical", "path", "created", "token"),
    ),
    Tool(
        "aliases_list",
        "List the person's aliases.",
        map_request(access.ListAliases),
        build_arguments(limit=Argument("limit", _LIMIT)),
        lines.format_aliases,
        shows=("name", "means", "state"),
    ),
    Tool(
        "aliases_resolve",
        "Show an alias and its target.",
        map_request(access.ShowAlias),
        build_arguments("name"),
        lines.format_alias,
    ),
)

TOOLS: Mapping[str, Tool] = {tool.name: tool for tool in _TABLE}


def get_role_tools(role: ToolRole) -> tuple[Tool, ...]:
    """Return the tools of a role, in listing order."""
    return tuple(TOOLS[name] for name in ROLE_TOOLS[role])
