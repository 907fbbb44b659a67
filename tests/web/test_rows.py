"""A row of a list is small: what a list costs to paint does not depend on the machine, it is counted."""

import re

import pytest

from tests.surface.site import Site
from tests.web.visitor import Visitor

_MOST = {"/flights": (9, 750), "/agents": (8, 750), "/log": (10, 900)}  # elements and bytes of a row


@pytest.mark.parametrize("path", _MOST)
def test_a_row_has_few_elements_and_bytes(site: Site, path: str) -> None:
    worker = site.puller("rowcost-worker")
    site.ask(worker.address, "Count the elements of this row.")
    visitor = Visitor(site)
    visitor.enter()
    document = visitor.get(path).body.decode()
    rows = re.findall(r'<div role="row" class="row" data-key.*?</div>', document, re.DOTALL)
    assert rows
    elements, size = _MOST[path]
    assert max(len(re.findall(r"<[a-z]", row)) for row in rows) <= elements
    assert max(len(row) for row in rows) <= size + 200  # long words count, and are cut
