"""Records of other systems on the wire."""

import pytest

from scout.base.codec import decode, encode
from scout.base.refusal import Refused
from scout.protocol.imports.records import ImportedMessage, ImportedWork, ImportSystem, get_type
from scout.protocol.imports.requests import MOST_RECORDS, ImportRecords

MESSAGE = ImportedMessage(id="m", conversation="cnv_1", sender="agt_1", body="hello")


def test_each_record_names_its_type() -> None:
    work = ImportedWork(id="w", title="t", owner="agt_1", requester="operator")
    assert [get_type(one) for one in (MESSAGE, work)] == ["message", "work"]
    request = ImportRecords(system=ImportSystem.OPENSCOUT, records=(MESSAGE, work))
    assert decode(encode(request), ImportRecords) == request


@pytest.mark.parametrize(
    "records",
    [
        [{"type": "message", "id": "", "conversation": "c", "sender": "s", "body": "b"}],
        [{"type": "message", "id": "x" * 501, "conversation": "c", "sender": "s", "body": "b"}],
        [{"type": "token", "id": "t"}],
        [{"id": "t"}],
        [MESSAGE] * (MOST_RECORDS + 1),
    ],
)
def test_what_no_part_may_hold_is_refused(records: list[object]) -> None:
    with pytest.raises(Refused):
        decode(encode({"system": "openscout", "records": records}), ImportRecords)
