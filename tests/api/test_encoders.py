"""What is sent: every record of every result and event, under all its names, as the plain rules give it."""

import json
from typing import Any, TypeVar, cast, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.api.encoders import encode_result
from scout.base.codec import encode
from scout.base.record import Record
from scout.base.refusal import Remedy
from scout.model.ask import AskReceipt
from scout.model.conversation import Receipt
from scout.model.events.envelope import Changed
from scout.model.events.talk import Posted
from scout.model.noun import NOUNS
from scout.model.wire_names import OWN_IDS, to_wire
from scout.protocol.agents import Resolved
from scout.protocol.asks import FlightView
from scout.protocol.overview import Status
from scout.protocol.people.schedules import RunView
from scout.protocol.request import Page
from scout.protocol.tree.view import TreeAgent
from scout.protocol.work import WorkView
from tests.model.generate import records
from tests.model.samples import a_flight, an_agent

# The nouns, and results and payloads in which fields are left out or records are inside others.
SENT = {noun.record.__name__: noun.record for noun in NOUNS.values()} | {
    kind.__name__: kind
    for kind in (AskReceipt, FlightView, Posted, Resolved, RunView, Receipt, TreeAgent, WorkView)
}


def render(value: Any) -> Any:
    """The rules, written down plainly: `to_wire` for a record, and for each record inside it."""
    if isinstance(value, tuple | list):
        return [render(one) for one in cast("list[Any]", value)]
    if isinstance(value, Status) or not isinstance(value, Record):
        return json.loads(encode(value))
    fields = to_wire(value)
    for field in msgspec.structs.fields(type(value)):
        inner = getattr(value, field.name)
        if has_records(field.type) and inner and isinstance(inner, Record | tuple | list):
            fields[field.encode_name] = render(inner)
    for base, names in OWN_IDS.items():
        if isinstance(value, base):
            fields = {**dict.fromkeys(names, fields["id"]), **fields}
    if isinstance(value, Remedy):
        fields = {**fields, "why": value.why}  # sent even if it is empty
        fields.pop("command", None)
    return json.loads(encode(fields))


def has_records(kind: Any) -> bool:
    if kind is Any or isinstance(kind, TypeVar):
        return True
    if isinstance(kind, type) and issubclass(kind, Record):
        return True
    return any(has_records(argument) for argument in get_args(kind))


def drop_commands(value: Any) -> Any:
    """A remedy is sent with its command, which has tests of its own."""
    if isinstance(value, list):
        return [drop_commands(one) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        is_remedy = {"operation", "parameters", "why"} <= set(fields)
        return {k: drop_commands(v) for k, v in fields.items() if not (is_remedy and k == "command")}
    return value


@pytest.mark.parametrize("name", sorted(SENT))
@settings(max_examples=5)
@given(data=st.data())
def test_a_record_is_sent_as_the_plain_rules_say(name: str, data: st.DataObject) -> None:
    record = data.draw(records(SENT[name]))
    assert drop_commands(json.loads(encode_result(record))) == drop_commands(render(record))


def test_so_are_records_inside_a_page_and_a_change() -> None:
    for inner in (a_flight(), an_agent(definition_id="arc", project_root="/p")):
        for outer in (Page(items=(inner, inner)), Changed(record=inner, move="start"), (inner,), [inner]):
            assert json.loads(encode_result(outer)) == render(outer)


def test_a_record_is_not_changed_by_sending_it() -> None:
    change = Changed(record=a_flight(), move="start")
    before = encode(change)
    encode_result(change)
    assert encode(change) == before
