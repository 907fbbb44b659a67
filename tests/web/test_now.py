"""Now: problems of this machine, and who decides an item."""

import os
from pathlib import Path

import pytest

import scout
from scout.daemon.installation import SystemInstallation
from tests.cli.running import a_shell, start_daemon
from tests.daemon.daemons import Daemon
from tests.surface.site import Site
from tests.web.visitor import Visitor


@pytest.fixture
def visitor(site: Site) -> Visitor:
    made = Visitor(site)
    made.enter()
    return made


@pytest.mark.rows("R4.4-23")
def test_a_default_harness_that_is_not_ready_is_a_problem_on_every_surface() -> None:
    with a_shell() as shell:
        (shell.home / "config.toml").write_text("harness = 'codex'\n")
        site = Site(shell, Daemon(shell.home, start_daemon(shell)))
        site.get("/v1/runtimes")  # the harnesses have been checked once
        (problem,) = [one for one in site.get("/v1/now")["problems"] if not one.get("hint")]
        assert problem["part"] == "harness"
        assert problem["remedies"][0]["command"] == "scout runtimes"
        visitor = Visitor(site)
        visitor.enter()
        shown = visitor.get("/").body.decode()
        assert "This machine" in shown
        assert "codex, the default harness, is not ready" in shown
        assert 'data-copy="scout runtimes"' in shown
        said = shell.say("now")
        assert "codex, the default harness, is not ready" in said
        assert "try: scout runtimes" in said


def test_a_newer_version_on_disk_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "__init__.py"
    file.write_text('__version__ = "9.8"\n')
    here = SystemInstallation(str(tmp_path), file)
    assert here.read_version() == "9.8"
    file.write_text('__version__ = "9.9"\n')
    os.utime(file, ns=(1, 1))
    assert here.read_version() == "9.9"
    assert (here.count_free_bytes() or 0) > 0
    gone = SystemInstallation(str(tmp_path / "gone"), tmp_path / "gone.py")
    assert (gone.read_version(), gone.count_free_bytes()) == ("", None)
    assert SystemInstallation(str(tmp_path)).read_version() == scout.__version__


@pytest.mark.rows("R4.4-24")
def test_an_item_says_who_decides_it(site: Site, visitor: Visitor) -> None:
    mine = site.post("/v1/attention/need", question="May I decide this myself?")
    assert (mine["raisedByYou"], mine["mayDecide"], mine["mayDismiss"]) == (True, False, True)
    shown = visitor.get("/inbox").body.decode()
    item = shown.partition(f'data-key="{mine["id"]}"')[2].partition("</article>")[0]
    assert "You raised it, and nobody approves their own request." in item
    assert "Another person" not in shown
    assert 'data-operation="attention.dismiss"' in item
    assert 'data-operation="attention.approve"' not in item
    agent = site.agent("decide-arc").post("/v1/attention", title="May the person decide?")
    row = (
        visitor.get("/inbox")
        .body.decode()
        .partition(f'data-key="{agent["id"]}"')[2]
        .partition("</article>")[0]
    )
    assert 'data-operation="attention.approve"' in row
    assert "nobody approves" not in row
    seq = site.get("/v1/log?newest=1&limit=1")["items"][-1]["seq"]
    site.post(f"/v1/attention/{agent['id']}/dismiss")
    past = visitor.get(f"/inbox?at={seq}").body.decode()
    then = past.partition(f'data-key="{agent["id"]}"')[2].partition("</article>")[0]
    assert "It was waiting for me." in then
