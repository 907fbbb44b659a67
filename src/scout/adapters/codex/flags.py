"""How Codex is started: its program, environment, login, and permission profiles."""

import os
import shutil
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from scout.adapters.codex.commit_access import build_permissions, list_commit_access
from scout.adapters.codex.files import find_home
from scout.adapters.harness import MCP_KEY, find_relays
from scout.model.agent import PermissionProfile
from scout.ports import SessionSpec
from scout.settings.environment import build_environment

INSTALL = "install Codex (npm install -g @openai/codex) so that `codex` is on the daemon's PATH"
LOGIN = "log in with `codex login`, or set OPENAI_API_KEY or a model_provider in its config.toml"
NOTES = (
    "observe: commands run in Codex's sandbox, which lets them read everything and write nothing.",
    "review: as observe; a command that needs more asks a person.",
    "workspace_write: commands can also write in its folder and in temporary folders; no network.",
    "workspace_write: a spawned agent can also commit in its work tree.",
    "trusted: no sandbox and no questions.",
    "MCP servers in its config.toml run outside the sandbox; that file says when their tools ask.",
)
# Deltas of events that also come whole, and events that Scout does not use.
UNHEARD = (
    "item/agentMessage/delta",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "remoteControl/status/changed",
    "thread/status/changed",
    "turn/diff/updated",
)

ENVIRONMENT = ("CODEX_API_KEY", "CODEX_CA_CERTIFICATE", "CODEX_HOME", "OPENAI_*", "SSL_CERT_FILE")
_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
_BUILT_IN = "openai"
_TOKEN = "SCOUT_TOKEN"
_SCRIPT = ".js"
_STARTUP = 60  # seconds for Scout's MCP server to answer; Codex's own default is too short for a busy machine


# Ask a person in every mode; do not copy the environment, with the token, into Codex's folder.
_FEATURES = {"features.default_mode_request_user_input": True, "features.shell_snapshot": False}


class Native(NamedTuple):
    """A permission profile as Codex spells it."""

    sandbox: str
    approval: str


_NATIVE = {
    PermissionProfile.OBSERVE: Native("read-only", "never"),
    PermissionProfile.REVIEW: Native("read-only", "on-request"),
    PermissionProfile.WORKSPACE_WRITE: Native("workspace-write", "on-request"),
    PermissionProfile.TRUSTED: Native("danger-full-access", "never"),
}


def map_profile(profile: PermissionProfile) -> Native:
    """Return a profile as Codex spells it. Codex's sandbox enforces each of them."""
    return _NATIVE[profile]


def build_thread(
    spec: SessionSpec, directory: Path, inherited: Mapping[str, str] = os.environ
) -> dict[str, Any]:
    """Return the parameters that open a thread. They are not written to Codex's files."""
    sandbox, approval = map_profile(spec.permission)
    configuration = _read_configuration(find_home(inherited))
    settings: dict[str, Any] = dict(_FEATURES)
    if spec.effort:
        settings["model_reasoning_effort"] = spec.effort
    if spec.door is not None:
        settings.update(_disable_relays(configuration))
        settings[f"mcp_servers.{MCP_KEY}"] = {
            "url": spec.door.url,
            "bearer_token_env_var": _TOKEN,
            "default_tools_approval_mode": "approve",
            "required": True,
            "startup_timeout_sec": _STARTUP,
        }
    permissions = _build_tree_permissions(spec, directory, configuration)
    settings.update(permissions)
    params = {
        "cwd": str(directory),
        **({} if permissions else {"sandbox": sandbox}),  # Codex takes one or the other
        "approvalPolicy": approval,
        "approvalsReviewer": "user",
        "config": settings,
    }
    given = {"model": spec.model, "developerInstructions": spec.instructions}
    return {**params, **{name: value for name, value in given.items() if value}}


def _build_tree_permissions(
    spec: SessionSpec, directory: Path, configuration: dict[str, Any]
) -> dict[str, Any]:
    """Return settings that let a spawned agent commit; none for another profile or another folder."""
    if spec.repository is None or spec.permission is not PermissionProfile.WORKSPACE_WRITE:
        return {}
    access = list_commit_access(spec.repository, directory)
    if not access:
        return {}
    own = _to_table(configuration.get("sandbox_workspace_write"))
    return {"default_permissions": MCP_KEY, f"permissions.{MCP_KEY}": build_permissions(access, own)}


def _disable_relays(configuration: dict[str, Any]) -> dict[str, Any]:
    """Turn off the MCP servers that `scout setup` wrote: they would call Scout for another session."""
    servers = _to_table(configuration.get("mcp_servers"))
    return {f"mcp_servers.{name}.enabled": False for name in find_relays(servers, "codex")}


def build_program_environment(
    spec: SessionSpec | None, also: Iterable[str], inherited: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the environment of the program, with the token. `also`: variables that the settings name."""
    given = dict(spec.environment) if spec is not None else {}
    if spec is not None and spec.door is not None:
        given[_TOKEN] = spec.door.token
    names = (*ENVIRONMENT, *_list_provider_keys(_read_configuration(find_home(inherited))), *also)
    return build_environment(given, inherited, names)


def find_program(environment: Mapping[str, str]) -> Path | None:
    """Find the Codex binary. npm puts a script on the PATH that only starts it."""
    found = shutil.which("codex", path=environment.get("PATH"))
    if found is None:
        return None
    real = Path(found).resolve()
    if real.suffix != _SCRIPT:
        return Path(found).absolute()
    package = real.parent.parent
    beside = (package.parent, package / "node_modules" / "@openai")
    inner = (one for folder in beside for one in sorted(folder.glob("codex-*/vendor/*/bin/codex")))
    return next((one for one in inner if os.access(one, os.X_OK)), Path(found).absolute())


def is_logged_in(environment: Mapping[str, str]) -> bool:
    """Whether there is a login, as far as files and variables show."""
    home = find_home(environment)
    if (home / "auth.json").exists() or any(environment.get(name) for name in _KEYS):
        return True
    settings = _read_configuration(home)
    if settings.get("cli_auth_credentials_store") in {"keyring", "auto"}:
        return True  # a keyring is not read
    chosen = settings.get("model_provider", _BUILT_IN)
    if chosen == _BUILT_IN:
        return False
    key = _to_table(_to_table(settings.get("model_providers")).get(chosen)).get("env_key")
    return not key or bool(environment.get(str(key)))


def _read_configuration(home: Path) -> dict[str, Any]:
    try:
        return tomllib.loads((home / "config.toml").read_text("utf-8"))
    except (OSError, ValueError):
        return {}


def _list_provider_keys(settings: dict[str, Any]) -> list[str]:
    """Return the variables that its configuration names for the keys of model providers."""
    providers = _to_table(settings.get("model_providers")).values()
    return [str(key) for one in providers if (key := _to_table(one).get("env_key"))]


def _to_table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
