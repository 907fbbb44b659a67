"""The offline commands, as a person or a script would run them."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from scout.base.refusal import Family, get_code
from scout.cli.main import scout
from scout.model.problems.diagnostics import ALL

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests/data/cases"
CASES = [json.loads(line) for line in (DATA / "identity.jsonl").read_text().splitlines()]
RESOLUTION = json.loads((DATA / "resolution.json").read_text())
FLEET = str(DATA / "resolution.json")


def run(*words: str, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(scout, words, input=stdin)


def lines(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def process(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """The real program, with a locale that can show nothing but ASCII."""
    env = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-m", "scout", *words]
    return subprocess.run(command, input=stdin, capture_output=True, env=env, check=False, timeout=30)


# -- parse --------------------------------------------------------------------------------------


@pytest.mark.rows("R1.6-19", "R1.6-20")
def test_every_case_through_standard_input() -> None:
    cases = [case for case in CASES if case["op"] == "parse"]
    result = run("parse", "-", "--json", stdin="".join(json.dumps(case["in"]) + "\n" for case in cases))
    assert result.exit_code == 0
    for case, answer in zip(cases, lines(result), strict=True):
        assert answer["input"] == case["in"]
        if "error" in case:
            assert set(answer["error"]) == {"code", "message", "position", "expected", "remedies"}
            assert answer["error"]["code"] == case["error"]
            assert answer["error"]["remedies"]
        else:
            expected = {key: value for key, value in case.items() if key not in ("op", "in")}
            assert answer == {"input": case["in"], **expected}


@pytest.mark.rows("R1.5-11", "R1.5-12", "R1.5-13")
@pytest.mark.parametrize(
    "case", [case for case in CASES if case["op"] == "branch"], ids=lambda case: case["in"]
)
def test_birth_branches(case: dict[str, Any]) -> None:
    (answer,) = lines(run("parse", "--json", "--root-branch", case["rootBranch"], case["in"]))
    assert answer == {
        "input": case["in"],
        "form": "branch",
        "canonical": case["in"],
        "depth": case["depth"],
        "parent": case["parent"],
    }


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["op"] == "mentions"], ids=lambda case: case["in"]
)
def test_mentions(case: dict[str, Any]) -> None:
    (answer,) = lines(run("parse", "--json", "--mentions", case["in"]))
    assert answer == {"input": case["in"], "leading": case["leading"], "soft": case["soft"]}


def test_a_malformed_leading_mention_is_an_error_beside_the_hints() -> None:
    result = run("parse", "--json", "--mentions", "@arc.a.b see @bow")
    (answer,) = lines(result)
    assert (answer["leading"], answer["soft"]) == (None, ["@bow"])
    assert answer["error"]["code"] == "malformed_address"
    assert result.exit_code == Family.REQUEST.exit_code
    shown = run("parse", "--mentions", "@arc.a.b see @bow")
    assert shown.stdout.splitlines() == ["@arc.a.b see @bow", "  leading  -", "  soft     @bow"]
    assert shown.stderr.splitlines()[1:4] == [
        "  @arc.a.b",
        "         ^",
        "try: scout parse @arc.a.node:b  # a valid spelling",
    ]
    assert shown.exit_code == Family.REQUEST.exit_code


@pytest.mark.parametrize("root", ["", "a b", "x..y"])
def test_a_bad_root_branch_is_told_as_such(root: str) -> None:
    result = run("parse", "--root-branch", root, "a.b")
    assert result.exit_code == 2
    assert "--root-branch: found" in result.stderr


def test_lines_are_answered_as_they_come() -> None:
    command = [sys.executable, "-m", "scout", "parse", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for name in ("arc", "bow"):
            process.stdin.write(f"@{name}\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["canonical"] == f"@{name}"
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_a_person_sees_fields_and_where_it_went_wrong() -> None:
    result = run("parse", "@arc#codex", "@arc.dev.mini", "/u/telegram")
    assert result.exit_code == 2
    assert "canonical     @arc.harness:codex" in result.stdout
    assert "connector  telegram" in result.stdout
    assert result.stderr.splitlines() == [
        "malformed_address: found a second workspace at character 9; expected key:value, or the end",
        "  @arc.dev.mini",
        "           ^",
        "try: scout parse @arc.dev.node:mini  # a valid spelling",
        "try: scout parse branch:arc.dev.mini  # a valid spelling",
        "try: scout parse @arc.dev-mini  # a valid spelling",
    ]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("./sub/0", {"form": "relative", "base": "self", "suffix": "/sub/0"}),
        ("..", {"form": "relative", "base": "parent", "suffix": None}),
        ("root", {"form": "root"}),
        ("agt_01", {"form": "id", "kind": "agt"}),
        ("session:claude:0f", {"form": "session", "harness": "claude", "nativeId": "0f"}),
        ("project:../x y", {"form": "project", "directory": "../x y"}),
        ("channel:Dev", {"form": "channel", "canonical": "channel:dev"}),
        ("alias:huddy", {"form": "alias"}),
        ("branch:main.x", {"form": "branch", "canonical": "branch:main.x"}),
        ('{"definitionId": "Super Refactor"}', {"form": "handle", "canonical": "@super-refactor"}),
    ],
)
def test_every_form_has_its_parts(text: str, parts: dict[str, object]) -> None:
    (answer,) = lines(run("parse", "--json", text))
    assert answer.items() >= {"canonical": text, "input": text, **parts}.items()


def test_a_line_may_be_a_json_string_and_any_bytes_are_answered() -> None:
    odd = b'"@arc\\u0000"\n\xff\xfe\n"not json\n\n@a\r\n' + "\u202e\u05d0\n".encode() + b'"\\ud800"'
    result = process("parse", "-", stdin=odd)
    assert (result.returncode, result.stderr) == (0, b"")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    codes = [answer.get("error", {}).get("code") for answer in answers]
    assert codes == ["malformed_address"] * 4 + [None] + ["malformed_address"] * 2
    assert answers[2]["error"]["expected"] == "a JSON string"


def test_nothing_to_parse_is_a_usage_error() -> None:
    result = run("parse")
    assert result.exit_code == 2
    assert "give at least one TEXT" in result.stderr


def test_text_that_no_locale_can_show_is_escaped() -> None:
    result = process("parse", "@h\u00e9llo", "@\u65e5\u672c")
    assert result.returncode == 2
    assert b"@hello" in result.stdout
    assert b"Traceback" not in result.stderr


# -- resolve ------------------------------------------------------------------------------------


@pytest.mark.rows(
    "R1.3-3",
    "R1.3-12",
    "R1.3-13",
    "R1.3-14",
    "R1.3-15",
    "R1.3-21",
    "R1.3-22",
    "R1.3-28",
    "R1.3-36",
    "R1.2-45",
)
@pytest.mark.parametrize(("text", "expected"), RESOLUTION["resolve"].items())
def test_resolve_says_what_a_name_means(text: str, expected: str) -> None:
    result = run("resolve", "--fleet", FLEET, "--json", text)
    (answer,) = lines(result)
    assert answer["input"] == text
    assert answer.get("instance", answer.get("error", {}).get("code")) == expected
    if "error" in answer:
        assert answer["error"]["remedies"][0]["command"].startswith("scout ")
        assert result.exit_code > 2
    else:
        assert set(answer) >= {
            "agentId",
            "canonical",
            "minimal",
            "path",
            "rule",
            "form",
            "birthBranch",
            "action",
        }
        assert result.exit_code == 0


@pytest.mark.rows("R1.3-39", "R1.3-40", "R1.3-42")
def test_without_an_address_the_whole_fleet_is_listed() -> None:
    answers = {row["instance"]: row["minimal"] for row in lines(run("resolve", "--fleet", FLEET, "--json"))}
    assert answers == RESOLUTION["minimal"]
    assert (
        "@huddy                @hudson.harness:claude.node:mini  (hudson.mini)"
        in run("resolve", "--fleet", FLEET).stdout
    )


@pytest.mark.rows("R1.3-35", "R3.2-13")
def test_explain_shows_form_parse_candidates_and_the_rule() -> None:
    shown = run("resolve", "--fleet", FLEET, "--explain", "@arc#claude").stdout
    for fact in (
        "handle",
        "@arc.super-refactor.harness:claude.node:mini",
        "matching: several → exact: none",
        "harness and model",
    ):
        assert fact in shown
    assert "endpoint rule" not in run("resolve", "--fleet", FLEET, "@arc#claude").stdout


@pytest.mark.rows("R3.5-6")
def test_each_class_of_refusal_has_its_exit_code() -> None:
    codes = {
        text: run("resolve", "--fleet", FLEET, text).exit_code
        for text in ("@arc", "@hudsn", "@solo#claude", "@a.b.c")
    }
    assert codes == {"@arc": 4, "@hudsn": 3, "@solo#claude": 7, "@a.b.c": 2}
    exits = [family.exit_code for family in Family]
    assert len(set(exits)) == len(exits)


def test_a_remedy_that_is_pasted_works() -> None:
    result = run("resolve", "--fleet", FLEET, "@hudsn")
    (tried,) = [line.removeprefix("try: ") for line in result.stderr.splitlines() if line.startswith("try: ")]
    words = shlex.split(tried)
    assert words == ["scout", "resolve", "--fleet", FLEET, "@hudson"]
    assert run(*words[1:-1], "@hudson.node:mini").exit_code == 0


def test_who_is_there_is_asked_of_the_same_fleet() -> None:
    result = run("resolve", "--fleet", FLEET, "@zzz")
    again = shlex.join(["scout", "resolve", "--fleet", FLEET])
    assert result.stderr.splitlines()[-1] == f"try: {again}  # list agents"


def test_candidates_and_the_next_command_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "fleet.json"
    base, fix = (
        {"definitionId": "talkie", "harness": "claude"},
        {
            "definitionId": "talkie",
            "workspaceQualifier": "fix",
            "harnessType": "codex",
            "authorityNode": "mini",
        },
    )
    file.write_text(json.dumps({"instances": {"base": base, "fix": fix}}))
    assert run("resolve", "--fleet", str(file), "@talkie#codex").stderr.splitlines() == [
        "harness_mismatch: @talkie has no codex endpoint (attached: claude)",
        "  candidates: @talkie.fix.harness:codex",
        "try: scout session start --agent @talkie --harness codex",
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{", "truncated"),
        (b"[]", "Expected `object`"),
        (b'{"instances": {"a": {}}}', "found no definitionId"),
    ],
)
def test_a_bad_fleet_file_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "fleet.json"
    file.write_bytes(content)
    result = run("resolve", "--fleet", str(file), "@arc")
    assert (result.exit_code, says in result.stderr) == (2, True)
    (answer,) = lines(run("resolve", "--fleet", str(file), "--json", "@arc"))
    assert answer["error"]["code"] == "bad_request"


def test_a_missing_fleet_file_is_said() -> None:
    result = run("resolve", "--fleet", "no-such-file", "@arc")
    assert result.exit_code == 1
    assert "no-such-file" in result.stderr


def test_a_fleet_may_come_from_standard_input() -> None:
    result = run("resolve", "--fleet", "-", "--json", "@talkie", stdin=(DATA / "resolution.json").read_text())
    assert lines(result)[0]["instance"] == "talkie.base"


# -- explain, contract, help --------------------------------------------------------------------


@pytest.mark.rows("R3.5-8")
@pytest.mark.parametrize("diagnostic", ALL, ids=get_code)
def test_explain_explains_every_code(diagnostic: type) -> None:
    code = get_code(diagnostic)
    shown = run("explain", code)
    assert shown.exit_code == 0
    assert shown.stdout.startswith(code)
    assert len(shown.stdout.splitlines()) > 4
    (answer,) = lines(run("explain", code, "--json"))
    assert answer["code"] == code
    assert {"candidates", "remedies"} <= set(answer["facts"])
    assert answer["status"] >= 400


def test_explain_lists_all_codes() -> None:
    assert len(run("explain").stdout.splitlines()) == len(ALL)
    assert [row["code"] for row in lines(run("explain", "--json"))] == [get_code(one) for one in ALL]


def test_an_unknown_code_offers_the_nearest() -> None:
    result = run("explain", "ambigous_target")
    assert result.exit_code == Family.UNKNOWN.exit_code
    assert "try: scout explain ambiguous_target" in result.stderr
    (answer,) = lines(run("explain", "ambigous_target", "--json"))
    assert answer["error"]["code"] == "not_found"


@pytest.mark.parametrize("name", ["parse", "resolve", "explain", "contract"])
def test_help_has_examples_and_needs_nothing(name: str) -> None:
    shown = run(name, "--help")
    assert shown.exit_code == 0
    assert "Examples:" in shown.stdout
    assert f"scout {name}" in shown.stdout


@pytest.mark.rows("R4.1-19")
def test_an_unknown_command_is_no_stack_trace() -> None:
    result = process("frobnicate")
    assert result.returncode == 2
    assert b"No such command" in result.stderr
    assert b"Traceback" not in result.stderr


def test_a_mistyped_command_is_offered_again_ready_to_paste() -> None:
    result = run("pares", "@arc", "a b")
    assert result.exit_code == 2
    assert result.stderr.endswith("Error: No such command 'pares'.\ntry: scout parse @arc 'a b'\n")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("aks @arc hi", ["scout ask @arc hi"]),
        ("hwo", ["scout who"]),
        ("run @arc hi there", ["scout ask @arc 'hi there'", "scout session start --agent @arc"]),
        ("kill @arc", ["scout session stop @arc", "scout flight cancel @arc", "scout down --stop"]),
        ("stop", ["scout down", "scout session stop", "scout interrupt --help"]),
        ("new", ["scout agent register --help", "scout session start --help"]),
    ],
)
def test_an_unknown_command_is_answered_with_commands_that_can_be_pasted(
    typed: str, offered: list[str]
) -> None:
    lines = run(*typed.split()).stderr.splitlines()
    assert [line.removeprefix("try: ") for line in lines if line.startswith("try: ")] == offered


def test_without_a_fleet_the_daemon_is_asked() -> None:
    result = run("resolve", "@arc")
    assert result.exit_code == Family.UNREACHABLE.exit_code
    assert result.stderr.splitlines()[-1] == "try: scout up"
    assert run("resolve").stderr.splitlines()[-1] == "try: scout resolve --help"


def test_the_program_runs_as_a_module() -> None:
    assert process("--version").stdout.startswith(b"scout, version ")


def test_a_command_loads_nothing_that_another_needs() -> None:
    probe = "import sys; from scout.cli.main import scout; print([m for m in sys.modules if m.startswith('scout.')])"
    loaded = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    assert "scout.cli.main" in loaded
    for module in ("scout.cli.commands.parse", "scout.policy", "scout.model", "msgspec"):
        assert module not in loaded


@pytest.mark.parametrize(
    ("harness", "call"), [("claude", "`ask {to, body}`"), ("tmux", "`scout ask ADDRESS TEXT`")]
)
def test_the_contract_is_printed_in_the_harness_syntax(harness: str, call: str) -> None:
    shown = run("contract", "--harness", harness)
    assert shown.exit_code == 0
    assert shown.stdout.startswith("# Scout contract\n")
    assert call in shown.stdout
    (answer,) = lines(run("contract", "--harness", harness, "--json"))
    assert (answer["text"], answer["characters"]) == (shown.stdout, len(shown.stdout))


def test_the_contract_of_an_unknown_harness_offers_the_nearest() -> None:
    result = run("contract", "--harness", "cluade")
    assert result.exit_code == Family.UNKNOWN.exit_code
    assert "try: scout contract --harness claude" in result.stderr
    (answer,) = lines(run("contract", "--harness", "cluade", "--json"))
    assert answer["error"]["code"] == "not_found"
