"""What the disk says about a directory; git repositories are made by git itself."""

import os
import subprocess
from pathlib import Path

import pytest

from scout.base.refusal import BadRequest, Refused
from scout.ports import Surroundings
from scout.protocol.operations import check_remedy
from scout.tree.place import Disk


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A home folder with room for projects."""
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def disk(top: Path) -> Disk:
    return Disk(str(top), (str(top.parent),))


def locate(top: Path, directory: Path | str, base: str | None = None) -> Surroundings:
    return disk(top).locate(str(directory), base)


def expect_refusal(top: Path, directory: Path | str, base: str | None = None) -> BadRequest:
    with pytest.raises(Refused) as caught:
        locate(top, directory, base)
    problem = caught.value.diagnostic
    assert isinstance(problem, BadRequest)
    return problem


def git(folder: Path, *words: str) -> None:
    quiet = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "HOME": str(folder)}
    who = [word for key in ("name", "email") for word in ("-c", f"user.{key}=x")]
    command = ["git", *who, "-c", "init.defaultBranch=main", *words]
    env = {"PATH": os.environ["PATH"], **quiet}
    subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, timeout=20)


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init")
    git(folder, "commit", "--allow-empty", "-m", "x")
    return folder


def project_file(folder: Path, text: str) -> Path:
    (folder / ".scout").mkdir(parents=True, exist_ok=True)
    (folder / ".scout/project.toml").write_text(text)
    return folder


@pytest.mark.rows("R0-51", "R1.1-14")
def test_the_project_is_the_project_file_then_git_then_the_directory(top: Path) -> None:
    plain = top / "notes/deep"
    plain.mkdir(parents=True)
    assert locate(top, plain).project_root == str(plain)
    repo = repository(top / "all/repo")
    (repo / "src/part").mkdir(parents=True)
    assert locate(top, repo / "src/part").project_root == str(repo)
    project_file(repo / "src", "")
    assert locate(top, repo / "src/part").project_root == str(repo / "src")
    assert locate(top, repo).project_root == str(repo)
    project_file(top / "all", "")
    assert locate(top, repo).project_root == str(top / "all")
    found = locate(top, repo / "src/part")
    assert (found.project_root, found.repository) == (str(repo / "src"), str(repo))


@pytest.mark.rows("R0-52")
def test_a_project_file_gives_a_name_and_preferences_only(top: Path) -> None:
    says = 'name = "My App"\nharness = "codex"\nmodel = "m1"\n'
    more = 'commands = ["rm"]\nroles = {tl = "x"}\n[grants]\nall = true\n'
    one = locate(top, project_file(top / "one", says))
    assert (one.definition, one.configured_name, one.harness, one.model) == (
        "my-app",
        "My App",
        "codex",
        "m1",
    )
    project_file(top / "one", says + more)
    assert locate(top, top / "one") == one


@pytest.mark.parametrize(
    "text", ["name =", "name = 3", "name = '日本'", "harness = ['x']", "# " + "x" * 70_000]
)
def test_a_malformed_project_file_is_refused(top: Path, text: str) -> None:
    assert ".scout/project.toml" in expect_refusal(top, project_file(top / "one", text)).message


def test_a_project_file_that_is_no_file_is_refused(top: Path) -> None:
    (top / "one/.scout").mkdir(parents=True)
    os.mkfifo(top / "one/.scout/project.toml")
    assert "not a readable text file" in expect_refusal(top, top / "one").message


@pytest.mark.rows("R0-53", "R1.1-56", "R3.1-23")
def test_links_are_resolved_before_anything_is_read(top: Path) -> None:
    repo = repository(top / "real/Repo X")
    (repo / "src").mkdir()
    (top / "other").mkdir()
    project_file(top / "other", 'name = "wrong"')
    (top / "other/link").symlink_to(repo / "src")
    found = locate(top, top / "other/link")
    assert (found.directory, found.project_root) == (str(repo / "src"), str(repo))
    assert (found.definition, found.parent_folder) == ("repo-x", "real")
    project_file(repo, 'name = "right"')
    assert locate(top, top / "other/link").definition == "right"


@pytest.mark.rows("R3.1-23")
def test_a_relative_path_is_relative_to_its_base(top: Path) -> None:
    repo = repository(top / "repo")
    (repo / "src").mkdir()
    for path in ("src", "./src/.", "../repo/src", str(repo / "src"), "~/repo/src"):
        assert locate(top, path, str(repo)).project_root == str(repo)
    assert "relative" in expect_refusal(top, "src").message


@pytest.mark.rows("R0-54")
def test_the_root_home_and_temporary_roots_are_no_projects(top: Path) -> None:
    for path in ("/", top, top.parent, "~", top / ".."):
        assert "is not a project" in expect_refusal(top, path).message
    real = Disk()
    for path in (*real.temporary, real.home, "/"):
        with pytest.raises(Refused, match="is not a project"):
            real.locate(path)


@pytest.mark.rows("R0-54")
def test_nor_are_they_when_something_below_them_is_lifted(top: Path) -> None:
    git(top, "init")
    project_file(top, 'name = "everything"')
    (top / "notes").mkdir()
    found = locate(top, top / "notes")
    assert (found.project_root, found.definition, found.repository) == (str(top / "notes"), "notes", None)


@pytest.mark.rows("R1.1-57", "R3.1-24")
def test_a_linked_work_tree(top: Path) -> None:
    repo = repository(top / "code/Arc")
    git(repo, "worktree", "add", "-b", "Feature/Über-auth", str(top / "trees/auth"))
    (top / "trees/auth/src").mkdir()
    found = locate(top, top / "trees/auth/src")
    assert (found.definition, found.workspace, found.branch) == (
        "arc",
        "feature-uber-auth",
        "Feature/Über-auth",
    )
    assert (found.project_root, found.repository) == (str(top / "trees/auth"), str(top / "trees/auth"))
    assert found.parent_folder == "code"
    project_file(repo, 'name = "core"\nharness = "codex"')
    found = locate(top, top / "trees/auth")
    assert (found.definition, found.workspace, found.harness) == ("core", "feature-uber-auth", "codex")


@pytest.mark.rows("R3.1-24")
def test_a_work_tree_inside_its_repository_is_still_its_own(top: Path) -> None:
    repo = project_file(repository(top / "arc"), 'name = "core"')
    git(repo, "worktree", "add", "-b", "main.auth", str(repo / ".scout/worktrees/auth"))
    found = locate(top, repo / ".scout/worktrees/auth")
    assert (found.definition, found.workspace) == ("core", "main-auth")
    assert found.project_root == str(repo / ".scout/worktrees/auth")


@pytest.mark.rows("R1.1-58")
def test_the_main_work_tree_has_no_workspace(top: Path) -> None:
    repo = repository(top / "arc")
    git(repo, "worktree", "add", "-b", "other", str(top / "other"))
    git(repo, "checkout", "-b", "feature")
    found = locate(top, repo)
    assert (found.definition, found.workspace, found.branch) == ("arc", None, "feature")
    git(repo, "checkout", "--detach")
    assert (locate(top, repo).branch, locate(top, repo).workspace) == (None, None)


def test_a_detached_work_tree_keeps_a_workspace(top: Path) -> None:
    repo = repository(top / "arc")
    git(repo, "worktree", "add", "--detach", str(top / "Look At"))
    found = locate(top, top / "Look At")
    assert (found.branch, found.workspace) == (None, "look-at")
    rebase = next((repo / ".git/worktrees").iterdir()) / "rebase-merge"
    rebase.mkdir()
    (rebase / "head-name").write_text("refs/heads/topic/x\n")
    assert (locate(top, top / "Look At").branch, locate(top, top / "Look At").workspace) == (None, "topic-x")


@pytest.mark.parametrize(("bare", "name"), [("arc.git", "arc"), ("arc/.bare", "arc"), ("my.app", "my-app")])
def test_work_trees_of_a_bare_repository(top: Path, bare: str, name: str) -> None:
    repo = repository(top / "origin")
    git(repo, "clone", "--bare", str(repo), str(top / bare))
    git(top / bare, "worktree", "add", "-b", "topic", str(top / "topic"))
    found = locate(top, top / "topic")
    assert (found.definition, found.workspace) == (name, "topic")


def test_a_submodule_and_a_separate_git_folder_are_repositories(top: Path) -> None:
    repo = repository(top / "arc")
    sub = repository(top / "sub")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "add", str(sub), "lib/Sub")
    found = locate(top, repo / "lib/Sub")
    assert (found.project_root, found.definition, found.workspace) == (str(repo / "lib/Sub"), "sub", None)
    (top / "apart").mkdir()
    git(top / "apart", "init", "--separate-git-dir", str(top / "elsewhere"))
    assert (locate(top, top / "apart").repository, locate(top, top / "apart").branch) == (
        str(top / "apart"),
        "main",
    )


def test_what_only_looks_like_a_repository_is_none(top: Path) -> None:
    for name, text in {"a": None, "b": "gitdir: /nowhere\n", "c": "hello"}.items():
        (top / name).mkdir()
        if text is None:
            (top / name / ".git").mkdir()
        else:
            (top / name / ".git").write_text(text)
        assert locate(top, top / name).repository is None


def test_a_directory_that_is_not_there(top: Path) -> None:
    (top / "code/frontend").mkdir(parents=True)
    (top / "code/backend").mkdir()
    problem = expect_refusal(top, top / "code/frontent/src")
    assert (problem.field, problem.candidates[0].address) == ("projectPath", str(top / "code/frontend"))
    assert problem.remedies[0].parameters["projectPath"] == str(top / "code/frontend")
    assert str(top / "code/frontent") in problem.message
    far = expect_refusal(top, top / "zzzzzz")
    assert (far.candidates, far.remedies[0].parameters["projectPath"]) == ((), str(top))
    for one in (problem, far):
        assert [check_remedy(remedy) for remedy in one.remedies] == [[]]


def test_a_file_is_no_directory(top: Path) -> None:
    (top / "code").mkdir()
    (top / "code/a.py").write_text("")
    for path in ("code/a.py", "code/a.py/x"):
        problem = expect_refusal(top, top / path)
        assert "is a file, not a directory" in problem.message
        assert problem.remedies[0].parameters["projectPath"] == str(top / "code")


@pytest.mark.parametrize("path", ["", "a\0b", "/\udc80", "/" + "x" * 5000])
def test_what_can_be_no_path_is_refused(top: Path, path: str) -> None:
    assert expect_refusal(top, path).field == "projectPath"


def test_a_circle_of_links_is_refused(top: Path) -> None:
    (top / "a").symlink_to(top / "b")
    (top / "b").symlink_to(top / "a")
    assert expect_refusal(top, top / "a").field == "projectPath"


def test_a_folder_without_a_name_is_told_how_to_get_one(top: Path) -> None:
    (top / "日本").mkdir()
    problem = expect_refusal(top, top / "日本")
    assert "project.toml" in problem.message
    assert [check_remedy(remedy) for remedy in problem.remedies] == [[]]
    assert locate(top, project_file(top / "日本", "name = 'Japan'")).definition == "japan"


def test_names_on_disk_that_are_no_text(top: Path) -> None:
    odd = top / os.fsdecode(b"o\xffd")
    odd.mkdir()
    (top / "link").symlink_to(odd)
    assert "not UTF-8" in expect_refusal(top, top / "link").message
    assert expect_refusal(top, top / "od").candidates == ()


def test_the_work_tree_of_a_path_that_is_not_there_yet(tmp_path: Path) -> None:
    disk = Disk(home=str(tmp_path / "home"), temporary=())
    main = tmp_path / "main"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    (main / "real.txt").touch()
    (main / "link.txt").symlink_to("real.txt")
    (tmp_path / "way").symlink_to(main)
    found = disk.find_work_tree("new/deep.txt", str(tmp_path / "way"))
    assert (found.path, found.top, found.common) == (f"{main}/new/deep.txt", str(main), f"{main}/.git")
    link = disk.find_work_tree("link.txt", str(main))
    assert (link.path, link.real) == (f"{main}/link.txt", f"{main}/real.txt")
    folder = disk.find_work_tree(str(main))
    assert (folder.path, folder.top) == (str(main), str(main))
    outside = disk.find_work_tree(str(tmp_path / "x"))
    assert (outside.top, outside.common) == (None, None)
    with pytest.raises(Refused, match="relative"):
        disk.find_work_tree("x")
