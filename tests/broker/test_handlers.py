"""The handler table: every operation with a route has one row, and its manner fits what it does."""

import inspect

from scout.broker.handlers import HANDLERS, Manner
from scout.protocol.log import Watch
from scout.protocol.operations import REQUESTS


def test_every_operation_with_a_route_has_one_row() -> None:
    # A mapping holds a key once. `Watch` is a stream: LocalScout.watch answers it.
    assert set(HANDLERS) == {request for request in REQUESTS if request.route} - {Watch}


def test_a_manner_fits_its_function_and_its_request() -> None:
    for request, row in HANDLERS.items():
        assert inspect.iscoroutinefunction(row.function) is (row.manner is Manner.ASYNC), request
        if row.manner is not Manner.ASYNC:
            assert request.writes is (row.manner is not Manner.READ), request


def test_every_request_with_a_wait_says_how_it_waits() -> None:
    for request, row in HANDLERS.items():
        waits = "wait" in request.__struct_fields__
        assert waits is (row.wait is not None or (waits and row.manner is Manner.ASYNC)), request


def test_a_request_names_its_own_fields() -> None:
    for request in REQUESTS:
        for name in (request.folder_field, request.settings_field):
            assert not name or name in request.__struct_fields__, (request, name)
