"""The commands there are: written by hand (`MODULES`), groups of words, or read off the operation table."""

__all__ = ["ALONE", "COMMANDS", "GROUPS", "MODULES", "OPERATIONS_OF", "SECTIONS", "exists"]

SECTIONS = {
    "Daemon": {
        "up": "Start the daemon if none runs, and say where it is.",
        "down": "Stop the daemon; what it started goes on.",
        "restart": "Replace the running daemon.",
        "status": "Say whether the daemon runs, and where.",
        "pause": "Start no turn and wake nobody on this machine until it is resumed.",
        "resume": "End the pause of this machine.",
        "runtimes": "List the harnesses of this machine and what each lacks.",
        "doctor": "Check this installation, and say what to mend.",
        "demo": "Play the main job with two agents in two sample projects.",
        "config": "Show every setting and where it comes from.",
        "setup": "Connect Scout to Claude Code, Codex and other programs you work in.",
        "mcp": "Be an MCP server on standard input and output; called by a host.",
        "hook": "Report what happens in a session; called by a host.",
        "statusline": "One line about what waits; called by a host.",
    },
    "Who": {
        "whoami": "Say who you are to Scout.",
        "who": "List the agents you can see.",
        "show": "Show one agent.",
        "parse": "Read addresses and mentions, offline.",
        "resolve": "Say what an address means, and why.",
        "agent": "Register, set up, retire and revive agents.",
        "endpoint": "Say where an agent can be reached.",
        "session": "Start, take up, look at and stop harness sessions.",
        "wake": "See to it that an agent has a live session, and say which.",
        "interrupt": "Stop the turn that an agent is at.",
        "open": "Go on with an agent's session in this terminal.",
        "topology": "Show the sessions that harnesses expose on this machine.",
        "alias": "Short names of your own.",
        "card": "Return addresses that others can use.",
        "project": "Tell Scout that a project was moved.",
        "node": "The machines that this one knows.",
    },
    "Talk": {
        "send": "Post a durable message.",
        "ask": "Ask an agent or a project to do something, and wait for the answer.",
        "reply": "Answer a message or ask.",
        "wait": "Wait for a flight to finish.",
        "diff": "Show what changed in the work tree during a flight.",
        "flight": "Follow, cancel and retry what was asked.",
        "question": "Ask for information, and answer it.",
        "work": "Own work: begin it, wait, hand it over, review it.",
        "inbox": "See and take what waits for you.",
        "now": "What needs me, who works, what finished since I last looked.",
        "attention": "See and decide what needs you.",
        "need": "Ask the person at this machine and wait.",
        "consult": "Ask the person and go on.",
        "notify": "Tell the person something.",
        "latest": "The newest message of each of your conversations.",
        "channel": "Talk in groups.",
        "conversation": "The conversations you take part in.",
        "message": "Look at messages.",
        "delivery": "See what became of what was sent.",
        "attachment": "Store and fetch files.",
        "search": "Search the words of messages and work.",
        "brief": "Say who you are, what you owe and who waits for you, in one call.",
    },
    "Record": {
        "why": "Explain a decision from the records it rested on.",
        "usage": "Show what was spent, by ledger.",
        "feed": "Read what concerned one agent.",
        "watch": "Follow the log as it grows.",
        "log": "Read the log.",
        "verify": "Replay the log on a copy and compare it with the tables.",
        "backup": "Copy the store while it is in use.",
        "restore": "Put a copy in the place of the store.",
        "redact": "Take a message's body out of history.",
    },
    "Rights": {
        "token": "Credentials.",
        "grant": "Allow an agent something it may not do by default.",
        "explain": "Explain a diagnostic code.",
        "contract": "Print the prompt contract every harness gets.",
    },
}

COMMANDS: dict[str, str] = {name: says for section in SECTIONS.values() for name, says in section.items()}

GROUPS: dict[str, tuple[str, ...]] = {
    "agent": ("register", "list", "config", "retire", "revive"),
    "alias": ("set", "list", "show", "remove", "repair"),
    "attachment": ("put", "get"),
    "attention": ("list", "show", "answer", "approve", "deny", "dismiss", "raise"),
    "card": ("create", "list", "show", "revoke"),
    "channel": ("create", "list", "show", "join", "leave", "policy", "archive"),
    "conversation": ("list", "show", "read"),
    "delivery": ("list", "show"),
    "endpoint": ("register", "heartbeat", "update", "remove"),
    "flight": (
        "list",
        "get",
        "wait",
        "diff",
        "cancel",
        "retry",
        "start",
        "block",
        "resume",
        "complete",
        "fail",
    ),
    "grant": ("add", "list", "revoke"),
    "inbox": ("list", "claim", "ack", "nack", "renew"),
    "message": ("list", "show"),
    "node": ("list",),
    "project": ("move",),
    "question": ("create", "list", "show", "answer", "decline", "close", "reopen"),
    "session": (
        "list",
        "start",
        "attach",
        "inspect",
        "tail",
        "fork",
        "stop",
        "open",
        "close",
        "enrol",
        "hook",
    ),
    "token": ("create", "list", "revoke", "rotate"),
    "usage": ("show", "report"),
    "work": (
        "create",
        "list",
        "show",
        "start",
        "progress",
        "wait",
        "resume",
        "submit",
        "accept",
        "reopen",
        "hand-over",
        "cancel",
        "update",
        "relate",
    ),
}

# Commands that are not simply one call: where they are written.
MODULES = {
    "setup": "scout.cli.setup:command",
    "mcp": "scout.cli.hosted:mcp",
    "hook": "scout.cli.hosted:hook",
    "statusline": "scout.cli.hosted:statusline",
    "parse": "scout.cli.parse:command",
    "resolve": "scout.cli.resolve:command",
    "explain": "scout.cli.explain:command",
    "contract": "scout.cli.contract:command",
    "config": "scout.cli.config:command",
    "send": "scout.cli.talk:send",
    "ask": "scout.cli.talk:ask",
    "reply": "scout.cli.talk:reply",
    "wait": "scout.cli.talk:wait",
    "flight.wait": "scout.cli.talk:flight_wait",
    "session.tail": "scout.cli.transcript:tail",
    "flight.complete": "scout.cli.talk:complete",
    "need": "scout.cli.attention:need",
    "attention.show": "scout.cli.attention:show",
    "attachment.put": "scout.cli.talk:put",
    "attachment.get": "scout.cli.talk:get",
    "now": "scout.cli.now:command",
    "watch": "scout.cli.watch:command",
    "open": "scout.cli.terminal:command",
    "up": "scout.cli.daemon:up",
    "down": "scout.cli.daemon:down",
    "restart": "scout.cli.daemon:restart",
    "status": "scout.cli.daemon:status",
    "doctor": "scout.cli.doctor:command",
    "demo": "scout.cli.demo:command",
    "verify": "scout.cli.store:verify_command",
    "backup": "scout.cli.store:backup_command",
    "restore": "scout.cli.store:restore_command",
}

# Groups that do something by themselves: which of their commands that is.
ALONE = {"attention": "list", "inbox": "list", "usage": "show"}

# Commands whose operation has another name.
OPERATIONS_OF = {
    "agent.list": "who",
    "attention.list": "attention",
    "inbox.list": "inbox",
    "usage.show": "usage",
    "diff": "flight.diff",
}

_CONFIG = ("set", "roots")


def exists(operation: str) -> bool:
    """Whether an operation of the table is a command here, so that its remedy can be pasted."""
    first, _, second = operation.partition(".")
    if not second:
        return first in COMMANDS and (first not in GROUPS or first in ALONE)
    return second in (_CONFIG if first == "config" else GROUPS.get(first, ()))
