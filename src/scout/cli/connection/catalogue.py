"""All commands: written by hand (`MODULES`), groups (`GROUPS`), or built from the operation table."""

SECTIONS = {
    "Daemon": {
        "up": "Start the daemon if it is not running, and show its address.",
        "down": "Stop the daemon. Running sessions keep running.",
        "restart": "Replace the running daemon.",
        "status": "Show whether the daemon is running, and its address.",
        "web": "Open the web page in a browser.",
        "pause": "Start no turns and wake no agents on this machine until you resume.",
        "resume": "End the pause of this machine.",
        "runtimes": "List installed harnesses and what each still needs.",
        "doctor": "Check this installation and show how to fix it.",
        "upgrade": "Compare the command, the daemon and the store after an upgrade.",
        "demo": "Run a short demo with two agents in two sample projects.",
        "tui": "Open the terminal application: what needs you, who works, what happened.",
        "config": "Show every setting and where it comes from.",
        "setup": "Connect Scout to Claude Code, Codex and other programs you work in.",
        "mcp": "Run as a stdio MCP server. Started by a host.",
        "hook": "Report what happens in a session. Called by a host.",
        "statusline": "Print one line about unread messages. Called by a host.",
    },
    "Who": {
        "whoami": "Show your identity in Scout.",
        "who": "List the agents you can see.",
        "show": "Show one agent.",
        "parse": "Parse addresses and mentions, offline.",
        "resolve": "Show what an address means, and why.",
        "agent": "Register, set up, retire and revive agents.",
        "tree": "Show agents and those below them, with their work trees.",
        "spawn": "Create child agents, each on its branch in a work tree.",
        "finish": "Merge, keep or discard the work of a spawned agent.",
        "endpoint": "Register where an agent can be reached.",
        "session": "List, start, attach, inspect and stop harness sessions.",
        "wake": "Make sure an agent has a live session, and print its id.",
        "interrupt": "Stop the turn that an agent is working on.",
        "open": "Continue an agent's session in this terminal.",
        "topology": "Show the sessions that harnesses expose on this machine.",
        "alias": "Manage your short names for agents.",
        "card": "Manage return addresses that others can use.",
        "project": "List projects, change their settings, and tell Scout that one was moved.",
        "node": "List the machines that this one knows.",
        "mesh": "Join machines, so that their agents reach each other.",
    },
    "People": {
        "user": "Add people, groups and sub-users, and link their chat accounts.",
        "binding": "Bind chats to channels, conversations and agents.",
        "connector": "Connect chats: Telegram, WhatsApp, Matrix, Slack.",
        "post": "Post a message to a person, in every chat of theirs.",
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
        "reserve": "Reserve files that you edit, and see who edits what.",
        "cron": "Repeat an ask at set times.",
        "task": "Give a task to an agent that exists only for it.",
        "inbox": "Read your messages.",
        "now": "Show what needs you, who is working and what is new.",
        "attention": "List the items that need you, and decide them.",
        "approve": "Approve an item that needs you.",
        "deny": "Deny an item that needs you.",
        "answer": "Answer an item that needs you.",
        "dismiss": "Dismiss an item that needs you, without an answer.",
        "allow": "Let programs do something without asking you again.",
        "need": "Ask the person at this machine and wait.",
        "consult": "Ask the person without waiting.",
        "notify": "Tell the person something.",
        "latest": "Show the newest message of each of your conversations.",
        "channel": "Manage channels.",
        "conversation": "List the conversations you take part in.",
        "message": "Look at messages.",
        "delivery": "Show the state of deliveries.",
        "attachment": "Store and fetch files.",
        "search": "Search the words of messages and work.",
        "brief": "Show who you are, what you owe and who is waiting for you.",
    },
    "Record": {
        "why": "Explain a decision from the records behind it.",
        "usage": "Show token usage, by ledger.",
        "feed": "Read the events that concern one agent.",
        "watch": "Follow the log as it grows.",
        "log": "Read the log, one sentence per event.",
        "activity": "Show how much happened when, and how far back you can look.",
        "verify": "Replay the log on a copy and compare it with the tables.",
        "backup": "Copy the store while it is in use.",
        "restore": "Replace the store with a backup.",
        "import": "Import agents, names and open work from another system.",
        "archive": "Move old parts of the log into compressed files, and list them.",
        "export": "Print a conversation or a flight as Markdown.",
        "redact": "Remove a message's body from history.",
        "purge": "Delete archive files for good.",
    },
    "Rights": {
        "token": "Manage credentials.",
        "grant": "Allow an agent to do more than it may by default.",
        "explain": "Explain a diagnostic code.",
        "help": "Show help: for a command, for all commands, or as a manual page.",
        "contract": "Print the prompt contract every harness gets.",
    },
}

COMMANDS: dict[str, str] = {name: says for section in SECTIONS.values() for name, says in section.items()}

GROUPS: dict[str, tuple[str, ...]] = {
    "agent": (
        "register",
        "list",
        "config",
        "move",
        "publish",
        "unpublish",
        "publication",
        "retire",
        "revive",
    ),
    "alias": ("set", "list", "show", "remove", "repair"),
    "archive": ("create", "list"),
    "attachment": ("put", "get"),
    "allow": ("add", "list", "show", "revoke"),
    "attention": ("list", "show", "answer", "approve", "deny", "dismiss", "decide", "raise"),
    "binding": ("add", "list", "show", "close", "reopen"),
    "card": ("create", "list", "show", "revoke"),
    "channel": ("create", "list", "show", "join", "leave", "policy", "archive"),
    "connector": ("add", "list", "show", "test", "remove", "posts"),
    "conversation": ("list", "show", "read"),
    "cron": ("add", "list", "show", "update", "run", "pause", "resume", "remove", "log"),
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
    "mesh": (
        "up",
        "down",
        "status",
        "nodes",
        "invite",
        "join",
        "remove",
        "rename",
        "rotate",
        "leave",
        "share",
    ),
    "message": ("list", "show"),
    "node": ("list",),
    "project": ("list", "set", "move"),
    "question": ("create", "list", "show", "answer", "decline", "close", "reopen"),
    "reserve": ("add", "list", "show", "release", "check"),
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
    "task": ("create", "list", "show"),
    "token": ("create", "list", "revoke", "rotate"),
    "usage": ("show", "report"),
    "user": (
        "add",
        "list",
        "show",
        "rename",
        "link",
        "unlink",
        "keys",
        "key",
        "quiet",
        "target",
        "retire",
        "revive",
    ),
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

# Commands that make more than one call, and their modules.
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
    "connector.add": "scout.cli.commands.connector:add",
    "attachment.put": "scout.cli.commands.talk:put",
    "attachment.get": "scout.cli.commands.talk:get",
    "task": "scout.cli.commands.task:command",
    "task.create": "scout.cli.commands.task:create",
    "cron.add": "scout.cli.commands.cron:add",
    "cron.update": "scout.cli.commands.cron:update",
    "reserve.add": "scout.cli.commands.tree.reserve:add",
    "reserve.check": "scout.cli.commands.tree.reserve:check",
    "now": "scout.cli.commands.observe:now",
    "watch": "scout.cli.commands.observe:watch",
    "open": "scout.cli.commands.terminal:command",
    "tree": "scout.cli.commands.tree.tree:command",
    "spawn": "scout.cli.commands.tree.spawn:command",
    "finish": "scout.cli.commands.tree.finish:command",
    "up": "scout.cli.commands.daemon:up",
    "down": "scout.cli.commands.daemon:down",
    "restart": "scout.cli.commands.daemon:restart",
    "status": "scout.cli.commands.daemon:status",
    "runtimes": "scout.cli.commands.runtimes:command",
    "doctor": "scout.cli.commands.doctor:command",
    "upgrade": "scout.cli.commands.upgrade:command",
    "demo": "scout.cli.commands.demo.tour:command",
    "web": "scout.cli.commands.web:command",
    "tui": "scout.cli.commands.tui:command",
    "verify": "scout.cli.commands.store:verify_command",
    "backup": "scout.cli.commands.store:backup_command",
    "restore": "scout.cli.commands.store:restore_command",
    "archive.create": "scout.cli.commands.store:create_archive",
    "purge": "scout.cli.commands.store:purge",
    "export": "scout.cli.commands.export:command",
    "import": "scout.cli.imports.command:command",
}

# A noun without a verb lists; `scout usage` shows.
ALONE = {
    **{name: "list" for name, words in GROUPS.items() if "list" in words and name != "message"},
    "mesh": "status",
    "usage": "show",
}

# What `scout --help` shows: everyday commands, in the order in which you need them.
EVERYDAY: dict[str, tuple[str, ...]] = {
    "Begin": ("setup", "who", "agent"),
    "Talk": ("ask", "send", "inbox", "reply", "wait"),
    "Decide and follow": ("now", "web", "attention", "approve", "deny", "flight", "session", "watch"),
    "The daemon": ("status", "down", "doctor"),
}

# Synonyms that run a command.
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
    "schedule": ("cron",),
    "schedules": ("cron",),
    "settings": ("config",),
    "tail": ("watch",),
    "tell": ("send",),
    "todo": ("attention",),
    "version": ("--version",),
    **{f"{name}s": (name,) for name in ALONE if name not in ("agent", "usage")},
}

# Synonyms below a noun that only read: each runs the one that the noun has.
LOOKS = (("show", "get", "inspect", "info", "view"), ("list", "ls", "all"))

# Synonyms below a noun that change something: the noun's own word is suggested, not run.
CHANGES = (
    ("create", "add", "new", "make", "register", "set", "start", "raise", "put"),
    ("remove", "delete", "rm", "revoke", "retire", "stop", "kill", "cancel", "dismiss", "close", "archive"),
    ("config", "edit", "change", "set", "update", "rename"),
)

# Words with several meanings, or none in Scout: the commands to suggest. A word in capitals stands for what
# was typed behind the word; one in brackets may be missing.
MEANINGS: dict[str, tuple[str, ...]] = {
    "add": ("scout agent register NAME --project .", "scout alias set NAME ADDRESS"),
    "cancel": ("scout flight cancel [ADDRESS]", "scout interrupt ADDRESS"),
    "chat": ("scout ask ADDRESS TEXT", "scout open ADDRESS"),
    "connect": ("scout setup", "scout session attach SESSION"),
    "create": ("scout agent register NAME --project .", "scout work create TEXT"),
    "delete": ("scout agent retire ADDRESS", "scout redact MESSAGE"),
    "init": ("scout setup", "scout agent register NAME --project ."),
    "install": ("scout setup", "scout up --install"),
    "kill": ("scout session stop [ADDRESS]", "scout flight cancel [ADDRESS]", "scout down --stop"),
    "login": ("scout setup", "scout runtimes"),
    "new": ("scout agent register NAME --project .", "scout session start --agent ADDRESS"),
    "quit": ("scout down",),
    "register": ("scout agent register NAME --project .",),
    "remove": ("scout agent retire ADDRESS", "scout alias remove NAME"),
    "run": ("scout ask ADDRESS TEXT", "scout session start --agent ADDRESS"),
    "start": ("scout up", "scout session start --agent ADDRESS"),
    "stop": ("scout down", "scout session stop [ADDRESS]", "scout interrupt ADDRESS"),
    "uninstall": ("scout setup --undo", "scout up --uninstall"),
    "update": ("scout upgrade", "scout restart"),
}


def suggest_commands(word: str, given: list[str]) -> list[str]:
    """Return the commands for a word's meaning, with what was typed behind it; else their help pages."""
    return list(dict.fromkeys(_fill_in(line.split(), given) for line in MEANINGS[word]))


def _fill_in(parts: list[str], given: list[str]) -> str:
    import shlex  # only a mistake needs it

    typed, rest = list[str](), list(given)
    for part in parts:
        name = part.strip("[]")
        if not name.isupper():
            typed.append(part)
        elif rest:
            typed.append(" ".join(rest) if name == "TEXT" else rest[0])
            rest = rest[1:] if name != "TEXT" else []
        elif name == part:
            command = [one for one in typed if not one.startswith("-")]
            return shlex.join([*command, "--help"])
    return shlex.join(typed)


# Commands whose operation has another name.
OPERATIONS_OF = {
    "agent.list": "who",
    "attention.list": "attention",
    "inbox.list": "inbox",
    "usage.show": "usage",
    "diff": "flight.diff",
}

_CONFIG = ("set", "roots")
# Operations that are a flag of another command.
_FLAGS = ("runtimes.check", "tree.scan", "tree.reconcile", "finish.done")


def is_command(operation: str) -> bool:
    """Whether an operation is a command, so that a remedy can name it."""
    if operation in _FLAGS:
        return True
    first, _, second = operation.partition(".")
    if not second:
        return first in COMMANDS and (first not in GROUPS or first in ALONE)
    return second in (_CONFIG if first == "config" else GROUPS.get(first, ()))
