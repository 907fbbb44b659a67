"""How Codex is started: found, given an environment and a login, and held to a profile."""

from pathlib import Path
from typing import Any

import pytest

from scout.adapters.codex import flags
from scout.model.agent import PermissionProfile
from scout.ports import McpAccess, SessionSpec
from tests.tree.repositories import git, repository

DOOR = McpAccess(url="http://127.0.0.1:1/mcp", token="secret")


def spec(**fields: Any) -> SessionSpec:
    return SessionSpec(session_id="ses_1", agent_id="agt_1", address="@a", **fields)


def executable(file: Path) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\n")
    file.chmod(0o755)
    return file


# -- its program ---------------------------------------------------------------------------------------


def test_it_is_found_on_the_path(tmp_path: Path) -> None:
    found = executable(tmp_path / "bin" / "codex")
    assert flags.find_program({"PATH": str(found.parent)}) == found
    assert flags.find_program({"PATH": "/nowhere"}) is None


@pytest.mark.parametrize("where", ["@openai", "@openai/codex/node_modules/@openai"])
def test_what_npm_installed_is_looked_through(tmp_path: Path, where: str) -> None:
    modules = tmp_path / "lib" / "node_modules"
    script = executable(modules / "@openai" / "codex" / "bin" / "codex.js")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "codex").symlink_to(script)
    path = {"PATH": str(tmp_path / "bin")}
    assert (
        flags.find_program(path) == tmp_path / "bin" / "codex"
    )  # nothing for this machine: the script must do
    real = executable(modules / where / "codex-linux-x64" / "vendor" / "x86_64" / "bin" / "codex")
    assert flags.find_program(path) == real


# -- its environment -----------------------------------------------------------------------------------


def test_the_token_goes_by_the_environment_and_nothing_else_does(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[model_providers.mine]\nenv_key = "MY_KEY"\n')
    inherited = {
        "CODEX_HOME": str(tmp_path),
        "CODEX_THREAD_ID": "of another",
        "OPENAI_API_KEY": "key",
        "MY_KEY": "mine",
        "EXTRA": "named",
        "AWS_SECRET_ACCESS_KEY": "no",
        "SCOUT_TOKEN": "the broker's",
        "PATH": "/bin",
    }
    given = spec(door=DOOR, environment={"SCOUT_URL": "http://x"})
    made = flags.build_program_environment(given, ("EXTRA",), inherited)
    expected = {name: inherited[name] for name in ("CODEX_HOME", "OPENAI_API_KEY", "MY_KEY", "EXTRA", "PATH")}
    assert made == {**expected, "SCOUT_URL": "http://x", "SCOUT_TOKEN": "secret"}
    assert "SCOUT_TOKEN" not in flags.build_program_environment(None, (), inherited)


@pytest.mark.parametrize(
    ("settings", "environment", "expected"),
    [
        ("", {}, False),
        ("not = [toml", {}, False),
        ("", {"OPENAI_API_KEY": "x"}, True),
        ("", {"CODEX_API_KEY": "x"}, True),
        ("", {"OPENAI_API_KEY": ""}, False),
        ('model_provider = "openai"', {}, False),
        ('model_provider = "ollama"', {}, True),
        ('model_provider = "mine"\n[model_providers.mine]\nenv_key = "K"', {}, False),
        ('model_provider = "mine"\n[model_providers.mine]\nenv_key = "K"', {"K": "x"}, True),
        ('model_provider = "mine"\nmodel_providers = 3', {}, True),
        ('cli_auth_credentials_store = "keyring"', {}, True),
    ],
)
def test_a_login_is_seen(
    tmp_path: Path, settings: str, environment: dict[str, str], *, expected: bool
) -> None:
    (tmp_path / "config.toml").write_text(settings)
    assert flags.is_logged_in({"CODEX_HOME": str(tmp_path), **environment}) is expected


def test_a_file_of_a_login_is_one(tmp_path: Path) -> None:
    assert not flags.is_logged_in({"HOME": str(tmp_path)})
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    assert flags.is_logged_in({"HOME": str(tmp_path)})


# -- its thread ----------------------------------------------------------------------------------------


def test_every_profile_is_a_sandbox_and_a_way_to_ask() -> None:
    made = {
        profile: flags.build_thread(spec(permission=profile), Path("/w")) for profile in PermissionProfile
    }
    assert {name: (one["sandbox"], one["approvalPolicy"]) for name, one in made.items()} == {
        PermissionProfile.OBSERVE: ("read-only", "never"),
        PermissionProfile.REVIEW: ("read-only", "on-request"),
        PermissionProfile.WORKSPACE_WRITE: ("workspace-write", "on-request"),
        PermissionProfile.TRUSTED: ("danger-full-access", "never"),
    }
    assert {one["approvalsReviewer"] for one in made.values()} == {"user"}
    assert {one["cwd"] for one in made.values()} == {"/w"}
    assert all("model" not in one and "mcp_servers.scout_run" not in one["config"] for one in made.values())


def test_scout_is_an_mcp_server_of_the_thread_without_its_token() -> None:
    made = flags.build_thread(spec(door=DOOR, model="gpt-6"), Path("/w"))
    assert made["model"] == "gpt-6"
    assert made["config"]["mcp_servers.scout_run"] == {
        "url": DOOR.url,
        "bearer_token_env_var": "SCOUT_TOKEN",
        "default_tools_approval_mode": "approve",
        "startup_timeout_sec": 60,
        "required": True,
    }
    assert "secret" not in str(made)


def test_what_setup_wrote_is_off_in_a_thread_of_scout(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[mcp_servers.scout]\ncommand = "/bin/scout"\nargs = ["mcp", "--host", "codex"]\n'
        '[mcp_servers.mine]\ncommand = "mine"\nargs = ["mcp", "--host", "elsewhere"]\n'
    )
    made = flags.build_thread(spec(door=DOOR), Path("/w"), {"CODEX_HOME": str(tmp_path)})
    named = {key: value for key, value in made["config"].items() if key.startswith("mcp_servers")}
    assert named.pop("mcp_servers.scout_run")["url"] == DOOR.url
    assert named == {"mcp_servers.scout.enabled": False}


# -- commits in a linked work tree -----------------------------------------------------------------------


def linked_tree(tmp_path: Path) -> tuple[Path, Path]:
    """A repository and a work tree that is linked to it."""
    root = repository(tmp_path.resolve() / "arc")
    tree = root / ".scout" / "worktrees" / "api"
    git(root, "worktree", "add", "-q", "-b", "main.api", str(tree))
    return root, tree


def thread_in(root: Path | None, tree: Path, home: Path, **fields: Any) -> dict[str, Any]:
    given = spec(repository=str(root) if root else None, **fields)
    return flags.build_thread(given, tree, {"CODEX_HOME": str(home)})


def test_a_spawned_agent_may_write_what_a_commit_writes(tmp_path: Path) -> None:
    root, tree = linked_tree(tmp_path)
    made = thread_in(root, tree, tmp_path)
    common, own = root / ".git", root / ".git" / "worktrees" / "api"
    assert "sandbox" not in made
    assert made["config"]["default_permissions"] == "scout_run"
    assert made["config"]["permissions.scout_run"] == {
        "extends": ":workspace",
        "network": {"enabled": False},
        "filesystem": {
            **{str(common / name): "write" for name in ("objects", "refs/heads", "logs/refs/heads")},
            str(own): "write",
            **{str(own / name): "read" for name in ("commondir", "gitdir", "config.worktree", "modules")},
        },
    }


def test_the_users_settings_of_the_sandbox_hold_there_too(tmp_path: Path) -> None:
    root, tree = linked_tree(tmp_path)
    (tmp_path / "config.toml").write_text(
        "[sandbox_workspace_write]\nnetwork_access = true\nwritable_roots = ['/cache']\n"
        "exclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
    )
    made = thread_in(root, tree, tmp_path)["config"]["permissions.scout_run"]
    assert made["network"] == {"enabled": True}
    files = {name: made["filesystem"][name] for name in ("/cache", ":slash_tmp", ":tmpdir")}
    assert files == {"/cache": "write", ":slash_tmp": "read", ":tmpdir": "read"}


@pytest.mark.parametrize("profile", [one for one in PermissionProfile if one != "workspace_write"])
def test_other_profiles_are_as_they_were(tmp_path: Path, profile: PermissionProfile) -> None:
    root, tree = linked_tree(tmp_path)
    made = thread_in(root, tree, tmp_path, permission=profile)
    assert made["sandbox"] == flags.map_profile(profile).sandbox
    assert "default_permissions" not in made["config"]


def test_only_a_work_tree_that_git_itself_names_gets_more(tmp_path: Path) -> None:
    root, tree = linked_tree(tmp_path)
    assert thread_in(None, tree, tmp_path)["sandbox"] == "workspace-write"
    assert thread_in(root, root, tmp_path)["sandbox"] == "workspace-write"
    # A work tree that names another git folder does not get it.
    other = repository(tmp_path.resolve() / "other")
    (tree / ".git").write_text(f"gitdir: {other}/.git\n")
    granted = thread_in(root, tree, tmp_path)["config"]["permissions.scout_run"]["filesystem"]
    assert not [name for name in granted if str(other) in name]
    # Nor does a link in place of a folder.
    (root / ".git" / "objects").rename(tmp_path / "objects")
    (root / ".git" / "objects").symlink_to(tmp_path / "objects")
    granted = thread_in(root, tree, tmp_path)["config"]["permissions.scout_run"]["filesystem"]
    assert not [name for name in granted if name.endswith("objects")]
    (root / ".git" / "worktrees" / "api" / "gitdir").write_text("")
    assert thread_in(root, tree, tmp_path)["sandbox"] == "workspace-write"
