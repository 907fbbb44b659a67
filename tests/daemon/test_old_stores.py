"""A daemon that finds the store of an older version brings it forward and keeps a copy of what it was."""

from pathlib import Path

import pytest

from tests.daemon.daemons import daemon
from tests.store.old_store import load, stores

pytestmark = pytest.mark.slow


@pytest.mark.rows("R6-6")
def test_the_oldest_store_is_served_and_a_copy_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    load(stores()[1], home / "scout.db")
    (home / "scout.db").chmod(0o600)
    with daemon(home) as scout:
        found = scout.call("GET", "/v1/work?all=true").json["items"]
        assert [one["title"] for one in found] == ["fix the parser"]
        assert scout.call("GET", "/v1/resolve?address=@arc").json["path"].startswith("/me/agent/arc")
    assert [*home.glob("scout.db.before-*")]
