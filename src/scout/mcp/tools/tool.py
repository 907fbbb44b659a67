"""One tool as one row: its name, description, requests, and result line."""

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from scout.base.codec import build_schema, decode
from scout.base.outside import check_outside
from scout.base.refusal import BadRequest, Candidate, Refused, Remedy
from scout.policy.nearest import rank_names
from scout.protocol.request import Request

if TYPE_CHECKING:
    from scout.mcp.call import Call


class Argument(NamedTuple):
    """An argument: the request field that it sets, and its description where the field's does not fit.

    Without a field, `read` converts it into other arguments.
    """

    field: str
    says: str = ""


class Tool(NamedTuple):
    """A tool: its arguments, requests and result.

    `requests`: by the value of the argument `by`, or "" without it; if `by` is the only value, the argument
    is a boolean. `fixed`: fields that every call sets. `read` converts other arguments into these and fills
    in the `optional` ones. `shows`: result fields to return (default all). `line`: the result in one line.
    """

    name: str
    says: str
    requests: Mapping[str, type[Request[Any]]]
    arguments: Mapping[str, Argument]
    line: Callable[[Any], str]
    shows: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = {}
    act: "Callable[[Call, Any], Awaitable[Any]] | None" = None
    also: tuple[str, ...] = ()
    by: str = "move"
    main: bool = False
    read: Callable[[dict[str, Any]], dict[str, Any]] = dict
    optional: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the tool's arguments."""
        properties = {name: self._build_property(name, argument) for name, argument in self.arguments.items()}
        if self._moves:
            properties[self.by] = self._choice
        needed = [
            name
            for name, one in self.arguments.items()
            if all(one.field in list_required_fields(request) for request in self.requests.values())
            and name not in self.optional
        ]
        whole: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        return {**whole, "required": needed} if needed else whole

    def build_request(self, arguments: Mapping[str, Any]) -> Request[Any]:
        """Return the request of a call; a wrong argument is refused by name."""
        check_outside(dict(arguments))
        given = self.read({name: value for name, value in arguments.items() if value is not None})
        kind = self._choose_request(given.pop(self.by, "") if self._moves else "")
        fields = build_field_schemas(kind)
        for name in given:
            if name not in self.arguments or self.arguments[name].field not in fields:
                raise Refused(self._build_unknown(name, fields))
        renamed = {self.arguments[name].field: value for name, value in given.items()}
        return decode({**self.fixed, **renamed}, kind, strict=False)

    def call_for(self, remedy: Remedy) -> dict[str, Any] | None:
        """Return the arguments with which this tool performs a remedy; None if it cannot."""
        fields = {one.field: name for name, one in self.arguments.items()}
        for move, request in self.requests.items():
            if remedy.operation == request.operation or remedy.operation in self.also:
                if not remedy.parameters.keys() <= fields.keys():
                    return None
                given = {fields[name]: value for name, value in remedy.parameters.items()}
                return {**({self.by: self._is_yes_or_no or move} if move else {}), **given}
        return None

    @property
    def _moves(self) -> list[str]:
        return [move for move in self.requests if move]

    @property
    def _is_yes_or_no(self) -> bool:
        return self._moves == [self.by]

    @property
    def _choice(self) -> dict[str, Any]:
        return {"type": "boolean"} if self._is_yes_or_no else {"type": "string", "enum": self._moves}

    def _choose_request(self, move: object) -> type[Request[Any]]:
        if self._is_yes_or_no and isinstance(move, bool):
            move = self.by if move else ""
        if isinstance(move, str) and move in self.requests:
            return self.requests[move]
        ways = "true or false" if self._is_yes_or_no else f"one of {', '.join(self._moves)}"
        raise Refused(BadRequest(problem=f"expected {ways}, got '{str(move)[:60]}'", field=self.by))

    def _build_property(self, name: str, argument: Argument) -> dict[str, Any]:
        if not argument.field:
            return {"type": "string", "description": argument.says}
        kinds = self.requests.values()
        found = next(schemas for kind in kinds if argument.field in (schemas := build_field_schemas(kind)))
        described = found[argument.field]
        return {**described, "description": argument.says} if argument.says else described

    def _build_unknown(self, name: str, fields: Mapping[str, Any]) -> BadRequest:
        known = [one for one, argument in self.arguments.items() if argument.field in fields]
        near = rank_names(name[:60], known, 3)
        return BadRequest(
            problem=f"{self.name} has no argument '{name[:60]}' here; allowed: {', '.join(known) or 'none'}",
            field=name[:60],
            candidates=tuple(Candidate(address=one) for one in near),
        )


def map_request(request: type[Request[Any]]) -> Mapping[str, type[Request[Any]]]:
    return {"": request}


def build_arguments(*names: str, **others: Argument) -> dict[str, Argument]:
    """Return arguments named like their fields, then those with another name or description."""
    return {**{name: Argument(name) for name in names}, **others}


# Bounds that the daemon checks and reports; in a schema they would only cost tokens.
_LEFT_OUT = {"default", "maxLength", "minLength", "title"}


@functools.cache
def build_field_schemas(request: type[Request[Any]]) -> Mapping[str, dict[str, Any]]:
    """Return the short schema of each field of a request, by wire name."""
    definitions = build_schema([request])["$defs"]
    properties = definitions[request.__name__]["properties"]
    return {name: _shorten_schema(found, definitions) for name, found in properties.items()}


@functools.cache
def list_required_fields(request: type[Request[Any]]) -> frozenset[str]:
    """Return the wire names of the required fields."""
    return frozenset(one.encode_name for one in msgspec.structs.fields(request) if one.required)


def _shorten_schema(found: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without references, null alternatives and bounds that only the daemon checks."""
    if "$ref" in found:
        meant = definitions[found["$ref"].rpartition("/")[2]]
        said = {"description": found["description"]} if "description" in found else {}
        return {**_shorten_schema({**meant, "description": ""}, definitions), **said}
    short: dict[str, Any] = {
        name: value for name, value in found.items() if name not in _LEFT_OUT and value != ""
    }
    if "anyOf" in short:
        given = [one for one in short.pop("anyOf") if one.get("type") != "null"]
        assert len(given) == 1, found
        return {**_shorten_schema(given[0], definitions), **short}
    if "enum" in short:
        short = {"type": "string", **short}
    if "items" in short:
        short["items"] = _shorten_schema(short["items"], definitions)
    if "properties" in short:
        inner = cast("dict[str, Any]", short["properties"])
        short["properties"] = {name: _shorten_schema(one, definitions) for name, one in inner.items()}
    return short
