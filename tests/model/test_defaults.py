"""Records are stored without the fields that have their defaults, so a default is part of the stored form."""

import json
from pathlib import Path
from typing import Any

import msgspec

from scout.base.codec import encode_for_store
from scout.model.noun import NOUNS

FILE = Path(__file__).parents[1] / "data" / "defaults.json"


def list_defaults() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for noun in NOUNS.values():
        fields = msgspec.structs.fields(noun.record)
        given = {
            one.encode_name: one.default
            for one in fields
            if one.default not in (msgspec.NODEFAULT, msgspec.UNSET)
        }
        made = {
            one.encode_name: one.default_factory()
            for one in fields
            if one.default_factory is not msgspec.NODEFAULT
        }
        found[noun.record.__name__] = json.loads(encode_for_store({**given, **made}))
    return found


def test_no_default_of_a_stored_record_has_changed() -> None:
    """A stored record that lacks a field has the default of the day on which it was written.

    A new field may be added to the file. A default that must change needs an event of a new version, and a
    migration that writes the old value into the rows.
    """
    assert list_defaults() == json.loads(FILE.read_text())
