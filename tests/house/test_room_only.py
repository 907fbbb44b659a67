"""A requirement that no surface can show says why, and only then."""

from tests.contract.rows import is_surface, rows, tests_by_row


def test_a_row_for_rooms_only_has_a_reason_a_test_and_no_surface() -> None:
    claims = tests_by_row()
    for row in rows():
        reason = row.get("room_only")
        if reason is not None:
            assert len(reason) > 15, row
            assert "due" not in row, row
            tests = claims.get(row["id"], [])
            assert tests, row
            assert not any(map(is_surface, tests)), (row, tests)
