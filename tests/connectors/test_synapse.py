"""Where the real homeserver comes from: installed once, whole or not at all; said by name where it cannot be had."""

from pathlib import Path

import pytest

from tests.connectors import synapse


@pytest.mark.slow
def test_what_cannot_be_had_is_skipped_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": "/dev/null"}.items():
        monkeypatch.setenv(name, value)
    found, problem = synapse._had.__wrapped__()
    assert found is None
    assert problem.startswith("ERROR")
    monkeypatch.setattr(synapse, "_had", lambda: (None, problem))
    with pytest.raises(
        pytest.skip.Exception, match=r"NOT PROVED HERE: matrix-synapse@[\d.]+ is not installed: "
    ):
        synapse.require_synapse()
    assert not (tmp_path / "scout-tests" / "python" / f"matrix-synapse-{synapse.VERSION}" / "whole").exists()
