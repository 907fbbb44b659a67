"""Words that no agent, slug or alias may use, and the explanation of each."""

from scout.base.refusal import Refused
from scout.identity.problem import ReservedName, suggest

# Every key of a qualifier in text, and its dimension.
KEYS = {
    "workspace": "workspace_qualifier",
    "branch": "workspace_qualifier",
    "worktree": "workspace_qualifier",
    "profile": "profile",
    "persona": "profile",
    "harness": "harness",
    "runtime": "harness",
    "model": "model",
    "node": "node",
    "host": "node",
}

HARNESSES = ("claude", "codex", "acp", "tmux", "command", "echo", "gemini", "opencode", "cursor")

_WORDS = {
    "root": "it addresses the root agent of your project",
    "self": "it addresses you",
    "parent": "it addresses the agent that spawned you",
    "operator": "it addresses the person at this machine",
    "direct": "it is the person's own name, as in `/me/direct`; `operator` addresses the person",
    "system": "it names parts of Scout itself, as in `/system/sweeper`",
    "broadcast": "all agents are reached with `scout send --broadcast`",
    "channel": "a channel is addressed as `channel:NAME`",
    "session": "a session is addressed as `session:ID`",
    "ref": "references are ids such as `flt_…`",
    "id": "ids are addressed as they are, such as `agt_…`",
    "project": "a project is addressed as `project:DIR`",
    "alias": "an alias is addressed as `alias:NAME`",
    "target": "a target is named by its address",
    "lock": "git refuses branch names that end in it",
}

RESERVED: dict[str, str] = {
    **{key: f"it is a qualifier, as in `@name.{key}:VALUE`" for key in KEYS},
    **_WORDS,
    **{harness: f"a harness is chosen with `#{harness}`, as in `@name#{harness}`" for harness in HARNESSES},
}


def check_name(name: str) -> str:
    """Return the name; refuse a reserved word and explain its use."""
    teaches = RESERVED.get(name)
    if teaches is None:
        return name
    proposal = suggest(f"@my-{name}", "a free name")
    syntax = (suggest(f"@name#{name}", "the harness of an agent"),) if name in HARNESSES else ()
    raise Refused(ReservedName(word=name, teaches=teaches, remedies=(*syntax, proposal)))
