"""Arguments as JSON Schema, read off the fields of the requests: a parameter is described in one place."""

import functools
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from scout.base.codec import schema
from scout.protocol.request import Request

# Bounds that the daemon checks and names; a caller has nothing of them but their length.
_LEFT_OUT = {"default", "maxLength", "minLength", "title"}


@functools.cache
def field_schemas(request: type[Request[Any]]) -> Mapping[str, dict[str, Any]]:
    """The schema of each field of a request by its wire name, as short as it can be."""
    definitions = schema([request])["$defs"]
    properties = definitions[request.__name__]["properties"]
    return {name: _short(found, definitions) for name, found in properties.items()}


@functools.cache
def required_fields(request: type[Request[Any]]) -> frozenset[str]:
    """The wire names of what must be given."""
    return frozenset(one.encode_name for one in msgspec.structs.fields(request) if one.required)


def _short(found: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Without references, alternatives that mean "left out", and what only the daemon needs."""
    if "$ref" in found:
        meant = definitions[found["$ref"].rpartition("/")[2]]
        said = {"description": found["description"]} if "description" in found else {}
        return {**_short({**meant, "description": ""}, definitions), **said}
    short: dict[str, Any] = {
        name: value for name, value in found.items() if name not in _LEFT_OUT and value != ""
    }
    if "anyOf" in short:
        given = [one for one in short.pop("anyOf") if one.get("type") != "null"]
        assert len(given) == 1, found
        return {**_short(given[0], definitions), **short}
    if "enum" in short:
        short = {"type": "string", **short}
    if "items" in short:
        short["items"] = _short(short["items"], definitions)
    if "properties" in short:
        inner = cast("dict[str, Any]", short["properties"])
        short["properties"] = {name: _short(one, definitions) for name, one in inner.items()}
    return short
