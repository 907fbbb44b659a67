import json
import re

import pytest

from scout.base.refusal import get_code
from scout.model.events import event_types
from scout.model.noun import NOUNS
from scout.model.problems import diagnostics
from scout.model.schema import RECORDS, build_model_schema

CAMEL = re.compile(r"[a-z][A-Za-z0-9]*")


def test_the_schema_covers_every_noun_event_and_diagnostic() -> None:
    defined = set(build_model_schema()["$defs"])
    wanted = {noun.record.__name__ for noun in NOUNS.values()}
    wanted |= {kind.__name__ for kind in (*event_types.ALL, *diagnostics.ALL)}
    assert wanted <= defined
    assert {kind.__name__ for kind in RECORDS} <= defined


def test_it_is_plain_json_and_every_reference_leads_somewhere() -> None:
    text = json.dumps(build_model_schema())
    named = set(re.findall(r'"\$ref": "#/\$defs/([^"]+)"', text))
    assert named <= set(build_model_schema()["$defs"])


@pytest.mark.rows("R2.1-37")
def test_wire_names_are_camel_case() -> None:
    names = {name for one in build_model_schema()["$defs"].values() for name in one.get("properties", {})}
    assert [name for name in names if not CAMEL.fullmatch(name)] == []
    assert "systemPrompt" in names


def test_a_type_is_told_by_its_tag() -> None:
    defined = build_model_schema()["$defs"]
    for kind in event_types.ALL:
        assert defined[kind.__name__]["properties"]["type"] == {"enum": [event_types.get_event_type(kind)]}
    for kind in diagnostics.ALL:
        assert defined[kind.__name__]["properties"]["code"] == {"enum": [get_code(kind)]}


def test_it_is_made_once() -> None:
    assert build_model_schema() is build_model_schema()
