"""`scout setup` shows its change, writes it once, and takes it back to the byte."""

import json
import re
import stat
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from scout.cli.connection.refusal import RefusalError
from scout.cli.hosts.edit_files import FileChange, plan_changes, write
from scout.cli.hosts.hosts import HOSTS, HostProgram, TomlTable
from scout.cli.hosts.jsonc import NotJson
from tests.cli.running import Shell, a_shell, start_daemon

SETTINGS = """\
{
    // mine
    "model": "opus",
    "hooks": {
        "Stop": [
            {"hooks": [{"type": "command", "command": "say done"}]}
        ]
    }, // end
}
"""
TOML = 'model = "gpt"\n# a note\n[features]\nx = true'


class Person(Shell):
    """A shell whose home folder is a person's."""

    @property
    def person(self) -> Path:
        return self.folder / "person"

    @property
    def environ(self) -> dict[str, str]:
        kept = {k: v for k, v in super().environ.items() if k not in ("CLAUDE_CONFIG_DIR", "CODEX_HOME")}
        return {**kept, "HOME": str(self.person), "PATH": "/usr/bin:/bin", "XDG_CONFIG_HOME": ""}

    def put(self, name: str, text: str) -> Path:
        file = self.person / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
        return file

    def files(self) -> dict[str, bytes]:
        return {
            str(file.relative_to(self.person)): file.read_bytes()
            for file in sorted(self.person.rglob("*"))
            if file.is_file()
        }


@pytest.fixture
def me() -> Generator[Person]:
    with a_shell() as shell:
        person = Person(shell.folder)
        person.person.mkdir()
        yield person


@pytest.fixture
def served(me: Person) -> Person:
    start_daemon(me)
    return me


def test_the_change_is_shown_and_nothing_is_written(me: Person) -> None:
    me.put(".claude/settings.json", SETTINGS)
    before = me.files()
    shown = me.type("setup", "claude", "--dry-run")
    assert shown.returncode == 0
    assert f"--- /dev/null\n+++ {me.person}/.claude.json\n" in shown.stdout
    assert '+    "scout": {' in shown.stdout
    assert f"--- {me.person}/.claude/settings.json\n" in shown.stdout
    assert '+    "statusLine": {' in shown.stdout
    assert "nothing was written" in shown.stderr
    assert me.files() == before
    assert list(me.home.glob("host.token")) == []
    assert not (me.home / "scout.sock").exists()


def test_without_a_yes_nothing_is_written(served: Person) -> None:
    served.put(".cursor/mcp.json", "{}")
    done = served.type("setup", "cursor")
    assert done.returncode == 1
    assert "add --yes" in done.stderr
    assert served.files() == {".cursor/mcp.json": b"{}"}


@pytest.mark.rows("R2.1-3")
def test_what_was_there_stays_and_undo_brings_back_every_byte(served: Person) -> None:
    served.put(".claude/settings.json", SETTINGS)
    served.put(".codex/config.toml", TOML)
    served.put(".claude.json", '{"numStartups": 3,\r\n "projects": {}}').chmod(0o640)
    before = served.files()
    done = served.say("setup", "--yes")
    assert "Claude Code and Codex" in done
    assert "now try, in a project: scout ask --project . --harness claude " in done
    state = json.loads((served.person / ".claude.json").read_text())
    assert state["numStartups"] == 3
    assert state["mcpServers"]["scout"]["args"][-3:] == ["mcp", "--host", "claude"]
    settings = (served.person / ".claude/settings.json").read_text()
    assert "// mine" in settings
    assert '{"hooks": [{"type": "command", "command": "say done"}]},' in settings
    assert stat.S_IMODE((served.person / ".claude.json").stat().st_mode) == 0o640
    token = served.home / "host.token"
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    secret = token.read_text()
    once = served.files()
    assert "nothing to change" in served.say("setup", "--yes")
    assert (served.files(), token.read_text()) == (once, secret)
    assert "taken back" in served.say("setup", "--undo", "--yes")
    assert served.files() == before
    assert not token.exists()
    tokens = served.data("token", "list")["items"]
    assert [one["state"] for one in tokens if one["kind"] == "host"] == ["revoked"]
    assert served.type("setup", "--undo", "--yes").returncode == 0


def test_a_file_that_changed_since_loses_only_what_is_ours(served: Person) -> None:
    served.put(".claude/settings.json", '{"statusLine": {"type": "command", "command": "mine"}}')
    served.say("setup", "claude", "--yes")
    state = served.person / ".claude.json"
    told = json.loads(state.read_text())
    state.write_text(json.dumps({**told, "numStartups": 4}))
    settings = served.person / ".claude/settings.json"
    assert "statusline --host" not in settings.read_text()
    settings.write_text(settings.read_text().replace('"mine"', '"still mine"'))
    served.say("setup", "claude", "--undo", "--yes")
    assert json.loads(state.read_text()) == {"mcpServers": {}, "numStartups": 4}
    assert json.loads(settings.read_text()) == {"statusLine": {"type": "command", "command": "still mine"}}


def test_what_cannot_be_read_is_left_alone_and_said_how_to_do_by_hand(served: Person) -> None:
    file = served.put(".cursor/mcp.json", '{"mcpServers": ')
    done = served.type("setup", "cursor", "--yes")
    assert done.returncode != 0
    assert "Put this there by hand" in done.stderr
    assert '"--host"' in done.stderr
    assert file.read_text() == '{"mcpServers": '


def test_a_toml_file_that_says_it_otherwise_is_left_alone(served: Person) -> None:
    file = served.put(".codex/config.toml", 'mcp_servers = { other = { command = "x" } }\n')
    done = served.type("setup", "codex", "--yes")
    assert done.returncode != 0
    assert "[mcp_servers.scout]" in done.stderr
    assert "other" in file.read_text()


@pytest.mark.parametrize(
    ("host", "file", "path"),
    [
        ("cursor", ".cursor/mcp.json", ("mcpServers", "scout", "args")),
        ("gemini", ".gemini/settings.json", ("mcpServers", "scout", "args")),
        ("opencode", ".config/opencode/opencode.json", ("mcp", "scout", "command")),
        ("vscode", ".config/Code/User/mcp.json", ("servers", "scout", "args")),
    ],
)
@pytest.mark.skipif(sys.platform == "darwin", reason="other folders there")
def test_each_host_has_its_own_file(served: Person, host: str, file: str, path: tuple[str, ...]) -> None:
    told = served.data("setup", host, "--yes")
    assert told["written"] is True
    assert [one["file"] for one in told["hosts"][0]["changes"]] == [str(served.person / file)]
    found: Any = json.loads((served.person / file).read_text())
    for key in path:
        found = found[key]
    assert found[-3:] == ["mcp", "--host", host]
    served.say("setup", "--undo", "--yes")
    assert served.files() == {}


def test_other_folders_of_claude_and_codex_are_honoured(served: Person) -> None:
    own = {"CLAUDE_CONFIG_DIR": str(served.folder / "c"), "CODEX_HOME": str(served.folder / "x")}
    for name in own.values():
        Path(name).mkdir()
    told = served.data("setup", **own)
    files = [one["file"] for host in told["hosts"] for one in host["changes"]]
    wanted = ("c/.claude.json", "c/settings.json", "x/config.toml", "x/hooks.json")
    assert files == [str(served.folder / name) for name in wanted]
    assert told["written"] is False
    assert served.files() == {}


def test_a_link_stays_a_link(served: Person) -> None:
    real = served.put("dotfiles/mcp.json", "{}\n")
    (served.person / ".cursor").mkdir()
    (served.person / ".cursor/mcp.json").symlink_to(real)
    served.say("setup", "cursor", "--yes")
    assert (served.person / ".cursor/mcp.json").is_symlink()
    assert "scout" in real.read_text()
    served.say("setup", "--undo", "--yes")
    assert real.read_text() == "{}\n"


@pytest.mark.rows("R2.1-2")
def test_nothing_else_writes_into_a_hosts_files(served: Person) -> None:
    """A whole day of Scout in a home with every host: their folders stay as they were."""
    for name in (".claude/settings.json", ".codex/config.toml", ".cursor/mcp.json", ".gemini/settings.json"):
        served.put(name, "{}" if name.endswith("json") else "")
    before = served.files()
    project = served.project("talkie")
    served.say("agent", "register", "talkie", "--project", ".", "--harness", "echo", cwd=project)
    assert served.data("token", "create", "--kind", "host")["secret"]
    (served.home / "host.token").write_text(served.data("token", "create", "--kind", "host")["secret"])
    facts = json.dumps({"session_id": "n-1", "cwd": str(project)})
    for event in ("session_start", "prompt_submit", "stop", "session_end"):
        served.say("hook", event, stdin=facts)
    assert served.say("ask", "@talkie", "hello").strip() == "hello"
    served.say("mcp", stdin='{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n', cwd=project)
    served.type("doctor", "--fix")
    assert served.files() == before


def test_only_a_person_sets_up(served: Person) -> None:
    done = served.type("setup", "claude", "--yes", CLAUDECODE="1")
    assert done.returncode != 0
    assert "for a person" in done.stderr
    assert served.files() == {}


def test_nothing_found_says_which_there_are(me: Person) -> None:
    done = me.type("setup")
    assert done.returncode != 0
    assert "claude, codex, cursor" in done.stderr


@pytest.mark.rows("R5.3-6")
def test_several_hosts_are_set_up_at_once_and_their_tools_need_no_approval(served: Person) -> None:
    served.put(".claude/settings.json", '{"permissions": {"allow": ["Bash(ls)"]}}')
    before = served.files()
    unknown = served.type("setup", "claude", "codex", "--yes", "--harness", "vim")
    assert unknown.returncode != 0
    assert "vim" in unknown.stderr
    assert served.files() == before
    done = served.data("setup", "claude", "codex", "--yes", "--harness", "codex")
    assert "--harness codex" in done["next"]
    settings = json.loads((served.person / ".claude/settings.json").read_text())
    assert settings["permissions"]["allow"] == ["Bash(ls)", "mcp__scout"]
    assert 'default_tools_approval_mode = "approve"' in (served.person / ".codex/config.toml").read_text()
    assert served.data("config")["settings"]["harness"]["value"] == "codex"
    served.say("setup", "claude", "codex", "--undo", "--yes")
    assert served.files() == before
    served.say("setup", "claude", "--yes", "--ask-each-time")
    settings = json.loads((served.person / ".claude/settings.json").read_text())
    assert settings["permissions"]["allow"] == ["Bash(ls)"]


def test_gemini_trusts_scout_unless_it_shall_ask(served: Person) -> None:
    file = served.put(".gemini/settings.json", "{}")
    for flags, trust in (([], True), (["--ask-each-time"], None)):
        served.say("setup", "gemini", "--yes", *flags)
        assert json.loads(file.read_text())["mcpServers"]["scout"].get("trust") is trust
    served.say("setup", "gemini", "--undo", "--yes")
    assert file.read_text() == "{}"


def test_what_a_person_allowed_themselves_stays(served: Person) -> None:
    own = '{"permissions": {"allow": ["mcp__scout"]}}'
    served.put(".claude/settings.json", own)
    served.say("setup", "claude", "--yes")
    served.say("setup", "claude", "--undo", "--yes")
    assert (served.person / ".claude/settings.json").read_text() == own


def test_a_dry_run_needs_no_host_on_the_machine(me: Person) -> None:
    shown = me.type("setup", "--dry-run")
    assert shown.returncode == 0, shown.stderr
    assert "mcpServers" in shown.stdout
    assert me.files() == {}


def test_a_person_is_asked(served: Person) -> None:
    """At a terminal: the answer no writes nothing, yes does."""
    script = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
    for answer, there in (("n\n", False), ("y\n", True)):
        subprocess.run(
            [sys.executable, "-c", script, sys.executable, "-m", "scout", "setup", "cursor"],
            env=served.environ,
            input=answer,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (served.person / ".cursor/mcp.json").exists() is there


def test_the_doctor_says_what_each_host_sees(served: Person) -> None:
    served.put(".cursor/mcp.json", "{}")
    served.put(".codex/config.toml", "")

    def hosts() -> dict[str, tuple[bool, str]]:
        told = json.loads(served.type("doctor", "--json").stdout)
        return {
            one["name"]: (one["ok"], one["says"]) for one in told["checks"] if one["name"].startswith("host ")
        }

    assert hosts()["host cursor"] == (True, "Cursor is not set up: scout setup cursor")
    served.say("setup", "--yes")
    blind = "without hooks a server cannot see a prompt its host intercepts"
    assert hosts() == {
        "host cursor": (True, f"Cursor is set up; {blind}"),
        "host codex": (True, "Codex is set up, with hooks"),
    }
    (served.person / ".codex/hooks.json").unlink()
    assert hosts()["host codex"] == (False, f"Codex is set up, but {blind}")
    (served.home / "host.token").unlink()
    assert hosts()["host cursor"][0] is False
    served.say("setup", "--yes")
    assert hosts()["host codex"] == (True, "Codex is set up, with hooks")


def test_an_older_path_of_the_program_is_replaced() -> None:
    old, new = HostProgram(("/old/scout",), {}), HostProgram(("/new/scout",), {})
    for name in ("claude", "codex"):
        for (_, first), (_, second) in zip(
            HOSTS[name].additions({"HOME": "/p"}, old),
            HOSTS[name].additions({"HOME": "/p"}, new),
            strict=True,
        ):
            text = second.put(first.put(first.empty))
            assert second.put(text) == text
            assert ("/old/scout" in text) is (first.what == "status line")
            assert second.is_in(text)
            assert not second.is_in(second.remove(text))


def test_a_table_goes_without_its_neighbours() -> None:
    table = TomlTable("x", ("mcp_servers", "scout"), {"command": "s", "env": {"A": "b"}})
    text = table.put("[a]\nb = 1\n") + '\n# about c\n[c]\nd = [\n  "x",\n]\n'
    assert table.remove(text) == '[a]\nb = 1\n\n# about c\n[c]\nd = [\n  "x",\n]\n'
    with pytest.raises(NotJson):
        table.put("[a\n")


DIFF = """\
--- HOME/.codex/config.toml
+++ HOME/.codex/config.toml
@@ -1,2 +1,8 @@
 [features]
-x = true
\\ No newline at end of file
+x = true
+
+[mcp_servers.scout]
+command = "/bin/scout"
+args = ["mcp", "--host", "codex"]
+startup_timeout_sec = 60
+default_tools_approval_mode = "approve"
--- HOME/.codex/hooks.json
+++ HOME/.codex/hooks.json
@@ -1 +1 @@
-{"hooks": {"Stop": [{"hooks": []}]}}
+{"hooks": {"Stop": [{"hooks": []}, HOOK(stop, 10)], "SessionStart": [HOOK(session_start, 10)], \
"UserPromptSubmit": [HOOK(prompt_submit, 10)], "PostToolUse": [HOOK(tool_use, 10)], \
"PermissionRequest": [HOOK(permission_request, 45)], \
"SessionEnd": [HOOK(session_end, 3)]}}
"""


def test_the_whole_diff(tmp_path: Path) -> None:
    folder = tmp_path / ".codex"
    folder.mkdir()
    (folder / "config.toml").write_text("[features]\nx = true")
    (folder / "hooks.json").write_text('{"hooks": {"Stop": [{"hooks": []}]}}\n')
    changes = plan_changes(HOSTS["codex"], {"HOME": str(tmp_path)}, HostProgram(("/bin/scout",), {}))
    shown = "".join(change.diff() for change in changes).replace(str(tmp_path), "HOME")
    assert shown == re.sub(r"HOOK\((\w+), (\d+)\)", _hook, DIFF)


def _hook(found: "re.Match[str]") -> str:
    command = f"/bin/scout hook {found[1]} --host codex"
    return json.dumps({"hooks": [{"type": "command", "command": command, "timeout": int(found[2])}]})


def test_a_file_that_changes_meanwhile_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    change = FileChange(file, None, "{}")
    file.write_text("mine")
    with pytest.raises(RefusalError, match="changed meanwhile"):
        write(change)
    assert file.read_text() == "mine"
    assert [one.name for one in tmp_path.iterdir()] == ["settings.json"]
