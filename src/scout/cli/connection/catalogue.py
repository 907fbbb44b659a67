"""The commands there are: written by hand (`MODULES`), groups of words, or read off the operation table."""

SECTIONS = {
    "Daemon": {
        "up": "Start the daemon if none runs, and show where it is.",
        "down": "Stop the daemon. Running sessions keep running.",
        "restart": "Replace the running daemon.",
        "status": "Show whether the daemon runs, and where.",
        "pause": "Start no turn and wake nobody on this machine until it is resumed.",
        "resume": "End the pause of this machine.",
        "runtimes": "List the harnesses of this machine and what each lacks.",
        "doctor": "Check this installation and show how to fix it.",
        "demo": "Play the main job with two agents in two sample projects.",
        "config": "Show every setting and where it comes from.",
        "setup": "Connect Scout to Claude Code, Codex and other programs you work in.",
        "mcp": "Run the MCP server on standard input and output. Called by a host.",
        "hook": "Report what happens in a session. Called by a host.",
        "statusline": "Print one line about what is unread. Called by a host.",
    },
    "Who": {
        "whoami": "Show who you are to Scout.",
        "who": "List the agents you can see.",
        "show": "Show one agent.",
        "parse": "Read addresses and mentions, offline.",
        "resolve": "Show what an address means, and why.",
        "agent": "Register, set up, retire and revive agents.",
        "endpoint": "Register where an agent can be reached.",
        "session": "List, start, attach, inspect and stop harness sessions.",
        "wake": "Give an agent a live session, and show which.",
        "interrupt": "Stop the turn that an agent is working on.",
        "open": "Continue an agent's session in this terminal.",
        "topology": "Show the sessions that harnesses expose on this machine.",
        "alias": "Manage your short names for agents.",
        "card": "Manage return addresses that others can use.",
        "project": "Tell Scout that a project was moved.",
        "node": "List the machines that this one knows.",
    },
    "Talk": {
        "send": "Post a durable message.",
        "ask": "Ask an agent or a project to do something, and wait for the answer.",
        "reply": "Answer a message or ask.",
        "wait": "Wait for a flight to finish.",
        "diff": "Show what changed in the work tree during a flight.",
        "flight": "List, follow, cancel and retry asks.",
        "question": "Ask questions and answer them.",
        "work": "List, start, hand over and review work.",
        "inbox": "Read your messages.",
        "now": "Show what needs you, who is working and what is new.",
        "attention": "List what needs you, and decide it.",
        "approve": "Say yes to what needs you.",
        "deny": "Say no to what needs you.",
        "answer": "Answer what needs you.",
        "dismiss": "Put away what needs you, without an answer.",
        "allow": "Let programs do something without asking you again.",
        "need": "Ask the person at this machine and wait.",
        "consult": "Ask the person without waiting.",
        "notify": "Tell the person something.",
        "latest": "Show the newest message of each of your conversations.",
        "channel": "Manage channels.",
        "conversation": "List the conversations you take part in.",
        "message": "Look at messages.",
        "delivery": "Show what became of what was sent.",
        "attachment": "Store and fetch files.",
        "search": "Search the words of messages and work.",
        "brief": "Show who you are, what you owe and who waits for you, in one call.",
    },
    "Record": {
        "why": "Explain a decision from the records it rested on.",
        "usage": "Show what was spent, by ledger.",
        "feed": "Read what concerned one agent.",
        "watch": "Follow the log as it grows.",
        "log": "Read the log, one sentence an event.",
        "verify": "Replay the log on a copy and compare it with the tables.",
        "backup": "Copy the store while it is in use.",
        "restore": "Replace the store by a copy.",
        "redact": "Remove a message's body from history.",
    },
    "Rights": {
        "token": "Manage credentials.",
        "grant": "Allow an agent something it may not do by default.",
        "explain": "Explain a diagnostic code.",
        "help": "Show help: for a command, for all commands, or as a manual page.",
        "contract": "Print the prompt contract every harness gets.",
    },
}

COMMANDS: dict[str, str] = {name: says for section in SECTIONS.values() for name, says in section.items()}

GROUPS: dict[str, tuple[str, ...]] = {
    "agent": ("register", "list", "config", "retire", "revive"),
    "alias": ("set", "list", "show", "remove", "repair"),
    "attachment": ("put", "get"),
    "allow": ("add", "list", "show", "revoke"),
    "attention": ("list", "show", "answer", "approve", "deny", "dismiss", "decide", "raise"),
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
_DECIDING = ("approve", "deny", "answer", "dismiss")
MODULES = {
    "help": "scout.cli.commands.help:command",
    "setup": "scout.cli.commands.setup:command",
    "mcp": "scout.cli.commands.setup:mcp",
    "hook": "scout.cli.commands.setup:hook",
    "statusline": "scout.cli.commands.setup:statusline",
    "parse": "scout.cli.commands.parse:command",
    "resolve": "scout.cli.commands.resolve:command",
    "explain": "scout.cli.commands.explain:command",
    "contract": "scout.cli.commands.explain:contract",
    "config": "scout.cli.commands.config:command",
    "send": "scout.cli.commands.talk:send",
    "ask": "scout.cli.commands.talk:ask",
    "reply": "scout.cli.commands.talk:reply",
    "wait": "scout.cli.commands.talk:wait",
    "flight.wait": "scout.cli.commands.talk:flight_wait",
    "session.tail": "scout.cli.commands.observe:tail",
    "flight.complete": "scout.cli.commands.talk:complete",
    "need": "scout.cli.commands.attention:need",
    "allow": "scout.cli.commands.allow:command",
    **{verb: f"scout.cli.commands.attention:{verb}" for verb in _DECIDING},
    **{f"attention.{verb}": f"scout.cli.commands.attention:{verb}" for verb in _DECIDING},
    "attention.show": "scout.cli.commands.attention:show",
    "attachment.put": "scout.cli.commands.talk:put",
    "attachment.get": "scout.cli.commands.talk:get",
    "now": "scout.cli.commands.observe:now",
    "watch": "scout.cli.commands.observe:watch",
    "open": "scout.cli.commands.terminal:command",
    "up": "scout.cli.commands.daemon:up",
    "down": "scout.cli.commands.daemon:down",
    "restart": "scout.cli.commands.daemon:restart",
    "status": "scout.cli.commands.daemon:status",
    "runtimes": "scout.cli.commands.runtimes:command",
    "doctor": "scout.cli.commands.doctor:command",
    "demo": "scout.cli.commands.demo:command",
    "verify": "scout.cli.commands.store:verify_command",
    "backup": "scout.cli.commands.store:backup_command",
    "restore": "scout.cli.commands.store:restore_command",
}

# A noun alone lists; so does `scout usage`, by showing.
ALONE = {
    **{name: "list" for name, words in GROUPS.items() if "list" in words and name != "message"},
    "usage": "show",
}

# What `scout --help` shows: the verbs of a day, in the order in which one meets them.
EVERYDAY: dict[str, tuple[str, ...]] = {
    "Begin": ("setup", "who", "agent"),
    "Talk": ("ask", "send", "inbox", "reply", "wait"),
    "Decide and follow": ("now", "attention", "approve", "deny", "flight", "session", "watch"),
    "The daemon": ("status", "down", "doctor"),
}

# Words that mean a command, and are taken for it.
SAME_AS: dict[str, tuple[str, ...]] = {
    "agents": ("who",),
    "events": ("log",),
    "history": ("log",),
    "jobs": ("flight", "list", "--open"),
    "list": ("who",),
    "logs": ("log",),
    "ls": ("who",),
    "mail": ("inbox",),
    "messages": ("inbox",),
    "msg": ("send",),
    "ps": ("session", "list", "--live"),
    "settings": ("config",),
    "tail": ("watch",),
    "tell": ("send",),
    "todo": ("attention",),
    "version": ("--version",),
    **{f"{name}s": (name,) for name in ALONE if name not in ("agent", "usage")},
}

# Words below a noun that only look: each is taken for the one that the noun has.
LOOKS = (("show", "get", "inspect", "info", "view"), ("list", "ls", "all"))

# Words below a noun that change something: the noun's own word is offered, not taken.
CHANGES = (
    ("create", "add", "new", "make", "register", "set", "start", "raise", "put"),
    ("remove", "delete", "rm", "revoke", "retire", "stop", "kill", "cancel", "dismiss", "close", "archive"),
    ("config", "edit", "change", "set", "update", "rename"),
)

# Words that could mean several commands, or none of ours: what their owners usually want.
MEANINGS: dict[str, tuple[str, ...]] = {
    "add": ("scout agent register NAME --project .", "scout alias set NAME ADDRESS"),
    "cancel": ("scout flight cancel", "scout interrupt ADDRESS"),
    "chat": ("scout ask ADDRESS TEXT", "scout open ADDRESS"),
    "connect": ("scout setup", "scout session attach"),
    "create": ("scout agent register NAME --project .", "scout work create TITLE"),
    "delete": ("scout agent retire ADDRESS", "scout redact MESSAGE"),
    "init": ("scout setup", "scout agent register NAME --project ."),
    "install": ("scout setup", "scout up --install"),
    "kill": ("scout session stop", "scout flight cancel", "scout down --stop"),
    "login": ("scout setup", "scout runtimes"),
    "new": ("scout agent register NAME --project .", "scout session start --agent ADDRESS"),
    "quit": ("scout down",),
    "register": ("scout agent register NAME --project .",),
    "remove": ("scout agent retire ADDRESS", "scout alias remove NAME"),
    "run": ("scout ask ADDRESS TEXT", "scout session start --agent ADDRESS"),
    "start": ("scout up", "scout session start --agent ADDRESS"),
    "stop": ("scout down", "scout session stop", "scout interrupt ADDRESS"),
    "uninstall": ("scout setup --undo", "scout up --uninstall"),
    "update": ("scout restart",),
    "upgrade": ("scout restart",),
}

# Commands whose operation has another name.
OPERATIONS_OF = {
    "agent.list": "who",
    "attention.list": "attention",
    "inbox.list": "inbox",
    "usage.show": "usage",
    "diff": "flight.diff",
}

_CONFIG = ("set", "roots")
_FLAGS = ("runtimes.check",)  # operations that are a flag of another command


def exists(operation: str) -> bool:
    """Whether an operation of the table is a command here, so that its remedy can be pasted."""
    if operation in _FLAGS:
        return True
    first, _, second = operation.partition(".")
    if not second:
        return first in COMMANDS and (first not in GROUPS or first in ALONE)
    return second in (_CONFIG if first == "config" else GROUPS.get(first, ()))
