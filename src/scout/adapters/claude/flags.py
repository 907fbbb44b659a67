"""Claude Code's command line: its session, the address of Scout, and its permissions; and its login."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from scout.adapters.harness import MCP_KEY
from scout.base.codec import encode
from scout.model.agent import PermissionProfile
from scout.ports import McpAccess, SessionSpec

INSTALL = "install Claude Code (npm install -g @anthropic-ai/claude-code) so that `claude` is on the PATH"
LOGIN = "run `claude` once and log in with /login, or set ANTHROPIC_API_KEY for the daemon"
# Its settings and provider access; not the variables of an outer Claude Code.
ENVIRONMENT = (
    "ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_API_*", "CLAUDE_CODE_DISABLE_*", "CLAUDE_CODE_ENABLE_*",
    "CLAUDE_CODE_MAX_*", "CLAUDE_CODE_OAUTH_*", "CLAUDE_CODE_SKIP_*", "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_USE_*", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY",
    "HTTP_PROXY", "HTTPS_PROXY", "IS_SANDBOX", "NODE_EXTRA_CA_CERTS", "NO_PROXY",
    "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip

_SPEAKING = (
    "-p",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--permission-prompt-tool=stdio",
)
_EDITING = "Edit|Write|MultiEdit|NotebookEdit"
_HOOK_SECONDS = 5
_READING = "Read,Grep,Glob,AskUserQuestion,ToolSearch"
_PROFILES = {
    PermissionProfile.OBSERVE: (
        "--permission-mode=default",
        f"--tools={_READING}",
        "--strict-mcp-config",
    ),
    PermissionProfile.REVIEW: ("--permission-mode=default",),
    PermissionProfile.WORKSPACE_WRITE: ("--permission-mode=acceptEdits",),
    PermissionProfile.TRUSTED: ("--permission-mode=bypassPermissions",),
}
_DENIED = {PermissionProfile.REVIEW: ("Edit", "Write", "NotebookEdit")}
_NOTES = (
    "observe: only tools that read, and no MCP servers but Scout's; the user's hooks still run",
    "review: no tools that edit; commands ask, unless Claude Code or the user's settings allow them",
    "workspace_write: edits in its folder without asking; other tools ask, unless the user allows them",
)
_ROOT = (
    "trusted: Claude Code refuses it for root, so it works as workspace_write and asks; "
    "set IS_SANDBOX=1 for the daemon if this machine is a sandbox"
)

# Any of these is a login.
_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
)


def is_restricted_root(environment: Mapping[str, str]) -> bool:
    """Whether Claude Code refuses the profile `trusted`: for root, unless IS_SANDBOX is exactly 1."""
    return os.geteuid() == 0 and environment.get("IS_SANDBOX") != "1"


def list_native_profiles(root: bool) -> tuple[PermissionProfile, ...]:
    """Return the profiles that its flags enforce."""
    return tuple(one for one in _PROFILES if not (root and one is PermissionProfile.TRUSTED))


def list_notes(root: bool) -> tuple[str, ...]:
    """Return notes on what the profiles do not enforce."""
    return (*_NOTES, _ROOT) if root else _NOTES


def build_command(
    program: str,
    spec: SessionSpec,
    session: tuple[str, ...],
    servers: str,
    *,
    root: bool,
    relays: Sequence[str] = (),
    contract: str = "",
    hooks: str = "",
) -> tuple[str, ...]:
    """Return the command line. `session`: the flags of the session; `servers`: the file with Scout's address.

    `relays`: MCP servers of the user's settings that would call Scout for another session.
    `contract`: the file that is added to the system prompt. `hooks`: the file with Scout's hooks.
    """
    profile = spec.permission
    if root and profile is PermissionProfile.TRUSTED:
        profile = PermissionProfile.WORKSPACE_WRITE
    model = (f"--model={spec.model}",) if spec.model else ()
    effort = (f"--effort={spec.effort}",) if spec.effort else ()
    readable = tuple(f"--add-dir={folder}" for folder in spec.readable)
    scout = (f"--mcp-config={servers}", f"--allowedTools=mcp__{MCP_KEY}")
    denied = ",".join((*_DENIED.get(profile, ()), *(f"mcp__{name}" for name in relays)))
    deny = (f"--disallowedTools={denied}",) if denied else ()
    rules = (f"--append-system-prompt-file={contract}",) if contract else ()
    more = (f"--settings={hooks}",) if hooks else ()
    chosen = (*session, *model, *effort, *readable)
    return (program, *_SPEAKING, *chosen, *scout, *_PROFILES[profile], *deny, *rules, *more)


def build_mcp_servers(door: McpAccess) -> bytes:
    """Return the MCP configuration with Scout's address. The program reads the token from its environment."""
    headers = {"Authorization": "Bearer ${SCOUT_TOKEN}"}
    return encode({"mcpServers": {MCP_KEY: {"type": "http", "url": door.url, "headers": headers}}})


def edit_hook() -> bytes:
    """Return settings with the hook that asks Scout before a file is edited; the user's own hooks stay.

    The hook finds its session's token in the environment of the program.
    """
    beside = Path(sys.executable).parent / "scout"
    words = (str(beside),) if beside.exists() else (sys.executable, "-m", "scout")
    command = shlex.join([*words, "hook", "pre_edit", "--host", "claude"])
    entry = {"type": "command", "command": command, "timeout": _HOOK_SECONDS}
    return encode({"hooks": {"PreToolUse": [{"matcher": _EDITING, "hooks": [entry]}]}})


def is_logged_in(home: Path, environment: Mapping[str, str]) -> bool:
    """Whether there is a login: in the environment, a credentials file, a known account or a key helper."""
    if any(environment.get(name) for name in _KEYS) or (home / ".credentials.json").exists():
        return True
    remembered = (
        home / ".claude.json" if environment.get("CLAUDE_CONFIG_DIR") else home.parent / ".claude.json"
    )
    return b'"oauthAccount"' in _read(remembered) or b'"apiKeyHelper"' in _read(home / "settings.json")


def _read(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""
