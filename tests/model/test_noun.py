import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scout.base.codec import decode, encode, encode_for_store
from scout.base.machine import Mutable
from scout.base.record import Record
from scout.model.ask import AskReceipt
from scout.model.conversation import Member, Receipt
from scout.model.noun import NOUNS, Noun
from scout.model.ref import RefKind
from tests.model.generate import records, wire_names

RECORDS = [*(noun.record for noun in NOUNS.values()), Member, Receipt, AskReceipt]
WITHOUT_STATES = {RefKind.CONVERSATION, RefKind.MESSAGE, RefKind.ASK, RefKind.USAGE}
NEVER_CHANGE = {RefKind.MESSAGE, RefKind.ASK, RefKind.USAGE}


def test_every_noun_is_in_the_table() -> None:
    assert set(NOUNS) == set(RefKind)
    assert len({noun.prefix for noun in NOUNS.values()}) == len(NOUNS)


@pytest.mark.parametrize("noun", NOUNS.values(), ids=lambda noun: noun.kind)
def test_what_changes_has_a_revision_and_what_has_states_a_machine(noun: Noun) -> None:
    assert issubclass(noun.record, Mutable) is (noun.kind not in NEVER_CHANGE)
    assert (noun.machine is None) is (noun.kind in WITHOUT_STATES)
    assert {"id", "createdAt"} <= wire_names(noun.record)


@pytest.mark.parametrize(
    "noun", [noun for noun in NOUNS.values() if noun.machine], ids=lambda noun: noun.kind
)
def test_a_record_begins_where_its_machine_begins(noun: Noun) -> None:
    assert noun.machine is not None
    field = "lifecycle" if noun.kind is RefKind.AGENT else "state"
    defaults = {known.name: known.default for known in msgspec.structs.fields(noun.record)}
    assert defaults[field] is noun.machine.initial


@pytest.mark.parametrize(
    "noun", [noun for noun in NOUNS.values() if noun.machine], ids=lambda noun: noun.kind
)
def test_no_lifecycle_deletes_and_every_state_can_be_reached(noun: Noun) -> None:
    assert noun.machine is not None
    reached, table = {noun.machine.initial}, noun.machine.table
    for _ in table:
        reached |= {after for state in reached for after in table[state].values()}
    assert reached == set(noun.machine.states)
    assert noun.machine.terminal <= noun.machine.settled


def test_only_times_of_a_last_sign_are_volatile() -> None:
    volatile = {noun.kind: sorted(noun.volatile) for noun in NOUNS.values() if noun.volatile}
    assert volatile == {
        RefKind.AGENT: ["last_active_at"],
        RefKind.ENDPOINT: ["last_seen"],
        RefKind.SESSION: ["last_event_at"],
        RefKind.KEY: ["last_used_at"],
        RefKind.NODE: ["last_seen"],
        RefKind.TOKEN: ["last_used_at"],
    }
    for kind, names in volatile.items():
        assert set(names) <= set(NOUNS[kind].record.__struct_fields__)


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
@settings(max_examples=25)
@given(data=st.data())
def test_sent_or_stored_a_record_comes_back(kind: type[Record], data: st.DataObject) -> None:
    one = data.draw(records(kind))
    assert decode(encode(one), kind) == one
    assert decode(encode_for_store(one), kind) == one
