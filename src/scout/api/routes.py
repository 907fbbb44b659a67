"""The routes, generated from the operation table and matched on the raw path.

An encoded slash therefore stays inside its segment: `/v1/agents/%2Fu1%2Ftelegram` is one agent.
"""

import re
from collections.abc import Iterable
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from scout.base.refusal import BadRequest, Candidate, Refused
from scout.model.problems.request import NotFound
from scout.policy.nearest import rank_names
from scout.protocol.operations import REQUESTS
from scout.protocol.request import Request

_PARAMETER = re.compile(r"\{(\w+)\}")
_LIMIT = 1024 * 1024
_ATTACHMENT_LIMIT = 14 * 1024 * 1024  # 10 MiB as base64, plus the other fields


class HttpRoute(NamedTuple):
    """The HTTP route of one operation; names are wire names."""

    request: type[Request[Any]]
    method: str
    template: str
    inside: tuple[str, ...]
    known: frozenset[str]
    lists: frozenset[str]
    texts: frozenset[str]
    integers: tuple[str, ...]
    floats: tuple[str, ...]
    objects: tuple[str, ...]
    limit: int
    has_body: bool
    empty: Request[Any] | None  # the request with no field given, if that is one


class RouteMatch(NamedTuple):
    """A route and the still encoded segments that fill its parameters."""

    route: HttpRoute
    segments: tuple[bytes, ...]


class WrongMethod(Exception):  # noqa: N818 (an answer, not a fault)
    """The path exists, but not with this method."""

    def __init__(self, method: str, allowed: Iterable[str]) -> None:
        super().__init__(method)
        self.allowed = sorted(allowed)
        ways = " or ".join(self.allowed)
        self.diagnostic = BadRequest(problem=f"the method here is {ways}, not {method[:20]}", field="method")


class _Node:
    """A node in the path tree: children by segment text, or one for any segment."""

    def __init__(self) -> None:
        self.next: dict[bytes, _Node] = {}
        self.any: _Node | None = None
        self.methods: dict[str, HttpRoute] = {}


class Routes:
    """All routes as a tree: finding one costs a lookup per segment."""

    def __init__(self, requests: Iterable[type[Request[Any]]] = REQUESTS) -> None:
        self._root = _Node()
        self.all = tuple(build_route(request) for request in requests if request.route)
        for route in self.all:
            self._add(route)

    def find(self, method: str, raw_path: bytes) -> RouteMatch:
        """Return the route of a path; an unknown path is refused with the nearest ones."""
        node, segments = self._root, list[bytes]()
        for segment in raw_path[1:].split(b"/"):
            step = node.next.get(segment)
            if step is None:
                step = node.any
                segments.append(segment)
                if step is None or not segment:
                    raise Refused(self._build_refusal(raw_path))
            node = step
        if not node.methods:
            raise Refused(self._build_refusal(raw_path))
        route = node.methods.get("GET" if method == "HEAD" else method)
        if route is None:
            raise WrongMethod(method, {*node.methods, *(["HEAD"] if "GET" in node.methods else ())})
        return RouteMatch(route, tuple(segments))

    def _add(self, route: HttpRoute) -> None:
        node = self._root
        for segment in route.template[1:].split("/"):
            if segment.startswith("{"):
                node.any = node.any or _Node()
                node = node.any
            else:
                node = node.next.setdefault(segment.encode(), _Node())
        assert route.method not in node.methods, route.template
        node.methods[route.method] = route

    def _build_refusal(self, raw_path: bytes) -> NotFound:
        path = raw_path.decode("latin-1")[:200]
        near = rank_names(path, {route.template for route in self.all}, 3)
        return NotFound(noun="path", id=path, candidates=tuple(Candidate(address=one) for one in near))


def build_route(request: type[Request[Any]]) -> HttpRoute:
    """Return the route of a request class."""
    method, _, template = request.route.partition(" ")
    fields = {field.encode_name: field for field in msgspec.structs.fields(request)}
    inside = tuple(_PARAMETER.findall(template))
    assert set(inside) <= set(fields), request
    kinds = {name: _list_kinds(field.type) for name, field in fields.items()}
    return HttpRoute(
        request=request,
        method=method,
        template=template,
        inside=inside,
        known=frozenset(fields),
        lists=frozenset(name for name, found in kinds.items() if tuple in found),
        texts=frozenset(name for name, found in kinds.items() if str in found),
        integers=tuple(field.name for name, field in fields.items() if int in kinds[name]),
        floats=tuple(field.name for name, field in fields.items() if float in kinds[name]),
        objects=tuple(field.name for name, field in fields.items() if dict in kinds[name]),
        limit=_ATTACHMENT_LIMIT if any(bytes in found for found in kinds.values()) else _LIMIT,
        has_body=method != "GET",
        empty=None if any(field.required for field in fields.values()) else request(),
    )


def _list_kinds(kind: Any) -> set[Any]:
    """Return the plain types that a field may hold."""
    if hasattr(kind, "__metadata__"):
        return _list_kinds(kind.__origin__)
    origin = get_origin(kind)
    if origin is None:
        return {kind}
    if origin in {tuple, list, dict}:
        return {origin}
    return {found for argument in get_args(kind) for found in _list_kinds(argument)}
