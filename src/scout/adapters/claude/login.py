"""Whether somebody has logged in, as far as that can be seen without asking the provider."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

LOGIN = "run `claude` once and log in with /login, or give the daemon ANTHROPIC_API_KEY"
_GIVEN = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_VERTEX",
)


def is_logged_in(home: Path, environment: Mapping[str, str]) -> bool:
    """By the environment, a file of credentials, an account that it remembers or a program with the key."""
    if any(environment.get(name) for name in _GIVEN) or (home / ".credentials.json").exists():
        return True
    remembered = (
        home / ".claude.json" if environment.get("CLAUDE_CONFIG_DIR") else home.parent / ".claude.json"
    )
    return b'"oauthAccount"' in _read(remembered) or b'"apiKeyHelper"' in _read(home / "settings.json")


def _read(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b""
