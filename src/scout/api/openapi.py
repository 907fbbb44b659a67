"""The OpenAPI document, generated from the operation table."""

import functools
import re
from collections import defaultdict
from typing import Any

import msgspec

from scout.api.asgi import Response
from scout.api.responses import INTERNAL
from scout.api.routes import HttpRoute, Routes
from scout.base.codec import encode
from scout.base.refusal import get_code, get_status
from scout.base.time import Time
from scout.model.problems.diagnostics import ALL
from scout.model.wire_names import SYNONYMS
from scout.protocol.log import Watch
from scout.protocol.operation import build_operation
from scout.protocol.request import get_result_type

_REFERENCE = "#/components/schemas/"
_UNNAMEABLE = re.compile(r"[^A-Za-z0-9._-]+")

_INTRODUCTION = (
    "Every operation of Scout. Send the text of the `token` file, or an agent's token, as "
    "`Authorization: Bearer …`. Every refusal is a problem document with a `code`, its facts, candidates and "
    "remedies. Lists are pages of `{items, next}`; times are UTC with milliseconds."
)
_AS = "#/components/parameters/ScoutAs"
_DIRECTORY = "#/components/parameters/ScoutDirectory"
_KEY = "#/components/parameters/IdempotencyKey"


@functools.cache
def build_response(version: str) -> Response:
    """Return the document as a response."""
    return Response(encode(build_document(version)))


@functools.cache
def build_document(version: str) -> dict[str, Any]:
    """Return the document. It is built once, because it does not change while Scout runs."""
    routes = Routes().all
    shapes, schemas = _build_schemas(routes)
    paths: dict[str, dict[str, Any]] = defaultdict(dict)
    for route, (fields, result) in zip(routes, shapes, strict=True):
        paths[route.template][route.method.lower()] = _build_operation(route, fields, result)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Scout", "version": version, "description": _INTRODUCTION},
        "paths": dict(paths),
        "security": [{"token": []}],
        "components": {
            "schemas": _add_synonyms(schemas) | {"Problem": _PROBLEM},
            "responses": {
                f"Refused{status}": _build_refusal(status, codes) for status, codes in _list_codes().items()
            },
            "parameters": _PARAMETERS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _build_operation(route: HttpRoute, fields: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    row = build_operation(route.request)
    found: dict[str, Any] = {
        "operationId": row.name,
        "tags": [route.template.split("/")[2]],
        "summary": row.says,
        "description": f"Allowed: {row.permission}.",
        "parameters": _build_parameters(route, fields),
        "responses": {str(route.request.status): _build_success(route, result), **_list_refusals(route)},
    }
    if route.has_body:
        found["requestBody"] = _build_body(route, fields)
    return found


def _build_parameters(route: HttpRoute, fields: dict[str, Any]) -> list[dict[str, Any]]:
    required: list[str] = fields.get("required", [])
    found = [{"$ref": _AS}, {"$ref": _DIRECTORY}]
    if "idempotencyKey" in route.known:
        found.append({"$ref": _KEY})
    found += [
        _build_parameter(name, "path", fields["properties"][name], required=True) for name in route.inside
    ]
    if not route.has_body:
        found += [
            _build_parameter(name, "query", kind, required=name in required)
            for name, kind in fields.get("properties", {}).items()
            if name not in route.inside
        ]
    return found


def _build_parameter(name: str, place: str, kind: dict[str, Any], *, required: bool) -> dict[str, Any]:
    plain = dict(kind)
    says = plain.pop("description", "")
    plain.pop("default", None)
    if "anyOf" in plain:  # a query cannot express null
        choices = [one for one in plain.pop("anyOf") if one != {"type": "null"}]
        plain |= choices[0] if len(choices) == 1 else {"anyOf": choices}
    if place == "path":
        plain["minLength"] = 1
    found: dict[str, Any] = {"name": name, "in": place, "required": required, "schema": plain}
    return {**found, "description": says} if says else found


def _build_body(route: HttpRoute, fields: dict[str, Any]) -> dict[str, Any]:
    properties = {name: kind for name, kind in fields["properties"].items() if name not in route.inside}
    required = [name for name in fields.get("required", ()) if name not in route.inside]
    kind: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        kind["required"] = required
    return {"required": bool(required), "content": {"application/json": {"schema": kind}}}


def _build_success(route: HttpRoute, result: dict[str, Any]) -> dict[str, Any]:
    if route.request is Watch:
        says = "Events: `id` is the number, `event` the type, `data` the event. `dropped` says why it ends."
        return {"description": says, "content": {"text/event-stream": {"schema": {"type": "string"}}}}
    return {"description": "Done.", "content": {"application/json": {"schema": result}}}


def _list_refusals(route: HttpRoute) -> dict[str, Any]:
    without: set[int] = set() if route.has_body else {413, 415}
    return {
        str(status): {"$ref": f"#/components/responses/Refused{status}"}
        for status in sorted(_list_codes())
        if status not in without
    }


@functools.cache
def _list_codes() -> dict[int, list[str]]:
    """Return the diagnostic codes of each HTTP status."""
    found: dict[int, list[str]] = defaultdict(list)
    for diagnostic in ALL:
        found[get_status(diagnostic)].append(get_code(diagnostic))
    found[415].append("bad_request")
    found[500].append(INTERNAL)
    return dict(found)


def _build_refusal(status: int, codes: list[str]) -> dict[str, Any]:
    of_status = {"properties": {"status": {"const": status}, "code": {"enum": codes}}}
    kind = {"allOf": [{"$ref": f"{_REFERENCE}Problem"}, of_status]}
    says = f"Refused: {', '.join(codes)}."
    return {"description": says, "content": {"application/problem+json": {"schema": kind}}}


def _build_schemas(routes: tuple[HttpRoute, ...]) -> tuple[list[tuple[dict[str, Any], ...]], dict[str, Any]]:
    """Return the schemas of each route's fields and result, and the records they refer to."""
    kinds = [kind for route in routes for kind in (route.request, get_result_type(route.request))]
    template = _REFERENCE + "{name}"
    found, records = msgspec.json.schema_components(kinds, schema_hook=_build_schema, ref_template=template)
    text = msgspec.json.encode([found, records]).decode()
    for name in records:
        text = text.replace(f'"{_REFERENCE}{name}"', f'"{_REFERENCE}{_make_valid_name(name)}"')
    shapes, named = msgspec.json.decode(text)
    fields = [named.pop(shape["$ref"].removeprefix(_REFERENCE)) for shape in shapes[::2]]
    return list(zip(fields, shapes[1::2], strict=True)), {
        _make_valid_name(name): kind for name, kind in named.items()
    }


def _build_schema(kind: type) -> dict[str, Any]:
    return {"type": "string", "format": "date-time"} if kind is Time else {"type": "string"}


def _add_synonyms(schemas: dict[str, Any]) -> dict[str, Any]:
    """Return the response schemas, extended by the field names that other integrations use."""
    for kind in schemas.values():
        properties: dict[str, Any] = kind.get("properties", {})
        for own, seed in SYNONYMS.items():
            if own in properties and seed not in properties:
                properties[seed] = {**properties[own], "description": f"The same as `{own}`."}
    return schemas


def _make_valid_name(name: str) -> str:
    """Return a name that is valid in a reference; a page over the union of all events is a page of events."""
    if " | " in name:
        name = f"{name.partition('[')[0]}_Event"
    return _UNNAMEABLE.sub("_", name).strip("_")


# Characters allowed in a header; all others are percent-encoded.
_ENCODED = "^([!-$&-~]|%[0-9A-Fa-f]{2})([ -$&-~]|%[0-9A-Fa-f]{2})*$"

_PARAMETERS: dict[str, Any] = {
    "ScoutAs": {
        "name": "Scout-As",
        "in": "header",
        "description": "The address to act as, if your token may act for it. May be percent-encoded.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": _ENCODED},
    },
    "ScoutDirectory": {
        "name": "Scout-Directory",
        "in": "header",
        "description": "The caller's directory; short names are resolved from it. May be percent-encoded.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 4096, "pattern": _ENCODED},
    },
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same as `idempotencyKey`.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": _ENCODED},
    },
}

_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "The refusal as data. The other fields depend on the code.",
    "required": ["type", "title", "status", "detail", "code", "message", "candidates", "remedies"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "message": {"type": "string"},
        "candidates": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["address"],
                "properties": {"address": {"type": "string"}, "why": {"type": "string"}},
            },
        },
        "remedies": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["operation", "parameters"],
                "properties": {
                    "operation": {"type": "string"},
                    "parameters": {"type": "object"},
                    "why": {"type": "string"},
                    "command": {"type": "string"},
                },
            },
        },
    },
}
