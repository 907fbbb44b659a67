"""The reference pages are what the code says today."""

import pytest

from tools import reference


@pytest.mark.parametrize("name", reference.PAGES)
def test_a_reference_page_is_current(name: str) -> None:
    written = (reference.FOLDER / f"{name}.md").read_text("utf-8")
    assert written == reference.page(name), f"docs/reference/{name}.md is stale: run ./dev docs"


def test_no_other_page_claims_to_be_generated() -> None:
    assert {file.stem for file in reference.FOLDER.glob("*.md")} == set(reference.PAGES)
