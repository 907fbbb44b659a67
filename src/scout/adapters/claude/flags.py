"""Claude Code's command line: which session it goes on with, where Scout is, and what it may do."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from scout.adapters.harness import MCP_KEY
from scout.base.codec import encode
from scout.model.agent import PermissionProfile
from scout.ports import McpAccess, SessionSpec

INSTALL = "install Claude Code (npm install -g @anthropic-ai/claude-code) so that `claude` is on the PATH"
LOGIN = "run `claude` once and log in with /login, or set ANTHROPIC_API_KEY for the daemon"
# Its own settings, how it reaches its provider; not what an outer Claude Code says about itself.
ENVIRONMENT = (
    "ANTHROPIC_*", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_API_*", "CLAUDE_CODE_DISABLE_*", "CLAUDE_CODE_ENABLE_*",
    "CLAUDE_CODE_MAX_*", "CLAUDE_CODE_OAUTH_*", "CLAUDE_CODE_SKIP_*", "CLAUDE_CODE_SUBAGENT_MODEL",
    "CLAUDE_CODE_USE_*", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_TELEMETRY",
    "HTTP_PROXY", "HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
)  # fmt: skip

_SPEAKING = (
    "-p",
    "--input-format=stream-json",
    "--output-format=stream-json",
    "--verbose",
    "--permission-prompt-tool=stdio",
)
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
    "observe leaves it only tools that read, and of MCP servers only Scout's; hooks of the user still run",
    "review has no tools that edit; commands that neither Claude Code nor its user holds harmless ask",
    "workspace_write edits in its folder unasked; so is what the user's settings allow, the rest asks",
)
_ROOT = "trusted cannot be had as root, since Claude Code refuses it: what workspace_write asks is asked"

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
    """Whether Claude Code refuses to do everything unasked, as it does for root."""
    return os.geteuid() == 0 and not environment.get("IS_SANDBOX")


def native_profiles(root: bool) -> tuple[PermissionProfile, ...]:
    """The profiles that its own flags enforce."""
    return tuple(one for one in _PROFILES if not (root and one is PermissionProfile.TRUSTED))


def notes(root: bool) -> tuple[str, ...]:
    """What its profiles do not enforce."""
    return (*_NOTES, _ROOT) if root else _NOTES


def command(
    program: str,
    spec: SessionSpec,
    session: tuple[str, ...],
    servers: str,
    *,
    root: bool,
    relays: Sequence[str] = (),
    contract: str = "",
) -> tuple[str, ...]:
    """All words. `session`: which one it resumes; `servers`: the file that says where Scout is.

    `relays`: servers of the user's own settings that would speak for another session of Scout.
    `contract`: the file that is added to the system prompt.
    """
    profile = spec.permission
    if root and profile is PermissionProfile.TRUSTED:
        profile = PermissionProfile.WORKSPACE_WRITE
    model = (f"--model={spec.model}",) if spec.model else ()
    scout = (f"--mcp-config={servers}", f"--allowedTools=mcp__{MCP_KEY}")
    denied = ",".join((*_DENIED.get(profile, ()), *(f"mcp__{name}" for name in relays)))
    deny = (f"--disallowedTools={denied}",) if denied else ()
    rules = (f"--append-system-prompt-file={contract}",) if contract else ()
    return (program, *_SPEAKING, *session, *model, *scout, *_PROFILES[profile], *deny, *rules)


def mcp_servers(door: McpAccess) -> bytes:
    """Where Scout is. The program fills in the token from its environment."""
    headers = {"Authorization": "Bearer ${SCOUT_TOKEN}"}
    return encode({"mcpServers": {MCP_KEY: {"type": "http", "url": door.url, "headers": headers}}})


def is_logged_in(home: Path, environment: Mapping[str, str]) -> bool:
    """By the environment, a file of credentials, an account that it remembers or a program with the key."""
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
